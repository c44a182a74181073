"""Link rates from the traffic of jobs. A nearly full link is good; a link that lags behind equal links may be slow.

This module moves no data. The service reads the counters of links once per second while a job runs. The quantities are
"port_traffic", "pcie_traffic" and "nvlink_traffic": the most bytes in one direction in one of these seconds. Each is
about a port, the function below a link, a link by its id, or a GPU (all its NVLinks to switches together).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..bandwidth.efficiency import attainable
from ..facts.averages import median
from ..facts.records import Observation
from ..facts.units import as_gigabytes
from ..graph.topology import FABRIC, Device, Link
from ..inventory.snapshot import Snapshot, once_per_snapshot
from ..report import COHORT, Expectation, Finding, Level

SUFFIX = "_traffic"
_OPS = {"port": "write", "pcie": "copy", "nvlink": "copy", "xgmi": "copy"}
_BUNDLE = "/nvlinks"  # suffix of a GPU: all its links together
_MOST = 1.05  # of the link rate; a higher value means a reset or misread counter
_FULL = 0.9  # of the attainable rate; a slow link cannot carry that
# A job sends equal amounts over each rail, and collectives over each NVLink. A difference may still be no fault (a rail
# may also carry storage), so the finding is "likely" at most, and only if the other links agree.
_SMALLEST_COHORT = 3
_AGREE = 0.05  # relative to their median: the range of all other links
_LESS = 0.85  # of that median
_LEAST = 0.2  # of the attainable rate, for the other links; below it a job hardly uses them


class JobTraffic(Struct, frozen=True):
    """The most that a link carried in one second, and the rates that good links of its grade reach, in bytes per
    second.
    """

    observation: Observation
    link: Link
    low: float
    typical: float
    high: float
    source: str


@once_per_snapshot
def job_traffic(snapshot: Snapshot) -> Sequence[JobTraffic]:
    """For each link with observed traffic and a grade with published rates."""
    most: dict[str, JobTraffic] = {}
    for one in snapshot.observations:
        found = _job_traffic(snapshot, one)
        if found and (found.link.id not in most or most[found.link.id].observation.value < one.value):
            most[found.link.id] = found
    return tuple(most.values())


def _job_traffic(snapshot: Snapshot, one: Observation) -> JobTraffic | None:
    if not isinstance(one.about, str) or not one.quantity.endswith(SUFFIX):
        return None
    kind = one.quantity.removesuffix(SUFFIX)
    device = snapshot.topology.find(one.about)
    names = {one.about, device.id if device else one.about}
    if kind == "nvlink" and device and device.kind == "gpu":
        link = _bundle(snapshot, device)
    else:
        link = next((link for link in snapshot.topology.links if link.kind == kind and names & {link.id, link.b}), None)
    reach = attainable(link.grade, _OPS[kind]) if link and kind in _OPS else None
    rate = (link.rated or link.trained) if link else None  # InfiniBand ports report only their trained rate
    if link is None or reach is None or not rate or one.value > _MOST * rate:
        return None
    low, typical, high = (share * rate for share in (reach.low, reach.typical, reach.high))
    return JobTraffic(one, link, low, typical, high, reach.source)


def _bundle(snapshot: Snapshot, gpu: Device) -> Link | None:
    """All NVLinks of a GPU to switches as one link: traffic spreads evenly over them."""
    own = [link for link in snapshot.topology.links if link.kind == "nvlink" and link.a == gpu.id]
    ends = {snapshot.topology.find(link.b) for link in own}
    # A link that is down is a separate finding
    rates = [link.rated for link in own if link.rated and link.trained != 0]
    if not own or len(rates) < len(own) or not all(end and end.kind in ("nvswitch", "fabric") for end in ends):
        return None
    return Link(gpu.id + _BUNDLE, gpu.id, FABRIC, "nvlink", sum(rates), grade=own[0].grade)


def proven(snapshot: Snapshot) -> Iterator[Level]:
    """One level per link that a job has filled. Such a link is good and needs no measurement."""
    for one in job_traffic(snapshot):
        if one.observation.value >= _FULL * one.typical:
            link = one.link
            switch = snapshot.topology.find(link.b)
            far = FABRIC if switch and switch.kind == "nvswitch" and snapshot.topology.find(FABRIC) else link.b
            expected = Expectation(
                basis="capability",
                low=_FULL * one.typical,
                typical=one.typical,
                high=one.high,
                bottleneck=link.id,
                source=f"{one.source}; carried in one second of a job's own traffic",
            )
            yield Level(
                op="traffic",
                ends=(link.a, far),
                link_class=link.grade,
                rated=link.rated,
                trained=link.trained,
                expected=(expected,),
                observed=one.observation.value,
            )


def lagging_links(snapshot: Snapshot) -> Iterator[Finding]:
    """Links that carried less than all equal links, which agree with each other."""
    cohort: dict[tuple[str, str, float | None], list[JobTraffic]] = defaultdict(list)
    for one in job_traffic(snapshot):
        if not one.link.id.endswith(_BUNDLE):  # GPUs may send different amounts: stages, parts of the model
            cohort[one.link.kind, one.link.grade, one.link.rated or one.link.trained].append(one)
    for equal in cohort.values():
        for one in equal:
            others = [other.observation.value for other in equal if other is not one]
            if len(others) >= _SMALLEST_COHORT and _behind(one, others):
                yield _finding(one, others)


def _behind(one: JobTraffic, others: Sequence[float]) -> bool:
    typical = median(others)
    agree = all(abs(other / typical - 1) <= _AGREE for other in others) if typical else False
    return agree and typical >= _LEAST * one.typical and one.observation.value < _LESS * typical


def _finding(one: JobTraffic, others: Sequence[float]) -> Finding:
    typical = median(others)
    return Finding(
        code="bandwidth-low",
        severity="warning",
        confidence="likely",
        subject=str(one.observation.about),
        message=f"carried at most {as_gigabytes(one.observation.value)} in any second of a job, where "
        f"{len(others)} equal links carried {as_gigabytes(typical)}",
        expected=typical,
        observed=one.observation.value,
        unit="bytes_per_second",
        basis=COHORT,
        expected_source=f"median of {len(others)} links of {one.link.grade} in the same job",
        cause="a job sends as much over each of them: this one is slower, or is used otherwise",
        evidence=(one.observation.evidence,),
        case="in a job",
    )
