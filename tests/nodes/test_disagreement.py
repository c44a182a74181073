"""Two sources that disagree: whichever is read first, the report is not ok, and a stated fault is found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from linkgauge.agent.pipeline.hang_guard import collect_all
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.records import Evidence, Fact, Record
from linkgauge.models.facts.states import STATES
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from tests.support.nodes.described import node
from tests.support.texts import report_of

FIELDS = [(kind, field) for kind, fields in STATES.items() for field in fields]
OF_THE_NODE = {"Gpu", "GpuLink", "Pci", "Port", "Net", "Nvme"}  # kinds that the described node has


@cache
def _healthy() -> tuple[Record, ...]:
    only_in_dumps = Gpu(key="gpu0", pending_repairs=(), unrepairable=False)
    return (*collect_all(SOURCES, node("hgx-h100")), only_in_dumps)


def _report(records: Sequence[Record]) -> Report:
    return evaluate(assemble(records, Site(), node("hgx-h100").now(), origin="capture"))


def _changed(value: object) -> object:
    """Another value of the same type: a fault for states in words."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return ("TPC",)
    if isinstance(value, (int, float)):
        return value / 2 if isinstance(value, float) else value // 2 if value else 1
    return {"ACTIVE": "DOWN", "completed": "in progress", "live": "dead"}.get(str(value), "other")


def _other(kind: type[Fact], field: str) -> Fact | None:
    """What a second source says of the first device whose field is known."""
    facts = (one for one in _healthy() if type(one) is kind and getattr(one, field) is not None)
    if (known := next(facts, None)) is None:
        return None
    assert isinstance(known, Fact)
    cites = {field: Evidence("second.txt:1", "another value")}
    return kind(key=known.key, cites=cites, **{field: _changed(getattr(known, field))})


def test_the_node_is_healthy_when_its_sources_agree() -> None:
    assert _report(_healthy()).verdict == "ok"


@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=[f"{kind.__name__}.{field}" for kind, field in FIELDS])
@pytest.mark.parametrize("is_first", [False, True])
def test_a_second_source_that_disagrees_prevents_ok(kind: type[Fact], field: str, is_first: bool) -> None:
    other = _other(kind, field)
    if other is None:
        assert kind.__name__ not in OF_THE_NODE or (kind.__name__, field) in {("Nvme", "critical_warning")}
        return
    report = _report((other, *_healthy()) if is_first else (*_healthy(), other))
    assert report.verdict != "ok", field


@pytest.mark.parametrize("is_first", [False, True])
def test_a_link_that_one_source_calls_inactive_is_found(is_first: bool) -> None:
    link, count = _other(*_kind("GpuLink", "active")), _other(*_kind("Gpu", "nvlinks"))
    assert link
    assert count
    records = (link, count)
    report = _report((*records, *_healthy()) if is_first else (*_healthy(), *records))
    assert [one.code for one in report.findings if one.severity == "critical"] == ["nvlink-inactive"]


def _kind(name: str, field: str) -> tuple[type[Fact], str]:
    return next((kind, its) for kind, its in FIELDS if (kind.__name__, its) == (name, field))


_IBSTAT = "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: {}\n\t\tPhysical state: {}\n\t\tRate: {}\n"
_NVME = "Smart Log for NVME device:nvme0n1 namespace-id:ffffffff\ncritical_warning : {}\navailable_spare : 100%\n"
_DCGM = "gpuId 0:\n    U U U U U U U U U U {} U\ngpuId 1:\n    U U U U U U U U U U U U\n"
_RDMA = "link mlx5_0/1 subnet_prefix fe80 lid 13 sm_lid 24 lmc 0 state {} physical_state {}\n"
_TWICE = {  # a healthy and a faulty output of one device
    "port": (_IBSTAT.format("Active", "LinkUp", 400), _IBSTAT.format("Down", "Polling", 10)),
    "rate": (_IBSTAT.format("Active", "LinkUp", 400), _IBSTAT.format("Active", "LinkUp", 100)),
    "drive": (_NVME.format(0), _NVME.format("0x8")),
    "NVLink": (_DCGM.format("U"), _DCGM.format("D")),
    "rdma": (_RDMA.format("ACTIVE", "LINK_UP"), _RDMA.format("DOWN", "POLLING")),
}


@pytest.mark.parametrize("name", _TWICE)
def test_two_outputs_of_one_device_in_one_text(name: str) -> None:
    """Whatever the order, the fault does not vanish behind the first output."""
    good, bad = _TWICE[name]
    for text in (f"{good}\n{bad}", f"{bad}\n{good}"):
        assert report_of(text).verdict in ("unknown", "degraded", "failed"), text


HOT, COOL = (
    f"GPU 00000000:1B:00.0\n    Temperature\n        GPU Current Temp : {now} C\n        GPU Slowdown Temp : 89 C\n"
    for now in (96, 61)
)
FULL, FREE = (
    f"$ df -h\nFilesystem Size Used Avail Use% Mounted on\n/dev/md0 28T {used} /scratch\n"
    for used in ("28T 0 100%", "2T 26T 8%")
)


@pytest.mark.parametrize("faulty_first", [True, False])
@pytest.mark.parametrize(("faulty", "healthy", "code"), [(HOT, COOL, "gpu-throttled"), (FULL, FREE, "storage-full")])
def test_the_worse_of_two_readings_of_a_momentary_value_counts(
    faulty: str, healthy: str, code: str, faulty_first: bool
) -> None:
    """They may be of two times, so they do not contradict each other."""
    report = report_of("\n".join((faulty, healthy) if faulty_first else (healthy, faulty)))
    assert [one.code for one in report.findings] == [code]
