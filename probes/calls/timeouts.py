"""Sentences about a question without an answer, and whether a record has one."""

from __future__ import annotations

from ...models.facts.gpu import Driver, Gpu
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record

HOW = "the kernel's log may say which driver hangs; restart the machine if it stays so"  # of a file, to bring it back


def no_answer(seconds: float) -> str:
    """Nothing came in time."""
    return f"no answer within {seconds:g} s"


def stuck(who: str) -> str:
    """Who asked last time, or what was asked for: that hangs yet, and cannot be ended."""
    return f"{who}, asked before, still hangs in the kernel"


def hung(said: Record) -> bool:
    """Whether something did not answer in time: a call, a file, the driver or a GPU."""
    if isinstance(said, NotChecked):
        return said.reason is Reason.NO_ANSWER
    return isinstance(said, Driver | Gpu) and said.failure_reason is Reason.NO_ANSWER
