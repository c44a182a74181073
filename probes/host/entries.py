"""What a path of a recorded machine can be: a file's text, a link, a folder, or something that would not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Refused:
    """A file that would not say, with the error number where there was one; or why something else would not."""

    code: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link. "" leads nowhere; Refused: where it leads, and whether it is a link at all, is not known."""

    target: str | Refused


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder. Refused: it was not, or could not be, listed, and may hold more than was recorded."""

    refused: Refused | None = None


Entry: TypeAlias = str | Refused | Link | Folder  # str: the text of a file

NOT_RECORDED = Refused(None, "was not recorded")
UNASKED = Link(NOT_RECORDED)  # a name in a folder of which nothing more was asked
UNLISTED = Folder(NOT_RECORDED)
