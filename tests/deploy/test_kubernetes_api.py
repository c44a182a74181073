"""The programs of deploy/kubernetes that call the cluster's API, with a stub of the API."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from pod_gate import LABEL, decide
from probe_jobs import GPUS, create_missing_jobs, job_of, missing

from linkgauge.agent.gate import decision
from linkgauge.agent.gate.decision import GateDecision
from linkgauge.agent.kubernetes.cluster_api import ApiError, Cluster, here
from linkgauge.agent.state import status_file
from tests.support.nodes.described import node, report_of

TEMPLATE = yaml.safe_load((Path(__file__).parents[2] / "deploy/kubernetes/probe/job.yaml").read_text())
NOW = datetime(2026, 11, 21, 3, tzinfo=timezone.utc)
PATCHES = ["application/strategic-merge-patch+json", "application/merge-patch+json"]
CAUSE = "GPU gpu1 (NVIDIA H100 SXM5 80GB) runs on x8, both ends support x16: 31.5 GB/s of 63.0 GB/s"


def of(name: str, gpus: int = 8, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": {GPUS: str(gpus)}}}


class Stub:
    """A cluster of some nodes, and the requests that it received."""

    def __init__(self, nodes: int = 100, closed: tuple[str, ...] = ()) -> None:
        self.nodes = [of(f"node{number:03}") for number in range(nodes)]
        self.closed, self.jobs = closed, list[dict[str, Any]]()
        self.changed: list[tuple[str, str, str, Any]] = []
        self.refuse: dict[str, int] = {}  # method -> code

    def get(self, path: str) -> list[Any]:
        if path.startswith("/api/v1/nodes"):
            return [of(name) for name in self.closed] if "linkgauge" in path else self.nodes
        return self.jobs


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
def cluster(stub: Stub) -> Iterator[Cluster]:
    class Answers(BaseHTTPRequestHandler):
        def answer(self) -> None:
            assert self.headers["Authorization"] == "Bearer secret"
            content = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
            code = stub.refuse.get(self.command, 200)
            if self.command != "GET" and code == 200:
                stub.changed.append((self.command, self.path, self.headers["Content-Type"], content))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps({"items": stub.get(self.path)} if self.command == "GET" else {}).encode())

        do_GET = do_POST = do_PATCH = answer  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            """No words."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield Cluster(f"http://127.0.0.1:{server.server_address[1]}", "secret")
        server.shutdown()


def seen(folder: Path, enforce: str = "true") -> GateDecision:
    """A node with a GPU on x8, as its service left it in the folder."""
    site = folder / "site.toml"
    site.write_text(f'[gate]\nenforce = {enforce}\ncodes = ["pcie-link-narrow"]\n')
    broken = report_of(node("hgx-h100", "\n[device.gpu1]\nwidth = 8\n"))
    status_file.write(str(folder), broken, time.time(), 15.0, {})
    return decision.decide(str(site), str(folder))


def test_a_closed_node_is_marked_before_the_pod_fails(tmp_path: Path, cluster: Cluster, stub: Stub) -> None:
    found = seen(tmp_path)
    assert decide(found, cluster, "node007", NOW) == (
        False,
        f"closed for pcie-link-narrow 0000:1e:00.0: {CAUSE} (verdict: failed)",
    )
    condition = {
        "type": "LinkgaugeClosed",
        "status": "True",
        "reason": "PcieLinkNarrow",
        "message": f"pcie-link-narrow 0000:1e:00.0: {CAUSE}",
        "lastHeartbeatTime": "2026-11-21T03:00:00Z",
        "lastTransitionTime": "2026-11-21T03:00:00Z",
    }
    assert stub.changed == [
        ("PATCH", "/api/v1/nodes/node007/status", PATCHES[0], {"status": {"conditions": [condition]}}),
        ("PATCH", "/api/v1/nodes/node007", PATCHES[1], {"metadata": {"labels": {LABEL: "pcie-link-narrow"}}}),
    ]


def test_as_it_ships_it_closes_nothing(tmp_path: Path, cluster: Cluster, stub: Stub) -> None:
    allowed, why = decide(seen(tmp_path, "false"), cluster, "node007", NOW)
    assert (allowed, stub.changed) == (True, [])
    assert why.startswith("open; with enforce = true it would close for pcie-link-narrow")


@pytest.mark.parametrize(
    ("closed", "allowed"),
    [((), False), (("node001",), False), (("node001", "node002"), True), (("node001", "node007"), False)],
)
def test_no_more_than_two_of_a_hundred_are_closed(
    tmp_path: Path, cluster: Cluster, stub: Stub, closed: tuple[str, ...], allowed: bool
) -> None:
    stub.closed = closed
    may_run, why = decide(seen(tmp_path), cluster, "node007", NOW)
    assert (may_run, bool(stub.changed)) == (allowed, not allowed)
    assert why.startswith("open, because 2 of 100 nodes are closed already; else closed for" if allowed else "closed")


def test_a_node_that_cannot_be_marked_is_no_closed_one(tmp_path: Path, cluster: Cluster, stub: Stub) -> None:
    stub.refuse["PATCH"] = 403
    with pytest.raises(ApiError, match="PATCH /api/v1/nodes/node007/status: 403 Forbidden"):
        decide(seen(tmp_path), cluster, "node007", NOW)


def test_outside_of_a_cluster() -> None:
    with pytest.raises(ApiError, match="no pod with a service account"):
        here()
    with pytest.raises(ApiError, match="refused"):
        Cluster("http://127.0.0.1:1").ask("GET", "/")


def test_each_free_node_gets_a_job_with_all_of_its_gpus(cluster: Cluster, stub: Stub) -> None:
    stub.nodes = [of("b", 4), of("a"), of("no-gpus", 0), of("drained", unschedulable=True), of("measured")]
    stub.jobs = [job_of(TEMPLATE, "measured", 8)]
    assert create_missing_jobs(cluster, TEMPLATE, 50) == ["linkgauge-probe-a", "linkgauge-probe-b"]
    assert [(method, path) for method, path, *_ in stub.changed] == [
        ("POST", "/apis/batch/v1/namespaces/linkgauge/jobs")
    ] * 2
    assert [job for *_, job in stub.changed] == [job_of(TEMPLATE, "a", 8), job_of(TEMPLATE, "b", 4)]
    pod = job_of(TEMPLATE, "b", 4)["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["limits"] == {"memory": "8Gi", GPUS: "4"}
    (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}


def test_not_all_jobs_at_once(cluster: Cluster, stub: Stub) -> None:
    assert create_missing_jobs(cluster, TEMPLATE, 3) == [f"linkgauge-probe-node00{number}" for number in range(3)]
    stub.refuse["POST"] = 409  # another run has made them
    assert create_missing_jobs(cluster, TEMPLATE, 3) == []
    stub.refuse["POST"] = 403
    with pytest.raises(ApiError):
        create_missing_jobs(cluster, TEMPLATE, 3)


def test_names_of_jobs_are_names_and_differ() -> None:
    nodes = ["a", "a.b", "a-b", "n" * 60, "n" * 61, f"{'n' * 60}.west"]
    names = [job["metadata"]["name"] for job in missing([of(name) for name in nodes], [], TEMPLATE)]
    assert len({*names}) == len(nodes)
    assert all(len(name) <= 63 and "." not in name for name in names)
