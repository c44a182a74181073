"""Log lines from the format strings of several kernel versions: old and new wordings of a message are one event.

Each row has the releases if they are known, the file with the format string, the string, its values, and the event.
"""

from __future__ import annotations

import re

import pytest

from linkgauge.models.catalog.log_messages import KERNEL, entries
from linkgauge.models.facts.machine import Event
from linkgauge.probes.kernel_log.patterns import event_of
from linkgauge.probes.kernel_log.user_text import is_of_user

THERM, OLD_THERM = "drivers/thermal/intel/therm_throt.c", "arch/x86/kernel/cpu/mcheck/therm_throt.c"
BLK, NVME, NVME_PCI = "block/blk-core.c", "drivers/nvme/host/core.c", "drivers/nvme/host/pci.c"
RAID0, RAID1, RAID10, RAID5 = (f"drivers/md/raid{level}.c" for level in (0, 1, 10, 5))
HOTPLUG = "drivers/pci/hotplug/pciehp_ctrl.c"
E1000E, IGB, IXGBE, TG3, BNX2, R8169, AQ, QEDE = (
    f"drivers/net/ethernet/{path}"
    for path in (
        "intel/e1000e/netdev.c", "intel/igb/igb_main.c", "intel/ixgbe/ixgbe_main.c", "broadcom/tg3.c",
        "broadcom/bnx2.c", "realtek/r8169_main.c", "aquantia/atlantic/aq_nic.c", "qlogic/qede/qede_main.c",
    )
)  # fmt: skip
PHY, EDAC_MC = "drivers/net/phy/phy.c", "drivers/edac/edac_mc.c"
CE_PAGE = 'EDAC MC%d: CE page 0x%x, offset 0x%x, grain %d, syndrome 0x%x, row %d, channel %d, label "%s": %s'
DIMM = "CPU#0Channel#2_DIMM#0"
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
    # Links of network devices, with and without the PCI address.
    ("older", E1000E, "e1000e: %s NIC Link is Down", ("eth0",), ("link down", "node", "eth0")),
    ("older", E1000E, "e1000e: %s NIC Link is Up %d Mbps %s, Flow Control: %s", ("eth0", 1000, "Full Duplex", "Rx/Tx"),
     ("link up", "node", "eth0")),
    ("newer", E1000E, "e1000e 0000:00:1f.6 %s: NIC Link is Down", ("eno1",), ("link down", "0000:00:1f.6", "eno1")),
    ("older", IGB, "igb: %s NIC Link is Down", ("eth1",), ("link down", "node", "eth1")),
    ("newer", IGB, "igb 0000:01:00.0 %s: igb: %s NIC Link is Down", ("eno1", "eno1"),
     ("link down", "0000:01:00.0", "eno1")),
    ("older", IXGBE, "ixgbe 0000:3b:00.0: %s: NIC Link is Down", ("eth4",), ("link down", "0000:3b:00.0", "eth4")),
    ("newer", IXGBE, "ixgbe 0000:3b:00.0 %s: NIC Link is Up %s, Flow Control: %s", ("ens3f0", "10 Gbps", "RX/TX"),
     ("link up", "0000:3b:00.0", "ens3f0")),
    ("all", TG3, "tg3 0000:03:00.0 %s: Link is down", ("eno1",), ("link down", "0000:03:00.0", "eno1")),
    ("older", TG3, "tg3 0000:03:00.0: %s: Link is up at %d Mbps, %s duplex", ("eth0", 1000, "full"),
     ("link up", "0000:03:00.0", "eth0")),
    ("all", BNX2, "bnx2 0000:02:00.0 %s: NIC %s Link is Down", ("eth0", "Copper"),
     ("link down", "0000:02:00.0", "eth0")),
    ("older", BNX2, "bnx2: %s NIC %s Link is Up, %d Mbps full duplex", ("eth0", "SerDes", 1000),
     ("link up", "node", "eth0")),
    ("older", R8169, "r8169 0000:02:00.0: %s: link down", ("eth0",), ("link down", "0000:02:00.0", "eth0")),
    ("newer", PHY, "r8169 0000:02:00.0 %s: Link is Up - %s/%s - flow control %s", ("eth0", "1Gbps", "Full", "off"),
     ("link up", "0000:02:00.0", "eth0")),
    ("all", AQ, "atlantic 0000:01:00.0 %s: atlantic: link change old %d new %d", ("enp1s0", 10000, 0),
     ("link down", "node", "enp1s0")),
    ("all", AQ, "atlantic 0000:01:00.0 %s: atlantic: link change old %d new %d", ("enp1s0", 0, 10000),
     ("link up", "node", "enp1s0")),
    ("all", QEDE, "[qede_link_update:%d(%s)]Link is up", (2209, "ens2f0"), ("link up", "node", "ens2f0")),
    ("all", MLX5, "mlx5_core 0000:18:00.0 %s: Link up", ("ens1f0np0",), ("link up", "0000:18:00.0", "ens1f0np0")),
    ("all", "drivers/ata/libata-core.c", "ata%d: SATA link down (SStatus %X SControl %X)", (1, 0, 0x300), None),
    ("all", "net/ipv6/addrconf.c", "IPv6: ADDRCONF(NETDEV_CHANGE): %s: link becomes ready", ("eth0",),
     ("link ready", "node", "eth0")),
    # Memory errors, with the module or without.
    ("3.6-", EDAC_MC, "EDAC MC%d: %d CE %son %s (channel:2 slot:0 page:0x0 offset:0x0 grain:8 syndrome:0x0)",
     (0, 4, "error ", DIMM), ("edac", "mc0", DIMM)),
    ("3.6-", EDAC_MC, "EDAC MC%d: %d UE %son %s (channel:2 slot:0 page:0x0)", (1, 1, "multi-bit ECC ",
     "unknown memory"), ("edac", "mc1", None)),
    ("-3.5", EDAC_MC, CE_PAGE, (0, 0x3D4F2, 0x7C0, 128, 0xB0, 5, 1, "DIMM_B2", "amd64_edac"),
     ("edac", "mc0", "DIMM_B2")),
    ("-3.5", EDAC_MC, 'EDAC MC%d: UE page 0x%x, offset 0x%x, grain %d, row %d, labels "%s": %s',
     (0, 0x3D4F2, 0x7C0, 128, 5, ":", "amd64_edac"), ("edac", "mc0", None)),
    ("-3.5", EDAC_MC, "EDAC MC%d: UE - no information available: %s", (1, "INTERNAL ERROR"), ("edac", "mc1", None)),
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
    assert not is_of_user(line)
