"""OpenTelemetry's hardware conventions: a receiver compares all names, units, attributes and values."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from linkgauge import __version__
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.service.config import Config, Otlp, read_config
from linkgauge.agent.service.push import close_all, publishers
from linkgauge.exporters.metrics import otlp
from linkgauge.exporters.metrics.hardware import METRICS, hardware, state_of
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked
from linkgauge.models.site.schema import Site
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import BROKEN, node, report_of
from tests.support.nodes.mutation_rows import width
from tests.support.paths import TESTS
from tests.support.peers.http_receiver import receiver
from tests.support.waiting import until

pytest.importorskip("opentelemetry.proto", reason="the extra [otlp] is not installed")


def received(body: bytes) -> Any:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

    (resource,) = ExportMetricsServiceRequest.FromString(body).resource_metrics
    return resource


def as_json(metric: Any) -> dict[str, Any]:
    points = [
        {one.key: one.value.string_value for one in point.attributes}
        | {"value": getattr(point, point.WhichOneof("value"))}
        for point in metric.sum.data_points
    ]
    assert metric.WhichOneof("data") == "sum"
    kind = {
        "unit": metric.unit,
        "monotonic": metric.sum.is_monotonic,
        "temporality": metric.sum.aggregation_temporality,
    }
    return {"description": metric.description, **kind, "points": points}


def test_a_receiver_gets_everything(golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_NAME", "worker-3")
    report = report_of(width("0000:02:00.0", 2)(node("desktop")))
    with receiver() as (url, taken):
        otlp.send(f"{url}/v1/metrics", report, labels={"rack": "r7"}, conventions="hw")
        otlp.send(f"{url}/v1/metrics", report, labels={"rack": "r7"})
    both, ours = (received(one.body) for one in taken)
    about = {one.key: one.value.string_value for one in both.resource.attributes}
    assert about == {
        "service.name": "linkgauge",
        "service.version": __version__,
        "host.name": report.node,
        "k8s.node.name": "worker-3",
        "rack": "r7",
    }
    metrics = {one.name: one for one in both.scope_metrics[0].metrics}
    own = {one.name for one in ours.scope_metrics[0].metrics}
    assert metrics.keys() - own == METRICS.keys()
    assert own <= metrics.keys()
    shown = {name: as_json(metrics[name]) for name in METRICS}
    golden(TESTS / "golden/otlp_hw_desktop.json", json.dumps(shown, indent=1, sort_keys=True) + "\n")


class _Meter:
    """Records what the functions of the conventions create."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[bool, str]] = {}

    def create_counter(self, name: str, unit: str, description: str) -> None:
        self.made[name] = True, unit

    def create_up_down_counter(self, name: str, unit: str, description: str) -> None:
        self.made[name] = False, unit


def test_names_units_and_attributes_are_those_of_the_conventions() -> None:
    conventions = pytest.importorskip("opentelemetry.semconv._incubating.metrics.hw_metrics")
    from opentelemetry.semconv._incubating.attributes import error_attributes, hw_attributes, network_attributes

    meter = _Meter()
    for name in METRICS:
        getattr(conventions, f"create_{name.replace('.', '_')}")(meter)
    assert meter.made == {name: (one.monotonic, one.unit) for name, one in METRICS.items()}
    modules = (error_attributes, hw_attributes, network_attributes)
    known = {value for module in modules for value in vars(module).values() if isinstance(value, str)}
    types = {one.value for one in hw_attributes.HwTypeValues}
    states = {one.value for one in hw_attributes.HwStateValues}
    for name in ("hgx-h100", "server-raid"):
        for one in hardware(report_of(node(name)), None):
            assert one.attributes.keys() <= known
            assert one.attributes["hw.type"] in types
            assert one.attributes.get("hw.state", "ok") in states


def test_states_of_devices() -> None:
    report = report_of(node("hgx-h100", BROKEN))
    devices = {name: report.topology.find(name) for name in ("gpu1", "nvme3", "mlx5_4/1", "gpu0")}
    states = {name: state_of(report, device) for name, device in devices.items() if device}
    assert states == {"gpu1": "failed", "nvme3": "degraded", "mlx5_4/1": "failed", "gpu0": "ok"}


def test_what_was_not_read_has_no_state() -> None:
    report = report_of(node("desktop"))
    gpu = report.topology.find("gpu0")
    assert gpu
    unread = NotChecked(what="Gpu.clock", subject="gpu0", reason=Reason.PERMISSION, detail="no")
    assert state_of(replace(report, not_checked=(unread,)), gpu) is None
    assert state_of(replace(report, verdict="unknown"), gpu) is None
    assert state_of(report, gpu) == "ok"


def test_the_service_sends_each_cycle(service: Callable[..., Node], tmp_path: Path) -> None:
    hgx = service(tmp_path)
    with receiver() as (url, taken), ExitStack() as stack:
        config = Config(otlp=Otlp(url=f"{url}/v1/metrics", conventions="hw"))
        hgx.daemon.publishers = publishers(config, str(tmp_path))
        stack.callback(close_all, hgx.daemon.publishers)
        hgx.daemon.site = Site(labels={"rack": "r7"})
        hgx.cycle()
        until(lambda: bool(taken))
    names = {one.name for one in received(taken[0].body).scope_metrics[0].metrics}
    assert {"hw.status", "hw.network.io", "linkgauge_verdict", "linkgauge_cycle_duration_seconds"} <= names


def test_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "config").write_text('[otlp]\nurl = "http://collector:4318/v1/metrics"\nconventions = "hw"\n')
    assert read_config(str(tmp_path / "config")).otlp == Otlp(url="http://collector:4318/v1/metrics", conventions="hw")
    (tmp_path / "config").write_text('[otlp]\nurl = "collector:4318"\n')
    with pytest.raises(BadInput, match="otlp: url"):
        read_config(str(tmp_path / "config"))
