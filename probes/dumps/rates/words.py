"""The words of lines in which people report rates: "gpu2 -> gpu5: 48.1 GB/s", "| node1 | mlx5_3 | 197 Gb/s |".

A line counts only if each of its words is in this vocabulary. Prose and logs contain other words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache

from msgspec import Struct

# "gpu-11" and "gpu022" are names of machines
_GPU = r"(?:gpu|cuda|device|dev)(?:[ _#:]?(?!0[0-9]{2})[0-9]{1,3}|-[0-9](?![0-9]))"
_DEVICE = r"(?:gpu|device|dev|nic|hca)(?![ _#:-]?[0-9])"  # "gpu 0" is one word
_HOST = r"(?:host|cpu[0-9]{0,2}|sysmem|dram|pinned host)"
_NUMA = r"numa(?:[ _-]?node)?[ _-]?[0-9]{1,3}"
NIC = (
    r"(?:mlx[45]_(?:bond_|gdr_)?|bnxt_re|irdma|ionic_|erdma_|efa_|rdmap|hfi1_|ibp|ib|nic|hca|roce)"
    r"[0-9]{1,3}(?:s[0-9]{1,3})?(?:f[0-9])?(?:[:/][1-4])?"
)
_ADDRESS = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_DISK = r"(?:/dev/)?(?:nvme[0-9]{1,2}n[0-9]{1,2}|sd[a-z])"
_WHOLE = r"(?![\w])"
BUS_BANDWIDTH = "(?:busbw|algbw|(?:avg |average )?bus bandwidth)"  # the names of nccl-tests, in GB/s
# "8 x H100", "4x GPU": how many GPUs a node measured
_COUNTED = r"[0-9]{1,3}[ ]?x[ ]?(?:gpus?|gb?[0-9]{3}|[abhlv][0-9]{2,4}|mi[0-9]{3}x?)"
UNIT = r"(?:[kmgt]i?b(?:ytes?|its?)?(?:/s(?:ec)?|ps|/second|ytes/s))"
NUMBER = r"[0-9]{1,6}(?:[.,][0-9]{1,4})?"
_SIZE = r"[0-9]{1,5}[ ]?(?:[kmg]i?b|bytes?|b)(?![\w/])"
PATH = r"(?:nv[0-9]{1,2}|pix|pxb|phb|node(?![ _-]?[0-9])|sys|soc)"
ARROW = r"(?:<-{1,2}>|<=>|<>|↔|-{1,3}>|=>|→|to(?![\w])|<-{1,2}(?!>)|←)"
_COLLECTIVE = r"(?:all[_-]?reduce|all[_-]?gather|reduce[_-]?scatter|all[_-]?to[_-]?all|alltoall|sendrecv)"
# The programs that measured. A row can begin with the name of its program.
PROGRAM = (
    r"(?:(?:raw_ethernet|ib)_(?:write|read|send)_bw|iperf3?|qperf|nvbandwidth|p2pBandwidthLatencyTest|bandwidthTest)"
)
# Words that change nothing about what was measured
_PLAIN = (
    "copy copies memcpy p2p peer bandwidth bandwith bw busbw algbw bus rate rates throughput speed gdr rdma transfer "
    "result results measured reaches gets is at over via with link links pair pairs path type topology nvlink pcie ce "
    "dma unidirectional unidir uni one-way oneway pinned avg average mean median max best peak gpus ranks "
    "acs iommu on off enabled disabled fix change reseat "
    "time the in of from src dst source destination sender receiver ends test message size ok hdr ndr edr usec us ms "
    "msec alone single separately individually reboot driver update upgrade kernel bios firmware power cycle copying"
)
_MACHINES = "node nodes host hosts hostname server servers machine machines rail rails ip"  # heads of columns
_ASIDE = "latency lat"  # columns of numbers that are no rates
_BOTH = "bidirectional bidir bi both duplex two-way directions"
_TOGETHER = "concurrent concurrently simultaneous simultaneously parallel together same"
_MARKS = {
    "each": "each per apiece",
    "sum": "sum total aggregate combined",
    "beside": "while beside during",
    "before": "before earlier previously old was",
    "after": "after now new later today",
    "wanted": "expected expect expecting target nominal",
    "least": "min minimum lowest worst",
    "also": "and plus",
    "upward": "h2d htod write send",
    "downward": "d2h dtoh read",
    "invalid": "pageable unpinned loopback debug single-threaded single-thread",
}
_WORDS = " ".join((_PLAIN, _BOTH, _TOGETHER, _MACHINES, _ASIDE, *_MARKS.values()))
# Each line has one division into words, so that no line takes long: no separator can be part of a number or an arrow.
_SEPARATORS = r"(?:[ \t|;:=#()\[\]*`~≈+&/]|[.,](?![0-9])|-(?![->])){0,16}"


def _one_of(words: str) -> str:
    return "(?:" + "|".join(re.escape(word) for word in sorted(set(words.split()), key=len, reverse=True)) + ")"


# A machine or a rail of the network with its number, or an address
NUMBERED_NODE = r"(?:(?:node|rail|server|machine)[ #]{1,2}[0-9]{1,4}|(?:[0-9]{1,3}\.){3}[0-9]{1,3})"
# A node has a number. Network devices, disks and counted things are no nodes.
NODE = (
    r"(?:(?!eth|en[opsx][0-9]|wl|sd[a-z]|nvme|md[0-9]|dm-|vd[a-z]|loop|docker|veth|br[0-9]|bond|epoch|step|iter|stage"
    r"|job|rank|worker|thread|run|test|core|socket|port|lane|disk|round|batch|block|stream|queue|ch[0-9])"
    r"[a-z][a-z_.-]{1,40}[0-9]{1,5}(?:[.-][a-z0-9.-]{1,40})?)"
)
# By kind, in the order in which they are tried
_KINDS = {
    "address": _ADDRESS,
    "numbered": NUMBERED_NODE,
    "counted": _COUNTED,
    "size": _SIZE,
    "unit": UNIT,
    "gpu": _GPU,
    "numa": _NUMA,
    "disk": _DISK,
    "nic": NIC,
    "host": _HOST,
    "collective": _COLLECTIVE,
    "bus": BUS_BANDWIDTH,
    "arrow": ARROW,
    "both": _one_of(_BOTH),
    "path": PATH,
    **{name: _one_of(words) for name, words in _MARKS.items()},
    "together": _one_of(_TOGETHER),
    "device": _DEVICE,
    "aside": _one_of(_ASIDE),
    "plain": rf"{_one_of(_WORDS)}(?!-[0-9])",  # "node-01" is a name
    "number": NUMBER,
    "name": NODE,
}
END = rf"(?:{_ADDRESS}|{_GPU}|{_NUMA}|{_DISK}|{NIC}|{_HOST})"
_WORD = "|".join(
    (_ADDRESS, _SIZE, UNIT, _GPU, _NUMA, _DISK, NIC, _HOST, _COLLECTIVE, PATH, _DEVICE, _one_of(_WORDS), NUMBER)
)
_START = r"[ \t|*`>-]{0,8}"
_GLUED = rf"{NUMBER}(?={UNIT}(?![\w]))"  # "48.1GB/s"
# only words of the vocabulary. A NIC that is disabled has a state, and behind it the rate of its port.
_KNOWN = (
    rf"(?!{_START}{NIC}[ \t|:]{{1,20}}(?:dis|en)abled(?![\w])){_START}"
    rf"(?:(?:{ARROW}|{_GLUED}|(?:{_WORD})(?![\w])){_SEPARATORS}){{2,40}}$"
)
BETWEEN, CELLS = r"[ ]?(?:<?->|→|↔)[ ]?", r"[ \t|:,=#]{1,20}"
RATED = rf"{NUMBER}[ ]?[|(*]{{0,2}}[ ]?{UNIT}"


def _has(text: str) -> str:
    """The line has this word."""
    return rf"(?=[^\n]{{0,200}}(?<![\w.])(?:{text})(?![\w]))"


# The lines with which a report begins. A row names its ends, a kind of path or a collective.
_ROW = (
    _has(rf"{RATED}|{BUS_BANDWIDTH}[ =:]{{1,3}}{NUMBER}")
    + _has(rf"{END}|nv[0-9]{{1,2}}|pix|pxb|phb|{_COLLECTIVE}")
    + _KNOWN
)
_HEADER = (
    _has(rf"pairs?|from|src|source|sender|links?|gpus?|path|nics?|hca|device|{'|'.join(_MACHINES.split())}")
    + r"(?![^\n]*(?<![hd])[0-9])"  # "h2d" and "d2h" are words
    + _KNOWN
)
_PEERS = _has(RATED) + _has(r"[0-9]{1,3}[ ]?(?:-{1,2}>|→)[ ]?[0-9]{1,3}") + _has("p2p|peers?|nvlink|gpus?") + _KNOWN
_LIST = _has(UNIT) + rf"(?=(?:[^\n]{{0,60}}?(?<![\w.]){END}[ :=]{{1,3}}{NUMBER}){{2}})" + _KNOWN
_OF_PROGRAM = rf"{_START}{PROGRAM}[ \t|:,]{{1,4}}(?={END}|{NODE})" + _has(RATED)
_CHANGE = _has("before") + _has("after") + r"(?![^\n]*[0-9])" + _KNOWN
_NODE_ROW = (
    rf"{_START}(?:{NUMBERED_NODE}|{NODE})(?:(?:{BETWEEN}|[ ]?[,-][ ]?){NODE})?{CELLS}"
    rf"(?:{NIC}{CELLS})?(?:(?:{_COUNTED}|{_COLLECTIVE}|{_SIZE}){CELLS}){{0,3}}"
    rf"(?:(?:{BUS_BANDWIDTH}{CELLS})?{RATED}|{BUS_BANDWIDTH}{CELLS}{NUMBER})[ \t|]{{0,9}}$"
)
# Numbered ends. The unit may be absent.
_NUMBERED = rf"(?:{_GPU}|[0-9]{{1,3}})"
_PAIR = (
    rf"{_START}{_NUMBERED}{BETWEEN}{_NUMBERED}{CELLS}"
    rf"(?:[0-9]{{1,4}}\.[0-9]{{1,3}}(?:[ ]?{UNIT})?|[0-9]{{1,4}}[ ]?{UNIT})[ \t|]{{0,9}}$"
)
# A title that names the way of copies between host and GPUs, above a row of one GPU.
_TO = "[ -]?(?:to|->|2)[ -]?"
_WAY = rf"(?:h2d|d2h|htod|dtoh|(?:host|cpu){_TO}(?:device|gpu)|(?:device|gpu){_TO}(?:host|cpu))"
_TITLED = rf"[ \t|*#>`-]{{0,8}}(?:pinned )?{_WAY}[^\n0-9]{{0,40}}\n[ \t|*`>-]{{0,8}}{_GPU}{CELLS}{RATED}[ \t|]{{0,9}}$"
# The lookaheads decide. What follows them is short, because the shape of a line (shapes.py) ignores lookaheads. The
# second expression is for the line between a heading and its rows.
BEGIN = (
    rf"^(?![ \t]{{0,8}}[0-9]{{1,6}}:(?![0-9a-f]{{2}}[:.][0-9a-f]))"
    rf"(?i:(?=(?:{_ROW}|{_HEADER}|{_NODE_ROW}|{_PEERS}|{_LIST}|{_OF_PROGRAM}))[^\n]{{0,200}}?(?:{UNIT}|{BUS_BANDWIDTH})"
    rf"|(?={_CHANGE})[^\n]{{0,60}}?before"
    rf"|(?={_TITLED})[^\n]{{0,40}}?{_WAY}"
    r"|(?:(?<=\)\n)|(?<=/s\n)|(?<=ps\n))[ \t]{0,8}[-=]{20,200}[ \t]{0,8}"
    rf"(?=\n[ \t]{{0,20}}(?:{NIC}|{NODE})[ \t|]{{1,20}}[0-9])"
    rf"|(?={_PAIR})[^\n]{{1,20}}?(?:->|→|↔))"
)


_EDGES = " \t|,;:=()[]*`~≈+&./-"


class Word(Struct, frozen=True):
    """A word of a line, and its kind: a key of the vocabulary."""

    kind: str
    text: str
    joint: str  # the separators before it


@cache
def _pattern() -> re.Pattern[str]:
    ends = {"arrow": "", "number": rf"(?:{_WHOLE}|(?={UNIT}{_WHOLE}))"}  # "->gpu1", "48.1GB/s"
    kinds = "|".join(f"(?P<{name}>{text}){ends.get(name, _WHOLE)}" for name, text in _KINDS.items())
    return re.compile(rf"(?P<joint>{_SEPARATORS})(?:{kinds})", re.IGNORECASE)


def words(line: str) -> tuple[Word, ...] | None:
    """The words of a line. None: it contains others."""
    found = list(_words(line.strip()))
    known = tuple(word for word in found if word)
    return known if known and len(known) == len(found) else None


def _words(line: str) -> Iterator[Word | None]:
    place = 0
    for _ in range(64):
        if not line[place:].strip(_EDGES):
            return
        found = _pattern().match(line, place)
        if not found:
            break
        kind = found.lastgroup or ""
        yield Word("name" if kind == "numbered" else kind, found[kind], found["joint"])
        place = found.end()
    yield None


def is_rated(line: str) -> bool:
    """Whether the line has two ends with an arrow between them, and a rate."""
    return bool(_rated().search(line))


@cache
def _rated() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){END}{BETWEEN}{END}[^\n]{{0,80}}?(?<![\w.]){RATED}", re.IGNORECASE)


def names_machines(texts: Collection[str]) -> bool:
    """Whether the words of a heading name a column of machines."""
    return any(text in _MACHINES.split() for text in texts)


def is_device(name: str) -> bool:
    """Whether the name is that of a device of a machine, not of a machine."""
    return bool(_devices().fullmatch(name))


@cache
def _devices() -> re.Pattern[str]:
    return re.compile(rf"(?:{END})", re.IGNORECASE)


def is_address(name: str) -> bool:
    """Whether the name is a PCI address."""
    return bool(re.fullmatch(_ADDRESS, name, re.IGNORECASE))


def way_of(line: str) -> str:
    """The way of copies that a title names: "upward" (to GPUs), "downward", or empty."""
    found = re.match(rf"[ \t|*#>`-]{{0,8}}(?:pinned )?({_WAY})[^\n0-9]{{0,40}}$", line, re.IGNORECASE)
    return "" if not found else "upward" if found[1][0].lower() in "hc" else "downward"
