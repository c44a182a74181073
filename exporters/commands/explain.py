"""The text of `linkgauge explain`: the meaning of finding codes. The findings page in docs uses the same data."""

from __future__ import annotations

from ...models.catalog import Code, codes
from ...models.diagnosis.remedies import in_words
from ..text.terminal import hanging, wrap

WIDTH = 80


def listing() -> str:
    """Every code with its meaning, one per line."""
    column = max(len(name) for name in codes()) + 2
    lines = (line for name, code in codes().items() for line in hanging(f"{name:<{column}}", code.says, WIDTH))
    return "".join(f"{line}\n" for line in lines)


def explain(name: str) -> str:
    """The meaning of a code, how to confirm it and how to fix it. Raises KeyError if there is no such code."""
    code = codes()[name]
    lines = [*wrap(f"{name} ({kind_of_code(code)})", WIDTH), *hanging("  ", code.says, WIDTH), "", "To see it"]
    lines += [f"  {command}" for command in code.confirm]  # not wrapped, so that they can be copied
    lines += ["", "To fix it, cheapest step first"]
    for number, step in enumerate(code.fix, 1):
        lines += hanging(f"  {number}. ", in_words(step), WIDTH)
    lines += ["", *hanging("From: ", code.source, WIDTH)]
    return "".join(f"{line}\n" for line in lines)


def kind_of_code(code: Code) -> str:
    """Severities and marks of a code: "critical or warning, vital"."""
    marks = {"vital": code.vital, "event": not code.steady}
    return ", ".join((" or ".join(code.severity), *(mark for mark, holds in marks.items() if holds)))
