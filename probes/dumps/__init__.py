"""Readers of what tools printed, one file a family of tools; registry.py lists them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable
from .core.part import Part
from .core.split import means_nothing, split
from .registry import READERS

_NOTHING = re.compile(r"(?:\s|<\?xml[^>]*>|<!--(?s:.*?)-->|<!DOCTYPE[^>]*>)*")  # what an XML file has before its root
_HEAD = 1 << 16  # characters
_MOST_NAMED = 5  # stretches of a file


def recognise(text: str) -> bool:
    """Whether a text holds the output of a tool that is known here."""
    return any(_is_known(some) for some in dict.fromkeys((text[:_HEAD], text)))  # most tell what they are at once


def _is_known(text: str) -> bool:
    return any(family for family, _ in split("", text, 0.0, READERS))


def read_dump(name: str, host: Host) -> Iterator[Record]:
    """What stands in a file; a NotChecked with the stretches that are in no form that is known."""
    shown = os.fsencode(name).decode("utf-8", "replace")  # file names are any bytes
    try:
        text = host.read(name)
    except Unreadable as refusal:
        reason = Reason.UNREADABLE if refusal.code is None else refusal.reason
        yield NotChecked(what="dump", subject=shown, reason=reason, detail=refusal.why, how=refusal.how)
        return
    if text is None:
        why = "a link that leads nowhere, or out of the folder"
        yield NotChecked(
            what="dump", subject=shown, reason=Reason.NOT_INSTALLED, detail=why, how="copy the file into the folder"
        )
        return
    yield from read_text(shown, text, host.now())


def read_text(name: str, text: str, at: float) -> Iterator[Record]:
    """What stands in a text that has this name and was read at this time, in seconds since 1970."""
    unknown: list[Part] = []
    known = 0
    for family, part in split(name, text, at, READERS):
        if family:
            known += 1
            yield from family.read(part)
        elif not _NOTHING.fullmatch(part.text) and not means_nothing(part):
            unknown.append(part)
    if unknown or not known:
        yield NotChecked(what="dump", subject=name, reason=Reason.UNREADABLE, detail=_unknown(unknown, known))


def _unknown(parts: list[Part], known: int) -> str:
    tools = ", ".join(family.name for family in READERS)
    if not known:
        return f"in no form that is known here (read are: {tools})"
    ranges = [f"{part.first}" if part.first == part.last else f"{part.first}-{part.last}" for part in parts]
    more = f" and {len(ranges) - _MOST_NAMED} more" if len(ranges) > _MOST_NAMED else ""
    return f"lines {', '.join(ranges[:_MOST_NAMED])}{more} are in no form that is known here"
