"""States that may slow a flow by an unknown factor: selected by the subject of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..facts.records import COLLECTIVES, Flow
from ..graph.flow_paths import hops_of
from ..inventory.snapshot import Snapshot
from ..report import Finding
from .localization import Candidate

Test: TypeAlias = Callable[[Snapshot, Finding, Sequence[Flow], "Candidate | None"], bool]


def may_slow(snapshot: Snapshot, state: Finding, flows: Sequence[Flow], candidate: Candidate | None) -> bool:
    """Whether the state may slow these flows; `candidate` is the common cause of several flows."""
    test = _TESTS.get(state.code)
    return test is not None and test(snapshot, state, flows, candidate)


def _peers(snapshot: Snapshot, state: Finding, flows: Sequence[Flow], candidate: Candidate | None) -> bool:
    """Copies over PCIe between GPUs, or to NICs, with a common turnaround. Copies to the host are not affected."""
    if candidate and candidate.kind not in ("turnaround", "pair"):
        return False
    paths = [{hop.sender for hop in hops_of(snapshot.topology, flow)} for flow in flows]
    if snapshot.topology.find(state.subject) and any(path and state.subject not in path for path in paths):
        return False  # the state is about another switch
    return all(
        _kinds(snapshot, flow) in (["gpu", "gpu"], ["gpu", "nic"]) and flow.via in ("", "pcie") for flow in flows
    )


def _measured(snapshot: Snapshot, state: Finding, flows: Sequence[Flow], candidate: Candidate | None) -> bool:
    """Copies with peer access of the pairs that the state measured."""
    return all(flow.via != "host" and f"bandwidth-low:{flow.subject}" in state.explains for flow in flows)


def _gpus(snapshot: Snapshot, state: Finding, flows: Sequence[Flow], candidate: Candidate | None) -> bool:
    """Operations of one GPU's SMs, and collectives. Copies by copy engines do not depend on SM clocks."""
    by_itself = all(len(flow.ends) == 1 or flow.op in COLLECTIVES or flow.op == "copy-sm" for flow in flows)
    return by_itself and all(_is_end(snapshot, state, flow) for flow in flows)


def _memory(snapshot: Snapshot, state: Finding, flows: Sequence[Flow], candidate: Candidate | None) -> bool:
    """Copies by processors."""
    return all(len(flow.ends) == 1 and _kinds(snapshot, flow) in (["numa"], ["host"], ["package"]) for flow in flows)


def _ends(snapshot: Snapshot, state: Finding, flows: Sequence[Flow], candidate: Candidate | None) -> bool:
    """Flows to or from the subject of the state."""
    return all(_is_end(snapshot, state, flow) for flow in flows)


def _collectives(snapshot: Snapshot, state: Finding, flows: Sequence[Flow], candidate: Candidate | None) -> bool:
    return all(flow.op in COLLECTIVES for flow in flows)


def _access(snapshot: Snapshot, state: Finding, flows: Sequence[Flow], candidate: Candidate | None) -> bool:
    """Copies between GPUs over any medium, and collectives of such copies."""
    return all(flow.op in COLLECTIVES or _kinds(snapshot, flow) == ["gpu", "gpu"] for flow in flows)


def _kinds(snapshot: Snapshot, flow: Flow) -> list[str]:
    return sorted(map(snapshot.topology.kind, flow.ends))


def _is_end(snapshot: Snapshot, state: Finding, flow: Flow) -> bool:
    """Whether the subject of the state is an end of the flow, by any of its names."""
    device = snapshot.topology.find(state.subject)
    names = {state.subject, *((device.id, *device.aliases) if device else ())}
    return not names.isdisjoint(flow.ends)


_TESTS: Mapping[str, Test] = {
    "pcie-acs-redirect": _peers,
    "iommu-translation": _peers,
    "pcie-peer-slow": _measured,
    "p2p-disabled": _access,
    "gpu-throttled": _gpus,
    "gpu-clocks-limited": _gpus,
    "cpu-governor": _memory,
    "cpu-throttled": _memory,
    "numa-memory-missing": _memory,
    "nic-numa-remote": _ends,
    "storage-degraded": _ends,
    "storage-link-slow": _ends,
    "nccl-env": _collectives,
    "gdr-disabled": _collectives,
}
