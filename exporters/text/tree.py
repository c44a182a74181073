"""A topology as an indented tree, like lstopo, with the rate of each link."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...models.graph.device_tree import DeviceTree, device_tree
from ...models.graph.topology import FABRIC, Device, Link, Topology
from .quantities import bundle_of, is_slower, rate_of
from .terminal import Paint, hanging, painter, safe, short
from .vocabulary import device_in_words

WIDTH = 98
_DEEPEST = 40  # columns of indentation
_LONGEST_NAME = 48
_PORTS = frozenset({"root-port", "upstream-port", "downstream-port", "bridge"})
_SWITCHES = frozenset({"nvswitch", "fabric"})
_OF_THE_KERNEL = frozenset({"netdev", "disk"})  # often hundreds without hardware: veth, loop
_ROOTS = frozenset({"host", "package", "numa", "host-bridge", "fabric"})


def as_tree(topology: Topology, colour: bool = False) -> str:
    """One line per device below its parent; devices without a parent are at the end.

    A link shows its present rate in one direction, and the rated one if it is slower: "31.5 of 63.0 GB/s".
    """
    tree, paint = device_tree(topology), painter(colour)
    tops = [device for device in topology.devices if device.id not in tree.link]
    rooted = {device.id for device in tops if device.kind in _ROOTS or device.id in tree.below}
    lines = list(_entries([device for device in tops if device.id in rooted], tree, 0, None, paint))
    if loose := [device for device in tops if device.id not in rooted]:
        lines += [paint("not attached", "bold"), *_entries(loose, tree, 2, None, paint)]
    return "".join(f"{line}\n" for line in lines)


def _entries(devices: Sequence[Device], tree: DeviceTree, indent: int, numa: int | None, paint: Paint) -> Iterator[str]:
    """The lines of the devices and their subtrees. Devices that show only an id share one line at the end."""
    folded: dict[str, list[str]] = {}
    for device in devices:
        title = _title(device, tree)
        if title:
            folded.setdefault(title, []).append(safe(device.id))
        else:
            yield from _entry(device, tree, indent, numa, paint)
    for title, names in folded.items():
        first = f"{' ' * min(indent, _DEEPEST)}{title}: "
        yield from (paint(line, "dim") for line in hanging(first, ", ".join(names), WIDTH))


def _title(device: Device, tree: DeviceTree) -> str | None:
    """The title of the shared line of a device that shows only its id; None for other devices."""
    link = tree.link.get(device.id)
    if device.id in tree.below or device.id in tree.across or device.aliases or rate_of(link):
        return None
    if device.kind in _PORTS:
        return "nothing below"
    if device.kind == "pci":
        return "other functions"
    if device.kind in _OF_THE_KERNEL and link is None and not device.name:
        return f"{device_in_words(device.kind)}s"
    return None


def _entry(device: Device, tree: DeviceTree, indent: int, numa: int | None, paint: Paint) -> Iterator[str]:
    """The line of a device and its subtree. A port with a single device shares the line of this device."""
    port = ""
    if _is_passed(device, tree):
        port, device = f"{safe(device.id)} > ", tree.below[device.id][0]
    link = tree.link.get(device.id)
    rate = rate_of(link)
    place = device.numa_node not in (None, numa) and device.kind != "numa"
    details = [_called(device), rate, f"NUMA node {device.numa_node}" if place else ""]
    details += [short(device.name, _LONGEST_NAME) or _numbers(device), *_joined(tree.across.get(device.id, ()))]
    margin = " " * min(indent, _DEEPEST)
    for line in hanging(
        margin, f"{port}{safe(device.id)}  {', '.join(filter(None, details))}", WIDTH, indent=len(margin) + 4
    ):
        yield line.replace(rate, paint(rate, "slower"), 1) if rate and is_slower(link) else line
    numa = device.numa_node if device.kind == "numa" else numa
    yield from _entries(tree.below.get(device.id, ()), tree, indent + 2, numa, paint)


def _is_passed(device: Device, tree: DeviceTree) -> bool:
    """Whether a port has nothing to show except the one device below it."""
    below, link = tree.below.get(device.id, ()), tree.link.get(device.id)
    if device.kind not in _PORTS or len(below) != 1 or device.id in tree.across or rate_of(link):
        return False
    return tree.link[below[0].id].kind == "pcie"


def _called(device: Device) -> str:
    """The kind of the device, unless its id shows it, and its other names."""
    kind = "" if device.id.startswith(device.kind) else device_in_words(device.kind)
    return " ".join(filter(None, [kind, *(safe(alias) for alias in device.aliases)]))


def _numbers(device: Device) -> str:
    """Vendor and device of a PCI function without a name, as lspci -n shows them: "10de:2330". Ports have no use."""
    if device.vendor is None or device.device is None or device.kind in _PORTS:
        return ""
    return f"{device.vendor:04x}:{device.device:04x}"


def _joined(across: Iterable[tuple[Device, list[Link]]]) -> Iterator[str]:
    """The cross links of a device, with equal links grouped."""
    others: dict[tuple[str, str], list[str]] = {}
    for other, links in across:
        title = "members" if links[0].kind == "member" else bundle_of(links)
        itself = links[0].a == links[0].b  # a link from a device to itself: its memory
        others.setdefault((title, _down(links)), []).append("" if itself else _there(other, links))
    for (title, down), names in others.items():
        to = "" if title == "members" else " each to" if len(names) > 1 else " to"
        yield f"{title}{to} {', '.join(names)}{down}" if names != [""] else title


def _there(other: Device, links: Sequence[Link]) -> str:
    """The name of the other end: a GPU by its driver's number, several NVSwitches by their count."""
    ends = {link.b for link in links} - {FABRIC}
    if other.kind in _SWITCHES and len(ends) > 1:
        return f"{len(ends)} NVSwitches"
    return safe(other.aliases[0] if other.kind == "gpu" and other.aliases else other.id)


def _down(links: Sequence[Link]) -> str:
    """The links of a bundle that are down, with the switch of each if it is known."""
    down = [link for link in links if link.trained == 0]
    if not down or len(down) == len(links):
        return ""
    several = len({link.b for link in links}) > 1
    return "; down: " + ", ".join(
        safe(link.id) + (f" to {safe(link.b)}" if several and link.b != FABRIC else "") for link in down
    )
