"""The cost of findings for collectives and for a training job, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...models.report import Report, Training
from .terminal import Paint, hanging, safe

_WIDTH = 80
_NOTHING = 1.005  # a slowdown below this factor is not shown


def slower(impact: Mapping[str, float]) -> list[str]:
    """The slowdown of collectives (name -> factor) as text: "all_reduce and alltoall take 1.06 times as long"."""
    if not impact:
        return []
    by_factor: dict[str, list[str]] = {}
    for name, factor in impact.items():
        by_factor.setdefault("" if factor <= _NOTHING else f"{factor:.3g}", []).append(_named(name))
    sentences = [
        f"{' and '.join(names)} take{'s' * (len(names) == 1)} {factor} times as long"
        for factor, names in by_factor.items()
        if factor
    ]
    if not sentences:
        return ["no collective is slower"]
    if same := by_factor.get("", []):
        sentences.append(f"{' and '.join(same)} {'is' if len(same) == 1 else 'are'} not slower")
    return ["; ".join(sentences)]


def _named(name: str) -> str:
    op, _, scope = safe(name).partition("@")
    return f"{op} over the {scope}" if scope else op


def cost(report: Report, paint: Paint) -> Iterator[str]:
    """The cost of all findings together for the job of --job; no lines without a job."""
    if report.training is None:
        return
    yield paint("COST", "bold")
    for line in _sentences(report.training, report.impact):
        yield from hanging("  ", line, _WIDTH, indent=4)


def _sentences(training: Training, impact: Mapping[str, float]) -> Iterator[str]:
    about = f"{safe(training.job)} on {training.gpus:,} GPUs"
    if training.slower.most <= 1:
        yield f"{about}: a step of {training.step_seconds:.3g} s, and no finding makes it longer"
    else:
        least, usual, most = (
            (factor - 1) * 100 for factor in (training.slower.least, training.slower.usual, training.slower.most)
        )
        yield (
            f"{about}: a step of {training.step_seconds:.3g} s takes {usual:.3g} % longer ({least:.3g} % where all "
            f"messages hide behind computing, {most:.3g} % where none does): {training.gpu_hours_a_day:,.0f} GPU-hours "
            "a day, as all wait for this node"
        )
        yield from slower(impact)
    before, now = training.critical_tokens, training.critical_tokens_now
    if before is not None and now is not None and now > before:
        yield f"gradients limit a step below {now:,.0f} tokens per GPU, without the findings below {before:,.0f}"
    if training.load_seconds is not None and training.load_seconds_now is not None:
        yield (
            f"this node reads its part of a checkpoint in {training.load_seconds_now:,.0f} s, expected "
            f"{training.load_seconds:,.0f} s"
        )
