"""Readers of what tools printed, one file a family of tools: each recognises its texts and reads them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

from ...models.said import NotChecked, Said
from ..host import Host, Unreadable
from . import nccl, nccl_topo

Source = Callable[[Host], Iterator[Said]]

FAMILIES = (nccl, nccl_topo)


def sources(names: list[str]) -> list[Source]:
    """A source for each file of a folder of dumps; the host is that folder."""
    return [partial(read_dump, name) for name in names]


def read_dump(name: str, host: Host) -> Iterator[Said]:
    """What the families that recognise the file read in it; a NotChecked where none does."""
    shown = os.fsencode(name).decode("utf-8", "replace")  # file names are any bytes
    try:
        text = host.read(name)
    except Unreadable as refusal:
        yield NotChecked(what="dump", subject=shown, why=refusal.why, how=refusal.how)
        return
    if text is None:
        why = "a link that leads nowhere, or out of the folder"
        yield NotChecked(what="dump", subject=shown, why=why, how="copy the file into the folder")
        return
    known = [family for family in FAMILIES if family.recognise(text)]
    for family in known:
        yield from family.read(shown, text, host.now())
    if not known:
        tools = ", ".join(family.__name__.rpartition(".")[2] for family in FAMILIES)
        yield NotChecked(what="dump", subject=shown, why=f"in no form that is known here (read are: {tools})")
