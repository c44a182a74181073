"""An output that was pasted several times is one measurement: its copies do not make the rates more certain."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from tests.support.samples import samples

AT = 0.0
RATES = (
    "cuda_bandwidth", "fabtests", "fio", "gds", "gpu_copy", "iperf", "nccl", "nccl_json", "nvbandwidth",
    "p2p_bandwidth", "pairwise", "perftest", "rates", "rocm_copy", "simple_tools", "stream", "superbench",
)  # fmt: skip


def found(text: str) -> set[tuple[str, str, str]]:
    """Code, subject and severity of each finding."""
    report = evaluate(assemble(read_text("paste.txt", text, AT), Site(), AT, origin="dumps"))
    return {(one.code, one.subject, one.severity) for one in report.findings}


@pytest.mark.slow
@pytest.mark.parametrize("reader", RATES)
def test_copies_make_no_finding(reader: str) -> None:
    for text in samples(recorded=False)[reader]:
        assert found("\n".join([text] * 4)) == found(text), text


COPIES = """\
Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2         3         4         5         6         7
 0     53.56     53.37     54.37     54.59     53.71     51.79     53.46     53.61
"""


@pytest.mark.parametrize("count", range(1, 8))
def test_copies_do_not_hide_how_much_rates_scatter(count: int) -> None:
    assert found("\n".join([COPIES] * count)) == set()
