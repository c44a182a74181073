"""`linkgauge expect`: turn its arguments into flows and explain them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import product

from ....exporters.commands import expect as exporter
from ....exporters.commands.expect_flows import as_flows
from ....models.bandwidth.breakdown import explained
from ....models.bandwidth.endpoint_names import resolve_ends
from ....models.bandwidth.link_levels import hierarchy, short
from ....models.facts.records import COLLECTIVES, EGRESS, Flow
from ....models.graph.topology import Topology
from ....models.inventory.snapshot import Snapshot
from ...inputs.site_file import BadInput
from .message_size_option import read_size

_ARROW = "->"
_DISKS = frozenset({"nvme", "disk", "partition", "array"})
_MEMORIES = frozenset({"gpu", "numa"})
_NETWORK = frozenset({"nic", "port", "netdev"})


def expect(
    snapshot: Snapshot, ends: Sequence[str], op: str | None, via: str, size: str | None, concurrent: bool, form: str
) -> str:
    """The expected rates of all links of the node, or of the flows between the given ends. Raises BadInput."""
    if not ends:
        if op or via or size is not None or concurrent:
            raise BadInput("--op, --via, --size and --concurrent apply to flows: name the ENDS of the flows")
        tiers = hierarchy(snapshot)
        return (
            exporter.as_hierarchy(snapshot, tiers)
            if form == "text"
            else exporter.as_json([level for tier in tiers for level in tier.levels])
        )
    try:
        flows = tuple(dict.fromkeys(_flows(snapshot, ends, op, via, None if size is None else read_size(size))))
    except LookupError as wrong:
        raise BadInput(str(wrong.args[0])) from None
    found = explained(snapshot, flows, concurrent)
    if not found:
        further = f" (and {len(flows) - 1} more)" if len(flows) > 1 else ""
        raise BadInput(_no_path(snapshot.topology, flows[0]) + further)
    seen = {(one.level.op, one.level.ends) for one in found}
    lost = [_no_path(snapshot.topology, flow) for flow in flows if (flow.op, flow.ends) not in seen]
    if form == "text":
        return as_flows(found, lost)
    for why in lost:
        print(why, file=sys.stderr)
    return exporter.as_json(found)


def _flows(snapshot: Snapshot, ends: Sequence[str], op: str | None, via: str, size: int | None) -> Iterator[Flow]:
    """The flows that the arguments name: each 'a->b', one or two ends, or the ranks of a collective."""
    if op in COLLECTIVES or op == EGRESS:
        if any(_ARROW in end for end in ends):
            raise BadInput(f"all ends of {op} send: write the ends without '{_ARROW}'")
        yield Flow(op, tuple(dict.fromkeys(name for end in ends for name in resolve_ends(snapshot, end))), size, via)
        return
    for names in _pairs(snapshot, ends):
        yield Flow(op or _usual(snapshot.topology, names), names, size, via)


def _pairs(snapshot: Snapshot, ends: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The ends of each flow: a single end, or each pair of a name of the first end and another one of the second."""
    arrows = [end for end in ends if _ARROW in end]
    if arrows and len(arrows) < len(ends):
        single = next(end for end in ends if _ARROW not in end)
        raise BadInput(f"{arrows[0]!r} is a flow and {single!r} is one end: do not mix them")
    if not arrows and len(ends) > 2:
        raise BadInput(f"{len(ends)} ends: name one or two, or several flows as 'gpu0{_ARROW}numa0'")
    for pair in [end.split(_ARROW) for end in arrows] or [list(ends)]:
        if len(pair) > 2 or not all(map(str.strip, pair)):
            raise BadInput(f"{_ARROW.join(pair)!r} is not a flow: write it as 'gpu0{_ARROW}numa0'")
        combinations = list(product(*(resolve_ends(snapshot, end.strip()) for end in pair)))
        if not any(len(set(combination)) == len(combination) for combination in combinations):
            raise BadInput(
                f"both ends are {combinations[0][0]}: name it once for its memory, or name two different ends"
            )
        yield from (
            _whole(snapshot.topology, combination)
            for combination in combinations
            if len(set(combination)) == len(combination)
        )


def _whole(topology: Topology, ends: tuple[str, ...]) -> tuple[str, ...]:
    """A port alone stands for the flow from its NIC over this port."""
    device = topology.find(ends[0])
    if len(ends) == 2 or device is None or device.kind not in _NETWORK:
        return ends
    nic = next((link.a for link in topology.links if link.kind == "port" and link.b == device.id), "")
    return (short(topology.by_name[nic]), *ends) if nic in topology.by_name else ends


def _usual(topology: Topology, ends: tuple[str, ...]) -> str:
    """The usual operation between such ends: STREAM's triad for a memory, RDMA writes for NICs."""
    if len(ends) == 1:
        return "triad"
    source, target = (device.kind if (device := topology.find(end)) else "" for end in ends)
    if source in _DISKS:
        return "read"
    return "write" if target in _DISKS or {source, target} & _NETWORK else "copy"


def _no_path(topology: Topology, flow: Flow) -> str:
    """Why the flow has no path, as text."""
    over = f" over {flow.via}" if flow.via else ""
    if flow.op in COLLECTIVES:
        return f"{flow.op} needs at least two GPUs that reach each other{over}; given: {', '.join(flow.ends)}"
    if flow.op == EGRESS:
        return f"none of these reaches a NIC: {', '.join(flow.ends)}"
    if len(flow.ends) > 1:
        return f"there is no path{over} from {flow.ends[0]} to {flow.ends[1]}"
    device = topology.find(flow.ends[0])
    if device and device.kind in _MEMORIES:
        return f"the memory rate of {flow.ends[0]} is not known"
    return f"{flow.ends[0]} alone is not a flow: name two ends"
