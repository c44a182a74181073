"""PCIe links, power supplies and fans from the management controller over Redfish (DMTF DSP0266, DSP2046).

PCIeDevice.PCIeInterface, PCIeFunction and PCIeSlots have the links. PowerSupply and Fan are in PowerSubsystem and
ThermalSubsystem, in older controllers in Power and Thermal.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from http.client import HTTPException
from time import monotonic
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ..models.facts.bmc import BmcLink, BmcPart
from ..models.facts.machine import Pci
from ..models.facts.pcie_rates import WIDTHS, speed_of
from ..models.facts.reason import Reason
from ..models.facts.records import Evidence, NotChecked, Record
from .host.host import Host, Unreadable

_DEVICES = "sys/bus/pci/devices"
_REQUEST_SECONDS, _SECONDS, _MOST = 5.0, 60.0, 1000  # per request; for all requests; number of requests
_LONGEST = 4 << 20  # bytes of a resource
_PATH = re.compile(r"/redfish/v1(?:/[\w.~%:@!$&'()*+,;=#-]{0,200}){0,20}")
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,4})")
_GENERATION = re.compile("Gen([1-7])")
_LINK = ("width", "max_width", "slot_width", "speed", "max_speed", "slot_speed")  # fields of BmcLink
_HOW = "check url, user and password; a browser shows URL/redfish/v1/"


class Controller(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file of --redfish: how to reach the management controller."""

    url: str  # "https://bmc.example"
    user: str = ""
    password: str = ""
    ca_file: str | None = None  # the certificate that signed the controller's
    verify: bool = True  # false: accept any certificate

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ValueError("url: the address must begin with http:// or https://")
        if "@" in self.url:  # messages show the address
            raise ValueError("url: give user and password as keys of their own")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would send the password to another server."""

    def redirect_request(self, *args: Any) -> None:
        return None


class _Session:
    """Reads resources within the limits. Keeps the first failure."""

    def __init__(self, controller: Controller) -> None:
        """Raises OSError if `ca_file` cannot be read."""
        trust = ssl.create_default_context(cafile=controller.ca_file)
        if not controller.verify:
            trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        self._open = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=trust)).open
        self._url, self._until, self._left = controller.url.rstrip("/"), monotonic() + _SECONDS, _MOST
        self._headers = {"Accept": "application/json"}
        if controller.user:
            token = base64.b64encode(f"{controller.user}:{controller.password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"
        self.failure: tuple[Reason, str, str] | None = None  # reason, path, detail

    def get(self, path: object) -> Mapping[str, Any]:
        """The resource at a path; empty if it cannot be read."""
        if not (isinstance(path, str) and _PATH.fullmatch(path)) or self.failure:
            return {}
        self._left -= 1
        if self._left < 0 or monotonic() > self._until:
            return self._failed(Reason.NO_ANSWER, path, f"more than {_MOST} resources, or more than {_SECONDS:g} s")
        request = urllib.request.Request(f"{self._url}{path}", headers=self._headers)
        try:
            with self._open(request, timeout=_REQUEST_SECONDS) as answer:
                value = json.loads(answer.read(_LONGEST))
        except urllib.error.HTTPError as refused:
            if refused.code == 404:
                return {}
            reason = Reason.PERMISSION if refused.code in (401, 403) else Reason.OTHER
            return self._failed(reason, path, f"{refused.code} {refused.reason}")
        except (OSError, ValueError, RecursionError, HTTPException) as failed:
            timed_out = "timed out" in str(failed)
            return self._failed(Reason.NO_ANSWER if timed_out else Reason.UNREADABLE, path, _why(failed))
        return value if isinstance(value, dict) else {}

    def members(self, resource: Mapping[str, Any], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Path and content of each member of the collection that a resource links."""
        for one in _list(self.get(_link(resource.get(name))), "Members"):
            path = _link(one)
            if path and (content := self.get(path)):
                yield path, content

    def _failed(self, reason: Reason, path: str, detail: str) -> Mapping[str, Any]:
        self.failure = reason, path, detail
        return {}


def _why(failed: Exception) -> str:
    """Why there was no answer. A server of another protocol can have sent any bytes."""
    text = "not an answer of HTTP" if isinstance(failed, HTTPException) else str(failed)
    return text if text.isprintable() else repr(text)


def read_redfish(controller: Controller, host: Host) -> Iterator[Record]:
    """The links of devices that the kernel knows, power supplies and fans, and why something was not read."""
    try:
        known = known_devices(host)
    except Unreadable as refused:
        yield _unread(Reason.UNREADABLE, _DEVICES, str(refused))
    else:
        yield from ask(controller, known)


def known_devices(host: Host) -> frozenset[str]:
    """The PCI addresses that the kernel knows. Raises Unreadable."""
    return frozenset(host.list(_DEVICES))


def ask(controller: Controller, known: frozenset[str]) -> Iterator[Record]:
    """As read_redfish, for these PCI addresses. It does not use the host, so it can run in another thread."""
    try:
        session = _Session(controller)
    except OSError as refused:
        yield _unread(Reason.UNREADABLE, controller.ca_file or "", str(refused))
        return
    found = [
        one
        for _, chassis in session.members(session.get("/redfish/v1/"), "Chassis")
        for one in (*_links(session, chassis, known), *_parts(session, chassis))
    ]
    yield from found
    if session.failure:
        yield _unread(*session.failure)
    elif not any(isinstance(one, BmcLink | Pci) for one in found):
        why = "the controller lists no PCIe link of a device that the kernel knows"
        yield _unread(Reason.NOT_SUPPORTED, "/redfish/v1/Chassis", why)


def late(seconds: float) -> NotChecked:
    """The controller has not answered for so many seconds."""
    return _unread(Reason.NO_ANSWER, "/redfish/v1/", f"no complete answer for {seconds:.0f} s")


def _unread(reason: Reason, path: str, detail: str) -> NotChecked:
    return NotChecked(what="BmcLink", subject="node", reason=reason, path=f"Redfish {path}", detail=detail, how=_HOW)


def _links(session: _Session, chassis: Mapping[str, Any], known: frozenset[str]) -> Iterator[Record]:
    slots = {
        _link(device): slot
        for slot in _list(session.get(_link(chassis.get("PCIeSlots"))), "Slots")
        for device in _list(slot.get("Links"), "PCIeDevice")
    }
    for path, device in session.members(chassis, "PCIeDevices"):
        interface = device.get("PCIeInterface")
        if not isinstance(interface, dict):
            continue
        addresses = (_address(function) for _, function in session.members(device, "PCIeFunctions"))
        address = min((one for one in addresses if one in known), default=None, key=str)
        if address:
            yield from _link_facts(path, address, interface, slots.get(path, {}))


def _link_facts(path: str, address: str, interface: Mapping[str, Any], slot: Mapping[str, Any]) -> Iterator[Record]:
    """The link as the controller sees it, and its width beside that of the kernel: a difference is a conflict."""
    link = BmcLink(
        key=address,
        width=_lanes(interface.get("LanesInUse")),
        max_width=_lanes(interface.get("MaxLanes")),
        slot_width=_lanes(slot.get("Lanes")),
        speed=_speed(interface.get("PCIeType")),
        max_speed=_speed(interface.get("MaxPCIeType")),
        slot_speed=_speed(slot.get("PCIeType")),
    )
    known = {name: value for name in _LINK if (value := getattr(link, name)) is not None}
    cite = Evidence(f"Redfish {path}", ", ".join(f"{name} {value}" for name, value in known.items()))
    if known:
        yield replace(link, cites=dict.fromkeys(known, cite))
    if link.width:
        yield Pci(key=address, width=link.width, cites={"width": cite})


def _parts(session: _Session, chassis: Mapping[str, Any]) -> Iterator[BmcPart]:
    power = session.get(_link(chassis.get("PowerSubsystem")))
    thermal = session.get(_link(chassis.get("ThermalSubsystem")))
    for path, one in session.members(power, "PowerSupplies"):
        yield from _part("power supply", path, one)
    for path, one in session.members(thermal, "Fans"):
        yield from _part("fan", path, one)
    for one in () if power else _list(session.get(_link(chassis.get("Power"))), "PowerSupplies"):
        yield from _part("power supply", _link(one) or str(one.get("MemberId")), one)
    for one in () if thermal else _list(session.get(_link(chassis.get("Thermal"))), "Fans"):
        yield from _part("fan", _link(one) or str(one.get("MemberId")), one)


def _part(kind: Literal["power supply", "fan"], path: str, one: Mapping[str, Any]) -> Iterator[BmcPart]:
    status, name = one.get("Status"), one.get("Name") or one.get("FanName") or one.get("MemberId")
    health = status.get("Health") if isinstance(status, dict) and status.get("State") != "Absent" else None
    if health in ("OK", "Warning", "Critical") and isinstance(name, str) and name.isprintable():
        cite = Evidence(f"Redfish {path}", f"{name}: {health}"[:300])
        cites = {"health": cite, "name": cite, "kind": cite}
        yield BmcPart(key=path, kind=kind, name=name[:100], health=health, cites=cites)


def _address(function: Mapping[str, Any]) -> str | None:
    """The PCI address of a PCIeFunction, whose numbers are hexadecimal texts: "0x5E". None: it has none."""
    numbers = [_number(function.get(name)) for name in ("SegmentNumber", "BusNumber", "DeviceNumber", "FunctionNumber")]
    segment, bus, device, number = numbers[0] or 0, *numbers[1:]
    if bus is None or device is None or number is None or bus > 0xFF or device > 0x1F or number > 7:
        return None
    return f"{segment:04x}:{bus:02x}:{device:02x}.{number}"


def _number(text: object) -> int | None:
    if isinstance(text, int) and not isinstance(text, bool):
        return text if 0 <= text < 1 << 16 else None
    found = _HEX.fullmatch(text) if isinstance(text, str) else None
    return int(found[1], 16) if found else None


def _lanes(value: object) -> int | None:
    return value if isinstance(value, int) and value in WIDTHS and not isinstance(value, bool) else None


def _speed(value: object) -> float | None:
    """Transfers per second of a PCIeTypes: "Gen5". None: of no known generation."""
    found = _GENERATION.fullmatch(value) if isinstance(value, str) else None
    return speed_of(int(found[1])) if found else None


def _link(value: object) -> str | None:
    """The path of a link: {"@odata.id": "/redfish/v1/Chassis/1"}."""
    path = value.get("@odata.id") if isinstance(value, dict) else None
    return path if isinstance(path, str) else None


def _list(resource: object, name: str) -> list[Mapping[str, Any]]:
    values = resource.get(name) if isinstance(resource, dict) else None
    return [one for one in values if isinstance(one, dict)] if isinstance(values, list) else []
