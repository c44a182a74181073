"""A management controller: resources of a mock-up, served with a password."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, TypeAlias

Resources: TypeAlias = Mapping[str, Any]
CHASSIS = "/redfish/v1/Chassis/1"
_TOKEN = base64.b64encode(b"reader:secret").decode()


def mockup(
    devices: Sequence[tuple[str, int, int]], slots: Mapping[int, int], health: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Resources for devices (address, lanes in use, most lanes), the lanes of the slot of each, and parts' health."""
    parts = health or {}
    resources: dict[str, Any] = {
        "/redfish/v1/": {"Chassis": {"@odata.id": "/redfish/v1/Chassis"}},
        "/redfish/v1/Chassis": _collection([CHASSIS]),
        CHASSIS: {name: {"@odata.id": f"{CHASSIS}/{name}"} for name in ("PCIeDevices", "PCIeSlots", "PowerSubsystem")}
        | {"ThermalSubsystem": {"@odata.id": f"{CHASSIS}/ThermalSubsystem"}},
        f"{CHASSIS}/PCIeDevices": _collection([f"{CHASSIS}/PCIeDevices/{n}" for n in range(len(devices))]),
        f"{CHASSIS}/PCIeSlots": {
            "Slots": [
                {"Lanes": lanes, "Links": {"PCIeDevice": [{"@odata.id": f"{CHASSIS}/PCIeDevices/{number}"}]}}
                for number, lanes in slots.items()
            ]
        },
    }
    for number, (address, width, most) in enumerate(devices):
        resources |= _device(f"{CHASSIS}/PCIeDevices/{number}", address, width, most)
    for subsystem, kind in (("PowerSubsystem", "PowerSupplies"), ("ThermalSubsystem", "Fans")):
        resources |= _parts(f"{CHASSIS}/{subsystem}", kind, {one: parts[one] for one in parts if one[0] == kind[0]})
    return resources


def _device(path: str, address: str, width: int, most: int) -> dict[str, Any]:
    _, bus, rest = address.split(":")
    device, _, function = rest.partition(".")
    numbers = {"BusNumber": f"0x{bus.upper()}", "DeviceNumber": f"0x{device}", "FunctionNumber": int(function)}
    return {
        path: {
            "PCIeInterface": {"LanesInUse": width, "MaxLanes": most, "PCIeType": "Gen5"},
            "PCIeFunctions": {"@odata.id": f"{path}/PCIeFunctions"},
        },
        f"{path}/PCIeFunctions": _collection([f"{path}/PCIeFunctions/0"]),
        f"{path}/PCIeFunctions/0": numbers,
    }


def _parts(path: str, kind: str, health: Mapping[str, str]) -> dict[str, Any]:
    found = {
        f"{path}/{kind}/{name.replace(' ', '')}": {"Name": name, "Status": {"State": "Enabled", "Health": one}}
        for name, one in health.items()
    }
    return {path: {kind: {"@odata.id": f"{path}/{kind}"}}, f"{path}/{kind}": _collection(list(found)), **found}


def _collection(paths: Sequence[str]) -> dict[str, Any]:
    return {"Members": [{"@odata.id": path} for path in paths]}


@contextmanager
def controller(resources: Resources, hangs: Event | None = None) -> Iterator[tuple[str, list[str]]]:
    """Its URL, and the paths that were read. It hangs until the event is set."""
    asked: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            if hangs:
                hangs.wait(60)
            content, code = resources.get(self.path), 200
            if self.headers["Authorization"] != f"Basic {_TOKEN}":
                content, code = {}, 401
            self.send_response(code if content is not None else 404)
            self.end_headers()
            self.wfile.write(content if isinstance(content, bytes) else json.dumps(content or {}).encode())

        def log_message(self, format: str, *args: Any) -> None:
            """No words."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """The client closed the connection."""

    with Server(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()
