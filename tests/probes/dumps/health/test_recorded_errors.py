"""Errors that rasdaemon recorded (ras-mc-ctl --summary), and the memory of NUMA nodes (numastat -m)."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

QUIET = "No Memory errors.\n\nNo PCIe AER errors.\n\nNo Extlog errors.\n\nNo MCE errors.\n"
PCIE = "No Memory errors.\n\nPCIe AER events summary:\n\t{n} {kind} errors: {what}\n\nNo MCE errors.\n"


@pytest.mark.parametrize("what", ["Completion Timeout", "Poisoned TLP", "Unsupported Request", "Completer Abort"])
@pytest.mark.parametrize("kind", ["Uncorrected (Non-Fatal)", "Uncorrected (Fatal)"])
def test_uncorrected_errors_of_pcie_devices(kind: str, what: str) -> None:
    for number in (1, 2, 612):
        assert found_in(PCIE.format(n=number, kind=kind, what=what)) == [("pcie-errors", "warning", "node")]
    assert found_in(QUIET) == []


@pytest.mark.parametrize("what", ["Bad TLP", "Receiver Error", "Replay Timer Timeout"])
def test_corrected_errors_of_pcie_devices_count_in_number(what: str) -> None:
    assert found_in(PCIE.format(n=7, kind="Corrected", what=what)) == [("pcie-errors", "info", "node")]
    assert found_in(PCIE.format(n=70_000, kind="Corrected", what=what)) == [("pcie-errors", "warning", "node")]


@pytest.mark.parametrize("fate", ["Recovered", "Failed", "Delayed", "Ignored"])
def test_pages_with_uncorrected_errors(fate: str) -> None:
    for number in (1, 24, 900):
        text = f"{QUIET}Memory failure events summary:\n\t{fate} errors: {number}\n"
        assert [one[:2] for one in found_in(text)] == [("host-memory-errors", "critical")]
    assert found_in(QUIET + "No Memory failure errors.\n") == []


def numastat(sizes: list[float], columns: int = 4) -> str:
    """The output of numastat -m: blocks of columns, with the sum as the last one."""
    names = [*(f"Node {number}" for number in range(len(sizes))), "Total"]
    values = [*sizes, sum(sizes)]
    text = "Per-node system memory usage (in MBs):\n\n"
    for first in range(0, len(names), columns):
        own = range(first, min(first + columns, len(names)))
        text += " " * 16 + "".join(f"{names[place]:>16}" for place in own) + "\n"
        text += " " * 17 + " ".join("-" * 15 for _ in own) + "\n"
        for row, share in (("MemTotal", 1.0), ("MemFree", 0.5)):
            text += f"{row:16}" + "".join(f"{values[place] * share:16.2f}" for place in own) + "\n"
        text += "\n"
    return text


@pytest.mark.parametrize("columns", [3, 4, 8])
def test_a_node_without_memory(columns: int) -> None:
    for sizes, empty in (([0.0, 15960.61, 0.0, 0.0], 3), ([64000.0, 0.0], 1), ([32000.0] * 7 + [0.0], 1)):
        found = found_in(numastat(sizes, columns))
        assert [one[:2] for one in found] == [("numa-memory-missing", "warning")] * empty


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_the_empty_nodes_of_gpus_are_no_fault(gpus: int) -> None:
    assert found_in(numastat([480_000.0] * gpus + [97_000.0] + [0.0] * (8 * gpus - 1))) == []
    assert found_in(numastat([128_000.0] * 8)) == []


@pytest.mark.parametrize("sizes", [[257_000.0, 128_500.0], [64_000.0, 64_000.0, 40_000.0, 64_000.0]])
def test_unequal_nodes_with_unknown_cpus_are_a_gap(sizes: list[float]) -> None:
    short = "available: nodes\n" + "".join(f"node {at} size: {size:.0f} MB\n" for at, size in enumerate(sizes))
    for text in (numastat(sizes), short):
        report = report_of(text)
        assert report.verdict == "unknown"
        gaps = [one.subject for one in report.not_checked if one.subject.startswith("numa")]
        assert gaps == [f"numa{sizes.index(min(sizes))}"]
    assert report_of(numastat([size / 100 + 250_000 for size in sizes])).verdict == "ok"


@pytest.mark.parametrize("fates", [{"Recovered": 24, "Failed": 2}, {"Failed": 1, "Delayed": 5, "Ignored": 40}])
def test_one_count_of_pages_for_each_summary(fates: dict[str, int]) -> None:
    rows = "".join(f"\t{fate} errors: {count}\n" for fate, count in fates.items())
    text = f"{QUIET}Memory failure events summary:\n{rows}\n"
    for several in (text, text + text):
        (finding,) = report_of(several).findings
        assert finding.observed == sum(fates.values())
        assert (
            finding.message == f"memory pages: {sum(fates.values())} with an uncorrected error, recorded by rasdaemon"
        )
