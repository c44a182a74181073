"""One cause that was taken for several, and several that were taken for one (bench/accuracy/fault_injection.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bench.accuracy.edits import inactive, remove_fields, together
from bench.accuracy.edits import set_fields as altered
from bench.accuracy.healthy_nodes import HealthyNode, node_of
from bench.accuracy.measured import report_on
from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.machine import Pci, Port
from linkgauge.models.facts.records import Observation, Record
from linkgauge.models.inventory.gpu_links import gpu_links
from linkgauge.models.report import Finding, Report
from tests.support.nodes.small_nodes import ROOT, bridge, copy, function, gpus_under_switches, report_of, with_fields


def grave(report: Report) -> list[tuple[str, str]]:
    return [(one.code, one.subject) for one in report.findings if one.severity != "info"]


def scattered(rates: Iterable[tuple[tuple[str, ...], float]], **flow: object) -> Iterator[Observation]:
    """As measured: a thousandth off, this way or that."""
    for place, (ends, rate) in enumerate(rates):
        yield copy(ends, rate * (1 + (-1.5, 0.5, 1, -0.5, 1.5, -1, 0)[place % 7] / 1000), **flow)


def gpus_under_one_switch(switch: int, gpus: int) -> list[Record]:
    root, upstream = f"0000:{switch}0:01.0", f"0000:{switch}1:00.0"
    records: list[Record] = [bridge(root, "pci0000:00"), bridge(upstream, root)]
    for number in range(gpus):
        port, address = f"0000:{switch}2:0{number}.0", f"0000:{switch}{3 + number}:00.0"
        records += [bridge(port, upstream), function(address, port)]
        records.append(Gpu(key=f"gpu{4 * switch + number}", address=address, name="H100 PCIe", nvlinks=0))
    return records


def mesh_without(node: HealthyNode, gpu: str, *numbers: int) -> list[Finding]:
    """The findings for a mesh of GPUs in which links of one GPU and their other ends are down."""
    ends = gpu_links(node.snapshot.facts)
    down = {ends[f"{gpu}/nvlink{number}"].id for number in numbers}
    keys = [key for key, link in ends.items() if link.id in down and key in node.snapshot.of(GpuLink)]
    gpus = sorted({key.partition("/")[0] for key in keys})
    edit = together(*(inactive(node.snapshot, one, [key for key in keys if key.startswith(f"{one}/")]) for one in gpus))
    return [one for one in report_on(edit(list(node.records)), node.now).findings if one.severity != "info"]


def test_both_directions_between_two_gpus_are_one_cause() -> None:
    pairs = [(f"gpu{a}", f"gpu{b}") for a in range(6) for b in range(6) if a // 2 != b // 2]
    rates = [(ends, 40.0 if set(ends) == {"gpu1", "gpu4"} else 55.0) for ends in pairs]
    report = report_of([*gpus_under_switches(6), *scattered(rates, via="pcie")])
    assert grave(report) == [("bandwidth-low", "gpu1-gpu4")]
    assert report.findings[0].explains == ("bandwidth-low:gpu1-gpu4", "bandwidth-low:gpu4-gpu1")
    assert "that have both ends, gpu1" in report.findings[0].message
    assert report.findings[0].message.endswith("nothing between them was faster")


def test_a_link_between_two_gpus_is_one_finding() -> None:
    (found,) = mesh_without(node_of("perlmutter"), "gpu1", 5)
    assert (found.code, found.subject) == ("nvlink-inactive", "0000:41:00.0")
    assert "1 of 12 NVLinks inactive" in found.message
    assert "their other ends are at gpu" in found.message
    assert list(found.limits.values()) == [0.0]


def test_a_gpu_that_lost_links_to_all_its_peers_is_one_finding() -> None:
    (found,) = mesh_without(node_of("perlmutter"), "gpu2", *range(12))
    assert (found.code, found.subject) == ("nvlink-inactive", "0000:82:00.0")
    assert "their other ends are at gpu0, gpu1, gpu3" in found.message


def test_two_causes_of_which_one_is_small_do_not_blame_what_both_have_in_common() -> None:
    """A link that loses 4 % in both directions and another that loses 11 % in one: not the host, where all begin."""
    rates = [(ends, 55.0) for gpu in range(8) for ends in ((f"gpu{gpu}", ROOT), (ROOT, f"gpu{gpu}"))]
    rates = [
        (ends, 52.8 if "gpu1" in ends else rate * 0.89 if ends == (ROOT, "gpu4") else rate) for ends, rate in rates
    ]
    report = report_of([*gpus_under_switches(8), *scattered(rates)])
    assert sorted(grave(report)) == [("bandwidth-low", "0000:04:00.0"), ("bandwidth-low", "pci0000:00-gpu4")]


def test_copies_that_differ_by_nature_clear_no_link() -> None:
    """What goes to the host is a little faster than what comes from there: the link of both can be slow."""
    rates = [
        (ends, 56.5 if ends[1] == ROOT else 53.0) for n in range(8) for ends in ((f"gpu{n}", ROOT), (ROOT, f"gpu{n}"))
    ]
    rates += [((f"gpu{a}", f"gpu{b}"), 53.0) for a in range(8) for b in range(8) if a // 2 != b // 2]
    slow = [(ends, rate * 0.95 if "gpu2" in ends else rate) for ends, rate in rates]
    assert grave(report_of([*gpus_under_switches(8), *scattered(slow)])) == [("bandwidth-low", "0000:13:00.0")]


def test_access_control_on_one_switch_explains_nothing_elsewhere() -> None:
    pairs = [(f"gpu{a}", f"gpu{b}") for a in range(8) for b in range(8) if a != b]
    rates = [(ends, 54.0) for ends in pairs if set(ends) not in ({"gpu0", "gpu1"}, {"gpu2", "gpu5"})]
    rates += [(("gpu0", "gpu1"), 25.0), (("gpu1", "gpu0"), 25.0), (("gpu2", "gpu5"), 40.0), (("gpu5", "gpu2"), 40.0)]
    records = [*gpus_under_switches(8), *scattered(rates, via="pcie")]
    report = report_of(with_fields(records, "0000:02:00.0", acs=("ReqRedir", "CmpltRedir")))
    assert sorted(grave(report)) == [("bandwidth-low", "gpu2-gpu5"), ("pcie-acs-redirect", "0000:01:00.0")]


def test_a_healthy_pair_below_a_switch_is_not_counted_among_slow_ones() -> None:
    """Of four GPUs in one group two are slow; the other two still reach each other as fast as any."""
    slow = {0: 0.5, 1: 0.7}
    pairs = [(a, b) for a in range(8) for b in range(8) if a != b and a // 4 == b // 4]
    rates = [((f"gpu{a}", f"gpu{b}"), 54.0 * min(slow.get(a, 1), slow.get(b, 1))) for a, b in pairs]
    report = report_of([*gpus_under_one_switch(0, 4), *gpus_under_one_switch(1, 4), *scattered(rates, via="pcie")])
    assert sorted(grave(report)) == [("bandwidth-low", "0000:03:00.0"), ("bandwidth-low", "0000:04:00.0")]


def test_the_port_of_a_nic_that_is_gone_is_no_second_finding() -> None:
    node = node_of("hgx-h100")
    down = altered(Port, "mlx5_2/1", state="DOWN", physical_state="Disabled")
    assert grave(report_on(down(list(node.records)), node.now)) == [("nic-port-down", "mlx5_2/1")]
    lost = together(down, remove_fields(Pci, "0000:1c:00.0", "speed", "width"), altered(Pci, "0000:1c:00.0", lost=True))
    assert grave(report_on(lost(list(node.records)), node.now)) == [("nic-missing", "0000:1c:00.0")]
