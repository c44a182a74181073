"""`sensors` of lm-sensors, also with -u: temperatures of processors and their limits (prog/sensors/chips.c).

Other chips are left out: their limits are often those of no device ("high = +127.0"), and so are their alarms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.health import Temperature
from ....models.facts.records import Record
from ..core.fields import FactCollector
from ..core.part import Part

_BUSES = "(?:isa|pci|virtual|acpi|i2c|hid|scsi|mdio|usb|spi|phy|platform)"
_CHIP_NAME = rf"[a-z][\w]{{1,30}}-{_BUSES}-(?:\d{{1,3}}-)?[0-9a-f]{{1,6}}"
BEGIN = rf"^[ \t]*(?:{_CHIP_NAME}[ \t]*$|Adapter: (?:ISA|PCI|ACPI|Virtual|SMBus|HID|SCSI|MDIO)\b)"
ANY_LINE = (
    r"^[ \t]*(?:(?:Package id|Physical id|Core) \d{1,4}|Tctl|Tdie|Tccd\d{1,2}|Composite): {1,12}[+-][0-9.]{2,6} ?°?C"
)
_CHIP = re.compile(rf"[ \t]*({_CHIP_NAME})[ \t]*$")
_LABEL = r"(?:Package id|Physical id|Core) \d{1,4}|Tctl|Tdie|Tccd\d{1,2}"
_LINE = re.compile(
    rf"[ \t]*({_LABEL}): {{1,12}}\+([0-9]{{1,3}}\.[0-9]) ?°?C(?:.{{0,60}}?\bcrit = \+([0-9]{{1,3}}\.[0-9]) ?°?C)?"
)
_HEADING = re.compile(rf"[ \t]*({_LABEL}):[ \t]*$")  # with -u
_RAW = re.compile(r"[ \t]*temp\d{1,3}_(input|crit): ([0-9]{1,3}\.[0-9]{3})[ \t]*$")


def read(part: Part) -> Iterator[Record]:
    """A `Temperature` per sensor of a processor with a critical limit."""
    found, chip, label = FactCollector(), "", ""
    for number, line in part.lines():
        if named := _CHIP.match(line):
            chip, label = named[1], ""
        elif one := _LINE.match(line):
            key = f"{chip} {one[1]}".strip()
            critical = float(one[3]) if one[3] else None
            found.add(Temperature, key, part.cite(number, line), celsius=float(one[2]), critical=critical)
        elif heading := _HEADING.match(line):
            label = heading[1]
        elif label and (raw := _RAW.match(line)):
            fields = {"celsius" if raw[1] == "input" else "critical": float(raw[2])}
            found.add(Temperature, f"{chip} {label}".strip(), part.cite(number, line), **fields)
    packages = {key.rpartition(" id ")[0].rpartition(" ")[0] for _, key in found.facts if " id " in key}
    for kind, key in tuple(found.facts):
        if " Core " in key and key.partition(" Core ")[0] in packages:
            del found.facts[kind, key]  # the package is as hot as its hottest core
    yield from found.records()
