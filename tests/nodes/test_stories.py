"""Complete scenarios, from the records of sources to the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

import msgspec
import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.cycle import Memory, cycle
from linkgauge.agent.pipeline.diagnose import Probes, diagnose
from linkgauge.agent.pipeline.past import thin
from linkgauge.agent.pipeline.registry import measure_nothing
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.agent.pipeline.source import Source
from linkgauge.exporters.text.report import as_text
from linkgauge.models.bandwidth.repeated_rates import BATCH, MOST
from linkgauge.models.diagnosis.hysteresis import Histories, settle
from linkgauge.models.diagnosis.repetition import SimultaneousFlows, runs_to_repeat
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Flow, NotChecked, Observation, Record, Run
from linkgauge.models.graph.fair_share import shares
from linkgauge.models.graph.routes import rated, route
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Machine, Site
from tests.support.nodes.described import found
from tests.support.nodes.small_nodes import (
    ROOT,
    Clock,
    copy,
    function,
    gpu_address,
    gpus_under_switches,
    observation,
    report_of,
    snapshot_of,
    source_of,
    with_fields,
)

H100S = Site(machine=(Machine(name="hgx-h100", source="its data sheet", gpu="H100*", gpus=8),))


def test_a_copy_over_pcie_does_not_use_nvlink() -> None:
    topology = snapshot_of(gpus_under_switches(2, nvlinks=18)).topology
    path = route(topology, "gpu0", "pci0000:00")
    assert path
    direct = Flow("copy", ("gpu0", "gpu1"))
    assert shares(topology, [direct], rated)[direct] == 450e9  # 18 links are one hop
    assert [hop.sender for hop in path] == ["0000:03:00.0", "0000:02:00.0", "0000:01:00.0", "0000:00:01.0"]
    flow = Flow("copy", ("gpu0", "gpu1"), via="pcie")
    assert shares(topology, [flow], rated)[flow] == pytest.approx(63.015e9, rel=1e-4)


def test_a_source_that_breaks_off_loses_only_what_had_not_come() -> None:
    def broken(_: object) -> Iterator[Record]:
        yield from gpus_under_switches(8)
        yield replace(function(gpu_address(5), "x"), width=8)  # disagrees: recorded, the first stays
        raise OSError("the driver hangs")

    records = collect(Source("broken", broken), Clock())
    assert [type(one) for one in records[-2:]] == [NotChecked, Run]
    assert isinstance(records[-1], Run)
    assert not records[-1].ok
    report = report_of(with_fields(records, gpu_address(5), width=8))
    assert found(report) == [("pcie-link-narrow", gpu_address(5))]
    assert len(report.topology.devices) > 20


def test_a_kind_that_could_not_be_read_makes_the_verdict_unknown() -> None:
    lost = NotChecked(what="Pci", subject="node", reason=Reason.NO_ANSWER, detail="no answer")
    report = report_of([lost], H100S)
    assert report.verdict == "unknown"
    assert report.checks["gpu-missing"] is False


def test_a_table_of_collectives_alone() -> None:
    ranks = tuple(f"rank{rank}" for rank in range(8))
    rate = observation(Flow("all_reduce", ranks, 8 << 30), "bus_bandwidth", 235e9)
    alone = report_of([rate], origin="dumps")
    assert alone.verdict == "unknown"
    assert [one.what for one in alone.not_checked] == ["rate of all_reduce"]
    devices = [Gpu(key=f"gpu{gpu}", name="A100-SXM4-80GB") for gpu in range(8)]
    assert report_of([*devices, rate], origin="dumps").verdict == "ok"
    slow = report_of([*devices, replace(rate, value=120e9)], origin="dumps")
    assert found(slow) == [("bandwidth-low", "rank0-...-rank7")]
    assert slow.findings[0].basis == "profile"


def test_speed_is_judged_while_bytes_move() -> None:
    records = with_fields(gpus_under_switches(2), gpu_address(0), speed=2.5e9)
    rest = report_of([*records, observation(gpu_address(0), "link_speed", 2.5e9, busy=False)])
    assert rest.findings == ()
    assert [one.what for one in rest.not_checked if one.subject != "node"] == ["Pci.speed"]
    busy = observation(gpu_address(0), "link_speed", 16e9, at=2.0)
    report = report_of([*records, busy, copy(("gpu0", "pci0000:00"), 27)])
    assert found(report) == [("pcie-link-slow", gpu_address(0))]
    assert report.findings[0].explains == ("bandwidth-low:gpu0-pci0000:00",)
    assert (report.findings[0].expected, report.findings[0].observed) == (32e9, 16e9)


def test_what_the_state_does_not_explain_is_a_second_finding() -> None:
    records = with_fields(gpus_under_switches(2), gpu_address(0), width=8)
    assert found(report_of([*records, copy(("gpu0", "pci0000:00"), 27)])) == [("pcie-link-narrow", gpu_address(0))]
    assert found(report_of([*records, copy(("gpu0", "pci0000:00"), 6)])) == [
        ("bandwidth-low", "gpu0-pci0000:00"),
        ("pcie-link-narrow", gpu_address(0)),
    ]


def test_the_machine_has_eight() -> None:
    report = report_of(gpus_under_switches(7), H100S)
    assert found(report) == [("gpu-missing", "node")]
    finding = report.findings[0]
    assert (finding.expected, finding.observed, finding.basis) == (8, 7, "site")


def test_counters_pass_while_findings_settle() -> None:
    histories: Histories = {}
    past: tuple[Observation, ...] = ()
    seen = []
    for round_, errors in enumerate([0, 50, 90, 90, 90, 90]):
        counter = observation(gpu_address(0), "aer_correctable", errors, at=15.0 * round_ + 1)
        report = report_of([*gpus_under_switches(2), counter], past=past)
        histories, report = settle(histories, report)
        past = (counter,)
        seen.append((report.observations[0].value, found(report)))
    up = [("pcie-errors", gpu_address(0))]
    assert seen == [(0, []), (50, []), (90, up), (90, up), (90, []), (90, [])]
    assert not any(history.shown for history in histories.values())


def test_an_event_is_a_finding_in_the_first_cycle() -> None:
    logged = Event(key="xid 79 a", kind="xid", code=79, subject=gpu_address(0), text="fell off")
    histories, report = settle({}, report_of([*gpus_under_switches(2), logged]))
    assert found(report) == [("gpu-xid", gpu_address(0))]
    assert report.verdict == "failed"
    for _ in range(3):
        histories, report = settle(histories, report_of(gpus_under_switches(2)))
    assert (found(report), report.verdict) == ([("gpu-xid", gpu_address(0))], "failed")


def test_what_a_finding_costs() -> None:
    (finding,) = report_of(with_fields(gpus_under_switches(4), gpu_address(3), width=4)).findings
    assert finding.impact["all_reduce"] == pytest.approx(4.0, rel=0.01)
    (finding,) = report_of(with_fields(gpus_under_switches(4, nvlinks=18), gpu_address(3), width=4)).findings
    assert finding.impact["all_reduce"] == 1.0  # NVLink carries it
    unasked = [replace(one, nvlinks=None) if isinstance(one, Gpu) else one for one in gpus_under_switches(4)]
    (finding,) = report_of(with_fields(unasked, gpu_address(3), width=4)).findings
    assert finding.impact == {"copy@host": 2.0}  # two GPUs share an uplink of 16 lanes


def test_a_copy_below_its_cohort_is_a_finding() -> None:
    copies = [copy((f"gpu{gpu}", "pci0000:00"), 55.4) for gpu in range(7)] + [copy(("gpu7", "pci0000:00"), 53.6)]
    (finding,) = report_of([*gpus_under_switches(8), *copies]).findings
    assert (finding.subject, finding.basis, finding.severity) == ("gpu7-pci0000:00", "kin", "warning")


def test_silenced_findings_still_explain() -> None:
    site = Site(ignore={f"pcie-link-narrow:{gpu_address(0)}": "riser ordered, T-411"})
    records = [*with_fields(gpus_under_switches(2), gpu_address(0), width=8), copy(("gpu0", "pci0000:00"), 27)]
    report = report_of(records, site)
    assert report.verdict == "ok"
    assert [finding.silenced for finding in report.findings] == ["riser ordered, T-411"]


def test_baseline() -> None:
    then = copy(("gpu0", "pci0000:00"), 56.0)
    report = report_of([*gpus_under_switches(2), copy(("gpu0", "pci0000:00"), 54.0)], baseline=(then,))
    assert [finding.basis for finding in report.findings] == ["baseline"]


def test_concurrent_flows_are_judged_by_their_share() -> None:
    both = [
        copy(("gpu0", "pci0000:00"), 27.9, beside=(("gpu1", "pci0000:00"),)),
        copy(("gpu1", "pci0000:00"), 27.9, beside=(("gpu0", "pci0000:00"),)),
    ]
    assert report_of([*gpus_under_switches(2), *both]).findings == ()


def test_sources_that_disagree() -> None:
    one = Gpu(key="gpu0", name="H100", address=gpu_address(0))
    other = Gpu(key="gpu0", name="H200", nvlinks=18)
    snapshot = snapshot_of([one, other])
    assert [conflict.field for conflict in snapshot.conflicts] == ["name"]
    assert snapshot.of(Gpu)["gpu0"] == replace(one, nvlinks=18)


def test_a_report_reads_back() -> None:
    report = report_of([*gpus_under_switches(2), copy(("gpu0", "pci0000:00"), 27)])
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


def test_an_unreadable_width_is_never_ok() -> None:
    records = gpus_under_switches(2)
    assert report_of(records).verdict == "ok"
    assert report_of(records).checks["pcie-link-narrow"] is True
    hidden = [
        *with_fields(records, gpu_address(1), width=None),
        NotChecked(what="Pci.width", subject=gpu_address(1), reason=Reason.UNREADABLE, detail="Input/output error"),
    ]
    assert report_of(hidden).verdict == "unknown"
    assert report_of(hidden, origin="dumps").verdict == "unknown"


def test_a_slow_copy_is_measured_again_before_it_is_a_finding() -> None:
    tries = iter([30.0, 55.0])

    def probes(report: Report, undecided: frozenset[SimultaneousFlows]) -> Iterable[Source]:
        slow = [level.flow.ends for level in report.levels if any(f.code == "bandwidth-low" for f in report.findings)]
        todo = slow if report.levels else [("gpu0", "pci0000:00")]
        return [source_of(copy(ends, next(tries))) for ends in todo]

    report = diagnose(Clock(), [source_of(*gpus_under_switches(2))], probes, Site()).report
    assert report.findings == ()
    assert next(tries, None) is None


def scattering(loss: float, chance: Random, asked: list[int]) -> Probes:
    """Copies of eight GPUs to the root with a scatter of 2 %; those of gpu5 lose a share. `asked` counts the rounds."""

    def probes(report: Report, undecided: frozenset[SimultaneousFlows]) -> Iterable[Source]:
        todo = sorted(ends for run in undecided for ends in run)
        if not report.levels:
            todo = [(f"gpu{gpu}", ROOT) for gpu in range(8)]
        asked.append(len(todo))
        rounds = BATCH if report.levels else 1
        rates = [55.4 * (1 - loss * (gpu == "gpu5")) * chance.gauss(1, 0.02) for gpu, _ in todo * rounds]
        return [source_of(*map(copy, todo * rounds, rates))] if todo else []

    return probes


def test_a_small_loss_is_found_by_repetition_and_health_stays_health() -> None:
    node, named = [source_of(*gpus_under_switches(8))], []
    for seed in range(6):
        asked: list[int] = []
        report = diagnose(Clock(), node, scattering(0.05 * (seed % 2), Random(seed), asked), Site()).report
        named.append(found(report))
        assert asked[0] == 8
        assert len(asked) <= 1 + (MOST - 1) // BATCH + 1  # the last asks for nothing
        assert asked[-1] == 0
    assert named == [[], [("bandwidth-low", f"gpu5-{ROOT}")]] * 3


def test_copies_that_agree_are_not_repeated() -> None:
    def probes(report: Report, undecided: frozenset[SimultaneousFlows]) -> Iterable[Source]:
        assert undecided == frozenset()
        ends = [] if report.levels else [(f"gpu{gpu}", ROOT) for gpu in range(8)]
        return [source_of(*(copy(one, 55.4 + 0.1 * index) for index, one in enumerate(ends)))] if ends else []

    assert diagnose(Clock(), [source_of(*gpus_under_switches(8))], probes, Site()).report.findings == ()


def test_a_state_that_explains_a_slow_copy_ends_its_repetition() -> None:
    narrow = with_fields(gpus_under_switches(8), gpu_address(0), width=8)
    copies = [copy((f"gpu{gpu}", ROOT), 27.0 if gpu == 0 else 55.4) for gpu in range(8)]
    wide, slow = snapshot_of([*gpus_under_switches(8), *copies]), snapshot_of([*narrow, *copies])
    assert len(runs_to_repeat(wide, evaluate(wide))) == 8
    assert runs_to_repeat(slow, evaluate(slow)) == frozenset()


def test_a_gpu_does_not_forward() -> None:
    cut = with_fields(
        gpus_under_switches(2, nvlinks=18), gpu_address(0), parent=None
    )  # its own way to the host is gone
    topology = snapshot_of(cut).topology
    assert route(topology, "gpu0", "gpu1")
    assert route(topology, "gpu0", "pci0000:00") is None


def test_the_daemon_remembers_what_is_not_due() -> None:
    structure = source_of(*gpus_under_switches(2), name="structure")
    states = source_of(replace(function(gpu_address(0), "x"), width=None), name="states")
    memory, host, shown = Memory(), Clock(), []
    narrow = source_of(*with_fields(gpus_under_switches(2), gpu_address(0), width=8), name="structure")
    for due in ([narrow, states], [states], [states]):
        memory, report = cycle(host, due, Site(), memory)
        shown.append(found(report))
    assert shown == [[("pcie-link-narrow", gpu_address(0))]] * 3
    memory, report = cycle(host, [structure], Site(), memory)
    memory, report = cycle(host, [structure], Site(), memory)
    assert found(report) == []


def test_old_observations_are_thinned() -> None:
    series = [observation("gpu0", "link_speed", at, at=at) for at in range(0, 4 * 3600, 600)]
    kept = thin([*series, Gpu(key="gpu0")], 4 * 3600.0)
    assert [one.at for one in kept] == [0, 3600, 7200, *range(3 * 3600 + 600 - 600, 4 * 3600, 600)]


def test_a_source_with_a_bug_makes_the_verdict_unknown() -> None:
    """The missing records are unknown. After our own fault the node is not called healthy."""

    def broken(host: object) -> Iterator[Record]:
        del host
        raise RuntimeError("a bug")
        yield from ()

    source = source_of(*gpus_under_switches(2))
    report = diagnose(Clock(), (source, Source("broken", broken)), measure_nothing, Site()).report
    assert (report.verdict, found(report)) == ("unknown", [])
    assert "This node is not known to be healthy: a bug in linkgauge stopped the source broken." in " ".join(
        as_text(report, colour=False).split()
    )
