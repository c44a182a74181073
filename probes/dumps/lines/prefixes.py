"""Removes what a log, a launcher or a container writes before each line: times, hosts, programs, levels, ranks.

Layers are removed one after another: "2026-11-21 03:00:00 node1 check[42]: " has two of them. A prefix whose text
cannot differ between lines (a host, a rank) must be the same on all lines.

syslog (RFC 3164, RFC 5424), journalctl(1) short and short-iso, ts(1) of moreutils, Python's logging, klog of
Kubernetes, mpirun --tag-output (Open MPI), srun --label (Slurm), torchrun ("[rank0]:", "[default0]:"), kubectl logs
--prefix, quotes in mails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
_ISO = rf"[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}[T ]{_CLOCK}(?:Z|[ ]?[+-][0-9]{{2}}:?[0-9]{{2}})?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DATE = rf"(?:[A-Z][a-z]{{2}} )?{_MONTH} [ 0-9]?[0-9] {_CLOCK}(?: [0-9]{{4}})?"
_EPOCH = r"[0-9]{10}\.[0-9]{3,9}"
_UPTIME = r"[ ]{0,8}[0-9]{1,8}\.[0-9]{3,9}"
_LEVELS = "|".join(
    form(name)
    for name in ("INFO", "DEBUG", "WARNING", "WARN", "ERROR", "NOTICE", "TRACE", "CRITICAL")
    for form in (str.upper, str.lower)
)
# Names of hosts and ranks. A device before a line is a part of the line.
_DEVICE = r"(?i:gpu|cuda|mlx|nvme|eth|en[opsx]|ib|numa|sd[a-z]|md|bond|hfi|rdmap|efa|bnxt|hsn|card|link|port|pci)"
_NAME = rf"(?!{_DEVICE}[\w.-]*[0-9])(?:localhost|(?=[\w.-]*[0-9-])[A-Za-z0-9][\w.-]{{0,62}})"
# A device in brackets is the heading of its lines. Hosts can have names like gpu-3 and link1.
OF_A_DEVICE = r"(?i:mlx[45]_(?:bond_)?|nvme|eth|ib|bond|hfi1_|rdmap|efa_|irdma|bnxt_re|hsn)[0-9]\w{0,12}\]"
_HOST, _PROGRAM = r"(?:[\w.-]{1,63} )?", r"[A-Za-z_(][\w./()@-]{0,60}"
_LOGGER = r"[A-Za-z_][\w.]{0,60}"


class _Kind(Struct, frozen=True):
    """A kind of prefix. `constant`: its text is the same on all lines. `below`: only below a time.

    `fewest` is the number of lines that shows it. A single line shows only what no tool prints.
    """

    pattern: re.Pattern[str]
    constant: bool = False
    below: bool = False
    fewest: int = 1


_TIME = _Kind(
    re.compile(
        rf"[ \t]?(?:\[(?:{_ISO}|{_DATE}|{_CLOCK}|{_EPOCH}|{_UPTIME})\]|\({_ISO}\)|{_ISO}|{_DATE}|{_CLOCK}|{_EPOCH})"
        r":?(?=[ \t\[]|$)"
    )
)
_KINDS = (
    _TIME,
    _Kind(re.compile(r"[ \t]{0,3}>{1,5}(?=[ ]|$)")),  # a quote
    _Kind(re.compile(rf"[IWEF][0-9]{{4}} {_CLOCK}[ ]{{1,8}}[0-9]{{1,9}} [\w.-]{{1,80}}:[0-9]{{1,6}}\](?=[ ]|$)")),
    _Kind(
        re.compile(
            rf"[ ]?(?:[-|] )?(?:{_LOGGER} (?:- )?)?(?:\[(?:{_LEVELS})\]:?|(?:{_LEVELS})(?:[ ]?[-|:])?)(?=[ ]|$)"
        ),
        below=True,
    ),
    _Kind(re.compile(rf"(?:\[(?:{_LEVELS})\]|(?:{_LEVELS}):(?:{_LOGGER}:)?)"), fewest=2),
    _Kind(re.compile(r"std(?:out|err) [FP](?= |$)"), below=True),
    _Kind(re.compile(rf"{_HOST}{_PROGRAM}\[[0-9]{{1,8}}\]:(?= |$)"), constant=True, below=True),
    _Kind(re.compile(rf"(?!{_DEVICE}){_HOST}(?!{_DEVICE}){_PROGRAM}:(?= |$)"), constant=True, below=True, fewest=2),
    _Kind(re.compile(r"\[[0-9]{1,6},[0-9]{1,6}\]<std(?:out|err|diag)>:"), constant=True),
    _Kind(
        re.compile(rf"\[(?!{OF_A_DEVICE})(?:[A-Za-z][\w./@:-]{{0,200}}|[0-9]{{1,5}})\]:?(?= |$)"),
        constant=True,
        fewest=2,
    ),
    _Kind(re.compile(rf"{_NAME}(?:(?: \||:)(?=[ \t]|$)|[ ]{{0,12}}\|(?=[ \t]?\S))"), constant=True, fewest=2),
    _Kind(re.compile(r"\[(?:default|rank)[0-9]{1,6}\]:"), constant=True, fewest=2),  # torchrun
    _Kind(
        re.compile(r"\((?:[\w.:-]{1,80} )?pid=[0-9]{1,9}(?:, ip=[\w.:]{2,60})?\)(?= |$)"), constant=True, fewest=2
    ),  # Ray
    _Kind(re.compile(rf"{_NAME}>(?=[ \t]|$)"), constant=True, fewest=2),
    _Kind(
        re.compile(rf"{_NAME}(?=[ \t]|$)(?![ \t]{_PROGRAM}\[[0-9]{{1,8}}\]:)"), constant=True, below=True, fewest=2
    ),  # a host behind the time. In a journal, a program is behind it: the lines of different programs stay whole.
    _Kind(re.compile(r"(?=\S*[0-9])[\w.-]{1,80}(?:/[\w.-]{1,80}){1,4}(?= |$)"), True, True, fewest=2),  # aws logs
    _Kind(
        re.compile(r"\{[a-z_]{1,40}=\"[^\"{}\n]{0,200}\"[^{}\n]{0,400}\}(?= |$)"), constant=True, below=True
    ),  # logcli
    _Kind(re.compile(rf"{_NAME}(?=\t)"), constant=True, fewest=2),  # parallel --tag
    _Kind(re.compile(rf"{_NAME} [a-z][\w.-]{{1,62}}(?= |$)"), constant=True, fewest=3),  # stern: pod and container
    _Kind(re.compile(r"\+(?=[ \tA-Za-z0-9]|$)"), constant=True, fewest=2),  # new lines of a diff
    _Kind(re.compile(r"<[0-9]{1,3}>(?=\S|[ \t])"), fewest=2),  # the priority of a line of the kernel's buffer
    _Kind(
        re.compile(r"[ \t]{0,3}(?:#{1,4}|/{2,3}|[a-z]{2,12}>|[|│┃](?![^\n]*[|│┃][ \t]*$))(?=[ \t]|$)"), True, fewest=2
    ),
)
_DEEPEST = 5  # layers
_HEAD = 20  # lines that decide whether the others are looked at


def layers(lines: Sequence[str], share: float = 1.0) -> Iterator[list[str]]:
    """The lines without the first layer of prefixes, without the first two, and so on.

    `share` is the least share of the lines that have a prefix. The others stay as they are.
    """
    below, rest = False, list(lines)
    for _ in range(_DEEPEST):
        found = _prefix(rest, below, share)
        if found is None:
            return
        kind, first = found
        below = below or kind is _TIME
        rest = _without(rest, kind, first)
        yield rest


def _prefix(lines: Sequence[str], below: bool, share: float) -> tuple[_Kind, str] | None:
    """The kind of the prefix that enough lines have, and the first one."""
    full = [line for line in lines if line.strip()]
    some = full[:_HEAD]
    for kind in _KINDS:
        first = next(
            (found[0] for line in some[: len(some) if share < 1 else 1] if (found := kind.pattern.match(line))), ""
        )
        if first and (below or not kind.below) and len(full) >= kind.fewest:
            counted = some if share == 1 and not _has(some, kind, first, share) else full
            if _has(counted, kind, first, share):
                return kind, first
    return None


def _has(lines: Sequence[str], kind: _Kind, first: str, share: float) -> bool:
    count = sum(line.startswith(first) if kind.constant else bool(kind.pattern.match(line)) for line in lines)
    if kind.constant and share < 1 and any(kind.pattern.match(line) and not line.startswith(first) for line in lines):
        return False  # lines of other hosts or ranks: frames.py separates them
    return count >= max(share * len(lines), kind.fewest)


def _without(lines: Sequence[str], kind: _Kind, first: str) -> list[str]:
    """The lines without the prefix, and without a blank behind it if all have one."""
    ends = [
        (len(first) if line.startswith(first) else 0) if kind.constant else found.end() if found else 0
        for line, found in ((line, None if kind.constant else kind.pattern.match(line)) for line in lines)
    ]
    if kind.constant and first.endswith("]") and sum(first in line[len(first) :] for line in lines) * 2 > len(lines):
        # the launcher writes it before each piece of a line ("[0]   1048576 ... -1[0]   162.5 ...")
        lines = [line[: len(first)] + line[len(first) :].replace(first, " " * len(first)) for line in lines]
    blank = all(line[end : end + 1] in (" ", "\t", "") for line, end in zip(lines, ends, strict=True) if end)
    return [line[end + blank if end else 0 :] for line, end in zip(lines, ends, strict=True)]
