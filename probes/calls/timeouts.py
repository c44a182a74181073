"""Texts about calls and files that did not answer in time, and a test for such records."""

from __future__ import annotations

from ...models.facts.gpu import Driver, Gpu
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record

_OF_DRIVER = (Driver, Gpu)
# The `how` of a file that does not answer.
HOW = "the kernel's log may say which driver hangs; restart the machine if it stays so"


def no_answer(seconds: float) -> str:
    """The text for a call that gave no answer within its deadline."""
    return f"no answer within {seconds:g} s"


def stuck(who: str) -> str:
    """The text for an earlier call or file that still hangs in the kernel. `who` is a process or a path."""
    return f"{who}, asked before, still hangs in the kernel"


def hung(record: Record) -> bool:
    """Whether the record shows a timeout of a call, a file, the driver or a GPU."""
    if isinstance(record, NotChecked):
        return record.reason is Reason.NO_ANSWER
    return isinstance(record, _OF_DRIVER) and record.failure_reason is Reason.NO_ANSWER
