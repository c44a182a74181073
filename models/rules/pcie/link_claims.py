"""Evidence for PCIe links: the width, and the highest speed of both ends.

Both ends of a link are no evidence: a slot that firmware has split into two of x8 shows x8 at both ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ...catalog.gpus import Product, products_of
from ...facts.bmc import BmcLink
from ...facts.machine import Pci
from ...facts.pci_classes import kind_of
from ...facts.pcie_rates import speed_of
from ...facts.units import as_gigabytes, as_transfers
from ...inventory.cohorts import Usual, carried, ports_above, usual_values
from ...inventory.inventory import Item
from ...inventory.present import able_speeds, earlier_item
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ..core.claims import Claim, Support, baseline
from ..core.gpus import gpu_at, gpu_product
from ..core.machine_expectations import profile

WIDTH, MAX_SPEED = "link width", "link speed of both ends"
_ENDPOINTS = frozenset({"gpu", "nic", "nvme", "nvswitch", "storage"})
# Not "10-Gigabit", "10 Gigabit": names of pci.ids and of lspci
_GIGABIT = re.compile(
    r"(?<!\b10[- ])(?<!\b25[- ])(?<!\b40[- ])(?<!\b50[- ])(?<!\b[12]00[- ])(?<!\d)Gigabit (?:Ethernet|Network)",
    re.IGNORECASE,
)
_GRADE = re.compile(r"pcie(\d)x(\d+)")


def link_claims(snapshot: Snapshot) -> Iterator[Claim]:
    """The claims of all PCIe links of devices that carry job traffic, and of the switches above them."""
    yield from _claims(snapshot).values()


@once_per_snapshot
def _claims(snapshot: Snapshot) -> Mapping[tuple[str, str], Claim]:
    functions = carriers(snapshot).values()
    made = (make(snapshot, function) for function in functions for make in (_width_claim, _speed_claim))
    return {(claim.subject, claim.quantity): claim for claim in made if claim}


@once_per_snapshot
def carriers(snapshot: Snapshot) -> Mapping[str, Pci]:
    """GPUs, NICs, disks and NVSwitches that answer, and switch ports above them: those at the lower end of a link."""
    functions, ports = snapshot.of(Pci), carried(snapshot)
    below = {address: functions[address] for address in snapshot.topology.link_below}
    return {
        address: one
        for address, one in below.items()
        if ports.get(address) or (kind_of(one) in _ENDPOINTS and not one.lost)
    }


def is_gigabit(function: Pci) -> bool:
    """Whether the function is a network adapter of 1 Gb/s: one lane of the first generation carries twice its rate."""
    return bool(_GIGABIT.search(function.name or ""))


def width_claim(snapshot: Snapshot, function: Pci) -> Claim | None:
    """The claim of the number of lanes of the link above the function. None: not known, or hidden by a hypervisor."""
    return _claims(snapshot).get((function.key, WIDTH))


def speed_claim(snapshot: Snapshot, function: Pci) -> Claim | None:
    """The claim of the highest speed that both ends of the link above the function support."""
    return _claims(snapshot).get((function.key, MAX_SPEED))


def _width_claim(snapshot: Snapshot, function: Pci) -> Claim | None:
    link = snapshot.topology.link_below[function.key]
    width = _lanes(snapshot, function)
    if width is None or link.rated is None:
        return None
    able = max(filter(None, (function.max_width, _product_width(snapshot, function))), default=None)
    doubt = None
    if able and able > width:
        doubt = f"at x{width}, the device supports x{able}: nothing says how its slot is wired"
    doubt = doubt or _below_uplink(snapshot, function)
    usual = _usual_widths(snapshot).get(function.key)
    supports = _supports(snapshot, function, lanes_of_grade, _board_width, usual, "lanes")
    history = of_earlier(snapshot, function, width, lambda item: item.width, lambda value: f"x{value:.0f}")
    return Claim(
        group="links",
        subject=function.key,
        quantity=WIDTH,
        observed=width,
        supports=(*supports, *history, *_of_bmc(snapshot, function)),
        doubt=doubt,
    )


def _lanes(snapshot: Snapshot, function: Pci) -> int | None:
    return function.width if function.width is not None else _most_lanes(snapshot, function)


def _most_lanes(snapshot: Snapshot, function: Pci) -> int | None:
    """The lanes that the port above supports, for texts that show no width in use: topology files of NCCL."""
    port = snapshot.of(Pci).get(snapshot.topology.link_below[function.key].a)
    return port.max_width if port and snapshot.origin == "dumps" else None


def _of_bmc(snapshot: Snapshot, function: Pci) -> Iterator[Support]:
    """The management controller sees the width that the kernel sees, and a slot and a device that have no more lanes.

    A controller's table of slots can be wrong, so it never contradicts the kernel: a difference is a conflict.
    """
    link = snapshot.of(BmcLink).get(function.key)
    if link is None or link.slot_width is None or link.max_width is None:
        return
    if link.width == function.width == min(link.slot_width, link.max_width):
        source = f"Redfish: {link.width} lanes in use, slot of {link.slot_width}, device of {link.max_width}"
        yield Support("product", link.width, source)


def _speed_claim(snapshot: Snapshot, function: Pci) -> Claim | None:
    """The present speed may be lower at rest. Some switches report a lower maximum than they run at (Oracle's H100)."""
    link = snapshot.topology.link_below[function.key]
    both = able_speeds(snapshot)[function.key]
    if both is None or link.rated is None:
        return None
    own = function.max_speed or 0.0
    product = _product(snapshot, function)
    able = max(own, speed_of(product.pcie) if product else 0.0)
    doubt = None
    if able > both:
        doubt = f"at most {as_transfers(both)}, the device supports {as_transfers(able)}: nothing says what its slot is"
    doubt = doubt or _below_uplink(snapshot, function)
    usual = _usual_speeds(snapshot).get(function.key)
    supports = _supports(snapshot, function, _speed_of_grade, _board_speed, usual, "speed")
    history = of_earlier(snapshot, function, both, lambda item: item.speed, as_transfers)
    return Claim(
        group="links",
        subject=function.key,
        quantity=MAX_SPEED,
        observed=both,
        supports=(*supports, *history, *_speed_of_bmc(snapshot, function, both)),
        doubt=doubt,
    )


def _speed_of_bmc(snapshot: Snapshot, function: Pci, both: float) -> Iterator[Support]:
    """As `_of_bmc`: the slot and the device support exactly the highest speed that the kernel sees at both ends."""
    link = snapshot.of(BmcLink).get(function.key)
    if link is None or link.slot_speed is None or link.max_speed is None:
        return
    if both == min(link.slot_speed, link.max_speed) and (link.speed is None or link.speed <= both):
        able = f"slot of {as_transfers(link.slot_speed)}, device of {as_transfers(link.max_speed)}"
        yield Support("product", both, f"Redfish: {able}")


def _below_uplink(snapshot: Snapshot, port: Pci) -> str | None:
    """Why the equal uplinks of switches are no evidence: they carry less than a link below them. None: they do not."""
    own, below = snapshot.topology.link_below[port.key].rated, _widest(snapshot).get(port.key, 0.0)
    if own is None or below <= own or ((known := profile(snapshot)) and known.machine.gpu_path):
        return None
    return f"it carries {as_gigabytes(own)}, a link below it {as_gigabytes(below)}: nothing says how it is built"


@once_per_snapshot
def _widest(snapshot: Snapshot) -> Mapping[str, float]:
    """The highest rated link below each port."""
    found: dict[str, float] = {}
    for address, link in snapshot.topology.link_below.items():
        for port in ports_above(snapshot)[address]:
            found[port] = max(found.get(port, 0.0), link.rated or 0.0)
    return found


def _supports(
    snapshot: Snapshot,
    function: Pci,
    of_grade: Callable[[str], float],
    of_board: Callable[[Product], float],
    usual: Usual | None,
    word: str,
) -> Iterator[Support]:
    known = profile(snapshot)
    grade = known.machine.gpu_link if known and kind_of(function) == "gpu" else None
    grade = known.machine.nic_link if known and kind_of(function) == "nic" and _is_fabric(snapshot, function) else grade
    if known and grade:
        yield Support("site" if known.basis == "site" else "profile", of_grade(grade), known.machine.name)
    product = _product(snapshot, function)
    if product and product.fabric:
        yield Support("product", of_board(product), f"{product.name} ({product.source})")
    if usual:
        source = f"{usual.agree} of {usual.devices} equal devices in equal positions have these {word}"
        yield Support("cohort", usual.value, source)


@once_per_snapshot
def _usual_widths(snapshot: Snapshot) -> Mapping[str, Usual]:
    return usual_values(snapshot, lambda one: _lanes(snapshot, one))


@once_per_snapshot
def _usual_speeds(snapshot: Snapshot) -> Mapping[str, Usual]:
    return usual_values(snapshot, lambda one: able_speeds(snapshot)[one.key])


def of_earlier(
    snapshot: Snapshot,
    function: Pci,
    observed: float,
    value: Callable[[Item], float | None],
    word: Callable[[float], str],
) -> Iterator[Support]:
    """What the link in this place had before."""
    item = earlier_item(snapshot, kind_of(function), function.key)
    before = value(item) if item else None
    if item is not None and before is not None:
        yield from baseline(item, before, observed, word(before))


def _is_fabric(snapshot: Snapshot, function: Pci) -> bool:
    """Whether the NIC is an RDMA device: management NICs have other links."""
    device = snapshot.topology.find(function.key)
    return bool(device and any(alias.startswith(("mlx5_", "efa_", "rdmap", "ib")) for alias in device.aliases))


def _product(snapshot: Snapshot, function: Pci) -> Product | None:
    """The product of a GPU whose link carries its traffic. The GPU of a Grace processor uses NVLink-C2C instead."""
    return _products(snapshot).get(function.key)


@once_per_snapshot
def _products(snapshot: Snapshot) -> Mapping[str, Product | None]:
    return {function.key: _product_of(snapshot, function) for function in snapshot.functions("gpu")}


def _product_of(snapshot: Snapshot, function: Pci) -> Product | None:
    gpu = gpu_at(snapshot).get(function.key)
    alike = products_of(function)
    product = gpu_product(snapshot, gpu) if gpu else alike[0] if len(alike) == 1 else None
    return None if product and product.c2c_rate else product


def board_product(snapshot: Snapshot, function: Pci) -> bool:
    """Whether the function is a GPU of a baseboard: all its modules have equal links."""
    product = _product(snapshot, function)
    return product is not None and product.fabric


def _product_width(snapshot: Snapshot, function: Pci) -> int | None:
    product = _product(snapshot, function)
    return product.width if product else None


def _board_width(product: Product) -> float:
    return product.width


def _board_speed(product: Product) -> float:
    return speed_of(product.pcie)


def lanes_of_grade(grade: str) -> float:
    """The lanes of a grade of the machine type: "pcie5x16"."""
    found = _GRADE.fullmatch(grade)
    return int(found[2]) if found else 0


def _speed_of_grade(grade: str) -> float:
    found = _GRADE.fullmatch(grade)
    return speed_of(int(found[1])) if found else 0.0
