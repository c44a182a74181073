"""Any user can write into the kernel log: by the names of programs that crash, of files and of control groups.

Before, each of these lines was a fault of the GPU or of the port that it names. The forms of the lines: Linux
https://elixir.bootlin.com/linux/v6.12/source/arch/x86/mm/fault.c (show_signal_msg), arch/x86/kernel/traps.c,
fs/binfmt_elf.c, mm/oom_kill.c, kernel/cgroup/pids.c, fs/fs_parser.c, fs/overlayfs/params.c, security/yama/yama_lsm.c,
lib/dump_stack.c, kernel/hung_task.c, lib/nlattr.c, kernel/capability.c, arch/x86/kernel/umip.c and cpu/intel.c (split
locks), kernel/futex, mm/memfd.c, fs/coredump.c (exec.c before), fs/hugetlbfs/inode.c, net/sctp/socket.c,
net/core/sock.c, net/packet, net/socket.c, kernel/sched/core.c, mm/vmalloc.c, block/blk-core.c, fs/namespace.c,
kernel/cgroup/cgroup-v1.c, security/keys/encrypted-keys, drivers/infiniband/core, drivers/gpu/drm/amd/amdgpu. A
program has up to 15 characters, a file name up to 255.
"""

from __future__ import annotations

import pytest

from linkgauge.models.catalog.log_messages import KERNEL, entries, message
from linkgauge.models.facts.machine import Event
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.kernel_log.patterns import events_in
from linkgauge.probes.kernel_log.user_text import is_of_user
from tests.support.nodes.described import node, report_of, with_entry

XID = "NVRM: Xid (PCI:0000:1b:00): 48, pid=4711, name=python3, An uncorrectable double bit error (DBE)"
ERROR = "mlx5_core 0000:1a:00.0: poll_health:801:(pid 0): Fatal error 3 detected"
PORT = "eth0: link down"
CRASH = "[4711]: segfault at 0 ip 000055d0c3a11129 sp 00007ffd1c0f3b60 error 6"
GROUP = "/user.slice/user-1000.slice/user@1000.service"
LINES = [
    f"a.out{CRASH} in {{}}[1129,55d0c3a11000+1000] likely on CPU 3 (core 3, socket 0)",
    "traps: a.out[4711] trap divide error ip:55d0c3a11129 sp:7ffd1c0f3b60 error:0 in {}[55d0c3a11000+1000]",
    "a.out[4711]: unhandled exception: DABT (lower EL), ESR 0x0000000092000006, translation fault in {}[0+1000]",
    "process 'home/u/{}' started with executable stack",
    f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=user.slice,mems_allowed=0,oom_memcg={GROUP}/{{}}",
    f"Tasks in {GROUP}/{{}} are going to be killed due to memory.oom.group set",
    f"Memory cgroup stats for {GROUP}/{{}}:",
    f"cgroup: fork rejected by pids controller in {GROUP}/{{}}",
    "tmpfs: Unknown parameter '{}'",
    "overlay: Unknown parameter '{}'",
    "overlayfs: failed to resolve '{}': -2",
    'ptrace attach of "{}"[4711] was attempted by "gdb"[4712]',
    'audit: type=1400 audit(1.0:1): apparmor="DENIED" operation="open" profile="x" name="{}" pid=4711',
    'type=1400 audit(1.0:1): apparmor="DENIED" operation="open" profile="x" name="{}" pid=4711',  # before Linux 3.14
    'ptrace traceme of "{}"[4711] was attempted by "bash"[4712]',
    "cgroup1: Unknown subsys name '{}'",
    "overlay filesystem being mounted at /home/u/{} supports timestamps until 2038 (0x7fffffff)",
    "encrypted_key: master key parameter '{}' is invalid",
]
SHORT = [  # a name of 15 characters
    f"{PORT}{CRASH} in a.out[55d0c3a11000+1000]",
    f"{PORT} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
    f"Out of memory: Killed process 4711 ({PORT}) total-vm:4kB, anon-rss:4kB",
    f"[   4711]  1000  4711     1234     100    40960        0             0 {PORT}",
    f"CPU: 3 PID: 4711 Comm: {PORT} Not tainted 6.1.0-41-amd64 #1",
    f"INFO: task {PORT}:4711 blocked for more than 120 seconds.",
]

CALLS = [  # system calls that any user may make; the kernel prints the name of the calling program
    "netlink: 4 bytes leftover after parsing attributes in process `{}'.",
    "netlink: '{}': attribute type 1 has an invalid length.",
    "capability: warning: `{}' uses 32-bit capabilities (legacy support in use)",
    "warning: process `{}' used the deprecated sysctl system call with 1.1.",
    "sock: process `{}' is using obsolete setsockopt SO_BSDCOMPAT",
    "umip: {}[4711] ip:401106 sp:7ffd1c0f3b60: SGDT instruction cannot be used by applications.",
    "x86/split lock detection: #AC: {}/4711 took a split_lock trap at address: 0x401136",
    "futex_wake_op: {} tries to shift op by 32; fix this program",
    "futex: futex_wake_op: {} tries to shift op by 32; fix this program",
    "memfd_create() without MFD_EXEC nor MFD_NOEXEC_SEAL, pid=4711 '{}'",
    "Process 4711({}) has RLIMIT_CORE set to 1",
    "Pid 4711({}) over core_pipe_limit",
    "coredump: 4711({}): over core_pipe_limit, skipping core dump",
    "hugetlbfs: {} (4711): Using mlock ulimits for SHM_HUGETLB is obsolete",
    "sctp: [Deprecated]: {} (pid 4711) Use of int in maxseg socket option.",
    "{} uses obsolete (PF_INET,SOCK_PACKET)",
    "process 4711 ({}) no longer affine to cpu3",
    "ib_uverbs_write: process 4711 ({}) changed security contexts after opening file descriptor, this is not allowed.",
    "Killed process 4711 ({}) total-vm:4kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB",
    "task:{} state:D stack:0     pid:4711  ppid:1      flags:0x00000002",
    "{} D    0  4711      1 0x00000000",
    "{}: vmalloc error: size 4096, page order 0, failed to allocate pages, mode:0xcc0(GFP_KERNEL)",
    "{}: attempt to access beyond end of device",
    'xt_CT: No such helper "{}"',
    "amdgpu 0000:c1:00.0: amdgpu:  in process {} pid 4711 thread a.out pid 4711",
    "amdgpu 0000:c1:00.0: amdgpu: Process information: process {} pid 4711 thread a.out pid 4711",
    "amdgpu 0000:c1:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:3 pasid:32770, "
    "for process {} pid 4711 thread a.out pid 4711)",
]
NAMES = [PORT, "Xid (1b:00): 79", "Xid 79 (1b:00)", "NMI: IOCK error", "PROCHOT active"]  # at most 15 characters
# Rows of the catalog that programs write into the journal, not the kernel: text files contain them.
PROGRAMS = {
    "rasdaemon-mce", "mdadm-event", "mdadm-rebuild-finished", "opensm-port-down", "opensm-subnet-up",
    "smartd-attribute", "smartd-critical", "smartd-error-log", "zed-device-online", "zed-device-state",
    "zfs-vdev-faulted",
}  # fmt: skip


def events(line: str) -> list[Event]:
    return [event for _, event in events_in([(1.0, line)])]


@pytest.mark.parametrize("line", LINES)
def test_a_long_name_is_no_message_of_a_driver(line: str) -> None:
    for forged in (XID, ERROR, f"x {ERROR}"):  # kmsg shows the end of a line in a name as \x0a: a blank
        assert events(forged) != []
        assert events(line.format(forged)) == []


@pytest.mark.parametrize("line", SHORT)
def test_a_name_of_a_program_is_no_message_of_a_driver(line: str) -> None:
    assert [event.kind for event in events(PORT)] == ["link down"]
    assert {event.kind for event in events(line)} <= {"message"}
    assert not any(event.subject == "eth0" for event in events(line))


@pytest.mark.parametrize("line", [*CALLS, *SHORT])
def test_no_call_of_a_user_is_a_message_of_a_driver(line: str) -> None:
    for name in NAMES:
        forged = events(line.replace(PORT, "{}").format(name))
        assert {event.name for event in forged} <= {"oom-kill", "hung-task"}


def test_each_row_of_the_kernel_and_its_drivers_counts() -> None:
    rows = [message(entry.name) for entry in entries(*KERNEL)]
    assert {row.name for row in rows if is_of_user(row.example)} == PROGRAMS


def test_it_changes_no_verdict() -> None:
    for text, codes in ((XID, ["gpu-xid"]), (LINES[0].format(XID), [])):
        host = with_entry(node("hgx-h100"), "dev/kmsg", f"4,900,400000000,-;{text}")
        assert [one.code for one in report_of(host).findings] == codes


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (f"python3{CRASH} in libnccl.so.2.21.5[7f7c7ac00000+d3d3000]", "segfault-nccl"),
        (f"IMB-MPI1{CRASH} in libucp.so.0.0.0[7f7c7ac00000+d3d3000] likely on CPU 3", "segfault-fabric"),
        ("INFO: task python3:4711 blocked for more than 120 seconds.", "hung-task"),
        (CALLS[-1].format("python3"), "amdgpu-page-fault"),
    ],
)
def test_plain_names_count(line: str, name: str) -> None:
    assert [event.name for event in events(line)] == [name]


def with_carrier(host: Recorded, name: str, carrier: str) -> Recorded:
    """The node with an interface that has a link ("1") or none ("0")."""
    (path,) = [one for one in host.entries if one.endswith(f"/net/{name}/carrier")] or [f"sys/class/net/{name}/carrier"]
    return with_entry(host, path, carrier)


BOND = [
    "bond0: (slave {}): link status definitely down, disabling slave",
    "bond0: link status definitely down for interface {}, disabling it",
]


@pytest.mark.parametrize(
    ("line", "carriers", "codes"),
    [
        *((line.format("eth0"), {"eth0": "1"}, []) for line in BOND),
        *((line.format("eth9"), {}, []) for line in BOND),
        *((line.format("eth0"), {"eth0": "0"}, ["nic-port-down"]) for line in BOND),
        ("bond0: now running without any active interface!", {}, []),
        ("bond0: now running without any active interface!", {"bond0": "1"}, []),
        ("bond0: now running without any active interface!", {"bond0": "0"}, ["nic-port-down"]),
        ("bond0: Warning: No 802.3ad response from the link partner for any adapters in the bond", {}, []),
    ],
)
def test_a_bond_in_a_network_namespace_of_a_user(line: str, carriers: dict[str, str], codes: list[str]) -> None:
    """Any user can run `unshare -Urn ip link add bond0 type bond`: user_namespaces(7)."""
    host = with_entry(node("hgx-h100"), "dev/kmsg", f"4,900,400000000,-;{line}")
    for name, carrier in carriers.items():
        host = with_carrier(host, name, carrier)
    found = [event.code for event in report_of(host).findings if event.code == "nic-port-down"]
    assert found == codes


def test_a_bond_of_a_user_does_not_repair_one_of_the_machine() -> None:
    lines = (BOND[0].format("eth0"), "bond0: (slave eth0): link status definitely up, 100000 Mbps full duplex")
    log = "\n".join(f"4,{number},{number}000000,-;{line}" for number, line in enumerate(lines, 900))
    for carrier, codes in (("0", ["nic-port-down"]), ("1", [])):
        host = with_carrier(with_entry(node("hgx-h100"), "dev/kmsg", log), "eth0", carrier)
        assert [one.code for one in report_of(host).findings if one.code == "nic-port-down"] == codes
