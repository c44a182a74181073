"""The PCI tree: the kind of each port, and which pairs of functions are the ends of a link.

A PCIe link connects a root port or a downstream switch port with function 0 below it. An upstream port and its
downstream ports are one chip without a link between them. The link attributes of a downstream port describe the link
*below* it (PCI Express Base Specification, 7.5.3.8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..facts.machine import HostBridge, Numa, Pci
from ..facts.pci_classes import card_of, kind_of
from ..facts.pcie_rates import generation, rated
from ..graph.topology import Device, Link

# Vendor and device ids that only hypervisors use for ports: QEMU (1b36), its xio3130 (104c:8232/3) and VMware (15ad).
# AWS shows LSI 53c810 as bridges (1000:0001). No real machine since PCIe 2 has had one of them.
_EMULATED = {(0x104C, 0x8231), (0x104C, 0x8232), (0x104C, 0x8233), (0x1000, 0x0001)}
_EMULATED_VENDORS = {0x1B36, 0x15AD}
_PORTS = ("root-port", "upstream-port", "downstream-port")  # by depth; deeper levels alternate between the last two


def port_kinds(functions: Mapping[str, Pci]) -> dict[str, str]:
    """root-port, upstream-port or downstream-port for each bridge, by address.

    The kind follows from the position in the tree. The PCIe capability that states it is beyond the first 64 bytes of
    configuration space, which is all that the kernel shows to unprivileged users. Below a root port is an upstream
    port, and below that are downstream ports. A function with functions below it is a bridge, even if its class is
    unknown.
    """
    above = {function.parent for function in functions.values()}
    bridges = {a for a, function in functions.items() if a in above or kind_of(function) == "bridge"}
    depths = {address: len(functions_above(address, functions)) for address in bridges}
    return {address: _PORTS[2 - depth % 2 if depth else 0] for address, depth in depths.items()}


def functions_above(address: str, functions: Mapping[str, Pci]) -> list[str]:
    """The functions above, nearest first. A cycle, which defective dumps may contain, ends the list."""
    seen = [address]
    while (parent := functions[seen[-1]].parent) in functions and parent not in seen:
        seen.append(str(parent))
    return seen[1:]


def link_of(function: Pci, port: Pci) -> tuple[float | None, float | None]:
    """Rated and trained bytes per second of the link between a port and function 0 below it.

    Rated is the lower maximum of both ends. Trained is the value of the function, or of the port if the function has
    none.
    """
    most, lanes = _both_ends(function, port)
    speed = function.speed if function.speed is not None else port.speed
    width = function.width if function.width is not None else port.width
    able = rated(most, lanes) if most is not None and lanes is not None else None
    return able, rated(speed, width) if speed is not None and width is not None else None


def grade_of(function: Pci, port: Pci) -> str:
    """ "pcie5x16" for the lower maximum of both ends; "" if neither end reports it or no generation has this speed."""
    most, lanes = _both_ends(function, port)
    number = generation(most) if most is not None and lanes else None
    return f"pcie{number}x{lanes}" if number else ""


def _both_ends(function: Pci, port: Pci) -> tuple[float | None, int | None]:
    """The lower maximum speed and width of both ends, but at least the current values.

    Some switches report a maximum of 5 GT/s and run at 32 (Oracle's H100 machines).
    """
    speeds = [end.max_speed for end in (function, port) if end.max_speed is not None]
    widths = [end.max_width for end in (function, port) if end.max_width is not None]
    return (
        max(min(speeds), function.speed or 0.0) if speeds else None,
        max(min(widths), function.width or 0) if widths else None,
    )


def emulated(functions: Mapping[str, Pci]) -> frozenset[str]:
    """The functions whose position a hypervisor invented: on the root bus, or below emulated ports.

    Valid only in a virtual machine: on real machines, integrated functions are on the root bus too.
    """
    ports = {address for address, function in functions.items() if is_emulated_port(function)}
    return frozenset(
        address
        for address, function in functions.items()
        if function.parent not in functions or not ports.isdisjoint(functions_above(address, functions))
    )


def is_emulated_port(port: Pci) -> bool:
    """Whether the port is a product of hypervisors: its link attributes describe no link."""
    return port.vendor in _EMULATED_VENDORS or (port.vendor, port.device) in _EMULATED


def pci_devices(functions: Mapping[str, Pci], aliases: Mapping[str, tuple[str, ...]]) -> Iterator[Device]:
    """One device per function. `aliases` are the names that drivers give to functions, by PCI address."""
    ports = port_kinds(functions)
    for address, function in functions.items():
        kind = ports.get(address, kind_of(function))
        yield Device(
            address,
            kind,
            function.name or "",
            function.numa,
            aliases.get(address, ()),
            vendor=function.vendor,
            device=function.device,
            pci_class=function.pci_class,
        )


def pci_links(functions: Mapping[str, Pci], trusted: bool) -> Iterator[Link]:
    """The links of the tree. If the tree is not `trusted` (virtual machine), emulated links have no rates."""
    ports = port_kinds(functions)
    invented = frozenset[str]() if trusted else emulated(functions)
    for address, function in functions.items():
        parent = function.physfn or function.parent
        if parent is None:
            continue
        first = f"{card_of(address)}.0"
        on_link = ports.get(parent) in ("root-port", "downstream-port")
        if function.physfn:
            yield Link(f"{parent}>{address}", parent, address, "function")
        elif on_link and first != address and first in functions:
            yield Link(f"{first}>{address}", first, address, "function")
        elif on_link:
            real = address not in invented
            able, now = link_of(function, functions[parent]) if real else (None, None)
            grade = grade_of(function, functions[parent]) if real else ""
            yield Link(f"{parent}>{address}", parent, address, "pcie", able, now, grade=grade)
        else:
            yield Link(f"{parent}>{address}", parent, address, "internal")


def host_bridges(
    functions: Mapping[str, Pci], known: Mapping[str, HostBridge], numas: Mapping[str, Numa]
) -> Iterator[tuple[Device, Link | None]]:
    """One device per PCI root, and its link to its NUMA node or to the function above it."""
    roots: dict[str, HostBridge] = dict(known)
    near: dict[str, int] = {}  # the NUMA node of the first function below it
    for function in functions.values():
        if function.parent and function.parent not in functions:
            roots.setdefault(function.parent, HostBridge(key=function.parent))
        if function.parent and function.numa is not None:
            near.setdefault(function.parent, function.numa)
    for name, root in roots.items():
        numa = root.numa if root.numa is not None else near.get(name)
        if root.parent:
            yield Device(name, "host-bridge", "", numa), Link(f"{root.parent}>{name}", root.parent, name, "function")
        elif f"numa{numa}" in numas or len(numas) == 1:
            node = f"numa{numa}" if f"numa{numa}" in numas else next(iter(numas))
            yield Device(name, "host-bridge", "", numa), Link(f"{node}>{name}", node, name, "internal")
        else:
            yield Device(name, "host-bridge", "", numa), Link(f"host>{name}", "host", name, "internal")
