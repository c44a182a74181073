"""The address (GID) of a RoCE port that a job uses: its peers must be able to reach it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from ...facts.machine import Gid, NcclFailure, Setting
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited

_VARIABLE = "NCCL_IB_GID_INDEX"
# NCCL 2.25 and later add the addresses to the error of a RoCE connection (src/misc/ibvwrap.cc).
_USED = re.compile(r"on dev ([\w.-]+):(\d{1,3}),.{0,100} local GID index (\d{1,5}), local GID fe80:", re.IGNORECASE)


def chosen(snapshot: Snapshot, setting: Setting) -> bool:
    """Select the index variable on nodes with RoCE. InfiniBand has no versions: there the first entry is right."""
    return setting.key == _VARIABLE and any(_is_roce(gid) for gid in snapshot.of(Gid).values())


def unrouted(snapshot: Snapshot) -> list[tuple[Gid, Gid]]:
    """Ports with a chosen entry that no router forwards: this entry, and a better entry of the same port."""
    setting = snapshot.of(Setting).get(_VARIABLE)
    found: list[tuple[Gid, Gid]] = []
    for table in _tables(snapshot).values() if setting else ():
        entry = next((gid for gid in table if setting and str(gid.index) == setting.value), None)
        better = [gid for gid in table if not _fault(gid)]
        if entry and better and _fault(entry):
            found.append((entry, next((gid for gid in better if gid.scope == "IPv4"), better[0])))
    return found


def index(snapshot: Snapshot, setting: Setting) -> Iterator[Finding]:
    """The index chooses a link-local or RoCE v1 entry, and the port has a better entry."""
    wrong = unrouted(snapshot)
    if not wrong:
        return
    entry, better = wrong[0]
    ports = [gid.port for gid, _ in wrong if gid.port]
    where = f" of port{'s' if len(ports) > 1 else ''} {', '.join(ports)}" if ports else ""
    yield Finding(
        code="nic-gid-index",
        severity="warning",
        subject=entry.port or "node",
        message=f"{_VARIABLE}={setting.value} chooses a {_fault(entry)} address{where}; index {better.index} has "
        f"{better.version} with a routed address",
        expected=better.index,
        observed=entry.index,
        basis="capability",
        expected_source="the table of addresses of the same port",
        cause="the variable is set for the job, and the order of the table differs between nodes",
        evidence=(*cited(setting, "value"), *cited(entry, "index"), *cited(better, "index")),
    )


def link_local(failure: NcclFailure) -> re.Match[str] | None:
    """Device, port and index of a failed connection with a local address that no router forwards."""
    return _USED.search(failure.error or "") if failure.key == "queue pair" else None


def used(snapshot: Snapshot, failure: NcclFailure) -> Iterator[Finding]:
    """A connection with a link-local address failed. If the GID tables show a better entry, index() reports it."""
    found = link_local(failure)
    if found and not unrouted(snapshot):
        yield Finding(
            code="nic-gid-index",
            severity="warning",
            confidence="likely",
            subject=f"{found[1]}/{found[2]}",
            message=f"NCCL could not connect from index {found[3]} of port {found[1]}/{found[2]}, which has a "
            "link-local address: no router forwards it",
            expected="a routed address",
            observed=int(found[3]),
            cause=f"{_VARIABLE} is set to it, or the port has no other address: show_gids lists them",
            evidence=cited(failure, "text"),
        )


def _tables(snapshot: Snapshot) -> Mapping[str | None, list[Gid]]:
    """The RoCE entries of each port."""
    tables: dict[str | None, list[Gid]] = defaultdict(list)
    for gid in snapshot.of(Gid).values():
        if _is_roce(gid) and gid.index is not None:
            tables[gid.port].append(gid)
    return tables


def _is_roce(gid: Gid) -> bool:
    return (gid.version or "").startswith("RoCE")


def _fault(gid: Gid) -> str:
    """Why no router forwards the entry. "": routers do. RoCE v1 has no IP header (InfiniBand specification, A16)."""
    if gid.scope == "link-local":
        return "link-local"
    return "RoCE v1" if gid.version == "RoCE v1" else ""


RULES = (
    Rule("nic-gid-index", Setting, ("value", "Gid"), index, chosen),
    Rule("nic-gid-index", NcclFailure, ("text",), used, lambda snapshot, failure: link_local(failure) is not None),
)
