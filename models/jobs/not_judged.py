"""What the report of a job could not judge, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from ..facts.averages import median
from ..facts.reason import Reason
from ..facts.records import NotChecked
from ..facts.units import as_gigabytes
from ..training.cluster import Cluster
from .expected import Rate
from .log import Communicator, JobLog
from .slow_links import is_far, is_uniform

_MOST_GAPS = 20  # communicators that are named as not judged


def gaps_of(
    log: JobLog, rates: Sequence[Rate], wrong: Collection[str], cluster: Cluster | None
) -> Iterator[NotChecked]:
    """One entry for each kind of damage, each communicator that was not judged, and what is uncertain."""
    yield from _problems(log)
    yield from _not_judged(log.communicators.values(), wrong)
    yield from _without_machine(rates, cluster)
    yield from _all_below(rates)


def _problems(log: JobLog) -> Iterator[NotChecked]:
    for what, count in sorted(log.problems.items()):
        yield NotChecked(what="job", subject="lines", reason=Reason.UNREADABLE, detail=f"{count} {what}")
    for why, count in sorted(log.unread.items()):
        detail = f"{count} files or folders could not be read: {why}"
        yield NotChecked(what="job", subject="files", reason=Reason.INCOMPLETE, detail=detail)
    if (apart := _clock_difference(log)) is not None:
        detail = f"the clocks of its hosts differ by at least {apart:.0f} s; the times of dumps are not compared"
        yield NotChecked(what="job", subject="clocks", reason=Reason.OTHER, detail=detail)
    if len(log.jobs) > 1:
        detail = f"the lines are of {len(log.jobs)} jobs: {', '.join(sorted(log.jobs)[:5])}"
        yield NotChecked(what="job", subject="lines", reason=Reason.OTHER_CONTEXT, detail=detail)


def _clock_difference(log: JobLog) -> float | None:
    """Seconds between the hosts' times of writing, if two hosts did not write at the same time."""
    starts, ends = zip(*log.clocks.values(), strict=True) if log.clocks else ((), ())
    apart = max(starts, default=0.0) - min(ends, default=0.0)
    return apart if apart > 60 else None


def _without_machine(rates: Sequence[Rate], cluster: Cluster | None) -> Iterator[NotChecked]:
    count = sum(not one.judged for one in rates)
    if count:
        detail = f"{count} rates have no expected value: too few equal communicators" + (
            "" if cluster else ", and the type of the machines is not known"
        )
        how = None if cluster else "name the type with --machine (linkgauge profile --list)"
        yield NotChecked(what="job", subject="rates", reason=Reason.NO_EXPECTATION, detail=detail, how=how)


def _not_judged(several: Iterable[Communicator], wrong: Collection[str]) -> Iterator[NotChecked]:
    """Communicators without all ranks, or whose lines contradict each other or what links can do."""
    gaps = [gap for one in several if (gap := _gap(one, wrong)) is not None]
    yield from gaps[:_MOST_GAPS]
    if len(gaps) > _MOST_GAPS:
        detail = f"{len(gaps) - _MOST_GAPS} more communicators lack ranks or contradict themselves"
        yield NotChecked(what="job", subject="communicators", reason=Reason.OTHER, detail=detail)


def _gap(one: Communicator, wrong: Collection[str]) -> NotChecked | None:
    known, of = len(one.members), one.n_ranks
    double = sum(member.duplicate for member in one.members.values())
    if one.id in wrong:
        detail = "its times are shorter than its links allow"
    elif one.inconsistent:
        detail = "its lines differ in the number of its ranks"
    elif double:
        detail = f"two processes say that they are the same rank, for {double} of its ranks"
    elif known < of and one.members:
        detail = f"{known} of its {of} ranks wrote lines: it can clear links, but not show a slow one"
    else:
        return None
    how = "collect the files of all ranks in one folder"
    return NotChecked(what="job", subject=one.id, reason=Reason.OTHER, detail=detail, how=how)


def _all_below(rates: Sequence[Rate]) -> Iterator[NotChecked]:
    """Equal communicators that are all a little below the rate of the machine type: that rate can be wrong."""
    near = defaultdict[object, list[Rate]](list)
    for one in rates:
        if is_uniform(one) and not is_far(one):
            near[one.kind, one.shape].append(one)
    for several in near.values():
        one, reached = several[0], median([each.observed for each in several])
        low = one.missed.low if one.missed else reached
        detail = (
            f"{one.kind.op} over {one.shape.ranks} ranks on {one.shape.hosts} nodes reaches {as_gigabytes(reached)}; "
            f"{as_gigabytes(low)} or more is expected. No equal communicator is faster: the expected rate can be wrong"
        )
        how = "compare with all_reduce_perf of nccl-tests on these nodes"
        yield NotChecked(what="job", subject="rates", reason=Reason.NO_EXPECTATION, detail=detail, how=how)
