"""/proc/net/bonding: how often the link of each member of a bond failed (drivers/net/bonding/bond_procfs.c).

A member that is down is a message of the catalog (MII Status: down).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.machine import Net
from ....models.facts.records import Observation, Record
from ..core.fields import FactCollector
from ..core.part import Part

BEGIN = r"^[ \t]*(?:Ethernet Channel Bonding Driver: |Slave Interface: [a-z])"
_MEMBER = re.compile(r"[ \t]*Slave Interface: (?P<name>[a-zA-Z][\w.-]{0,30})[ \t]*$")
_FAILURES = re.compile(r"[ \t]*Link Failure Count: (?P<count>[0-9]{1,10})(?![0-9])")


def read(part: Part) -> Iterator[Record]:
    """A `Net` per member, and the number of its failures since the bond began. They never fall: the highest counts."""
    found, counts, member = FactCollector(), dict[str, Observation](), ""
    for number, line in part.lines():
        if named := _MEMBER.match(line):
            member = named["name"]
            found.add(Net, member, part.cite(number, line))
        elif member and (failures := _FAILURES.match(line)):
            cite, value = part.cite(number, line), float(failures["count"])
            one = Observation(
                about=member, quantity="link_downed", unit="count", value=value, at=part.at, evidence=cite
            )
            known = counts.get(member)
            if known is None or known.value < value:
                counts[member] = one
    yield from found.records()
    yield from counts.values()
