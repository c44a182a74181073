"""The module of a port as mlxlink -m prints it: values with the range of the module's thresholds, and flags by lane.

mstflint, mlxlink/modules/mlxlink_cables_commander.cpp: "Voltage [mV] : 3189.4 [3100..3500]", "Rx LOS [per lane] :
0,0,0,0". A value is one number or one for each lane.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.network_paths import Optics
from ....models.facts.records import Evidence
from ..core.part import Part

_NUMBER = r"-?[0-9]{1,6}(?:\.[0-9]{1,4})?"
_NAMES = r"(?:Temperature|Voltage|Bias Current|[RT]x Power Current) \[(?:C|mV|mA|dBm)\]"
_FLAGS = r"(?:(?:Module FW|DataPath FW|Tx(?: Adaptive EQ)?) Fault|[RT]x (?:CDR )?LO[SL])(?: \[per lane\])?"
LINE = rf"[ \t]*(?:{_NAMES}[ ]{{1,40}}: {_NUMBER}|{_FLAGS}[ ]{{1,40}}: [0-9]{{1,3}}(?:,|[ \t]*$))"
_RANGE = re.compile(
    rf"[ \t]*(?P<name>{_NAMES})[ ]{{1,40}}: (?P<values>{_NUMBER}(?:,{_NUMBER}){{0,15}}) "
    rf"\[(?P<low>{_NUMBER})\.\.(?P<high>{_NUMBER})\][ \t]*"
)
_FLAG = re.compile(rf"[ \t]*(?P<name>{_FLAGS})[ ]{{1,40}}: (?P<values>[0-9]{{1,3}}(?:,[0-9]{{1,3}}){{0,15}})[ \t]*")


def module_values(part: Part) -> Iterator[Optics]:
    """An `Optics` with the flags that are set as alarms, and the values outside of their range as warnings."""
    alarms, warnings = list[tuple[str, Evidence]](), list[tuple[str, Evidence]]()
    first: dict[str, Evidence] = {}
    for number, line in part.lines():
        where = part.cite(number, line)
        if row := _RANGE.fullmatch(line):
            first.setdefault("warnings", where)
            low, high = float(row["low"]), float(row["high"])
            outside = [one for one in row["values"].split(",") if not low <= float(one) <= high]
            if outside:
                warnings.append((f"{row['name']} {', '.join(outside)}, range {low:g} to {high:g}", where))
        elif flag := _FLAG.fullmatch(line):
            first.setdefault("alarms", where)
            lanes = [str(lane) for lane, state in enumerate(flag["values"].split(","), 1) if int(state)]
            if lanes:
                name = flag["name"].partition(" [")[0]
                alarms.append((f"{name} on lane{'s' * (len(lanes) > 1)} {', '.join(lanes)}", where))
    if first:
        cites = first | {name: some[0][1] for name, some in (("alarms", alarms), ("warnings", warnings)) if some}
        texts = {name: tuple(text for text, _ in some) for name, some in (("alarms", alarms), ("warnings", warnings))}
        known = {name: texts[name] if name in first else None for name in texts}
        yield Optics(key="module", alarms=known["alarms"], warnings=known["warnings"], stated=bool(alarms), cites=cites)
