"""Ranks that NCCL's RAS subsystem reports, joined with the GPUs of this node and the findings about them.

RAS says which rank does not answer, failed or is late, and no cause. A finding about the GPU of the rank, or about a
link of this GPU, is the likely cause and names the rank. Without one, the rank is a symptom. A rank of another host is
not of this node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from ...catalog import NOT_ENOUGH_EVIDENCE
from ...facts.gpu import Gpu
from ...facts.job_ranks import Rank
from ...facts.machine import Nccl, Pci
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.pci_tree import functions_above
from ...inventory.snapshot import Snapshot
from ...report import SEVERITIES, Finding

_MOST = 8  # ranks named in one sentence


def with_ranks(snapshot: Snapshot, findings: Iterable[Finding]) -> list[Finding]:
    """The findings, those about a GPU with its ranks, and one finding for the ranks of each GPU without any."""
    found = list(findings)
    for name, ranks in _by_gpu(snapshot).items():
        gpu = snapshot.of(Gpu)[name]
        causes = [index for index, one in enumerate(found) if _concerns(snapshot, one, gpu)]
        if causes:
            index = min(causes, key=lambda index: SEVERITIES.index(found[index].severity))
            found[index] = _with(found[index], name, ranks)
        else:
            found.append(_symptom(gpu, ranks))
    others = _elsewhere(snapshot) if snapshot.origin == "dumps" else []
    if others and not any(one.severity != "info" for one in found):
        found.append(_of_job(others))
    return found


def _elsewhere(snapshot: Snapshot) -> list[Rank]:
    """The ranks that are not known to use a GPU of this node."""
    ours = {rank.key for ranks in _by_gpu(snapshot).values() for rank in ranks}
    return [rank for rank in snapshot.of(Rank).values() if rank.key not in ours]


def _of_job(ranks: Sequence[Rank]) -> Finding:
    """A dump is of the job, and no report about the node of the rank follows."""
    return Finding(
        code=NOT_ENOUGH_EVIDENCE,
        severity="info",
        confidence=_confidence(ranks),
        subject="node",
        message=_sentence(ranks),
        cause="the process of the rank, its GPU, another rank that it waits for, or a link",
        case="rank",
        evidence=tuple(rank.cites["state"] for rank in ranks[:_MOST] if "state" in rank.cites),
    )


def other_ranks(snapshot: Snapshot) -> Iterator[NotChecked]:
    """The ranks that are not known to use a GPU of this node, in one sentence."""
    if others := _elsewhere(snapshot):
        why = f"not known to use a GPU of this node: {_sentence(others)}"
        how = "run linkgauge diagnose on the hosts of these ranks"
        yield NotChecked(what="Rank", subject="node", reason=Reason.OTHER_CONTEXT, detail=why, how=how)


def _by_gpu(snapshot: Snapshot) -> dict[str, list[Rank]]:
    by_gpu = defaultdict[str, list[Rank]](list)
    for rank in snapshot.of(Rank).values():
        if f"gpu{rank.gpu}" in snapshot.of(Gpu) and is_here(snapshot, rank):
            by_gpu[f"gpu{rank.gpu}"].append(rank)
    return by_gpu


def is_here(snapshot: Snapshot, rank: Rank) -> bool:
    """Whether the process of the rank runs on this node: its address is ours, or the job has only one node."""
    library = snapshot.of(Nccl).get("nccl")
    return rank.here is True or (rank.here is None and library is not None and library.nodes == 1)


def _with(finding: Finding, gpu: str, ranks: Sequence[Rank]) -> Finding:
    fact = f"{finding.fact or finding.message}; rank {ranks[0].number} {_state(ranks[0])}"
    evidence = (*finding.evidence, *(rank.cites["state"] for rank in ranks[:_MOST]))
    return replace(finding, fact=fact, message=f"{finding.message}; {_sentence(ranks, gpu)}", evidence=evidence)


def _symptom(gpu: Gpu, ranks: Sequence[Rank]) -> Finding:
    return Finding(
        code=NOT_ENOUGH_EVIDENCE,
        severity="info",
        confidence=_confidence(ranks),
        subject=gpu.address or gpu.key,
        fact=f"serves rank {ranks[0].number}, which {_state(ranks[0])}",
        message=f"{_sentence(ranks, gpu.key)}; no finding concerns {gpu.key} or its links",
        cause="the process of the rank, another rank that it waits for, or a link that linkgauge did not measure",
        case="rank",
        evidence=tuple(rank.cites["state"] for rank in ranks[:_MOST]),
    )


def _sentence(ranks: Sequence[Rank], gpu: str = "") -> str:
    """ "rank 37 (gpu5) is late: it has launched 812 AllReduce operations, most ranks 815; rank 38 ..."."""
    shown = (f"rank {one.number} ({gpu or _place(one)}) {_state(one)}{_numbers(one)}" for one in ranks[:_MOST])
    more = f" and {len(ranks) - _MOST} more" if len(ranks) > _MOST else ""
    return "; ".join(shown) + more


def _state(rank: Rank) -> str:
    words = {
        "dead": "is dead",
        "unresponsive": "does not answer",
        "absent": "is absent from its communicator",
        "failed": f"failed ({rank.error})",
        "aborted": "was aborted",
        "starting": "still starts",
        "finalizing": "ends already",
        "late": "is late",
    }
    return words[rank.state or "unresponsive"]


def _numbers(rank: Rank) -> str:
    if rank.state != "late":
        return ""
    since = f", unchanged for {rank.unchanged:g} s" if rank.unchanged else ""
    return f": it has launched {rank.launched} {rank.operation} operations, most ranks {rank.majority}{since}"


def _place(rank: Rank) -> str:
    gpu = f"GPU {rank.gpu}" if rank.gpu is not None else "GPU unknown"
    return f"{gpu} of {rank.host}" if rank.host else gpu


def _confidence(ranks: Sequence[Rank]) -> Literal["likely", "possible"]:
    """A late rank of one query may only have been read earlier than the others."""
    return "possible" if all(one.state == "late" and not one.unchanged for one in ranks) else "likely"


def _concerns(snapshot: Snapshot, finding: Finding, gpu: Gpu) -> bool:
    """Whether an open finding is about the GPU, one of its links, or a PCIe port above it."""
    if finding.silenced is not None or finding.severity == "info":
        return False
    names = {gpu.key, gpu.address}
    if gpu.address in snapshot.of(Pci):
        names |= {*functions_above(str(gpu.address), snapshot.of(Pci))}
    return (
        finding.subject in names or finding.subject.partition("/")[0] in names or not names.isdisjoint(finding.limits)
    )
