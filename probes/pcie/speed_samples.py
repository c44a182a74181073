"""The speed at which the links above a device are trained while its bytes move: the fastest that is seen.

Links slow down at rest, and a look may fall between two blocks: the fastest of several looks is that under load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...models.facts.records import Evidence, Observation, Record
from ...models.facts.units import as_transfers
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS, pcie_speed

FEWEST = 5  # looks


@dataclass(slots=True)
class LinkSamples:
    """What was seen of the links above a device; `folder` is the device's in sysfs, without links."""

    host: Host
    folder: str
    looks: int = 0
    fastest: dict[str, float] = field(default_factory=dict)  # transfers per second, by file

    def look(self) -> None:
        """Once more."""
        self.looks += 1
        parts = self.folder.split("/")
        for depth, part in enumerate(parts, 1):
            if PCI_ADDRESS.fullmatch(part):
                path = "/".join((*parts[:depth], "current_link_speed"))
                try:
                    speed = pcie_speed(self.host.read(path) or "Unknown")
                except (Unreadable, ValueError):
                    continue  # the reader of PCI functions has said so
                self.fastest[path] = max(speed or 0.0, self.fastest.get(path, 0.0))

    def said(self, text: str) -> Iterator[Record]:
        """The speeds, with what moved in words; nothing where that was too short to be seen."""
        for path, speed in self.fastest.items():
            if speed and self.looks >= FEWEST:
                evidence = Evidence(path, f"{as_transfers(speed)}, {text}")
                yield Observation(
                    about=path.split("/")[-2],
                    quantity="link_speed",
                    unit="transfers_per_second",
                    value=speed,
                    at=self.host.now(),
                    busy=True,
                    evidence=evidence,
                )
