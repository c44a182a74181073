"""Errors that came faster than the kernel reads them, and errors of an excerpt that cost nothing."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in

DEVICE, PORT = "0000:04:00.0", "0000:00:1d.0"


def log(word: str, count: int, seconds: float) -> str:
    lines = []
    for number in range(count):
        at = 3.4 + seconds * number
        lines += [
            f"[{at:12.6f}] pcieport {PORT}: AER: {word}Correctable error message received from {DEVICE}",
            f"[{at:12.6f}] nvme {DEVICE}: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)",
            f"[{at:12.6f}] nvme {DEVICE}:   device [144d:a80c] error status/mask=00000001/0000e000",
            f"[{at:12.6f}] nvme {DEVICE}:    [ 0] RxErr                  (First)",
        ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("count", [3, 5, 12])
@pytest.mark.parametrize("seconds", [0.0001, 0.5, 20.0])
def test_a_storm(count: int, seconds: float) -> None:
    assert found_in(log("Multiple ", count, seconds)) == [("pcie-errors", "warning", DEVICE)]


@pytest.mark.parametrize(("word", "count", "seconds"), [("", 5, 0.1), ("Multiple ", 2, 0.1), ("Multiple ", 5, 700.0)])
def test_few_errors_or_seldom_ones(word: str, count: int, seconds: float) -> None:
    assert found_in(log(word, count, seconds)) == [("pcie-errors", "info", DEVICE)]


@pytest.mark.parametrize("driver", ["nvidia", "mlx5_core", "nvme", "amdgpu"])
def test_the_iommu_refuses(driver: str) -> None:
    event = "AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040 flags=0x0020]"
    assert found_in(f"[   12.3] {driver} {DEVICE}: {event}\n") == [("iommu-translation", "warning", DEVICE)]


def test_a_server_that_does_not_answer_is_a_symptom() -> None:
    lost = "nfs: server 10.0.4.7 not responding, still trying\n"
    assert found_in(lost) == [("not-enough-evidence", "info", "node")]
    assert found_in(f"{lost}nfs: server 10.0.4.7 OK\n") == [("storage-degraded", "info", "node")]
