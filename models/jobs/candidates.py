"""Parts of the cluster of which a job cannot show which one is slow: in words, and the measurement that shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .job_localization import Part

_MOST_NAMED = 8
_WORDS = {
    "nic": "the NIC {number} of {several}, its cable or its port of the switch",
    "rail": "the switches of rail {several}",
    "leaf": "the leaf switch {several}",
    "node": "the NICs of {several}",
    "gpu-link": "the links of GPU {number} of {several}",
    "nvlink": "the links between the GPUs of {several}",
}


def in_words(parts: Sequence[Part]) -> str:
    """The parts in words: "the switches of rail 4, or the NIC 4 of node0 or node1, its cable or its port of the
    switch".
    """
    alike: dict[tuple[str, int], list[str]] = {}
    for part in parts:
        number = -1 if part.kind == "rail" else part.number
        alike.setdefault((part.kind, number), []).append(_own_name(part))
    texts = [_WORDS[kind].format(number=number, several=any_of(names)) for (kind, number), names in alike.items()]
    more = len(texts) - _MOST_NAMED
    return ", or ".join([*texts[:_MOST_NAMED], *([f"one of {more} more kinds of parts"] if more > 0 else [])])


def _own_name(part: Part) -> str:
    return part.leaf or part.host or str(part.number)


def any_of(names: Iterable[str]) -> str:
    """ "node0, node1 or node2"."""
    several = sorted(set(names), key=lambda name: (len(name), name))
    if len(several) > _MOST_NAMED:
        return f"{', '.join(several[: _MOST_NAMED - 1])} or {len(several) - _MOST_NAMED + 1} more"
    return " or ".join(filter(None, (", ".join(several[:-1]), several[-1])))


def next_measurement(parts: Iterable[Part], hosts: Iterable[str]) -> str:
    """The cheapest measurement that tells these parts apart, in steps. `hosts`: the nodes whose links they can be."""
    several, names = tuple(parts), sorted(set(hosts))
    if len(names) == 1:
        return f"When {names[0]} is idle, measure on it: linkgauge diagnose --level full."
    listed = ",".join(names) if len(names) <= _MOST_NAMED else f"FILE, where FILE names these {len(names)} nodes"
    numbers = {part.number for part in several if part.kind in ("nic", "rail")}
    one_rail = len(numbers) == 1 and all(part.kind in ("nic", "rail") for part in several)
    rail = f" --rail DEVICE, where DEVICE is NIC {numbers.pop()} of these nodes" if one_rail else ""
    steps = [f"When these nodes are idle, measure between them: linkgauge fabric --hosts {listed}{rail}."]
    if any(part.kind in ("nvlink", "gpu-link") for part in several):
        steps.append("Measure on each of them: linkgauge diagnose --level full.")
    steps.append("Or run the next job on half of these nodes and on others, and compare its rates.")
    return " ".join(steps)
