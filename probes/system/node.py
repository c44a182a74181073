"""The machine as a whole: name, firmware strings, virtualization and container."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...models.facts.machine import Node
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable
from ..kernel_log.ring_buffer import STAT
from ..parsing.parsers import cpu_list, word
from ..sysfs.fact_reader import FactReader
from ..sysfs.packages import CPUS
from .cloud_init import INSTANCE_DATA, instance_type, instance_type_alone
from .container import container

_DMI = "sys/class/dmi/id"  # serial numbers and UUIDs in this folder are private and not read
BOOT_ID = "proc/sys/kernel/random/boot_id"
_FIELDS = {
    "hostname": "proc/sys/kernel/hostname",
    "kernel": "proc/sys/kernel/osrelease",
    "vendor": f"{_DMI}/sys_vendor",
    "product": f"{_DMI}/product_name",
    "board": f"{_DMI}/board_name",
    "bios": f"{_DMI}/bios_version",
    "asset_tag": f"{_DMI}/chassis_asset_tag",
    "boot_id": BOOT_ID,
}
_OF_PROC = frozenset({"hostname", "kernel", "boot_id", "booted"})  # fields that every kernel shows in /proc
_MOUNT = "mount procfs at /proc; for --root, at proc below the root of the host"
# Names of virtual machines: start of the vendor, part of the product, hypervisor.
_VIRTUAL = (
    ("Amazon EC2", "", "Amazon Nitro"),
    ("Microsoft Corporation", "Virtual Machine", "Microsoft Hyper-V"),
    ("VMware", "", "VMware"),
    ("Xen", "", "Xen"),
    ("innotek GmbH", "", "VirtualBox"),
    ("", "VirtualBox", "VirtualBox"),
    ("Cloud Hypervisor", "", "Cloud Hypervisor"),
    ("OpenStack", "", "KVM"),
    ("", "OpenStack", "KVM"),
    ("", "KVM", "KVM"),
    ("QEMU", "", "QEMU"),
)
# These clouds use the same name for bare-metal machines (https://github.com/systemd/systemd/pull/38125).
_CLOUDS = {"Google": "Google Compute Engine", "Alibaba Cloud": "Alibaba Cloud"}
# Files in which the kernel names its hypervisor, and the names that it uses.
_MARKED = (
    "sys/hypervisor/type",
    "proc/device-tree/hypervisor/compatible",
    "sys/devices/system/clocksource/clocksource0/available_clocksource",
)
_MARKS = {"kvm": "KVM", "hyperv": "Microsoft Hyper-V", "xen": "Xen", "vmware": "VMware"}


def read_node(host: Host) -> Iterator[Record]:
    """Yield the `Node`. `virtual` is None if unknown: Arm machines have no hypervisor flag."""
    reading = FactReader(host, Node, "node", "")
    dmi = {field: reading.take(field, path, word) for field, path in _FIELDS.items()}
    reading.take("booted", STAT, _boot_time)
    reading.take("present_cpus", f"{CPUS}/present", _number_of_cpus)
    reading.take("smt", f"{CPUS}/smt/control", word)
    reading.take("instance", INSTANCE_DATA, instance_type, cited=instance_type_alone)
    vendor, product = dmi["vendor"] or "", dmi["product"] or ""
    named, marked = _named(vendor, product), _marked(host, reading)
    cloud = next((name for start, name in _CLOUDS.items() if vendor.startswith(start)), None)
    if named or marked:
        virtual: bool | None = True
    else:
        virtual = _flagged(host, reading)
    reading.set(virtual=virtual)
    if virtual:
        # QEMU firmware runs with and without KVM; the kernel knows which.
        reading.set(hypervisor=(marked or named) if named == "QEMU" else named or cloud or marked)
    reading.set(container=container(host))
    yield from reading.records()
    if host.origin != "dumps" and reading.absent.issuperset(_OF_PROC):
        why = "no file of /proc is there: it is not mounted, or only its folders of processes"
        yield NotChecked(what="Node", subject="node", reason=Reason.INCOMPLETE, path="proc", detail=why, how=_MOUNT)


def _number_of_cpus(text: str) -> int:
    return len(cpu_list(text))


def _boot_time(stat: str) -> float:
    found = re.search(r"^btime ([0-9]{1,12})$", stat, re.MULTILINE)
    if not found:
        raise ValueError("has no btime")
    return float(found[1])


def _named(vendor: str, product: str) -> str | None:
    """Return the hypervisor for the firmware's strings (after src/basic/virt.c of systemd)."""
    if ".metal" in product:  # "i4i.metal", "r8g.metal-48xl": Amazon machines without a hypervisor
        return None
    return next((name for start, part, name in _VIRTUAL if vendor.startswith(start) and part in product), None)


def _marked(host: Host, reading: FactReader) -> str | None:
    """Return the hypervisor that the kernel detected at boot."""
    for path in _MARKED:
        text = _text(host, reading, path)
        if name := next((name for mark, name in _MARKS.items() if mark in text), None):
            return name
    return None


def _flagged(host: Host, reading: FactReader) -> bool | None:
    """Whether the processor is virtual; None if unknown.

    x86 has a flag for it (arch/x86/include/asm/cpufeatures.h). On Arm the kernel registers KVM if it booted at EL2
    (arch/arm64/kvm/arm.c), which hypervisors reserve for themselves. With a kernel without KVM the result is unknown.
    """
    text = _text(host, reading, "proc/cpuinfo")
    if flags := re.search(r"^flags[ \t]*:(.*)$", text, re.MULTILINE):
        return "hypervisor" in flags[1].split()
    if re.search(r"^CPU implementer[ \t]*:", text, re.MULTILINE):
        return False if "kvm" in _names(host, reading, "sys/class/misc") else None
    reading.miss("virtual", Reason.OTHER, "proc/cpuinfo does not say what the processor can do")
    return None


def _text(host: Host, reading: FactReader, path: str) -> str:
    try:
        return host.read(path) or ""
    except Unreadable as refusal:
        reading.refused("virtual", path, refusal)
        return ""


def _names(host: Host, reading: FactReader, path: str) -> list[str]:
    try:
        return host.list(path)
    except Unreadable as refusal:
        reading.refused("virtual", path, refusal)
        return []
