"""Where a report comes from: this machine, a root, a capture, dumps. What cannot be one is a clear error."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial

import msgspec

from ...models.catalog import codes
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ...models.site.schema import Site, read_site
from ...probes.calls.child import Children
from ...probes.host.entries import Entry, Folder, Refused
from ...probes.host.host import Host
from ...probes.host.live import Live
from ...probes.host.recorded import Recorded, Replayed, parse
from ..measuring.session import NOTHING, MeasurementOptions, Session
from ..pipeline.registry import SOURCES, TOOLS
from ..pipeline.source import Source
from . import dump_files as held

SITE = "/etc/linkgauge/site.toml"
_ROOT_SIGNS = ("sys", "proc")
_MACHINE = {"sys", "proc", "dev", "run", "etc", "usr", "var", "lib", "boot"}  # folders at the root of a machine
_LOGS = ("var/log/", "proc/driver/nvidia/")  # sosreports have them


class BadInput(Exception):
    """The user's mistake, in a sentence that says what to do."""


@dataclass(frozen=True, slots=True)
class Input:
    """A host and the sources to ask of it."""

    host: Host
    readers: tuple[Source, ...]
    here: bool = False  # the machine that we run on, which alone may be measured

    def session(self, options: MeasurementOptions) -> Session:
        """The measuring that is wanted, as far as it may be: of a capture what was measured then, of others nothing."""
        return Session(options if self.here or isinstance(self.host, Recorded) else NOTHING, self.host)


def of(root: str, source: Sequence[str], with_tools: bool = False) -> Input:
    """What the options --root, --from and --with-tools name. Raises BadInput."""
    if source and root != "/":
        raise BadInput("--from and --root exclude each other: one is a recording, the other a machine")
    if with_tools and (source or root != "/"):
        raise BadInput("--with-tools asks the tools of this machine: it goes with neither --from nor --root")
    found = given(source) if source else live(root)
    return replace(found, readers=(*found.readers, *TOOLS)) if with_tools else found


def live(root: str, children: Children | None = None) -> Input:
    """The machine that we run on, or the one whose root is mounted at `root`. Raises BadInput."""
    if root != "/":
        _check_folder(root, "--root")
        if not any(os.path.isdir(os.path.join(root, name)) for name in _ROOT_SIGNS):
            raise BadInput(f"--root {root}: holds neither sys nor proc: mount the host's root there, with both")
    return Input(Live(root, children=children), SOURCES, here=root == "/")


def replayed(path: str) -> Host:
    """A capture as a machine of now, for a service. Raises BadInput."""
    host = given((path,)).host
    if not isinstance(host, Recorded) or host.origin != "capture":
        raise BadInput(f"--from {path}: a service takes a capture; 'linkgauge diagnose --from' reads outputs of tools")
    return Replayed(host.taken, host.entries, host.calls)


def given(paths: Sequence[str]) -> Input:
    """A capture; or files, folders and archives of dumps, "-" for standard input. Raises BadInput."""
    shown = ", ".join(paths)
    for path in paths:
        if path != held.STDIN:
            _mode(path, "--from")
    try:
        collected = held.collect(paths)
    except OSError as error:
        raise BadInput(f"--from {error.filename or shown}: {error.strerror}") from None
    except ValueError as wrong:
        raise BadInput(f"--from {shown}: {wrong}") from None
    files = {name: entry for name, entry in collected.entries.items() if not isinstance(entry, Folder)}
    if not files:
        raise BadInput(f"--from {shown}: an empty folder: put dumps into it (output of nccl-tests ...)")
    if len(files) == 1 and len(paths) == 1 and not os.path.isdir(paths[0]):
        return _alone(shown, collected, *files.items())
    from ...probes import dumps  # some thirty readers, which captures and this machine do without

    heads = held.trees(collected.entries)
    if not heads:
        return Input(collected, _dumps(sorted(files)))
    machine = held.below(collected.entries, heads[0])
    texts = {name: entry for name, entry in machine.entries.items() if isinstance(entry, str)}
    others = [name for name, text in texts.items() if _is_dump(name) or _is_log(name) and dumps.recognise(text)]
    left = tuple(_other_machine(head, heads[0]) for head in heads[1:] if not head.startswith(heads[0]))
    return Input(machine, (*SOURCES, *_dumps(sorted(others)), *left))


def _alone(shown: str, collected: Recorded, file: tuple[str, Entry]) -> Input:
    """A single file must be something that is known."""
    name, entry = file
    if isinstance(entry, Refused):
        raise BadInput(f"--from {shown}: {entry.why}")
    if isinstance(entry, str) and entry.startswith(held.CAPTURE):
        try:
            return Input(parse(f"{entry}\n"), SOURCES)
        except ValueError as wrong:
            raise BadInput(f"--from {shown}: {wrong}") from None
    from ...probes import dumps

    if isinstance(entry, str) and dumps.recognise(entry):
        return Input(collected, _dumps([name]))
    raise BadInput(
        f"--from {shown}: neither a capture (its first line would be '{held.CAPTURE}') nor the output of a tool that "
        "is known here; make a capture with 'linkgauge capture FILE'"
    )


def _dumps(names: Iterable[str]) -> tuple[Source, ...]:
    """A source for each file of a folder of dumps; the host is that folder."""
    from ...probes.dumps import read_dump

    return tuple(Source("dump", partial(read_dump, name)) for name in names)


def _other_machine(head: str, evaluated: str) -> Source:
    return Source("_other_machine", partial(_not_judged, head, evaluated))


def _not_judged(head: str, evaluated: str, host: Host) -> Iterator[Record]:
    why = f"the files of another machine than those below {evaluated}; one is judged at a time"
    yield NotChecked(
        what="dump", subject=head, reason=Reason.OTHER_CONTEXT, detail=why, how="give the files of this machine alone"
    )


def _is_dump(name: str) -> bool:
    """A file of a collection that is not part of the machine's own tree."""
    return name.partition("/")[0] not in _MACHINE


def _is_log(name: str) -> bool:
    """A file of the machine's own tree that the readers of a machine leave to those of dumps."""
    return name.startswith(_LOGS)


def site(path: str | None, ignore: Sequence[str] = (), job: str | None = None) -> Site:
    """The site file that was named, or the system's where there is one, and what --ignore and --job add.

    Raises BadInput.
    """
    if path is None and os.path.exists(SITE):
        path = SITE
    known = Site()
    if path is not None:
        try:
            known = read_site(read_text(path, "--site"))
        except ValueError as wrong:
            raise BadInput(f"--site {path}: {wrong}") from None
        _check_codes(known.ignore, f"--site {path}: [ignore]")
        _check_codes(known.gate.codes or (), f"--site {path}: [gate]")
        _check_job(known.job, f"--site {path}: job")
    named = dict(_ignored(text) for text in ignore)
    _check_codes(named, "--ignore")
    _check_job(job, "--job")
    return msgspec.structs.replace(known, ignore={**known.ignore, **named}, job=job or known.job)


def _check_job(text: str | None, where: str) -> None:
    if text is None:
        return
    from ...models.training.job_spec import read_job

    try:
        read_job(text)
    except ValueError as wrong:
        raise BadInput(f"{where}: {wrong}") from None


def _ignored(text: str) -> tuple[str, str]:
    """What to ignore and why, of "CODE", "CODE:SUBJECT", "CODE:SUBJECT=REASON"."""
    what, _, reason = text.partition("=")
    return what, reason or "--ignore"


def _check_codes(ignore: Iterable[str], where: str) -> None:
    for what in ignore:
        code = what.partition(":")[0]
        if code not in codes():
            raise BadInput(f"{where}: {no_code(code)}")


def no_code(code: str) -> str:
    """That no finding has the code, and which one may be meant."""
    near = get_close_matches(code, codes(), 1)
    hint = f"did you mean {near[0]!r}?" if near else "'linkgauge explain' lists them"
    return f"no finding has the code {code!r}; {hint}"


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
        if os.path.getsize(path) > held.BIGGEST:
            raise BadInput(f"{option} {path}: larger than {held.BIGGEST >> 20} MB, which no capture or dump is")
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise BadInput(f"{option} {path}: {error.strerror}") from None
    if b"\0" in content[:4096]:
        raise BadInput(f"{option} {path}: a binary file; captures and dumps are text")
    return content.decode("utf-8", "replace")
