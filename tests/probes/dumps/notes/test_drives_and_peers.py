"""Sentences about failed drives, slow drives and peers that stopped to work, and harmless ones with the same words."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

FAULTS = (
    ("Node 7 suffered a hardware failure of its boot NVMe drive", "storage-degraded"),
    ("我的 NVMe 盘只有 PCIe 3.0 x1 的速度", "storage-slow"),
    ("PCIe 那边有问题，SSD 的速度只有一半", "storage-slow"),
    ("NCCL P2P is not working after we set IOMMU and ACS", "p2p-disabled"),
)
HARMLESS = (
    "The RAID protects against hardware failure of one disk.",
    "Warranty covers hardware failure of the drive.",
    "The NVMe drive is not detected by the BIOS because the slot is disabled in our config.",
    "购买的 SSD 只有一半的价格",
    "硬盘空间只有一半",
    "SSD 使用率只有一半",
    "机械硬盘的速度只有 SSD 的一半",
    "链路：SSD 设计为只有 x1 的速度",
    "P2P does not work with ACS enabled in general.",
    "How does ACS affect P2P? P2P does not work when ACS redirects it.",
    "peer-to-peer file sharing does not work behind the ACS firewall",
    "P2P DMA between NVMe and NIC is not working with IOMMU in this kernel.",
)


@pytest.mark.parametrize(("text", "code"), FAULTS)
def test_faults(text: str, code: str) -> None:
    assert {one.code for one in report_of(text + "\n").findings} == {code}


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless(text: str) -> None:
    assert report_of(text + "\n").findings == ()


@pytest.mark.parametrize(
    "text",
    [
        "A job killed by `CUDA error: uncorrectable NVLink error detected during the execution` names no link.",
        "hwmc GPU2: unable to get the fan speed of this card",
        "amd-smi reports that the card is THROTTLED at idle because it trusts an always-set bit",
    ],
)
def test_general_statements_and_states_at_rest(text: str) -> None:
    assert {one.severity for one in report_of(text + "\n").findings} <= {"info"}


@pytest.mark.parametrize("size", ["254GB", "64 GiB", "128G"])
@pytest.mark.parametrize("form", ["/dev/shm space of {}", "/dev/shm has {}", "/dev/shm is about {}"])
def test_a_bus_error_beside_a_large_shm(form: str, size: str) -> None:
    error = (
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm)."
    )
    report = report_of(f"{error}\nWe have {form.format(size)} in the container.\n")
    assert [one.code for one in report.findings] == ["not-enough-evidence"]
    assert report.verdict == "unknown"


@pytest.mark.parametrize(
    "text",
    [
        "GPUs can be throttled due to thermal conditions without an Xid.",
        "I've often seen my gpu throttle during benchmarks on another system.",
        "My motherboard only supports PCIe Gen 3.0, so the graphics card is working at Gen 3.0 speeds (8.0 GT/s)",
    ],
)
def test_what_can_happen_and_what_a_board_supports(text: str) -> None:
    assert report_of(text + "\n").findings == ()


def test_what_one_can_see_is_stated() -> None:
    found = report_of("You can see that the GPU 1 has 1 Volatile Uncorr. ECC.\n").findings
    assert [(one.code, one.subject) for one in found] == [("gpu-ecc", "gpu1")]


@pytest.mark.parametrize(
    ("have", "severity"), [(63622, "info"), (62800, "info"), (62000, "warning"), (60000, "warning"), (32000, "warning")]
)
def test_memory_that_slurm_misses(have: int, severity: str) -> None:
    (found,) = report_of(f"slurmctld: error: Node n17 has low real_memory size ({have} < 64000)\n").findings
    assert (found.code, found.severity) == ("host-memory-errors", severity)
