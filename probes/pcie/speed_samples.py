"""The fastest trained speed of the links above a device while it moves data.

Idle links slow down, and a sample may fall between two blocks. So the fastest of several samples is the speed under
load.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from ...models.facts.records import Evidence, Observation, Record
from ...models.facts.units import as_transfers
from ..host.host import Host, Unreadable
from ..parsing.parsers import PCI_ADDRESS, pcie_speed
from .power import is_asleep

FEWEST = 5  # samples that a result needs


class LinkSamples(Struct):
    """Samples of the links above a device. `folder` is the device's sysfs folder, with symbolic links resolved."""

    host: Host
    folder: str
    count: int = 0
    fastest: dict[str, float] = field(default_factory=dict)  # transfers per second, by file

    def sample(self) -> None:
        """Take one sample."""
        self.count += 1
        parts = self.folder.split("/")
        for depth, part in enumerate(parts, 1):
            if PCI_ADDRESS.fullmatch(part):
                path = "/".join((*parts[:depth], "current_link_speed"))
                if path not in self.fastest and is_asleep(self.host, path.rpartition("/")[0]):
                    continue  # once awake, it stays awake during the load
                try:
                    speed = pcie_speed(self.host.read(path) or "Unknown")
                except (Unreadable, ValueError):
                    continue  # links.py reports it
                self.fastest[path] = max(speed or 0.0, self.fastest.get(path, 0.0))

    def observations(self, text: str) -> Iterator[Record]:
        """Yield the speeds; `text` describes the load. Yields nothing for a load shorter than FEWEST samples."""
        for path, speed in self.fastest.items():
            if speed and self.count >= FEWEST:
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
