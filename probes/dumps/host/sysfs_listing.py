"""The files of /sys and /proc that a text lists: "grep . PATH...", "PATH: value", head and tail of several files, cat
commands, loops, paths relative to a folder, `ls -l` of links, udevadm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

from msgspec import Struct, field

from ..core.part import Part

ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
# A row of a script, "/sys/bus/pci/devices/0000:41:00.0: width 8 of 16": notes/device_notes.py reads it
_ROW_OF_SCRIPT = (
    rf"/sys/(?:[\w:.-]{{1,40}}/){{1,12}}{ADDRESS}:?[ \t=][^\n]{{0,100}}(?:width|(?<=[ /(=])x[0-9]|[0-9]x[ /])"
)
PATH = (
    rf"(?!{_ROW_OF_SCRIPT})/(?:sys|proc)(?:/(?:{ADDRESS}|pci[0-9a-f]{{4,8}}:[0-9a-f]{{2}}|[\w.,+@-]{{1,80}})){{2,16}}"
)
_SHELL = r"(?:\S{0,60}[$#] |\[[^\]\n]{1,80}\][$#] )?(?:sudo )?"
PROMPT = rf"{_SHELL}(?:cat|head|more) "
NAMES = r"(?:current|max)_link_(?:speed|width)(?![=: \t]{1,3}[0-9][^\n]{0,60}_link_)"  # one in a line
PORT_FILE = r"[\w.-]{1,40}/ports/\d{1,3}/(?:state|phys_state|rate|link_layer|(?:hw_)?counters/\w{1,60})"
# "mlx5_0: 4: ACTIVE", "mlx5_0 1 1: DOWN 3: Disabled 40 Gb/sec (4X QDR)": loops that print the device and its files
_RDMA = r"(?:mlx[45]_|bnxt_re|irdma|hfi1_|qedr|rdmap|rocep|ibp|ionic_)[\w-]{1,30}"
_STATES = r"[1-5]: (?:ACTIVE|DOWN|INIT|ARMED)\b"
_PHYSICAL = r"[1-7]: (?:LinkUp|Polling|Disabled|Sleep|LinkErrorRecovery|PortConfigurationTraining)\b"
RDMA_ROW = rf"{_RDMA}(?:(?:/ports)?[/ ]\d{{1,2}})?:?[ \t]{{1,20}}(?:{_STATES}|{_PHYSICAL}|[\d.]{{1,6}} Gb/sec \()"
# "name -> ../../devices/pci0000:15/0000:15:01.0/0000:18:00.0/net/eth0", of `ls -l` and `find -printf "%p %l"`
LINK = r"(?:\.\./){1,12}devices/pci[0-9a-f]{4,8}:[0-9a-f]{2}/"
COMMAND = rf"{_SHELL}(?:cd|for|cat|tail|grep|find|ls|readlink)\b[^\n]{{0,200}}?/sys/(?:bus/pci|class|devices|block)\b"
_COMMAND = re.compile(rf"[ \t]*{COMMAND}.*")
COMMAND_ALONE = re.compile(rf"[ \t>`]*{COMMAND}[^\n]*$")
_FOLDER = re.compile(r"\bcd (/sys/[^\s;&|]{1,200})")
_OF_LOOP = re.compile(r"\$\((?:cat |<[ ]?)\"?\$\{?\w+\}?\"?/([\w/]{1,60})\"?(?: 2>/dev/null)?\)")
_CAT = re.compile(rf"[ \t]*{_SHELL}cat((?: /(?:sys|proc)/[^\s;|&<>*?\[\]]{{1,200}})+)[ \t]*")
_BRACES = re.compile(r"\{([^{}]{1,200})\}")
_IN_LOOP = re.compile(
    rf"[ \t]*(?P<path>(?:/sys(?:/[\w.:,+@-]{{1,80}}){{2,16}}|{ADDRESS}))[: \t=]{{1,20}}(?P<value>\S.*)"
)
_IN_FOLDER = re.compile(r"[ \t]*(?:\./)?(?P<name>[a-z][\w/]{1,60})[:=][ \t]{0,20}(?P<value>\S.*)")
_ATTRIBUTE = rf"(?:{NAMES}|class|vendor|device|subsystem_\w{{1,20}}|numa_node)"
_BEFORE = r"[ \t]*(?:==> )?(?:\./|(?:\.\./){1,6})?"
# Paths relative to /sys/bus/pci/devices, /sys/class/infiniband, /sys/class/net and /sys/class/nvme
_RELATIVE = tuple(
    (re.compile(rf"{_BEFORE}({form})(?=[: \t=])"), folder)
    for form, folder in (
        (rf"{ADDRESS}/{_ATTRIBUTE}", "/sys/bus/pci/devices/"),
        (PORT_FILE, "/sys/class/infiniband/"),
        (r"nvme\d{1,3}/state", "/sys/class/nvme/"),
        (r"[a-z][\w.-]{1,15}/(?:speed|mtu|carrier)", "/sys/class/net/"),
    )
)
_UDEV_DEVICE = re.compile(r"[ \t]*looking at (?:parent )?device '(/devices/[^'\n]{1,300})':")
_UDEV_ATTRIBUTE = re.compile(r"[ \t]*ATTRS?\{(\w{1,60})\}==\"([^\"\n]{0,200})\"")
_MARKED = re.compile(rf"[ \t]*==> ({PATH}) <==[ \t]*")  # head and tail of several files
_LINE = re.compile(rf"[ \t]*(?P<cat>{PROMPT})?(?P<path>{PATH})(?P<rest>:.*|[ \t]+.*|)")
_PATH_ALONE = re.compile(rf"[ \t]*(?:{PROMPT})?{PATH}")
_ROW = re.compile(rf"[ \t]*(?P<device>{_RDMA}?)(?:(?:/ports)?[/ ](?P<port>\d{{1,2}}))?:?[ \t]{{1,20}}(?P<rest>\d.*)")
_ROW_VALUES = (
    ("state", re.compile(_STATES)),
    ("phys_state", re.compile(_PHYSICAL)),
    ("rate", re.compile(r"[\d.]{1,6} Gb/sec \([\w ]{1,12}\)")),
)
_FOLDER_LINK = re.compile(
    rf"(?:.*[ \t])?(?P<name>[\w./:@+-]{{1,200}})[ \t]+(?:->[ \t]+)?(?P<target>{LINK}[\w./:@+-]{{1,300}})[ \t]*"
)
_REFUSED = ("No such file", "Permission denied", "Invalid argument", "Input/output error", "Is a directory")
_MOST_FILES = 256  # of one cat command


class File(Struct, frozen=True):
    """A file and its text. `link`: the text is the target of a symbolic link."""

    number: int  # of the line of the part, from 0
    path: str
    text: str
    link: bool = False


class _Commands(Struct):
    """What the commands so far say of the lines below them."""

    folder: str = ""  # of `cd`
    attribute: str = ""  # the file that a loop prints behind the name of its folder
    paths: dict[int, str] = field(default_factory=dict)  # by line: the files of a cat command with several ones


def files(part: Part) -> Iterator[File]:
    """The files in the text, in the order of the lines."""
    lines = part.text.split("\n")
    commands, device, before = _Commands(), "", ""
    for number, raw in enumerate(lines):
        line = _absolute(raw)
        path, before = before, ""
        if found := _UDEV_DEVICE.match(line):
            device = found[1]
        elif device and (attribute := _UDEV_ATTRIBUTE.match(line)):
            yield File(number, f"/sys{device}/{attribute[1]}", attribute[2])
        elif marked := _MARKED.fullmatch(line):
            before = marked[1]
        elif path and line.strip() and path not in line and not _PATH_ALONE.match(line):
            yield from _readable(number, path, line)
        elif number in commands.paths:
            yield from _readable(number, commands.paths[number], line)
        elif link := _FOLDER_LINK.fullmatch(line):
            yield File(number, link["name"], link["target"], link=True)
        elif found := _LINE.fullmatch(line):
            if not found["cat"] and found["rest"].strip() and not _of_loop(found, commands):
                yield from _readable(number, found["path"], found["rest"])
            elif not found["rest"].strip():
                before = found["path"]
            else:
                yield from _below(number, line, commands)
                commands = _commands(lines, number, commands) if _COMMAND.fullmatch(line) else commands
        elif _COMMAND.fullmatch(line):
            commands = _commands(lines, number, commands)
        else:
            yield from _below(number, line, commands)


def _of_loop(found: re.Match[str], commands: _Commands) -> bool:
    """Whether the path is the folder that a loop prints before the text of its file."""
    return bool(commands.attribute) and "/" not in found["rest"].strip()[:1] and not _is_attribute(found["path"])


def _is_attribute(path: str) -> bool:
    return re.fullmatch(rf"{ADDRESS}|[a-z]+\d[\w-]*|\d+", path.rpartition("/")[2]) is None


def _below(number: int, line: str, commands: _Commands) -> Iterator[File]:
    """The files of a line whose path is in a command above, or whose device is the first word."""
    if commands.attribute and (found := _IN_LOOP.fullmatch(line)):
        folder = found["path"] if found["path"].startswith("/") else f"/sys/bus/pci/devices/{found['path']}"
        yield from _readable(number, f"{folder}/{commands.attribute}", found["value"])
    elif commands.folder and (found := _IN_FOLDER.fullmatch(line)):
        yield from _readable(number, f"{commands.folder}/{found['name']}", found["value"])
    elif re.match(rf"[ \t]*{RDMA_ROW}", line) and (row := _ROW.fullmatch(line)):
        for name, form in _ROW_VALUES:
            if value := form.search(row["rest"]):
                port = int(row["port"] or 1)  # few devices have a second port, and a loop over them prints its number
                yield File(number, f"/sys/class/infiniband/{row['device']}/ports/{port}/{name}", value[0])


def _commands(lines: Sequence[str], number: int, before: _Commands) -> _Commands:
    """What this command says of the lines below it."""
    line = lines[number]
    folder, loop = _FOLDER.search(line), _OF_LOOP.findall(line)
    found = _Commands(folder[1].rstrip("/") if folder else before.folder, loop[0] if len(loop) == 1 else "")
    if cat := _CAT.fullmatch(line):
        paths = [path for word in cat[1].split() for path in _expanded(word)][:_MOST_FILES]
        below = lines[number + 1 : number + 2 + len(paths)]
        values = next(
            (place for place, text in enumerate(below) if not text.strip() or _COMMAND.match(text)), len(below)
        )
        if values == len(paths) > 1:  # else a file has no line or several ones
            found.paths = {number + 1 + place: path for place, path in enumerate(paths)}
    return found


def _expanded(word: str) -> Iterator[str]:
    """The words that a shell makes of the braces in a word."""
    pieces = _BRACES.split(word)
    choices = [piece.split(",") if place % 2 else [piece] for place, piece in enumerate(pieces)]
    yield from ("".join(chosen) for chosen, _ in zip(product(*choices), range(_MOST_FILES), strict=False))


def _readable(number: int, path: str, rest: str) -> Iterator[File]:
    value = rest.lstrip(":= \t").rstrip()
    if value and not any(word in value for word in _REFUSED):
        yield File(number, path, value)


def _absolute(line: str) -> str:
    """A line with a path relative to the folder of a class, with its whole path."""
    for form, folder in _RELATIVE:
        if found := form.match(line):
            return f"{'==> ' if '==> ' in found[0] else ''}{folder}{line[found.start(1) :]}"
    return line
