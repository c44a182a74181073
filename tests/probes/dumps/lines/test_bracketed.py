"""Remarks in brackets behind a value: the value counts, and a doubt about it is a gap."""

from __future__ import annotations

import pytest

from linkgauge.probes.dumps.lines.bracketed import without_brackets
from tests.support.texts import report_of

NEUTRAL = ("only on this node", "docker default", "the same on the others", "here")
DOUBTS = ("should be 25000", "expected 200", "why?", "too low!", "wrong, the others have 400", "flapping since Monday")
FAULTS = (
    ("    Remapped Rows\n        Pending : Yes{}\n        Remapping Failure Occurred : No\n", "gpu-row-remap"),
    ("md0 : active raid5 sdb[1] sdc[2]{}\n      1953260544 blocks level 5 [3/2] [_UU]\n", "storage-degraded"),
    ("GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: 25 GB/s\n\t Link 1: <inactive>{}\n", "nvlink-inactive"),
    ("\tLnkCap:\tSpeed 16GT/s, Width x16\n\tLnkSta:\tSpeed 16GT/s, Width x8{}\n", "pcie-link-narrow"),
)
HEALTHY = "CA 'mlx5_0'\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: 100{}\n"
OF_TOOLS = (
    "LnkSta: Speed 8GT/s (ok), Width x8 (downgraded)\n",
    "rate: 100 Gb/sec (4X EDR)\n",
    "lrwxrwxrwx 1 root 0 (deleted)\n",
    "\tKernel driver in use: nvidia (4 of 8)\n",
)


@pytest.mark.parametrize("remark", [*NEUTRAL, *DOUBTS])
@pytest.mark.parametrize(("text", "code"), FAULTS)
def test_a_fault_counts(text: str, code: str, remark: str) -> None:
    assert code in {one.code for one in report_of(text.format(f"  ({remark})")).findings}


@pytest.mark.parametrize(("remarks", "verdict"), [(("",), "ok"), (NEUTRAL, "ok"), (DOUBTS, "unknown")])
def test_a_doubt_is_a_gap(remarks: tuple[str, ...], verdict: str) -> None:
    texts = [HEALTHY.format(f" ({remark})" if remark else "") for remark in remarks]
    assert {report_of(text).verdict for text in texts} == {verdict}


def test_a_fault_that_is_over_is_not_read() -> None:
    text = FAULTS[0][0].format(" (cleared by the reset of today)")
    assert report_of(text).verdict == "unknown"


@pytest.mark.parametrize("line", OF_TOOLS)
def test_what_tools_write_stays(line: str) -> None:
    assert without_brackets(line) is None


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("remark", ["should be 400 Gb/s", "was 400 Gb/s"])
def test_a_remark_that_readers_understand_stays(remark: str, times: int) -> None:
    report = report_of(f"mlx5_5: 180 Gb/s ({remark})\n" * times)
    assert {(one.expected, one.observed) for one in report.findings} == {(50e9, 22.5e9)}


def test_a_message_keeps_the_brackets_that_it_ends_with() -> None:
    message = "Detected 4 recovery NvLink errors on GPU 3's NVLink (should be 0)\n"
    assert "nvlink-errors" in {one.code for one in report_of(message + FAULTS[2][0].format(" (only here)")).findings}
