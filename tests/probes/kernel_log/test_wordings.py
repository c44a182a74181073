"""Log lines from the format strings of several kernel versions: old and new wordings of a message are one event.

Each row has the releases if they are known, the file with the format string, the string, its values, and the event.
"""

from __future__ import annotations

import re

import pytest

from linkgauge.models.catalog.log_messages import KERNEL, entries
from linkgauge.models.facts.machine import Event
from linkgauge.probes.kernel_log.patterns import event_of

THERM, OLD_THERM = "drivers/thermal/intel/therm_throt.c", "arch/x86/kernel/cpu/mcheck/therm_throt.c"
BLK, NVME, NVME_PCI = "block/blk-core.c", "drivers/nvme/host/core.c", "drivers/nvme/host/pci.c"
RAID0, RAID1, RAID10, RAID5 = (f"drivers/md/raid{level}.c" for level in (0, 1, 10, 5))
HOTPLUG = "drivers/pci/hotplug/pciehp_ctrl.c"
MLX5 = "drivers/net/ethernet/mellanox/mlx5/core/events.c"
MEDIA = "critical medium error, dev %s, sector %llu"
NVME_LOG = "%s: %s(0x%x) @ LBA %llu, %u blocks, %s (sct 0x%x / sc 0x%x) %s%s"
MD_FAILED = "md/raid1:%s: Disk failure on %s, disabling device."
MD_LAST = "md/raid1:%s: Disk failure on %pg, this is the last device."

ROWS = [
    ("-5.5", OLD_THERM, "CPU%d: %s temperature above threshold, cpu clock throttled (total events = %lu)",
     (3, "Core", 1), ("throttle", "cpu3", None)),
    ("5.6-", THERM, "CPU%d: %s temperature is above threshold, cpu clock is throttled (total events = %lu)",
     (3, "Package", 219), ("throttle", "cpu3", None)),
    ("-5.5", OLD_THERM, "CPU%d: %s temperature/speed normal", (3, "Core"), ("message", "cpu3", "cpu-power-normal")),
    ("5.6-", THERM, "CPU%d: %s temperature/speed normal (total events = %lu)", (3, "Core", 1),
     ("message", "cpu3", "cpu-power-normal")),
    ("-5.5", OLD_THERM, "CPU%d: %s power limit notification (total events = %lu)", (3, "Package", 9),
     ("message", "cpu3", "cpu-power-limit")),
    # Medium errors of the block layer.
    ("older", BLK, f"end_request: {MEDIA}", ("sda", 8192), ("medium error", "sda", None)),
    ("older", BLK, f"blk_update_request: {MEDIA}", ("sdaa", 8192), ("medium error", "sdaa", None)),
    ("older", BLK, f"print_req_error: {MEDIA} flags %x", ("nvme0n1", 8192, 0x80700),
     ("medium error", "nvme0n1", None)),
    ("older", BLK, f"blk_update_request: {MEDIA} op 0x%x:(%s) flags 0x%x phys_seg %u prio class %u",
     ("nvme0n1", 8192, 0, "READ", 0x80700, 8, 0), ("medium error", "nvme0n1", None)),
    ("newer", BLK, f"{MEDIA} op 0x%x:(%s) flags 0x%x phys_seg %u prio class %u",
     ("nvme3c0n1", 8192, 0, "READ", 0x80700, 8, 2), ("medium error", "nvme3n1", None)),
    ("newer", BLK, "%s error, dev %s, sector %llu op 0x%x:(%s) flags 0x%x phys_seg %u prio class %u",
     ("I/O", "nvme3c0n1", 8192, 1, "WRITE", 0x1000, 8, 2), ("message", "nvme3n1", "blk-io-error")),
    # NVMe I/O errors, with and without CONFIG_NVME_VERBOSE_ERRORS.
    ("5.18-", NVME, NVME_LOG, ("nvme0n1", "Read", 2, 8192, 8, "Unrecovered Read Error", 2, 0x81, "", "DNR "),
     ("unrecovered read", "nvme0n1", None)),
    ("5.18-", NVME, NVME_LOG, ("nvme0n1", "I/O Cmd", 2, 8192, 8, "I/O Error", 2, 0x81, "MORE ", "DNR "),
     ("unrecovered read", "nvme0n1", None)),
    ("older", NVME, NVME_LOG, ("nvme3c0n1", "I/O Cmd", 2, 8192, 8, "I/O Error", 2, 0x81, "", ""),
     ("unrecovered read", "nvme3n1", None)),
    ("5.18-", NVME, NVME_LOG, ("nvme0n1", "Write", 1, 8192, 8, "Write Fault", 2, 0x80, "", "DNR "),
     ("message", "nvme0n1", "nvme-media-error")),
    ("5.18-", NVME, NVME_LOG, ("nvme0n1", "I/O Cmd", 1, 8192, 8, "I/O Error", 2, 0x80, "", "DNR "),
     ("message", "nvme0n1", "nvme-media-error")),
    ("5.18-", NVME, NVME_LOG, ("nvme0n1", "I/O Cmd", 2, 8192, 8, "I/O Error", 2, 0x82, "", ""),
     ("message", "nvme0n1", "nvme-media-error")),
    ("5.18-", NVME, NVME_LOG, ("nvme0n1", "I/O Cmd", 2, 8192, 8, "I/O Error", 3, 0x60, "", ""),
     ("message", "nvme0n1", "nvme-path-error")),
    # A failed comparison and a denied access are answers to a program, and no fault of the medium.
    ("5.18-", NVME, NVME_LOG, ("nvme0n1", "I/O Cmd", 5, 8192, 8, "I/O Error", 2, 0x85, "", "DNR "), None),
    ("5.18-", NVME, NVME_LOG, ("nvme0n1", "I/O Cmd", 2, 8192, 8, "I/O Error", 2, 0x86, "", "DNR "), None),
    # Timeouts and polled completions.
    ("older", NVME_PCI, "nvme %s: I/O %d QID %d timeout, aborting", ("nvme3", 9, 4), ("nvme", "nvme3", None)),
    ("older", NVME_PCI, "nvme %s: I/O %d (%s) QID %d timeout, aborting", ("nvme3", 9, "Read", 4),
     ("nvme", "nvme3", None)),
    ("newer", NVME_PCI, "nvme %s: I/O tag %d (%04x) opcode %#x (%s) QID %d timeout, aborting req_op:%s(%u) size:%u",
     ("nvme3", 9, 0x100C, 2, "Read", 4, "READ", 0, 4096), ("nvme", "nvme3", None)),
    ("newer", NVME_PCI, "nvme %s: I/O tag %d (%04x) opcode %#x (%s) QID %d timeout, reset controller",
     ("nvme3", 9, 0x100C, 2, "Read", 4), ("nvme", "nvme3", None)),
    ("older", NVME_PCI, "nvme %s: I/O %d QID %d timeout, completion polled", ("nvme0", 978, 3),
     ("message", "nvme0", "nvme-polled")),
    ("newer", NVME_PCI, "nvme %s: I/O tag %d (%04x) QID %d timeout, completion polled", ("nvme0", 12, 0x100C, 0),
     ("message", "nvme0", "nvme-polled")),
    # Members of md arrays.
    ("older", RAID1, MD_FAILED, ("md0", "nvme1n1p2"), ("message", "md0", "md-disk-failure")),
    ("older", RAID10, MD_FAILED.replace("raid1", "raid10"), ("md127", "sdb1"), ("message", "md127", "md-disk-failure")),
    ("all", RAID5, MD_FAILED.replace("raid1", "raid"), ("md5", "sdc"), ("message", "md5", "md-disk-failure")),
    ("newer", RAID1, MD_LAST, ("md0", "sdb1"), ("message", "md0", "md-disk-failure")),
    ("6.0-", RAID0, "md/raid0%s: Disk failure on %pg detected, failing array.", ("md0", "nvme1n1p1"),
     ("message", "md0", "md-array-failed")),
    ("6.0-", "drivers/md/md-linear.c", "md/linear%s: Disk failure on %pg detected, failing array.", ("md1", "sdb"),
     ("message", "md1", "md-array-failed")),
    ("all", RAID5, "md/raid:%s: Operation continuing on %d devices.", ("md5", 3), ("message", "md5", "md-continuing")),
    ("newer", RAID5, "md/raid:%s: Cannot continue operation (%d/%d failed).", ("md5", 2, 4),
     ("message", "md5", "md-not-enough")),
    # Power of slots.
    ("older", HOTPLUG, "pciehp 0000:80:01.0:pcie04: Power fault on slot %s", ("12",),
     ("message", "0000:80:01.0", "pciehp-power-fault-old")),
    ("older", HOTPLUG, "pciehp 0000:80:01.0:pcie04: Power fault on Slot(%s)", ("12",),
     ("message", "0000:80:01.0", "pciehp-power-fault-old")),
    ("older", HOTPLUG, "pciehp 0000:80:01.0:pcie004: Slot(%s): Power fault", ("12",),
     ("message", "0000:80:01.0", "pciehp-power-fault")),
    ("newer", HOTPLUG, "pcieport 0000:80:01.0: pciehp: Slot(%s): Power fault", ("12",),
     ("message", "0000:80:01.0", "pciehp-power-fault")),
    ("older", HOTPLUG, "pciehp 0000:80:01.0:pcie04: Power fault cleared on Slot(%s)", ("12",), None),
    ("all", MLX5, "mlx5_core 0000:18:00.0: %s:%d:(pid %d): Detected insufficient power on the PCIe slot (%uW).",
     ("mlx5_pcie_event", 294, 1213, 27), ("message", "0000:18:00.0", "mlx5-slot-power")),
    ("all", MLX5, "mlx5_core 0000:18:00.0: %s:%d:(pid %d): PCIe slot advertised sufficient power (%uW).",
     ("mlx5_pcie_event", 294, 1213, 75), None),
]  # fmt: skip


def printed(form: str, values: tuple[object, ...]) -> str:
    """The line that printk writes. %pg is the name of a block device (core-api/printk-formats.rst)."""
    return re.sub(r"%l{1,2}u|%u", "%d", form).replace("%pg", "%s") % values


def summary(event: Event | None) -> tuple[str | None, str | None, str | None] | None:
    return None if event is None else (event.kind, event.subject, event.name)


@pytest.mark.parametrize(("releases", "file", "form", "values", "expected"), ROWS, ids=lambda value: str(value)[:60])
def test_a_wording(
    releases: str, file: str, form: str, values: tuple[object, ...], expected: tuple[str, str, str | None] | None
) -> None:
    line = printed(form, values)
    assert summary(event_of(line, entries(*KERNEL))) == expected
