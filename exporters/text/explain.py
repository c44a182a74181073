"""What the finding codes mean: `linkgauge explain`. docs/generate.py writes the findings page from the same data."""

from __future__ import annotations

from ...models.catalog import Code, codes
from .terminal import hanging, wrap

WIDTH = 80


def listing() -> str:
    """Every code with what it says."""
    column = max(len(name) for name in codes()) + 2
    lines = (line for name, code in codes().items() for line in hanging(f"{name:<{column}}", code.says, WIDTH))
    return "".join(f"{line}\n" for line in lines)


def explain(name: str) -> str:
    """What a code says, how to see it, what to do. KeyError: there is no such code."""
    code = codes()[name]
    lines = [*wrap(f"{name} ({_kind(code)})", WIDTH), *hanging("  ", code.says, WIDTH), "", "To see it"]
    lines += [f"  {command}" for command in code.confirm]  # never wrapped: they are there to be copied
    lines += ["", "To mend it, the cheapest step first"]
    for number, step in enumerate(code.fix, 1):
        lines += hanging(f"  {number}. ", step, WIDTH)
    lines += ["", *hanging("From: ", code.source, WIDTH)]
    return "".join(f"{line}\n" for line in lines)


def _kind(code: Code) -> str:
    marks = {"vital": code.vital, "event": not code.steady}
    return ", ".join((" or ".join(code.severity), *(mark for mark, holds in marks.items() if holds)))
