"""What is said of a question that was never answered, and how to know it again in a record."""

from __future__ import annotations

from ..models.said import NotChecked

_NO_ANSWER = "no answer within"
_STUCK = "asked before, still hangs in the kernel"


def no_answer(seconds: float) -> str:
    """Nothing came in time."""
    return f"{_NO_ANSWER} {seconds:g} s"


def stuck(process: int) -> str:
    """The process that asked last time is there yet, and cannot be killed."""
    return f"process {process}, {_STUCK}"


def hung(lost: NotChecked) -> bool:
    """Whether that is why something was not checked."""
    return lost.why.startswith(_NO_ANSWER) or lost.why.endswith(_STUCK)
