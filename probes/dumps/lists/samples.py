"""Samples of metrics in Prometheus' text format: node_infiniband_state_id{device="mlx5_2",port="1"} 4.

A label names the device, and the end of the metric's name says what the value is; the prefix of the exporter does not
matter. Sources: prometheus/node_exporter (collector/infiniband_linux.go, netclass_linux.go, pcidevice_linux.go),
utkuozdemir/nvidia_gpu_exporter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from ....models.facts.units import as_gigabits, as_transfers
from .item import MOST_CELLS, Cell, Item, Listed, is_device

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?(?:e[+-]?[0-9]{2})?"
_SAMPLE = re.compile(
    r"[ \t>]{0,8}(?P<metric>[a-z][a-zA-Z0-9_:]{3,100})\{(?P<labels>[^}\n]{3,600})\}"
    rf"[ \t]+(?P<value>{_NUMBER})(?:[ \t]+[0-9]{{10,13}})?[ \t]*"
)
_LABEL = re.compile(r'(\w{1,40})="([^"\n]{0,200})"')
_NAMES = (
    "device",
    "hca",
    "interface",
    "ifname",
    "gpu",
    "index",
    "minor_number",
    "pci_bus_id",
    "bdf",
    "address",
    "name",
)
_PCI = ("segment", "bus", "device", "function")  # node_pcidevice_*
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
    for number, line in enumerate(lines):
        found = _SAMPLE.fullmatch(line) if "{" in line else None
        cell = _cell(found, number, line) if found else None
        device = _device(dict(_LABEL.findall(found["labels"]))) if found and cell else None
        if cell and device:
            devices.setdefault(device, {}).setdefault((cell.name, cell.value), cell)  # each scrape has every sample
            numbers.append(number)
    items = tuple(Item(name, tuple(islice(cells.values(), MOST_CELLS))) for name, cells in devices.items())
    if items:
        yield Listed(numbers[0], numbers[-1] + 1, items)


def _cell(found: re.Match[str], number: int, line: str) -> Cell | None:
    for end, name, words in _MEANINGS:
        place = end.search(found["metric"])
        if place and place.end() == len(found["metric"]) and (value := words(found["value"])):
            return Cell(name, value, number, line)
    return None


def _device(labels: Mapping[str, str]) -> str | None:
    """The device that the labels name: "mlx5_2 port 1", "gpu 3"."""
    if all(name in labels for name in _PCI):
        return "{segment}:{bus}:{device}.{function}".format_map(labels)
    name = next((name for name in _NAMES if name in labels), "")
    value = labels.get(name, "")
    if value.isdecimal() and name in ("gpu", "index", "minor_number"):
        return f"gpu {value}"
    if is_device(value):
        return f"{value} port {labels['port']}" if labels.get("port", "").isdecimal() else value
    return None
