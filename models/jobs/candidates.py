"""Parts of the cluster of which a job cannot show which one is slow: in words, and the measurement that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .localization import Part

_MOST_NAMED = 8
_WORDS = {
    "nic": "the NIC {number} of {hosts}, its cable or its port of the switch",
    "rail": "the switches of rail {number}",
    "leaf": "the leaf switch {leaf}",
    "node": "the NICs of {hosts}",
    "gpu-link": "the links of GPU {number} of {hosts}",
    "nvlink": "the links between the GPUs of {hosts}",
}


def in_words(parts: Sequence[Part]) -> str:
    """The parts in words: "the switches of rail 4, or the NIC 4 of node0 or node1, its cable or its port of the
    switch".
    """
    alike: dict[tuple[str, int, str], list[str]] = {}
    for part in parts:
        alike.setdefault((part.kind, part.number, part.leaf), []).append(part.host)
    texts = [
        _WORDS[kind].format(number=number, leaf=leaf, hosts=any_of(hosts))
        for (kind, number, leaf), hosts in alike.items()
    ]
    return shortened(texts, ", or ")


def any_of(hosts: Iterable[str]) -> str:
    """ "node0, node1 or node2"."""
    names = sorted(set(hosts))
    if len(names) > _MOST_NAMED:
        return f"{', '.join(names[: _MOST_NAMED - 1])} or {len(names) - _MOST_NAMED + 1} more nodes"
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def shortened(texts: Sequence[str], between: str) -> str:
    """The first ones, and the number of the others."""
    more = len(texts) - _MOST_NAMED
    return between.join([*texts[:_MOST_NAMED], *([f"one of {more} more parts"] if more > 0 else [])])


def next_measurement(parts: Iterable[Part], hosts: Iterable[str]) -> str:
    """The cheapest measurement that tells these parts apart, in steps. `hosts`: the nodes whose links they can be."""
    several, names = tuple(parts), sorted(set(hosts))
    if len(names) == 1:
        return f"Measure on {names[0]} when it is idle: linkgauge diagnose --level full."
    listed = ",".join(names) if len(names) <= _MOST_NAMED else f"FILE, where FILE names these {len(names)} nodes"
    numbers = {part.number for part in several if part.kind in ("nic", "rail")}
    one_rail = len(numbers) == 1 and all(part.kind in ("nic", "rail") for part in several)
    rail = f" --rail DEVICE, where DEVICE is NIC {numbers.pop()} of these nodes" if one_rail else ""
    steps = [f"Measure between these nodes when they are idle: linkgauge fabric --hosts {listed}{rail}."]
    if any(part.kind in ("nvlink", "gpu-link") for part in several):
        steps.append("Measure on each of these nodes when it is idle: linkgauge diagnose --level full.")
    steps.append("Or run the next job on half of these nodes and on others: its rates show where the slow part is.")
    return " ".join(steps)
