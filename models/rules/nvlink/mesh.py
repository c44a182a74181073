"""A mesh of NVLinks in which a pair of GPUs has fewer links than the others: `nvidia-smi topo -m` shows no more.

In a mesh without switches each GPU has the same number of links. Boards whose pairs differ on purpose (the cube mesh of
eight V100) still have the same number for each GPU. So a link is missing only if a pair with fewer links makes the
numbers of the GPUs differ, and with the missing links they would be equal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ...facts.gpu import Gpu, GpuPair
from ...facts.machine import Node
from ...inventory.snapshot import Snapshot
from ...report import COHORT, Finding
from ..core.rule import Rule

_FEWEST = 3  # pairs with the usual number of links


def joined(snapshot: Snapshot, node: Node) -> bool:
    """Select dumps with pairs of GPUs that NVLinks join."""
    return snapshot.origin == "dumps" and sum(bool(one.nvlinks) for one in snapshot.of(GpuPair).values()) >= _FEWEST


def uneven(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """A pair with fewer links than all others, so that its GPUs have fewer links than the other GPUs.

    Several such pairs can be a part of a larger mesh, given to a virtual machine.
    """
    yield from _less_than_its_gpus(snapshot)
    pairs = snapshot.of(GpuPair)
    links = {key: one.nvlinks or 0 for key, one in pairs.items() if one.a and one.b}
    usual, lacking = _usual(links)
    gpus = {end for key in links for end in key.split("-")}
    if len(lacking) != 1 or len(links) != len(gpus) * (len(gpus) - 1) // 2 or _counted(snapshot):
        return
    now = _totals(links)
    if len(set(now.values())) == 1 or len(set(_totals(dict.fromkeys(links, usual)).values())) != 1:
        return
    for key in lacking:
        one, count = pairs[key], links[key]
        yield Finding(
            code="nvlink-inactive",
            severity="warning",
            confidence="likely",
            subject=key,
            message=f"{count} NVLinks join {one.a} and {one.b}, and {usual} join most pairs of GPUs",
            expected=usual,
            observed=count,
            unit="links",
            basis=COHORT,
            expected_source=f"{len(links) - len(lacking)} of {len(links)} pairs have {usual}",
            cause="a link between the two did not train, or was shut down after errors",
            evidence=tuple(one.cites.values())[:1],
        )


def _less_than_its_gpus(snapshot: Snapshot) -> Iterator[Finding]:
    """Pairs over switches with fewer links than both of their GPUs have: all links of a GPU lead to each peer."""
    most = dict[str, int]()
    for one in snapshot.of(GpuPair).values():
        for end in (one.a, one.b):
            most[end or ""] = max(most.get(end or "", 0), one.nvlinks or 0)
    for key, one in snapshot.of(GpuPair).items():
        gpus = [snapshot.of(Gpu).get(end or "") for end in (one.a, one.b)]
        counts = [gpu.nvlinks for gpu in gpus if gpu and gpu.nvlinks and gpu.nvlinks == most[gpu.key]]
        if len(counts) < len(gpus) or not one.nvlinks or one.nvlinks >= min(counts):
            continue
        yield Finding(
            code="nvlink-inactive",
            severity="warning",
            confidence="likely",
            subject=key,
            message=f"{one.nvlinks} NVLinks join {one.a} and {one.b}; each of the two has {min(counts)} to other GPUs",
            expected=min(counts),
            observed=one.nvlinks,
            unit="links",
            basis=COHORT,
            expected_source="the other pairs of both GPUs",
            cause="a link or a route between the two is down; nvidia-smi nvlink -s has the state of each link",
            evidence=tuple(one.cites.values())[:1],
        )


def _usual(links: Mapping[str, int]) -> tuple[int, list[str]]:
    """The number of links of most pairs, and the pairs with fewer. No pair if there is no such number."""
    (usual, count), *_ = Counter(links.values()).most_common(1) or [(0, 0)]
    lacking = [key for key, number in links.items() if number < usual]
    most = count > len(links) / 2 and count >= _FEWEST and not any(number > usual for number in links.values())
    return usual, lacking if most else []


def _totals(links: Mapping[str, int]) -> Mapping[str, int]:
    found = Counter[str]()
    for key, count in links.items():
        for end in key.split("-"):
            found[end] += count
    return found


def _counted(snapshot: Snapshot) -> bool:
    """Whether the number of links of a GPU is known: then inactive_links.py compares it."""
    return any(gpu.nvlinks is not None for gpu in snapshot.of(Gpu).values())


RULES = (Rule("nvlink-inactive", Node, (), uneven, joined),)
