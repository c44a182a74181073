"""What the kernel logged of links and devices, from /dev/kmsg (kernel documentation, ABI/testing/dev-kmsg)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..models.facts import Event
from ..models.said import Evidence, NotChecked, Said
from .host import Host, Unreadable

KMSG, STAT = "dev/kmsg", "proc/stat"
_RECORD = re.compile(r"[0-9]{1,9},(?P<sequence>[0-9]{1,20}),(?P<microseconds>[0-9]{1,20}),[^;]*;(?P<text>.*)")
# "NVRM: Xid (PCI:0000:53:00): 79, pid=..."; older drivers leave out "PCI:" or the domain, MIG adds "GPU-I:05".
_XID = re.compile(
    r"NVRM: Xid \((?:PCI:)?(?P<address>(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?(?: [^)]{1,40})?\): "
    r"(?P<code>[0-9]{1,4})\b"
)


def read_kernel_log(host: Host) -> Iterator[Said]:
    """An event for each Xid in the kernel's ring buffer: what has left the buffer is not seen."""
    try:
        log = host.read(KMSG)
    except Unreadable as refusal:
        why = f"{KMSG}: {refusal.why}"
        yield NotChecked(what="Event", subject="node", why=why, how="run as root, or set kernel.dmesg_restrict to 0")
        return
    boot = _boot_time(host)
    for line in (log or "").splitlines():
        record = _RECORD.match(line)
        xid = _XID.search(record["text"]) if record else None
        if record and xid:
            address = xid["address"] if xid["address"].count(":") == 2 else f"0000:{xid['address']}"
            yield Event(
                key=f"xid {xid['code']} {address}.0 {record['sequence']}",
                kind="xid",
                code=int(xid["code"]),
                subject=f"{address}.0",
                text=record["text"],
                at=boot + int(record["microseconds"]) / 1e6,
                cites={"text": Evidence(KMSG, record["text"])},
            )


def relevant(log: str) -> str:
    """The records of a log that are read here: the others tell of its owner, and of nothing that we judge."""
    return "\n".join(line for line in log.splitlines() if _XID.search(line))


def boot_line(stat: str) -> str:
    """The line of proc/stat that is read here."""
    return "\n".join(line for line in stat.splitlines() if line.startswith("btime "))


def _boot_time(host: Host) -> float:
    """Seconds since 1970 at boot; 0 where that cannot be read, so that events count from boot."""
    try:
        found = re.search(r"^btime ([0-9]{1,12})$", host.read(STAT) or "", re.MULTILINE)
    except Unreadable:
        return 0.0
    return float(found[1]) if found else 0.0
