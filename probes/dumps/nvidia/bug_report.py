"""nvidia-bug-report.log of nvidia-bug-report.sh, and the files of /proc/driver/nvidia.

Each section begins with a line of underscores and a headline: a file ("*** /proc/cmdline"), a command, or a remark.
Other readers take the sections that they know. This reader accepts the others (displays, sound, compilers, a base64
dump of the driver) and gives no records for them, because they contain no facts about links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ....models.facts.gpu import Driver, Gpu
from ....models.facts.records import Evidence, Record
from ...parsing.nvml_enums import pci_address
from ..core.part import Part

_TOOLS = r"(?:lspci|lsusb|dmidecode|modinfo|lsmod|nvidia-[a-z-]{2,30}|ib\w{2,20}|nv-fabricmanager|numactl|lshw|uname)"
_VERSIONED = r"NVRM version: NVIDIA UNIX "
_ABOUT = r"Model:[ \t]{1,24}\S[^\n]{0,100}\nIRQ:[ \t]"
BEGIN = (
    r"^(?:(?:Start|End) of NVIDIA bug report log file|\*\*\*[ ](?:/[a-z]|ls: )|Skipping [^\n]{1,100}(?:\)|argument\.)$"
    r"|Scanning kernel log files for NVIDIA|(?:dmesg|xset -q|nvidia-settings -q all|xrandr --verbose):[ \t]*$"
    r"|Running window manager properties:|Vulkan loader not found|Found Vulkan loader|ldd /|base64 \""
    rf"|Using built-in specs|If the bug report script hangs|NVIDIA Kernel module instance "
    rf"|(?:/usr)?/s?bin/{_TOOLS}(?:[ ][^\n]{{0,200}})?$|[ ]{{0,2}}journalctl -b -[0-9]|No suitable log found"
    rf"|{_VERSIONED}|{_ABOUT})"
)
_VERSION = re.compile(rf"^{_VERSIONED}[^\n]{{0,100}}?[ \t]([0-9]{{3}}(?:\.[0-9]{{1,4}}){{1,2}})\b", re.MULTILINE)
_GPU = re.compile(rf"^{_ABOUT}[^\n]*(?:\n(?!Model:)[A-Z][\w ]{{2,30}}:[^\n]*){{0,20}}", re.MULTILINE)
_ENTRY = re.compile(r"^(Model|GPU UUID|Video BIOS|Bus Location):[ \t]{1,24}(\S[^\n]*)", re.MULTILINE)
_FIELDS = {"Model": "name", "GPU UUID": "uuid", "Video BIOS": "vbios"}


def read(part: Part) -> Iterator[Record]:
    """The `Driver`, and a `Gpu` per information file with its PCI address as key. A lost GPU has "??" in its fields."""
    for line, found in part.matches(_VERSION):
        yield Driver(key="nvidia", version=found[1], cites={"version": part.cite(line, found[0])})
    for line, found in part.matches(_GPU):
        fields: dict[str, Any] = {}
        cites: dict[str, Evidence] = {}
        address = None
        for entry in _ENTRY.finditer(found[0]):
            cite = part.cite(line + found[0].count("\n", 0, entry.start()), entry[0])
            name, text = _FIELDS.get(entry[1], "address"), entry[2].rstrip()
            if name == "address":
                address = _address(text)
                text = address or "?"
            if "?" not in text and text != "Unknown" and text.isprintable():
                fields[name], cites[name] = text, cite
        if address:
            yield Gpu(key=address, cites=cites, **fields)


def _address(text: str) -> str | None:
    try:
        return pci_address(text)
    except ValueError:
        return None
