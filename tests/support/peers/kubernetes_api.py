"""A stub of the API of a cluster: nodes, ResourceSlices and DeviceTaintRules. It checks what it gets by schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from kubernetes_validate import validate

from linkgauge.agent.kubernetes.cluster_api import Cluster

VERSION = "1.37"


class Api:
    """One node `worker-3`, its slices, and the rules that clients made."""

    def __init__(self) -> None:
        self.node: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker-3"}, "status": {}}
        self.slices: list[dict[str, Any]] = []
        self.rules: dict[str, dict[str, Any]] = {}
        self.changes: list[str] = []  # "PATCH /api/v1/nodes/worker-3/status"
        self.refuse: list[int] = []  # codes of the next requests
        self.hangs = False
        self.hanging, self.go_on = Event(), Event()

    def answer(self, method: str, path: str, kind: str, body: Any) -> tuple[int, Any]:
        if self.hangs:
            self.hanging.set()
            self.go_on.wait(60)
        if self.refuse:
            return self.refuse.pop(0), {}
        if method != "GET":
            self.changes.append(f"{method} {path}")
        if path == "/api/v1/nodes/worker-3/status" and method == "PATCH":
            assert kind == "application/strategic-merge-patch+json"
            return 200, self._patch_status(body)
        if path == "/api/v1/nodes/worker-3":
            return 200, self.node
        if path == "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dworker-3":
            return 200, {"items": self.slices}
        if path.startswith("/apis/resource.k8s.io/v1/devicetaintrules"):
            return self._rule(method, path, body)
        return 404, {}

    def _patch_status(self, body: Any) -> Any:
        """Merge conditions by their type, as the API does for this kind of patch."""
        (condition,) = body["status"]["conditions"]
        conditions = self.node["status"].setdefault("conditions", [])
        known = next((one for one in conditions if one["type"] == condition["type"]), None)
        if known is None:
            conditions.append(known := {})
        known.update(condition)
        validate(self.node, VERSION, strict=True)
        return self.node

    def _rule(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if method == "POST":
            validate(body, VERSION, strict=True)
            self.rules[body["metadata"]["name"]] = body
        elif method == "DELETE":
            del self.rules[path.rpartition("/")[2]]
        else:
            labels = "app.kubernetes.io/managed-by%3Dlinkgauge%2Clinkgauge.io/node%3Dworker-3"
            assert path == f"/apis/resource.k8s.io/v1/devicetaintrules?labelSelector={labels}"
        return 200, {"items": list(self.rules.values())}


@contextmanager
def cluster_of(api: Api) -> Iterator[Cluster]:
    """The cluster with this API."""

    class Answers(BaseHTTPRequestHandler):
        def answer(self) -> None:
            assert self.headers["Authorization"] == "Bearer secret"
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
            code, content = api.answer(self.command, self.path, self.headers["Content-Type"], body)
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            """No words."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield Cluster(f"http://127.0.0.1:{server.server_address[1]}", "secret")
        finally:
            api.go_on.set()
            server.shutdown()
            thread.join()
