"""Log lines in which a person replaced names: "Xid (PCI:<BDF>): 79", "0000:xx:00.0", "ethX: Link is Down", "CPU#N".

A line means the same with any name. Each placeholder is replaced by a name that no machine has, and the line is read.
The subject of its event is the placeholder, or "gpu" or "node" if it stands for an address or a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ....models.facts.machine import Event

_HEX = r"[0-9a-fA-Fx-zX-Z?]"
_WORDS = (
    r"(?:pci[ _-]?)?(?:b[:.]?d[:.]?f|bus[ _-]?id|addr(?:ess)?|device|dev|slot|function|pci"
    r"|domain:bus:device(?:\.function)?|bus:dev(?:ice)?\.f(?:unc(?:tion)?)?)"
)
_OPEN, _CLOSE = r"[<{\[]", r"[>}\]]"
# An address, at least one part of which is replaced; the words for one
_ADDRESS = (
    r"(?:(?:DDDD|dddd|SSSS|ssss):(?:BB|bb):(?:DD|dd|SS|ss)(?:\.[FfSs0])?(?![\w.])"
    rf"|(?:(?<![\w:.])|(?<=PCI:))(?:{_HEX}{{4,8}}:)?{_HEX}{{2}}:{_HEX}{{2}}\.{_HEX}(?!\w)"
    rf"|(?<=PCI:){_HEX}{{4,8}}:{_HEX}{{2}}:{_HEX}{{2}}(?![\w.])"
    rf"|{_OPEN}(?i:{_WORDS}){_CLOSE}(?:\.[0-7])?|\$(?:BDF|bdf)(?!\w)|(?<=PCI:)BDF(?!\w))"
)
_NET = (
    rf"(?:(?<![\w.])(?:eth|ens|eno|enp|ib)(?:[XN]|{_OPEN}[xXnN]{_CLOSE})(?!\w)"
    rf"|{_OPEN}(?i:iface|ifname|interface|netdev){_CLOSE})"
)
_NUMBERED = rf"(?:[XN]|{_OPEN}\w{{1,8}}{_CLOSE})"
_KINDS: Mapping[str, str] = {
    "pci": _ADDRESS,
    "net": _NET,
    "gpu": rf"(?<=GPU){_NUMBERED}(?!\w)|(?<=GPU[ #:]){_NUMBERED}(?!\w)",
    "cpu": rf"(?<=CPU[#: ]){_NUMBERED}(?!\w)|(?<=CPU){_NUMBERED}(?!\w)",
    "rdma": rf"(?<![\w.])mlx5_{_NUMBERED}(?!\w)",
    "nvme": rf"(?<![\w.])nvme{_NUMBERED}(?=n[0-9]|\W)",
    "word": rf"(?<==){_OPEN}(?i:pid|process|name|proc|program|comm){_CLOSE}",
}
_ANY = re.compile("|".join(f"(?P<{kind}>{form})" for kind, form in _KINDS.items()))
_REPLACED = re.compile(r"[x-zX-Z?<{\[$]|BDF|[dDsS]{4}:|[a-zU# :][XN]")
_HINT = re.compile(
    r"[<{$]|xx|XX|yy|YY|zz|ZZ|\?\?|BDF|[dDsS]{4}:|(?:GPU[ #:]?|CPU[#: ]?|eth|en[spo]|ib|mlx5_|nvme)(?:[XN]|\[)"
    r"|(?:PCI:|\[)[A-Za-z]{2}"
)
# Names that no machine has, by kind
_NAMES: Mapping[str, str] = {
    "pci": "ffff:ff:1f.7",
    "net": "eth0x",
    "gpu": "987",
    "cpu": "98765",
    "rdma": "mlx5_987",
    "nvme": "nvme9987",
    "word": "1",
}
_GPU_LINE = re.compile(r"NVRM|nvidia|Xid|amdgpu|\bGPU\b")
_REAL, _LETTERS = re.compile(r"[0-9a-fA-F:.]+"), ("DDDD:", "dddd:")
_LONGEST, _MOST = 500, 500  # characters of a line; lines


def can_have(text: str) -> bool:
    """Whether a text can have placeholders. One search is faster than one for each line of a long log."""
    return bool(_HINT.search(text))


def lines_to_fill(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, str]]:
    """The lines with a placeholder: their number, the line, and the line with names."""
    count = 0
    for number, line in lines:
        if len(line) <= _LONGEST and (filled := fill(line)) != line:
            yield number, line, filled
            count += 1
            if count == _MOST:
                return


def fill(line: str) -> str:
    """The line with names in place of its placeholders."""
    return _ANY.sub(_name, line) if _REPLACED.search(line) else line


def _name(found: re.Match[str]) -> str:
    kind, text = found.lastgroup or "", found[0]
    if kind != "pci":
        return _NAMES[kind]
    if _REAL.fullmatch(text) and not text.startswith(_LETTERS):
        return text
    return _NAMES["pci"].partition(".")[0] if found.string[: found.start()].endswith("PCI:") else _NAMES["pci"]


def unfilled(event: Event, line: str) -> Event:
    """The event of a filled line, with the subject that the line has in truth."""
    own = {found.lastgroup or "": found[0] for found in _ANY.finditer(line)}
    gpu = "gpu" if _GPU_LINE.search(line) else "node"
    names = {
        _NAMES["pci"]: gpu,
        f"{_NAMES['pci'].partition('.')[0]}.0": gpu,  # an Xid has no function
        f"gpu{_NAMES['gpu']}": "gpu",
        f"cpu{_NAMES['cpu']}": "node",
    }

    def back(name: str | None) -> str | None:
        for kind in ("net", "rdma", "nvme"):
            if name and kind in own:
                name = name.replace(_NAMES[kind], own[kind])
        return names.get(name, name) if name else name

    port = None if event.port in names else event.port
    return replace(event, subject=back(event.subject), name=back(event.name), port=port)
