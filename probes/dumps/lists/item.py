"""An item of a list: a device and its values by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from ..notes.words import DEVICES

# Names of columns and members that say which device it is
NAMING = re.compile(
    r"#|gpus?|gpu[ _-]?(?:id|index|idx|num(?:ber)?|no)|device(?:[ _-]?(?:id|name))?|dev|nic|hca|ca|ib[ _-]?dev(?:ice)?"
    r"|(?:net)?interface|iface|ifname|netdev|index|idx|id|port|name|bdf|address|rdma|rail|adapter"
    r"|pci[ _-]?(?:addr(?:ess)?|bus|bus[ _-]?id|id|bdf|slot|device)?|bus[ _-]?id|minor(?:[ _-]?number)?",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"#|gpus?|gpu[ _-]?\w{1,6}|index|idx|id|device(?:[ _-]?id)?|minor.{0,8}", re.IGNORECASE)
_DEVICE = re.compile(
    rf"(?<![\w.:/-])(?:{'|'.join(f'(?P<{kind}>{text})' for kind, text in DEVICES.items())})", re.IGNORECASE
)
_NUMBER = re.compile(r"[0-9]{1,2}")
# The name of a GPU product, which says that the numbers of a list are those of GPUs
_PRODUCT = re.compile(
    r"(?<![a-z])(?:gpu|[gr]tx|geforce|tesla|quadro|titan|[2-5]0[5-9]0(?: ?ti| super)?\b|[ablhpv][0-9]{2,3}\b)", re.I
)
MOST_CELLS = 40
_OF_AMD_SMI = re.compile(r"max[ _]pcie[ _](?:width|speed)|pcie[ _]interface[ _]version", re.IGNORECASE)


class Cell(Struct, frozen=True):
    """A value with its name. `line` is its line, with the number in the part from 0."""

    name: str
    value: str
    number: int
    line: str


class Item(Struct, frozen=True):
    """A device as the text names it ("gpu 3", "mlx5_1", "0000:18:00.0"), and its values in their order."""

    device: str
    cells: tuple[Cell, ...]


class Listed(Struct, frozen=True):
    """A list in a text: its first line, the line behind its last one (both from 0), and its items."""

    first: int
    end: int
    items: tuple[Item, ...]


def item_of(cells: Sequence[Cell], gpus: bool = False) -> Item | None:
    """The item of one device. None: the cells name none.

    A name of a device comes before an address. A number is that of a GPU if the list is about GPUs (`gpus`) or if a
    name of a value or a product says so.
    """
    naming = [cell for cell in cells if NAMING.fullmatch(cell.name)]
    named = [name for cell in naming if (name := device_in(cell.value))]
    best = next((value for value in named if device_kind(value) != "pci"), None)
    numbers = [cell for cell in naming if _NUMBER.fullmatch(cell.value) and _NUMBERED.fullmatch(cell.name)]
    if numbers and not best and (gpus or _shows_gpus(cells)) and (numbers[0].name != "#" or not named):
        best = f"gpu {numbers[0].value}"
    device = best or next(iter(named), None)
    # amd-smi: a part of the record of a GPU, whose beginning is missing
    part = not best and any(_OF_AMD_SMI.fullmatch(cell.name) for cell in cells)
    return Item(device, tuple(cells)) if device and not part else None


def _shows_gpus(cells: Sequence[Cell]) -> bool:
    return any("gpu" in cell.name.lower() or _PRODUCT.match(cell.value) for cell in cells)


def is_product(text: str) -> bool:
    """Whether a text begins with the name of a GPU product."""
    return bool(_PRODUCT.match(text))


def device_in(text: str) -> str | None:
    """The only device that a text names: "0000:41:00.0" of "RTX 3090 (0000:41:00.0)"."""
    found = [one[0] for one in _DEVICE.finditer(text)]
    return found[0] if len(found) == 1 else None


def is_device(text: str) -> bool:
    """Whether a text is the name of a device and nothing else."""
    return bool(_DEVICE.fullmatch(text))


def device_kind(name: str) -> str:
    """The kind of device that has this name: "gpu", "nic", "net", "nvme" or "pci"; "": none."""
    found = _DEVICE.fullmatch(name)
    return (found.lastgroup or "") if found else ""
