"""Devices that a node offers to Kubernetes: `kubectl describe node`, and the status of a node as YAML or JSON.

"Capacity" counts the devices that a device plugin registered, "Allocatable" those that it calls healthy
(kubernetes.io, Device plugins). Processors and memory have an allocatable part by configuration, so they are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.health import OfferedDevices
from ....models.facts.records import Evidence, Record
from ..core.part import Part

_LIST = r"\"?(?:[Cc]apacity|[Aa]llocatable)\"?[ ]?:"
_NAME = (
    r"(?:nvidia\.com/(?:gpu|mig)|amd\.com/gpu|gpu\.intel\.com|habana\.ai/gaudi|aws\.amazon\.com/neuron"
    r"|vpc\.amazonaws\.com/efa|rdma/|openshift\.io/|nvidia\.com/)[\w.-]{0,60}"
)
BEGIN = rf"^(?:[ \t]*{_LIST}[ \t]*(?:$|\{{|map\[)|[^\n]{{0,300}}?\"(?:capacity|allocatable)\"[ ]?:[ ]?\{{)"
_LISTS = re.compile(rf"{_LIST}")
_DEVICES = re.compile(rf"(?<![\w./-])(?P<name>{_NAME})\"?[ ]?:[ ]{{0,30}}\"?(?P<count>[0-9]{{1,6}})(?![\w.])")
_END = re.compile(r"\"?[A-Za-z][\w .-]{2,40}\"?[ ]?:[ \t]*[\[{]?|\}[ \t]*,?")


def read(part: Part) -> Iterator[Record]:
    """The registered and the healthy number of each kind of device. A list that occurs again is of another output."""
    found: dict[str, list[dict[str, tuple[int, Evidence]]]] = {}
    current = ""
    for number, line in part.lines():
        heads = [*_LISTS.finditer(line)]
        for one in _DEVICES.finditer(line):
            before = [head for head in heads if head.start() < one.start()]
            name = (before[-1][0] if before else current).strip('": ').lower()
            if name:
                outputs = found.setdefault(one["name"], [{}])
                if name in outputs[-1]:
                    outputs.append({})
                outputs[-1][name] = int(one["count"]), part.cite(number, line)
        current = heads[-1][0] if heads else current if _is_within(line) else ""
    for name, lists in ((name, lists) for name, outputs in found.items() for lists in outputs):
        yield OfferedDevices(
            key=name,
            **{field: count for field, (count, _) in lists.items()},
            cites={field: where for field, (_, where) in lists.items()},
        )


def _is_within(line: str) -> bool:
    """Whether a list goes on after the line. A heading or a bracket ends it, other lines can be in between."""
    return not _END.fullmatch(line.strip())
