"""Size and NUMA nodes of this process's pages, the latter from proc/self/numa_maps (proc(5))."""

from __future__ import annotations

import mmap
import re
from collections import Counter
from collections.abc import Mapping

_PART = re.compile(r" N(\d+)=(\d+)")
_PAGE = re.compile(r" kernelpagesize_kB=(\d+)")
# Flags of a mapping that can have huge pages. By default, mmap makes a shared mapping. MADV_HUGEPAGE has an effect on
# it only with shmem_enabled=advise (kernel documentation, admin-guide/mm/transhuge).
PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
_SHARE = 0.95  # required share of new pages on the wanted nodes


def pages() -> Mapping[str, int] | None:
    """Return the bytes of pages by node; None if the kernel has no NUMA support."""
    try:
        with open("/proc/self/numa_maps", encoding="ascii", errors="replace") as file:
            return parsed(file.read())
    except OSError:
        return None


def parsed(text: str) -> Mapping[str, int]:
    """Return the bytes by node of a numa_maps text."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if page := _PAGE.search(line):
            found.update({f"numa{node}": int(count) * int(page[1]) << 10 for node, count in _PART.findall(line)})
    return found


def misplaced(before: Mapping[str, int] | None, after: Mapping[str, int] | None, *wanted: str) -> str | None:
    """Return an error text if new pages are not on the `wanted` nodes; None if they are.

    Each of several nodes must have an equal share. Else a copy between two nodes would be a copy within one. Also None
    if placement is unknown, because threads are pinned and the kernel places pages by first touch without a policy.
    """
    if before is None or after is None:
        return None
    grown = {node: after[node] - before.get(node, 0) for node in after}
    total = sum(size for size in grown.values() if size > 0)
    shares = {node: max(0, grown.get(node, 0)) / total for node in dict.fromkeys(wanted)} if total else {}
    share_on_wanted = sum(shares.values())
    if not total or all(share >= _SHARE / len(shares) for share in shares.values()):
        return None
    if share_on_wanted >= _SHARE:
        least = min(shares, key=lambda node: shares[node])
        return f"{shares[least]:.0%} of its pages lie on {least}, {1 / len(shares):.0%} should"
    elsewhere = max((node for node in grown if node not in wanted), key=lambda node: grown[node])
    return f"{1 - share_on_wanted:.0%} of its pages lie elsewhere, most on {elsewhere}"
