"""On which NUMA node the pages of this process lie: proc/self/numa_maps of proc(5)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

_PART = re.compile(r" N(\d+)=(\d+)")
_PAGE = re.compile(r" kernelpagesize_kB=(\d+)")
_SHARE = 0.95  # of what was touched that must lie where it should


def pages() -> Mapping[str, int] | None:
    """Bytes by node; None where the kernel does not say (one without NUMA)."""
    try:
        with open("/proc/self/numa_maps", encoding="ascii", errors="replace") as file:
            return parsed(file.read())
    except OSError:
        return None


def parsed(text: str) -> Mapping[str, int]:
    """Bytes by node, of the text of numa_maps."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if page := _PAGE.search(line):
            found.update({f"numa{node}": int(count) * int(page[1]) << 10 for node, count in _PART.findall(line)})
    return found


def misplaced(before: Mapping[str, int] | None, after: Mapping[str, int] | None, *wanted: str) -> str | None:
    """What of the pages that came since lies elsewhere than on the `wanted` nodes, in words; None where nothing does.

    Of several nodes each should have its part: else copies between two of them were copies within one.

    Also None where the kernel does not say: threads are pinned, and first touch is what it does without a policy.
    """
    if before is None or after is None:
        return None
    grown = {node: after[node] - before.get(node, 0) for node in after}
    whole = sum(size for size in grown.values() if size > 0)
    shares = {node: max(0, grown.get(node, 0)) / whole for node in dict.fromkeys(wanted)} if whole else {}
    there = sum(shares.values())
    if not whole or all(share >= _SHARE / len(shares) for share in shares.values()):
        return None
    if there >= _SHARE:
        least = min(shares, key=lambda node: shares[node])
        return f"{shares[least]:.0%} of its pages lie on {least}, {1 / len(shares):.0%} should"
    elsewhere = max((node for node in grown if node not in wanted), key=lambda node: grown[node])
    return f"{1 - there:.0%} of its pages lie elsewhere, most on {elsewhere}"
