"""The topology as a tree of devices, for pictures: each device once, and the cross links between branches."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from .topology import Device, Link, Topology

_ACROSS = frozenset({"nvlink", "xgmi", "c2c", "member", "net"})  # cross links of the tree
_SWITCHES = frozenset({"nvswitch", "fabric"})


class DeviceTree(Struct, frozen=True):
    """A tree with each device once, below the sender of its link."""

    below: dict[str, list[Device]]
    link: dict[str, Link]  # device -> the link to its parent
    across: dict[str, list[tuple[Device, list[Link]]]]  # device -> other devices with the parallel links to each


def device_tree(topology: Topology) -> DeviceTree:
    """The parent of a device is the sender of the first link to it, unless that makes a cycle."""
    devices = {device.id: device for device in topology.devices}
    tree = DeviceTree({}, {}, {})
    above: dict[str, str] = {}
    for link in topology.links:
        if link.a not in devices or link.b not in devices:
            continue
        a, b = devices[link.a], devices[link.b]
        if link.kind in _ACROSS or a.kind == b.kind == "package" or b.id in above or b.id in _line(a.id, above):
            _cross(tree, link, a, b)
        else:
            above[link.b] = link.a
            tree.link[link.b] = link
    for device in topology.devices:
        if device.id in above:
            tree.below.setdefault(above[device.id], []).append(device)
    return tree


def _line(name: str, above: dict[str, str]) -> Iterator[str]:
    """The device and all its ancestors."""
    yield name
    while name in above:
        name = above[name]
        yield name


def _cross(tree: DeviceTree, link: Link, a: Device, b: Device) -> None:
    """Record a cross link at its sender, at both ends between GPUs, and at the array for a member of an array."""
    if link.kind != "member":
        _note(tree, link, a, b)
    if link.kind == "member" or (a.kind == b.kind == "gpu" and a is not b):
        _note(tree, link, b, a)


def _note(tree: DeviceTree, link: Link, here: Device, there: Device) -> None:
    """Add the link to its group of parallel links. The NVSwitches of one GPU form one group."""
    others = tree.across.setdefault(here.id, [])
    for other, links in others:
        switches = link.kind == "nvlink" and other.kind in _SWITCHES and there.kind in _SWITCHES
        if links[0].kind == link.kind and (other is there or switches):
            links.append(link)
            return
    others.append((there, [link]))
