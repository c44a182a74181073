"""The fields of facts that a statement about a device gives: of a GPU, a NIC's port, a network device, a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ....models.facts.gpu import Gpu
from ....models.facts.machine import Net, Pci, Port, Rdma
from ....models.facts.records import Evidence
from ..core.fields import FactCollector
from ..host.nccl_values import pci_address
from .statement import Statement
from .words import Word

_MOST_RANGE = 16  # GPUs in "GPU 0-7"
# PCI classes: 3D controller, InfiniBand controller, NVMe controller
GPU_CLASS, NIC_CLASS, _NVME_CLASS = 0x030200, 0x020700, 0x010802


def keys_of(word: Word) -> Iterator[str]:
    """The names of the devices as facts have them."""
    if word.kind == "gpu":
        first, *last = (int(digits) for digits in re.findall(r"[0-9]{1,3}", word.text))
        for number in range(first, min(max(last, default=first), first + _MOST_RANGE) + 1):
            yield f"gpu{number}"
    elif word.kind == "nic":
        device, _, port = re.sub(r",? port |:", "/", word.text).partition("/")
        yield f"{device}/{port or 1}"
    elif word.kind == "pci":
        yield pci_address(word.text if word.text.count(":") > 1 else f"0000:{word.text}")
    else:
        yield word.text


def _gpu(said: Statement) -> dict[str, Any]:
    """Fields of a Gpu."""
    return {
        "pcie_width": _lanes(said, "now"),
        "pcie_max_width": _lanes(said, "most"),
        "pcie_wanted_width": _lanes(said, "wanted"),
        "pcie_speed": said.get("speed"),
        "pcie_max_speed": said.get("speed", "most"),
        "pcie_wanted_speed": said.get("speed", "wanted"),
        **said.gpu,
    }


def function_fields(said: Statement) -> dict[str, Any]:
    """Fields of a Pci."""
    below = tuple(name for name, of in (("speed", "speed"), ("width", "lanes")) if said.get(of, "wanted"))
    return {
        "width": _lanes(said, "now"),
        "max_width": _lanes(said, "most") or _lanes(said, "wanted"),
        "speed": said.get("speed"),
        "max_speed": said.get("speed", "most") or said.get("speed", "wanted"),
        "downgraded": below or None,
        "lost": True if "failure" in said.gpu else None,
    }


def _port(said: Statement) -> dict[str, Any]:
    """Fields of a Port."""
    state = said.state or ("ACTIVE" if said.physical == "LinkUp" else "DOWN" if said.physical else None)
    wanted = said.get("rate", "wanted") or said.get("rate", "most")
    return {"state": state, "physical_state": said.physical, "rate": said.get("rate"), "wanted_rate": wanted}


def _net(said: Statement) -> dict[str, Any]:
    """Fields of a Net."""
    carrier = {"ACTIVE": True, "DOWN": False}.get(said.state or "")
    if carrier is None and said.physical in ("LinkUp", "Down"):
        carrier = said.physical == "LinkUp"
    most = said.get("rate", "most") or said.get("rate", "wanted")
    return {"carrier": carrier, "speed": said.get("rate"), "max_speed": most}


def _lanes(said: Statement, mark: str) -> int | None:
    lanes = said.get("lanes", mark)
    return None if lanes is None else int(lanes)


def add_fact(found: FactCollector, kind: str, key: str, cite: Evidence, values: Mapping[str, Any]) -> None:
    """Add the fact of one device."""
    if kind == "nic":
        device = key.partition("/")[0]
        found.add(Rdma, device, cite)
        found.add(Port, key, cite, device=device, **values)
    elif kind == "net":
        found.add(Net, key, cite, link_type="ethernet", **values)
    elif kind == "nvme":
        found.add(Pci, key.partition("n1")[0], cite, pci_class=_NVME_CLASS, **values)
    else:
        found.add(Gpu if kind == "gpu" else Pci, key, cite, **values)


def marked_fields(values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a value that the text marks as a fault: "x8 >!<" is less than the function can do.

    Of "Gen4 x8 >!<" no word says which of both is meant.
    """
    below = tuple(name for name in ("speed", "width") if values.get(name) is not None)
    return {**values, "downgraded": below} if "downgraded" in values and len(below) == 1 else dict(values)


def add_nic_link(
    found: FactCollector, port: str, address: str | None, said: Statement, cite: Evidence, marked: bool = False
) -> bool:
    """Add the PCIe link of the NIC with this port, and what the statement says of the port.

    Without an address the name of the NIC is the key of its function. `marked`: the text marks the value as a fault.
    False: the statement says nothing of the link.
    """
    values = {**(marked_fields(function_fields(said)) if marked else function_fields(said)), "lost": None}
    if all(values[name] is None for name in ("width", "speed", "max_width", "max_speed")):
        return False
    device = port.partition("/")[0]
    found.add(Pci, address or device, cite, pci_class=NIC_CLASS, **values)
    found.add(Rdma, device, cite, address=address)
    if any(value is not None for value in _port(said).values()):
        add_fact(found, "nic", port, cite, _port(said))
    return True


FIELDS: Mapping[str, Callable[[Statement], dict[str, Any]]] = {
    "gpu": _gpu,
    "nic": _port,
    "net": _net,
    "nvme": function_fields,
    "pci": function_fields,
}
