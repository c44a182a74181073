"""States and links in samples of metrics: node_infiniband_state_id{device="mlx5_2",port="1"} 4.

A label names the device, and the end of the metric's name says what the value is; the prefix of the exporter does not
matter. Sources: prometheus/node_exporter (collector/infiniband_linux.go, netclass_linux.go, pcidevice_linux.go),
utkuozdemir/nvidia_gpu_exporter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from ....models.facts.units import as_gigabits, as_transfers
from .item import MOST_CELLS, Cell, Item, Listed, is_device
from .sample_lines import Sample, sample_lines

_STATES = {"1": "DOWN", "2": "INIT", "3": "ARMED", "4": "ACTIVE"}  # kernel, ib_verbs.h: ib_port_state
_PHYSICAL = {"2": "Polling", "3": "Disabled", "5": "LinkUp"}  # IBTA specification 1, PortPhysicalState


def _rate(value: str) -> str:
    return as_gigabits(float(value))


def _lanes(value: str) -> str:
    return f"x{float(value):g}"


def _generation(value: str) -> str:
    return f"Gen{float(value):g}"


def _transfers(value: str) -> str:
    return as_transfers(float(value))


# The end of a metric's name, the name of its value in words, and the value in words
_MEANINGS: Sequence[tuple[re.Pattern[str], str, Callable[[str], str | None]]] = tuple(
    (re.compile(rf"(?:^|_)(?:{end})"), name, words)
    for end, name, words in (
        ("physical_state_id|phys_state(?:_id)?", "physical state", _PHYSICAL.get),
        ("(?:infiniband|ib|rdma|hca|port|logical|link)_?(?:port_)?state(?:_id)?", "state", _STATES.get),
        ("carrier|link_up|network_up", "carrier", {"0": "no", "1": "yes"}.get),
        ("rate_bytes_per_second|network_speed_bytes", "rate", _rate),
        ("max_link_width|link_width_max", "pcie max link width", _lanes),
        ("(?:current_)?link_width(?:_current)?", "pcie link width", _lanes),
        ("link_gen(?:eration)?_max", "pcie max link speed", _generation),
        ("link_gen(?:eration)?(?:_current)?", "pcie link speed", _generation),
        ("max_link_transfers_per_second", "pcie max link speed", _transfers),
        ("current_link_transfers_per_second", "pcie link speed", _transfers),
    )
)


def samples(lines: Sequence[str]) -> Iterator[Listed]:
    """The devices of all samples with a value in known words, as one list."""
    devices: dict[str, dict[tuple[str, str], Cell]] = {}
    numbers: list[int] = []
    for sample in sample_lines(lines):
        cell, device = _cell(sample), sample.device
        if cell and device and (device.startswith("gpu ") or is_device(device)):
            name = f"{device} port {sample.port}" if sample.port else device
            devices.setdefault(name, {}).setdefault((cell.name, cell.value), cell)  # each scrape has every sample
            numbers.append(sample.number)
    items = tuple(Item(name, tuple(islice(cells.values(), MOST_CELLS))) for name, cells in devices.items())
    if items:
        yield Listed(numbers[0], numbers[-1] + 1, items)


def _cell(sample: Sample) -> Cell | None:
    for end, name, words in _MEANINGS:
        place = end.search(sample.metric)
        if place and place.end() == len(sample.metric) and (value := words(sample.value)):
            return Cell(name, value, sample.number, sample.line)
    return None
