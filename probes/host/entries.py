"""The types of a path in a capture: the text of a file, a link, a folder, or an unreadable file."""

from __future__ import annotations

from collections.abc import Container
from typing import TypeAlias

from msgspec import Struct


class UnreadableFile(Struct, frozen=True):
    """Why a file, link or folder could not be read. `code` is the error number, or None."""

    code: int | None
    why: str


class Link(Struct, frozen=True):
    """A symbolic link. "": the link is broken. UnreadableFile: the target is not known, and it may not be a link."""

    target: str | UnreadableFile


class Folder(Struct, frozen=True):
    """A folder. UnreadableFile: it was not listed, so it may contain more names than the capture has."""

    refused: UnreadableFile | None = None


Entry: TypeAlias = str | UnreadableFile | Link | Folder  # str: the text of a file

NOT_RECORDED = UnreadableFile(None, "was not recorded")
UNASKED = Link(NOT_RECORDED)  # a name in a folder that no source read
UNLISTED = Folder(NOT_RECORDED)


def free_name(taken: Container[str], name: str, last: dict[str, int]) -> str:
    """The name, with a number if it is taken, so that no entry replaces another one.

    `last` has the last number of each name: in an archive, a hundred thousand files may have the same name.
    """
    number = last.get(name, 1)
    while (free := f"{name} ({number})" if number > 1 else name) in taken:
        number += 1
    last[name] = number
    return free
