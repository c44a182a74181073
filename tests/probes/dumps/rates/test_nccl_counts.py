"""What NCCL counts for links in its printed graph, and tests of one rank that show nothing."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding, Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from tests.support.dump_samples import AT


def report_of(text: str) -> Report:
    return evaluate(assemble(list(read_text("nccl.txt", text, AT)), Site(), AT, origin="dumps"))


def serious(text: str) -> list[Finding]:
    return [one for one in report_of(text).findings if one.severity != "info"]


def graph(gpus: tuple[float, ...], nets: tuple[float, ...], before: str) -> str:
    lines = [f"{before}CPU/0-0 (1/1/2)"]
    lines += [f"{before}+ PCI[{rate}] - GPU/0-{5 + gpu}4000 ({gpu})" for gpu, rate in enumerate(gpus)]
    for net, rate in enumerate(nets):
        lines += [
            f"{before}+ PCI[48.0] - NIC/0-{5 + net}5000",
            f"{before}    + NET[{rate}] - NET/{net} (0/{net}/{rate:.6f})",
        ]
    return "\n".join(lines)


@pytest.mark.parametrize("before", ["", "NCCL INFO ", "node1:1:1 [0] NCCL INFO "])
@pytest.mark.parametrize("slow", range(4))
def test_a_lower_link_in_a_graph_without_its_first_line(before: str, slow: int) -> None:
    rates = (48.0,) * 4
    assert report_of(graph(rates, (50.0, 50.0), before)).findings == ()
    for rate in (24.0, 12.0, 6.0):
        lower = (*rates[:slow], rate, *rates[slow + 1 :])
        (found,) = serious(graph(lower, (50.0, 50.0), before))
        assert (found.subject, found.confidence) == (f"GPU/0-{5 + slow}4000", "possible")


def test_a_nic_of_a_lower_rate_can_be_another_product() -> None:
    report = report_of(graph((48.0,) * 4, (50.0, 50.0, 50.0, 12.5), ""))
    assert {(one.subject, one.severity) for one in report.findings} == {("NET/3", "info")}
    assert report.verdict == "unknown"


def collective(ranks: int, bus: float) -> Report:
    half = "    time   algbw   busbw #wrong"
    lines = [f"#  Rank {rank:2} Group  0 Pid 12 on node1 device {rank:2} [0x1b] NVIDIA L40S" for rank in range(ranks)]
    lines.append(f"#       size         count      type   redop    root {half} {half}")
    for place in (30, 31):
        side = f"  51.1   77.60  {bus:.2f}      0"
        lines.append(f"  {1 << place}    {1 << (place - 2)}     float     sum      -1 {side} {side}")
    return report_of("\n".join([*lines, f"# Avg bus bandwidth    : {bus:.2f}", ""]))


def test_one_rank_is_no_measurement() -> None:
    report = collective(1, 0.0)
    assert ([one.code for one in report.findings], report.verdict) == (["measurement-invalid"], "unknown")
    assert "measurement-invalid" not in {one.code for one in collective(2, 77.6).findings}
