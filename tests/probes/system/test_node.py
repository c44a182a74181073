"""The name of a machine, and whether it is virtual."""

from __future__ import annotations

import errno
from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.machine import Node
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.host.entries import Entry, UnreadableFile
from linkgauge.probes.system.container import CGROUP
from linkgauge.probes.system.node import BOOT_ID, read_node
from tests.support.nodes.trees import tree

DMI = "sys/class/dmi/id"
CPUINFO = "proc/cpuinfo"
CLOCKS = "sys/devices/system/clocksource/clocksource0/available_clocksource"
X86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu vme lahf_lm\nbugs\t\t: its\n"
X86_GUEST = X86.replace("vme", "vme hypervisor")
ARM = "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n"


UNMOUNTED = NotChecked(
    what="Node",
    subject="node",
    reason=Reason.INCOMPLETE,
    path="proc",
    detail="no file of /proc is there: it is not mounted, or only its folders of processes",
    how="mount procfs at /proc; for --root, at proc below the root of the host",
)


def read(files: Mapping[str, Entry]) -> list[Record]:
    """What is read from these files, which are a small part of /proc."""
    records = [one for one in read_node(tree(files)) if one != UNMOUNTED]
    return [replace(said, cites={}) if isinstance(said, Node) else said for said in records]


@pytest.mark.parametrize("name", ["proc/sys/kernel/hostname", "proc/sys/kernel/osrelease", "proc/stat", BOOT_ID])
def test_without_proc_the_node_is_a_gap(name: str) -> None:
    assert UNMOUNTED in list(read_node(tree({CPUINFO: X86})))
    assert UNMOUNTED not in list(read_node(tree({name: "1"})))
    assert UNMOUNTED not in list(read_node(tree({name: UnreadableFile(errno.EACCES, "Permission denied")})))


def dmi(vendor: str, product: str) -> Mapping[str, str]:
    return {f"{DMI}/sys_vendor": f"{vendor}", f"{DMI}/product_name": f"{product}"}


def test_a_real_machine() -> None:
    host = tree(
        {
            "proc/sys/kernel/hostname": "gpu17",
            "proc/sys/kernel/osrelease": "6.8.0-45-generic",
            CPUINFO: X86,
            **dmi("Supermicro", "SYS-821GE-TNHR"),
            f"{DMI}/board_name": "X13DEG-OAD",
            f"{DMI}/bios_version": "2.1",
            f"{DMI}/product_serial": "A12345",
            CLOCKS: "tsc hpet acpi_pm",
        },
    )
    assert list(read_node(host)) == [
        Node(
            key="node",
            hostname="gpu17",
            kernel="6.8.0-45-generic",
            vendor="Supermicro",
            product="SYS-821GE-TNHR",
            board="X13DEG-OAD",
            bios="2.1",
            virtual=False,
            cites={
                "hostname": Evidence("proc/sys/kernel/hostname", "gpu17"),
                "kernel": Evidence("proc/sys/kernel/osrelease", "6.8.0-45-generic"),
                "vendor": Evidence(f"{DMI}/sys_vendor", "Supermicro"),
                "product": Evidence(f"{DMI}/product_name", "SYS-821GE-TNHR"),
                "board": Evidence(f"{DMI}/board_name", "X13DEG-OAD"),
                "bios": Evidence(f"{DMI}/bios_version", "2.1"),
            },
        )
    ]


def test_nothing_there() -> None:
    why = "proc/cpuinfo does not say what the processor can do"
    assert read({}) == [
        NotChecked(what="Node.virtual", subject="node", reason=Reason.OTHER, detail=why),
        Node(key="node"),
    ]


def test_a_guest_without_firmware_strings() -> None:
    files = {CPUINFO: X86_GUEST, CLOCKS: "tsc kvm-clock"}
    assert read(files) == [Node(key="node", virtual=True, hypervisor="KVM")]


def test_a_guest_that_nobody_names() -> None:
    assert read({CPUINFO: X86_GUEST}) == [Node(key="node", virtual=True)]


@pytest.mark.parametrize(
    ("vendor", "product", "files", "virtual", "hypervisor"),
    [
        ("Amazon EC2", "p5.48xlarge", {CPUINFO: X86_GUEST, CLOCKS: "tsc kvm-clock"}, True, "Amazon Nitro"),
        ("Amazon EC2", "g5g.metal", {CPUINFO: X86}, False, None),
        ("Amazon EC2", "p6e-gb200.36xlarge", {CPUINFO: ARM}, True, "Amazon Nitro"),
        ("Amazon EC2", "r8g.metal-48xl", {CPUINFO: ARM}, None, None),
        ("Xen", "HVM domU", {CPUINFO: X86_GUEST}, True, "Xen"),
        ("Microsoft Corporation", "Virtual Machine", {CPUINFO: X86_GUEST}, True, "Microsoft Hyper-V"),
        ("Microsoft Corporation", "Surface Laptop", {CPUINFO: X86}, False, None),
        ("VMware, Inc.", "VMware7,1", {CPUINFO: X86_GUEST}, True, "VMware"),
        ("innotek GmbH", "VirtualBox", {CPUINFO: X86}, True, "VirtualBox"),
        ("Oracle Corporation", "ORACLE SERVER X9-2c", {CPUINFO: X86}, False, None),
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)", {CPUINFO: X86_GUEST}, True, "QEMU"),
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)", {CPUINFO: X86_GUEST, CLOCKS: "kvm-clock tsc"}, True, "KVM"),
        ("QEMU", "KVM Virtual Machine", {CPUINFO: ARM}, True, "KVM"),
        ("Google", "Google Compute Engine", {CPUINFO: X86_GUEST, CLOCKS: "kvm-clock"}, True, "Google Compute Engine"),
        ("Google", "Google Compute Engine", {CPUINFO: X86_GUEST}, True, "Google Compute Engine"),
        ("Google", "Google Compute Engine", {CPUINFO: X86}, False, None),
        ("Google", "Google Compute Engine", {CPUINFO: ARM}, None, None),
        ("NVIDIA", "GB200 NVL", {CPUINFO: ARM}, None, None),
        ("NVIDIA", "GB200 NVL", {CPUINFO: ARM, "sys/class/misc/kvm/dev": "10:232"}, False, None),
    ],
)
def test_virtual(
    vendor: str, product: str, files: Mapping[str, str], virtual: bool | None, hypervisor: str | None
) -> None:
    assert read({**dmi(vendor, product), **files}) == [
        Node(key="node", vendor=vendor, product=product, virtual=virtual, hypervisor=hypervisor)
    ]


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("sys/hypervisor/type", "xen", "Xen"),
        ("proc/device-tree/hypervisor/compatible", "linux,kvm\0", "KVM"),
        ("proc/device-tree/hypervisor/compatible", "xen,xen-4.17\0xen,xen\0", "Xen"),
    ],
)
def test_an_arm_guest_without_firmware_strings(path: str, text: str, name: str) -> None:
    assert read({CPUINFO: ARM, path: text}) == [Node(key="node", virtual=True, hypervisor=name)]


@pytest.mark.parametrize(
    ("files", "container"),
    [
        ({"proc/2/comm": "kthreadd", "proc/1/cgroup": "0::/init.scope"}, ""),
        ({".dockerenv": "", "proc/2/comm": "kthreadd"}, "docker"),  # with --pid=host
        ({".dockerenv": "", "run/secrets/kubernetes.io/serviceaccount/token": "x"}, "kubernetes"),
        ({"run/.containerenv": 'engine="podman-5.4.2"', "proc/1/cgroup": "0::/"}, "podman"),
        ({".singularity.d/labels.json": "{}", "proc/2/comm": "kthreadd"}, "apptainer"),
        ({"run/systemd/container": "systemd-nspawn"}, "systemd-nspawn"),
        ({"run/host/container-manager": "lxc", "run/systemd/container": "not a name\n"}, "lxc"),
        ({"proc/1/cgroup": "11:devices:/kubepods/besteffort/pod1/2\n0::/"}, "kubernetes"),
        ({"proc/1/cgroup": "0::/system.slice/docker-0123.scope"}, "docker"),
        ({"proc/1/cgroup": "0::/"}, "other"),  # nobody but a container has no second process
        ({"proc/1/cgroup": "0::/", "proc/2/comm": "python3"}, "other"),
        ({"proc/1/cgroup": "9:pids:/lxc/build-7f3a"}, "lxc"),
        ({"proc/1/cgroup": UnreadableFile(errno.EACCES, "Permission denied")}, None),  # /proc mounted with hidepid
        ({}, None),
    ],
)
def test_containers(files: Mapping[str, Entry], container: str | None) -> None:
    assert read({CPUINFO: X86, **files}) == [Node(key="node", virtual=False, container=container)]


def test_a_record_keeps_of_control_groups_what_is_read() -> None:
    pod = "0::/kubepods.slice/kubepods-pod4c4c4544_0042.slice/cri-containerd-5f1e2d3c4b5a.scope"
    for cgroups, kept in ((pod, "0::/kubepods"), ("0::/", "0::/"), ("", "")):
        host = Recording(tree({CPUINFO: X86, CGROUP: cgroups}))
        told = list(read_node(host))
        assert host.recorded().entries[CGROUP] == kept
        assert list(read_node(host.recorded())) == told


def test_what_would_not_say() -> None:
    files: Mapping[str, Entry] = {
        f"{DMI}/sys_vendor": UnreadableFile(errno.EIO, "Input/output error"),
        f"{DMI}/product_name": "a\x07b",
        CPUINFO: UnreadableFile(errno.EACCES, "Permission denied"),
    }
    assert read(files) == [
        NotChecked(
            what="Node.vendor",
            subject="node",
            reason=Reason.UNREADABLE,
            path=f"{DMI}/sys_vendor",
            detail="Input/output error",
        ),
        NotChecked(
            what="Node.product",
            subject="node",
            reason=Reason.UNREADABLE,
            path=f"{DMI}/product_name",
            detail="'a\\x07b' is not a line of text",
        ),
        NotChecked(
            what="Node.virtual",
            subject="node",
            reason=Reason.PERMISSION,
            path=CPUINFO,
            detail="Permission denied",
            how="run as root",
        ),
        Node(key="node"),
    ]


def test_the_boot_has_a_number() -> None:
    assert [one.boot_id for one in read({CPUINFO: X86, BOOT_ID: "5f3c"}) if isinstance(one, Node)] == ["5f3c"]
