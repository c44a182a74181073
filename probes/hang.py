"""What is said of a question that was never answered, and how to know it again in a record."""

from __future__ import annotations

from ..models.gpu_facts import Driver, Gpu
from ..models.said import NotChecked, Said

HOW = "the kernel's log may say which driver hangs; restart the machine if it stays so"  # of a file, to bring it back
_NO_ANSWER = "no answer within"
_STUCK = "asked before, still hangs in the kernel"


def no_answer(seconds: float) -> str:
    """Nothing came in time."""
    return f"{_NO_ANSWER} {seconds:g} s"


def stuck(who: str) -> str:
    """Who asked last time, or what was asked for: that hangs yet, and cannot be ended."""
    return f"{who}, {_STUCK}"


def hung(said: Said) -> bool:
    """Whether it says that something did not answer: a call, or a GPU of which all that is known."""
    why = said.why if isinstance(said, NotChecked) else said.failure if isinstance(said, Driver | Gpu) else None
    return why is not None and (_NO_ANSWER in why or why.endswith(_STUCK))
