"""Where a report comes from: this machine, a root, a capture, dumps. What cannot be one is a clear error."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from ..models.site import Site, read_site
from ..probes import dumps
from ..probes.host import Host
from ..probes.live import Live
from ..probes.recorded import parse
from .pipeline import Source
from .sources import READERS

SITE = "/etc/linkgauge/site.toml"
_BIGGEST = 256 << 20  # bytes: a capture of a large node has a few MB
_CAPTURE = "linkgauge capture "  # how the first line of a capture begins
_ROOT_SIGNS = ("sys", "proc")


class BadInput(Exception):
    """The user's mistake, in a sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Input:
    """A host and the sources to ask of it."""

    host: Host
    readers: tuple[Source, ...]


def of(root: str, source: str | None) -> Input:
    """What the options --root and --from name. Raises BadInput."""
    if source is not None and root != "/":
        raise BadInput("--from and --root exclude each other: one is a recording, the other a machine")
    return live(root) if source is None else given(source)


def live(root: str) -> Input:
    """The machine that we run on, or the one whose root is mounted at `root`. Raises BadInput."""
    if root != "/":
        _check_folder(root, "--root")
        if not any(os.path.isdir(os.path.join(root, name)) for name in _ROOT_SIGNS):
            raise BadInput(f"--root {root}: holds neither sys nor proc: mount the host's root there, with both")
    return Input(Live(root), READERS)


def given(path: str) -> Input:
    """A capture, a dump, or a folder of dumps. Raises BadInput."""
    if _mode(path, "--from") == stat.S_IFDIR:
        names = _files(path)
        if not names:
            raise BadInput(f"--from {path}: an empty folder: put dumps into it (output of nccl-tests ...)")
        return Input(Live(path, "dumps"), tuple(dumps.sources(names)))
    text = read_text(path)
    if text.startswith(_CAPTURE):
        try:
            return Input(parse(text), READERS)
        except ValueError as wrong:
            raise BadInput(f"--from {path}: {wrong}") from None
    if dumps.recognise(text):
        folder, name = os.path.split(os.path.realpath(path))
        return Input(Live(folder, "dumps"), tuple(dumps.sources([name])))
    raise BadInput(
        f"--from {path}: neither a capture (its first line would be '{_CAPTURE}') nor the output of a tool that is "
        "known here; make a capture with 'linkgauge capture FILE'"
    )


def site(path: str | None) -> Site:
    """The site file that was named, or the system's where there is one. Raises BadInput."""
    if path is None:
        if not os.path.exists(SITE):
            return Site()
        path = SITE
    try:
        return read_site(read_text(path, "--site"))
    except ValueError as wrong:
        raise BadInput(f"--site {path}: {wrong}") from None


def _files(folder: str) -> list[str]:
    """The plain files of a folder and below, relative to it."""
    found = []
    for here, _, names in os.walk(folder):
        found += [os.path.relpath(os.path.join(here, name), folder) for name in names]
    return sorted(found)


def _check_folder(path: str, option: str) -> None:
    if _mode(path, option) != stat.S_IFDIR:
        raise BadInput(f"{option} {path}: not a folder")


def _mode(path: str, option: str) -> int:
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except OSError as error:
        raise BadInput(f"{option} {path}: {error.strerror}") from None


def read_text(path: str, option: str = "--from") -> str:
    """The text of a plain file of reasonable size."""
    if _mode(path, option) != stat.S_IFREG:
        raise BadInput(f"{option} {path}: not a plain file")
    try:
        if os.path.getsize(path) > _BIGGEST:
            raise BadInput(f"{option} {path}: larger than {_BIGGEST >> 20} MB, which no capture or dump is")
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise BadInput(f"{option} {path}: {error.strerror}") from None
    if b"\0" in content[:4096]:
        raise BadInput(f"{option} {path}: a binary file; captures and dumps are text")
    return content.decode("utf-8", "replace")
