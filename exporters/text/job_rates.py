"""The text of a job: its title, and a table of the bus bandwidth of its communicators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...models.facts.averages import median
from ...models.facts.units import as_size
from ...models.report import Job, JobRate
from .terminal import WIDTH, Paint, hanging, safe
from .vocabulary import counted

_MOST_GROUPS, _MOST_SLOW = 16, 8
_BAR = 10  # columns of the rate of the fastest communicator of a group


def title_of(job: Job) -> str:
    """ "job 4711, 128 GPUs on 16 nodes"."""
    name = f"job {', '.join(map(safe, job.ids[:3]))}" if job.ids else "a job"
    return f"{name}, {counted(job.gpus, 'GPU')} on {counted(job.nodes, 'node')}"


def read_in_words(job: Job) -> str:
    """What was read."""
    formats = f" of the NCCL Inspector, format {', '.join(map(safe, job.formats))}" if job.formats else ""
    return f"Read {counted(job.lines, 'line')} in {counted(job.files, 'file')}{formats}."


def rates(job: Job, paint: Paint, full: bool) -> Iterator[str]:
    """One row for equal communicators with their lowest, median and expected rate, then a row for each slow one.

    The bar is the lowest rate as a share of the highest: "=" up to the lowest, "-" up to the median.
    """
    groups: dict[tuple[object, ...], list[JobRate]] = {}
    for one in job.rates:
        groups.setdefault((one.op, one.ranks, one.nodes, one.size, one.algorithm, one.protocol), []).append(one)
    if not groups:
        return
    yield paint("BUS BANDWIDTH", "bold") + f"{'communicators':>45}{'lowest':>9}{'median':>9}{'expected':>10}  GB/s"
    ordered = sorted(groups.values(), key=lambda several: -sum(one.seconds * one.operations for one in several))
    for several in ordered if full else ordered[:_MOST_GROUPS]:
        yield from _group(several, paint, full)
    if len(ordered) > _MOST_GROUPS and not full:
        yield f"  and {len(ordered) - _MOST_GROUPS} more kinds, all with -v"


def _group(several: Sequence[JobRate], paint: Paint, full: bool) -> Iterator[str]:
    first = several[0]
    observed = sorted(one.observed for one in several)
    wanted = [one.expected[0].typical for one in several if one.expected]
    nodes = counted(first.nodes, "node")
    name = f"{first.op} {as_size(first.size)}, {first.ranks} ranks on {nodes}"
    expected = _number(median(wanted)) if wanted else "-"
    rates = f"{_number(observed[0]):>9}{_number(median(observed)):>9}{expected:>10}"
    yield f"  {name:<47}{len(several):>9}{rates}  {_bar(observed)}".rstrip()
    slow = sorted((one for one in several if one.low), key=lambda one: (one.observed, one.communicator))
    for one in slow if full else slow[:_MOST_SLOW]:
        since = "" if one.slower_from is None else f", since operation {one.slower_from}"
        text = f"{_name(one)}: {_number(one.observed)} GB/s, {one.seconds * 1e3:.3g} ms{since}"
        for line in hanging(f"    {'low':<6}", text, WIDTH):
            yield line.replace("low", paint("low", "warning"), 1)
    if len(slow) > _MOST_SLOW and not full:
        yield f"    and {len(slow) - _MOST_SLOW} more low ones, all with -v"


def _bar(observed: Sequence[float]) -> str:
    low, middle = (round(_BAR * rate / observed[-1]) for rate in (observed[0], median(observed)))
    return "=" * low + "-" * (middle - low)


def _name(one: JobRate) -> str:
    own = safe(one.communicator)
    return f"{safe(one.name)} ({own})" if one.name and one.name not in one.communicator else own


def _number(rate: float) -> str:
    return f"{rate / 1e9:.1f}" if rate >= 1e9 else f"{rate / 1e9:.3f}"
