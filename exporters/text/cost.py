"""The cost of findings for collectives and for a training job, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...models.report import Finding, Report, Training
from .terminal import WIDTH, Paint, hanging, safe

_NOTHING = 1.005  # a slowdown below this factor is not shown
_NAMES = {
    "copy@host": "copies to host memory",
    "read@storage": "reads of all local disks",
    "compute": "computing",
    "step": "a step",
}
_PLURAL = frozenset({"copy@host", "read@storage"})


def cost_lines(finding: Finding) -> list[str]:
    """What a finding costs: factors, "cannot run" or "not known". Nothing for a finding that only informs."""
    if finding.cost == "cannot run":
        return ["no job can use all GPUs of this node", *slower(finding.impact)]
    if finding.cost == "unknown" and finding.severity != "info":
        return ["not known"]
    return slower(finding.impact)


def slower(impact: Mapping[str, float]) -> list[str]:
    """The slowdown of operations by name as text: "all_reduce over the fabric takes 2 times as long"."""
    if not impact:
        return []
    by_factor: dict[str, list[str]] = {}
    for name, factor in impact.items():
        by_factor.setdefault("" if factor <= _NOTHING else f"{factor:.3g}", []).append(name)
    sentences = [
        f"{_list(names)} take{'s' * _one(names)} {factor} times as long"
        for factor, names in by_factor.items()
        if factor
    ]
    if not sentences:
        return ["no collective is slower"]
    if same := by_factor.get("", []):
        sentences.append(f"{_list(same)} {'is' if _one(same) else 'are'} not slower")
    return ["; ".join(sentences)]


def _list(names: list[str]) -> str:
    """ "all_reduce and alltoall inside the node and all_reduce over the fabric"."""
    inside = [safe(name) for name in names if "@" not in name and name not in _NAMES]
    first = [f"{' and '.join(inside)} inside the node"] if inside else []
    return " and ".join([*first, *(_named(name) for name in names if safe(name) not in inside)])


def _one(names: list[str]) -> bool:
    return len(names) == 1 and names[0] not in _PLURAL


def _named(name: str) -> str:
    op, _, scope = safe(name).partition("@")
    return _NAMES.get(name, f"{op} over the {scope}" if scope else op)


def cost(report: Report, paint: Paint) -> Iterator[str]:
    """The cost of all findings together for the job of --job; no lines without a job."""
    if report.training is None:
        return
    yield paint("COST", "bold")
    for line in sentences(report, report.training):
        yield from hanging("  ", line, WIDTH, indent=4)


def sentences(report: Report, training: Training) -> Iterator[str]:
    """What the findings cost the job, one sentence each."""
    about = f"{safe(training.job)} on {training.gpus:,} GPUs"
    whole = f"{about}: a step of {training.step_seconds:.3g} s"
    unknown = _listed(report, "unknown")
    if report.cost == "cannot run":
        yield f"{about} cannot run with all GPUs of this node: {_listed(report, 'cannot run') or 'a link is cut'}"
    elif training.slower is None:
        yield f"{whole}; how much longer it takes is not known: {unknown}"
    elif training.slower.most <= 1:
        yield (
            f"{whole}, and no finding makes it longer" if not unknown else f"{whole}; not known: the cost of {unknown}"
        )
    else:
        yield _longer(whole, training, at_least=bool(unknown))
    if training.slower is not None and unknown and training.slower.most > 1:
        yield f"not known: the cost of {unknown}"
    yield from slower(report.impact) if report.cost != "none" else ()
    yield from _limits(training)


def _longer(whole: str, training: Training, at_least: bool) -> str:
    factors = training.slower
    if factors is None or training.gpu_hours_a_day is None:
        return whole
    least, usual, most = ((factor - 1) * 100 for factor in (factors.least, factors.usual, factors.most))
    return (
        f"{whole} takes {'at least ' * at_least}{usual:.3g} % longer ({least:.3g} % with more overlap of messages and "
        f"computing, {most:.3g} % with less): {training.gpu_hours_a_day:,.0f} GPU-hours a day, as all wait for "
        "this node"
    )


def _listed(report: Report, cost: str, shown: int = 3) -> str:
    """The findings of this cost: "gpu-ecc 0000:9e:00.0"."""
    found = [
        safe(f"{one.code} {one.subject}") for one in report.findings if one.cost == cost and one.severity != "info"
    ]
    more = f" and {len(found) - shown} more" if len(found) > shown else ""
    return ", ".join(found[:shown]) + more


def _limits(training: Training) -> Iterator[str]:
    before, now = training.critical_tokens, training.critical_tokens_now
    if before is not None and now is not None and now > before:
        yield f"gradients limit a step below {now:,.0f} tokens per GPU, without the findings below {before:,.0f}"
    if training.load_seconds is not None and training.load_seconds_now is not None:
        yield (
            f"this node reads its part of a checkpoint in {training.load_seconds_now:,.0f} s, expected "
            f"{training.load_seconds:,.0f} s"
        )
