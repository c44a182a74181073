"""State of the links above a GPU, hop by hop, and of the GPU itself, while a probe moves bytes.

Idle links and clocks slow down on purpose, so only values under load are meaningful.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

from ....models.facts.records import Evidence, Observation, Record
from ...host.host import Host, Unreadable
from ...parsing.parsers import PCI_ADDRESS, pcie_speed, pcie_width
from ...pcie.links import DEVICES
from ...pcie.speed_samples import FEWEST, LinkSamples
from .performance_state import PerformanceState


class LinkSampling:
    """Reads the functions from the root to a GPU in sysfs, and the GPU in NVML, as far as available."""

    def __init__(self, host: Host, name: str, address: str) -> None:
        self._host, self._name = host, name
        parts: list[str] = []
        with suppress(Unreadable):
            parts = (host.resolve(f"{DEVICES}/{address}") or "").split("/")
        places = [depth for depth, part in enumerate(parts, 1) if PCI_ADDRESS.fullmatch(part)]
        self._folders = {parts[depth - 1]: "/".join(parts[:depth]) for depth in places}
        self._state = PerformanceState(address)

    def awake(self) -> bool:
        """Whether each link runs at the maximum speed of its ends; also True if unknown.

        From the root, every second step is a link. The steps between are inside switches.
        """
        folders = [*self._folders.values()]
        for ends in zip(folders[::2], folders[1::2], strict=False):
            max_speeds = [self._speed(end, "max_link_speed") for end in ends]
            now = self._speed(ends[1], "current_link_speed")
            if now is not None and all(speed is not None and now < speed for speed in max_speeds):
                return False
        return True

    def sample(self, load: str) -> Iterator[Record]:
        """Yield speed and width of all links, and the GPU's performance state; `load` describes the traffic."""
        samples = LinkSamples(self._host, next(reversed(self._folders.values()), ""))
        for _ in range(FEWEST):
            samples.sample()
        yield from samples.observations(load)
        for address, folder in self._folders.items():
            if width := self._width(folder):
                yield self._observation(
                    address, "link_width", "lanes", width, f"{folder}/current_link_width", f"x{width}, {load}"
                )
        if (state := self._state.now()) is not None:
            text = f"P{state}, {load}"
            yield self._observation(self._name, "performance_state", "state", state, PerformanceState.SOURCE, text)

    def _observation(self, about: str, quantity: str, unit: str, value: float, source: str, text: str) -> Observation:
        return Observation(
            about=about,
            quantity=quantity,
            unit=unit,
            value=float(value),
            at=time.time(),
            busy=True,
            evidence=Evidence(source, text),
        )

    def _speed(self, folder: str, name: str) -> float | None:
        """Return transfers per second; None if missing or invalid (links.py reports that)."""
        with suppress(Unreadable, ValueError):
            return pcie_speed(self._host.read(f"{folder}/{name}") or "Unknown")
        return None

    def _width(self, folder: str) -> int | None:
        with suppress(Unreadable, ValueError):
            return pcie_width(self._host.read(f"{folder}/current_link_width") or "0")
        return None
