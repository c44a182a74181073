"""Log messages that name a fault of a machine, from messages/*.toml: one table per message.

The files hold hundreds of tables, and a log shows a few of them. So a file is only cut into its tables. A table is
parsed, and its pattern is compiled, when its needle occurs in a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

import msgspec
import tomli
from msgspec import Struct

from ..report import Severity
from ..site.schema import Text
from ..site.toml_tables import in_tables
from . import packaged

# Messages of the kernel and its drivers, and messages of programs and agents: one file per family.
KERNEL = ("nvidia", "pci", "processor", "memory", "storage", "files", "network", "amdgpu", "intel_gpu", "kernel")
PROGRAMS = (
    "fabric",
    "ibdiagnet",
    "shared_files",
    "switches",
    "cuda",
    "gpu_tests",
    "dcgm",
    "nccl",
    "mpi",
    "libfabric",
    "services",
    "bmc",
    "windows",
    "agents",
    "agent_checks",
    "kubernetes",
    "node_checks",
)
# Sentences of people (said_messages.py). They count only if they state a fault of now (probes/parsing/sentences.py) and
# no message of the above is in the line.
SAID = ("said_gpu", "said_links", "said_host", "said_abroad")
# Lines of known drivers and programs with a word for a fault. They count under the same condition.
UNEXPLAINED = ("unexplained",)
_TABLE = "[[message]]\n"
_HEAD = re.compile(
    r"name = \"(?P<name>[a-z0-9-]{1,60})\"\n"
    r"needles? = (?:'(?P<raw>[^'\n]{1,80})'|(?P<quoted>\"[^\n]{1,80}\")|(?P<several>\[[^\n]{1,400}\]))\n"
)
_PATH = re.compile(r"^(nvme[0-9]+)c[0-9]+(n[0-9]+)$")
_MACRO = re.compile(r"\{([a-z]+)\}")
# What the patterns of the catalog may contain in braces. A macro with the name of a subject is the named group of it.
MACROS: Mapping[str, str] = {
    "pci": r"(?P<pci>(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)",
    "gpu": r"(?P<gpu>[0-9]{1,3})",
    "rm": r"(?P<rm>[0-9]{1,3})",
    "cpu": r"(?P<cpu>[0-9]{1,5})",
    "memory": r"(?P<memory>[0-9]{1,3})",
    "nvme": r"(?P<nvme>nvme[0-9]{1,4})",
    "disk": r"(?P<disk>[a-z][a-zA-Z0-9-]{1,30})",
    "store": r"(?P<store>(?!loop|ram|zram|sr[0-9]|fd[0-9])[a-z][a-zA-Z0-9_.-]{0,29}[a-zA-Z0-9_])",
    "array": r"(?P<array>md[0-9_][a-zA-Z0-9_]{0,20})",
    "net": r"(?P<net>[a-zA-Z](?:[\w.-]{0,19}\w)?)",
    "rdma": r"(?P<rdma>[a-zA-Z][\w.-]{1,30})",
    "service": r"(?P<service>[a-zA-Z][\w@.-]{1,60})",
    "event": r"\{[0-9]{1,20}\}",  # number of an event of amdgpu's RAS
    # In the node check's log, or as the reason that Slurm shows. `sinfo -R` cuts a reason, and a date follows.
    "nhc": r"(?:Health check failed|\bNHC): {1,3}(?!.{0,32}[0-9]{4}-[0-9]{2}-[0-9]{2}T)",
    "n": r"-?[0-9]{1,20}",
    "x": r"(?:0x)?[0-9a-fA-F]{1,16}",
    "w": r"[^\s,;]{1,60}",
    "any": r".{0,160}?",
    "q": r"\\{0,3}\"",  # a quotation mark, also within a string of JSON
    "fault": (  # a word for a fault. Words before and behind "error" that healthy machines log are left out
        r"(?:(?<![Nn]o )[Ff]ail(?:ed|ure|ing|s)?\b|FAIL(?:ED|URE)?\b|[Uu]nable to|[Cc]annot\b|[Cc]an't\b"
        r"|[Cc]ould(?:n't| not)\b"
        r"|(?<![Nn]o )(?<!out )(?<!0 )(?<!hardware )\b[Ee]rrors?\b"
        r"(?!=|s?: 0| (?:handl|report|contain|correct|recover|inject|mask|sever|status/mask|Log entr))"
        r"|ERROR\b|[Tt]imed[ -]?out\b|[Tt]ime-?out (?:wait|error|on |for |occur|detect|after|while)|TIMEOUT"
        r"|[Aa]bort(?:ed|ing)\b|[Cc]orrupt|[Ff]atal\b|FATAL\b|[Hh]ang\b|[Hh]ung\b|\bstuck\b|[Oo]fflined?\b|\blost\b"
        r"|[Nn]ot respon|(?:un|non-)responsive|[Oo]verheat|[Oo]ver-?temp|[Oo]verflow|(?<![Nn]o )[Uu]ncorrect)"
    ),
}
# What the numbers of a sentence count or measure (said_numbers.py)
Kind = Literal[
    "lanes", "generation", "gigabits", "gigabytes", "count", "mtu", "memory", "memories", "watts", "megahertz",
    "version", "seconds", "celsius", "socket", "nvlinks"
]  # fmt: skip
Subject = Literal[
    "pci", "gpu", "rm", "cpu", "memory", "nvme", "disk", "store", "array", "net", "rdma", "service", "node"
]  # fmt: skip


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A message. Without a code it is no finding: it ends others (`clears`), or others need it (`needs`)."""

    name: str
    needle: str  # a text that every such message contains
    prefix: str = ""  # what the driver writes before the pattern. People leave it out when they quote the message
    pattern: str  # a regular expression with macros
    subject: Subject  # the named group with the subject; "node": the machine
    code: str | None = None
    severity: Severity | None = None
    many: int | None = None  # from this number of messages on, `severity_of_many` applies
    severity_of_many: Severity | None = None
    meaning: Text  # may contain the named groups of the pattern: "{limit}"
    action: Text | None = None  # the cheapest next step
    clears: tuple[str, ...] = ()  # the messages about the same subject that this one ends, if it is later
    needs: tuple[str, ...] = ()  # it counts only if one of these messages is in the log too
    severity_alone: Severity | None = None  # the severity without these messages; None: it does not count then
    unless: tuple[str, ...] = ()  # it does not count if one of these messages is in the log too
    stated: bool = False  # people write such lines too: in a sentence it counts only if the sentence states it
    elsewhere: bool = False  # the cause can be another machine: a text that shows nothing else has only a symptom
    about: tuple[str, ...] = ()  # its subject is that of these messages, if they have one subject
    source: Text
    example: Text


class Said(Message, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A fault in sentences of people (said_messages.py): what is faulty, and words or numbers that say so."""

    needle: str = ""
    pattern: str = ""
    example: Text = ""
    needles: tuple[str, ...]  # each topic contains one of these texts, in lower case
    topic: str  # what the sentence is about
    faults: tuple[
        str, ...
    ] = ()  # words beside the topic that say that it has the fault. None and no numbers: the topic does
    numbers: Kind | None = None  # or there are two numbers of this kind: what there is, and what there should be
    counted: str | None = None  # what the numbers of kind "count" count
    beside: str | None = None  # what the sentence must also contain
    without: str | None = None  # what the sentence must not contain
    short: bool = False  # a note without the words of a sentence states it too: no tool has such rows
    says: Text | None = None  # the meaning if the sentence has both numbers: {have} and {want}
    examples: tuple[Text, ...]


class Entry(Struct, frozen=True):
    """A table that is not parsed."""

    name: str
    needle: str
    file: str
    table: str


@cache
def entries(*files: str) -> tuple[Entry, ...]:
    """The tables of these files of messages/, without `.toml`."""
    return tuple(entry for file in files for entry in _entries(file))


@cache
def _entries(file: str) -> tuple[Entry, ...]:
    _, *tables = packaged(f"messages/{file}.toml").decode().split(_TABLE)
    return tuple(entry for table in tables for entry in _entries_of(file, table))


def _entries_of(file: str, table: str) -> Sequence[Entry]:
    """One entry for each needle."""
    head = _HEAD.match(table)
    if head is None:
        raise ValueError(f"messages/{file}.toml: a table does not begin with its name and its needle: {table[:80]!r}")
    needles = msgspec.json.decode(head["several"] or head["quoted"] or msgspec.json.encode(head["raw"]))
    return [Entry(head["name"], one, file, table) for one in ([needles] if isinstance(needles, str) else needles)]


@cache
def _by_name() -> Mapping[str, Entry]:
    return {entry.name: entry for entry in entries(*KERNEL, *PROGRAMS, *SAID, *UNEXPLAINED)}


def is_unexplained(name: str) -> bool:
    """Whether the message only says that a driver or a program reports a fault."""
    return _by_name()[name].file in UNEXPLAINED


def is_said(name: str) -> bool:
    """Whether the message is a sentence of a person."""
    return _by_name()[name].file in SAID


@cache
def message(name: str) -> Message:
    """The message with this name."""
    entry = _by_name()[name]
    try:
        return in_tables(tomli.loads(entry.table), Said if entry.file in SAID else Message)
    except ValueError as wrong:
        raise ValueError(f"messages/{entry.file}.toml: {name}: {wrong}") from None


@cache
def pattern(name: str) -> re.Pattern[str]:
    """The pattern of a message with its prefix, compiled."""
    return re.compile(expanded(message(name).prefix + message(name).pattern), re.MULTILINE)


@cache
def quoted(name: str) -> re.Pattern[str] | None:
    """The pattern without its prefix, compiled. None: nobody quotes the message without it."""
    row = message(name)
    return re.compile(rf"(?<![\w.-]){expanded(row.pattern)}", re.MULTILINE) if row.prefix else None


def search(name: str, text: str) -> re.Match[str] | None:
    """The message in a text, with or without its prefix."""
    if (found := pattern(name).search(text)) is None and (short := quoted(name)):
        return short.search(text)
    return found


def expanded(text: str) -> str:
    """A pattern with the expressions that its macros stand for."""
    return _MACRO.sub(lambda found: MACROS[found[1]], text)


def subject_of(name: str, found: re.Match[str]) -> str:
    """The subject of a matched message, by the name that the kernel or the tool uses. "node": it names none."""
    kind = message(name).subject
    return named(kind, found.groupdict().get(kind) or "")


def named(kind: str, text: str) -> str:
    """The name of a device of this kind in a message, as the kernel or the tool has it. "node": the text is empty."""
    if not text:
        return "node"
    if kind == "pci":
        return _address(text.lower())
    if kind == "disk":
        return disk_name(text)
    prefix = {"gpu": "gpu", "rm": "gpu", "cpu": "cpu", "memory": "mc"}.get(kind)
    return f"{prefix}{int(text)}" if prefix else text


def disk_name(text: str) -> str:
    """The name of a disk. The kernel also names a path of a multipath disk: nvme3c0n1 is a path of nvme3n1."""
    return _PATH.sub(r"\1\2", text)


def _address(text: str) -> str:
    domain, *rest = text.rsplit(":", 2) if text.count(":") == 2 else ("0000", *text.split(":"))
    device = rest[1] if "." in rest[1] else f"{rest[1]}.0"
    domain = domain.zfill(4) if len(domain) <= 4 or int(domain, 16) > 0xFFFF else domain[-4:]
    return f"{domain}:{rest[0]}:{device}"
