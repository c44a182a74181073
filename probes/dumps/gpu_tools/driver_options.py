"""The option of NVIDIA's driver that switches NVLink off, at any place of a text.

/proc/driver/nvidia/params has the options in force, /etc/modprobe.d and the command line of the kernel those of the
next load. NVIDIA/open-gpu-kernel-modules, kernel-open/nvidia/nv-reg.h (NVreg_NvLinkDisable).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.machine import Setting
from ....models.facts.records import Record
from ..core.part import Part
from ..host.iommu import ADVICE, IN_FORCE

_NAME = "nvlink_disable"
_PARAMS = re.compile(r"^(?:[ \t>|]*|/proc/driver/nvidia/params:)NvLinkDisable:[ \t]*(?P<value>[0-9]{1,10})[ \t|]*$")
_NUMBER = r"NVreg_NvLinkDisable=(?:0x0{0,7})?(?P<value>[0-9]{1,10})(?![\w.])"
_OPTIONS = re.compile(rf"^(?:[ \t>]*|/\S{{1,200}}:)options[ \t]+nvidia[ \t]+(?:[^\n#]{{0,400}}[ \t])?{_NUMBER}")
_PARAMETER = re.compile(rf"(?<![\w.-])nvidia\.{_NUMBER}")


def read_driver_options(part: Part) -> Iterator[Record]:
    """One setting. What is in force counts more than a file for the next load."""
    found: dict[bool, Setting] = {}
    for number, line in part.lines_with(("NvLinkDisable",)):
        if len(line) > 4000:
            continue
        parameter = _PARAMETER.search(line) if IN_FORCE.search(line) and not ADVICE.search(line) else None
        params = _PARAMS.match(line)
        if one := params or _OPTIONS.match(line) or parameter:
            value = str(min(int(one["value"]), 1))
            found[bool(params)] = Setting(key=_NAME, value=value, cites={"value": part.cite(number, line)})
    if found:
        yield found[max(found)]
