"""/proc/net/bonding: speed and failures of each member of a bond (drivers/net/bonding/bond_procfs.c).

A member that is down is a message of the catalog (MII Status: down).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from ....models.facts.ethernet import ETHERNET_SPEEDS
from ....models.facts.machine import Event, Net
from ....models.facts.records import NotChecked, Observation, Record
from ....models.facts.units import from_megabits
from ..core.fields import FactCollector
from ..core.part import Part

BEGIN = r"^[ \t]*(?:Ethernet Channel Bonding Driver: |Slave Interface: [a-z])"
_BOND = re.compile(r"[ \t]*Ethernet Channel Bonding Driver: ")
_BACKUP = re.compile(r"[ \t]*Bonding Mode: .{0,40}active-backup")
_MEMBER = re.compile(r"[ \t]*Slave Interface: (?P<name>[a-zA-Z][\w.-]{0,30})[ \t]*$")
_FAILURES = re.compile(r"[ \t]*Link Failure Count: (?P<count>[0-9]{1,10})(?![0-9])")
_SPEED = re.compile(r"[ \t]*Speed: (?P<speed>[0-9]{1,7}) ?Mb(?:ps|/s)")
_HALF = re.compile(r"[ \t]*Duplex: half\b", re.IGNORECASE)
_CHURNED = re.compile(r"[ \t]*(?:Actor|Partner) Churn State: churned\b")
_BACK = re.compile(r"[ \t]*MII Status: going back\b")


class _Member(Struct):
    """What the file says of a member."""

    number: int  # of its line in the part, from 0
    line: str
    bond: int  # the number of the bond in the text
    speed: int = 0  # Mbit/s; 0: not shown
    half: bool = False
    churned: bool = False


def read(part: Part) -> Iterator[Record]:
    """A `Net` per member, and the number of its failures since the bond began. They never fall: the highest counts."""
    found, counts, name = FactCollector(), dict[str, Observation](), ""
    members, bond, backups = dict[str, _Member](), 0, set[int]()
    for number, line in part.lines():
        if _BOND.match(line):
            bond, name = bond + 1, ""
        elif _BACKUP.match(line):
            backups.add(bond)
        elif named := _MEMBER.match(line):
            name = named["name"]
            found.add(Net, name, part.cite(number, line))
            members[name] = _Member(number, line, bond)
        elif not line.strip():
            name = ""  # the lines of another member, whose first one may be missing
        elif name and (failures := _FAILURES.match(line)):
            cite, value = part.cite(number, line), float(failures["count"])
            one = Observation(about=name, quantity="link_downed", unit="count", value=value, at=part.at, evidence=cite)
            known = counts.get(name)
            if known is None or known.value < value:
                counts[name] = one
        elif name and _BACK.match(line):
            yield part.gap(number, f"{name} was down and comes up", "dump", how="cat /proc/net/bonding/* again")
        elif name:
            _describe(members[name], line)
    yield from found.records()
    yield from counts.values()
    yield from _faults(part, members, backups)


def _describe(member: _Member, line: str) -> None:
    if speed := _SPEED.match(line):
        member.speed = int(speed["speed"])
    member.half = member.half or bool(_HALF.match(line))
    member.churned = member.churned or bool(_CHURNED.match(line))


def _faults(part: Part, members: Mapping[str, _Member], backups: set[int]) -> Iterator[Event | NotChecked]:
    """Events of members that are slower than others of their bond, or that the switch does not bundle.

    The backup of an active member is often a slower port on purpose.
    """
    for name, one in members.items():
        most = max(other.speed for other in members.values() if other.bond == one.bond)
        speeds = {from_megabits(one.speed), from_megabits(most)}
        if one.half:
            yield part.event(one.number, one.line, "bond-member-half", name, f"bond member {name}: half duplex")
        elif 0 < one.speed < most and one.bond not in backups and not speeds <= ETHERNET_SPEEDS:
            why = f"bond member {name}: of {one.speed} and {most} Mbps, one is no speed of Ethernet"
            yield part.gap(one.number, why, "dump", how="cat /proc/net/bonding/* again")
        elif 0 < one.speed < most and one.bond not in backups:
            text = f"bond member {name}: {one.speed} Mbps beside members with {most} Mbps"
            yield part.event(one.number, one.line, "bond-member-slow", name, text)
        if one.churned:
            yield part.event(
                one.number, one.line, "bond-member-churned", name, f"bond member {name}: LACP state churned"
            )
