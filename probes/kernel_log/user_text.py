"""Kernel log lines with text of users: names of programs, files and control groups, options of mounts.

Any user can cause them and choose the text, for example by a crash of a program with the name of an Xid line. So
these lines do not count. Exceptions are crashes and hanging tasks whose names contain no blank: they have rows in the
catalog. An Xid counts only in a record that NVIDIA's driver begins.

Sources: Linux arch/x86/mm/fault.c, kernel/traps.c, kernel/umip.c and kernel/cpu/intel.c, arch/arm64/kernel/traps.c
(crashes, split locks), fs/exec.c, fs/coredump.c and fs/binfmt_elf.c, mm/oom_kill.c, mm/memcontrol.c, mm/vmalloc.c,
mm/memfd.c, mm/mmap.c, fs/hugetlbfs/inode.c, kernel/cgroup, kernel/hung_task.c, kernel/sched/core.c, kernel/futex,
kernel/capability.c, lib/dump_stack.c (Comm), lib/nlattr.c, net/core/sock.c, net/socket.c, net/sctp/socket.c,
security/yama/yama_lsm.c, security/keys, kernel/module/kmod.c (request_module), fs/namespace.c, fs/fs_context.c and
fs/fs_parser.c (mounts in user namespaces: tmpfs, overlayfs, fuse), block/blk-core.c, kernel/audit.c, amdgpu_vm.c.
"""

from __future__ import annotations

import re

_USERS = re.compile(
    r"(?:traps|mmap|cgroup\d?|audit|tmpfs|ramfs|overlay(?:fs)?|fuse|proc|sysfs|mqueue|devpts|request_module|oom-kill"
    r"|netlink|capability|umip|x86/split lock detection|x86/PAT|futex(?:_wake_op)?|sctp|coredump|hugetlb(?:fs)?"
    r"|(?:encrypted|trusted)_key|xt_\w{1,16}): ?"
    r"|(?:\w{1,16}: |warning: )?process ['`]|warning: [`']|(?:\w{1,32}: )?(?:Process|process|Pid) \d{1,10} ?\("
    r"|Killed process |ptrace \w{1,16} of |Memory cgroup |Out of memory|oom_reaper: |Tasks? in |INFO: task |task:"
    r"|memfd_create\(\) |type=\d{1,5} |[\w.-]{1,32} filesystem being (?:re)?mounted at "
    r"|CPU: \d{1,5} (?:UID: \d{1,10} )?PID: |\[ *\d{1,10}\] +\d"  # the second: a row of the table of tasks
    r"|.{1,16}(?:\[\d{1,10}\]:? | \(\d{1,10}\)[: ]| invoked oom-killer|: page allocation |: vm(?:alloc|ap) "
    r"| uses obsolete |: attempt to access beyond | [A-Z] +\d{1,10} +\d{1,10} )"  # these begin with the program
    r"|[\w.-]{1,32}: (?:Unknown parameter|Bad value for) '"
    r"|amdgpu .{1,200}for process (?!\S{1,16} pid )|amdgpu .{1,60}(?: in process| Process) ",
    re.DOTALL,
)
_DRIVER = re.compile(r"\s*(?:NVRM|nvidia)")  # the driver begins each record with one of its names
_PLAIN = re.compile(
    r"(?:traps: )?[^\s\[\]]{1,16}\[\d{1,10}\]:? [a-z0-9: ]{1,200}(?: in [\w.+-]{1,255}\[[0-9a-f,+]{1,60}\])?"
    r"(?: likely on CPU [\w (),]{1,60})?|INFO: task \S{1,40}:\d{1,10} blocked for more than \d{1,6} seconds\.?"
)


def is_of_user(record: str) -> bool:
    """Whether a user can have chosen what a record of the kernel says."""
    if "Xid " in record and _DRIVER.match(record) is None:  # "Xid 79 (1b:00)" fits into the name of a program
        return True
    return _USERS.match(record) is not None and _PLAIN.fullmatch(record) is None
