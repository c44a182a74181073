"""The ends of flows as people write them: "GPU3", "nic0", "mlx5_3", "numa1", an address without its domain, "gpu*"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from ..graph.path_types import natural, nics
from ..graph.topology import Device, Topology
from .link_levels import short

# What patterns are about; where they match none of it, they are about anything else: block devices, network devices.
_ENDS = frozenset({"gpu", "nic", "port", "numa", "nvme", "array"})
_MOST = 3  # names to propose


def named(topology: Topology, text: str) -> tuple[str, ...]:
    """The ends that a name or a shell pattern means, in natural order, as flows call them.

    Large and small letters are alike. A NIC is its first port, so that the wire is on the way. LookupError: a sentence.
    """
    known = _names(topology)
    exact = topology.find(text)
    if exact:
        return (_end(topology, exact),)
    if text.lower() in known:
        return (known[text.lower()],)
    if not any(sign in text for sign in "*?["):
        raise LookupError(f"nothing in this node is called {text!r}; {_near(text, known)}")
    found = dict.fromkeys(end for name, end in known.items() if fnmatchcase(name, text.lower()))
    usual = [end for end in found if _is_usual(topology, end)]
    if not found:
        raise LookupError(f"nothing in this node matches {text!r}; 'linkgauge topology' shows what there is")
    return tuple(sorted(usual or found, key=natural))


def _names(topology: Topology) -> Mapping[str, str]:
    """The end that each name in small letters means. Names that the kernel or a driver gave come before numbers."""
    known: dict[str, str] = {}
    for device in topology.devices:
        end = _end(topology, device)
        for name in (device.id, *device.aliases, *_without_domain(device)):
            known.setdefault(name.lower(), end)
    for number, nic in enumerate(nics(topology)):  # as the matrix of GPUs and NICs has them
        known.setdefault(f"nic{number}", _end(topology, nic.device))
    return known


def _end(topology: Topology, device: Device) -> str:
    """What flows call a device; of a NIC, its first port."""
    port = device.kind == "nic" and next((o.b for o in topology.links if o.a == device.id and o.kind == "port"), None)
    return port or short(device)


def _without_domain(device: Device) -> Iterator[str]:
    domain, colon, rest = device.id.partition(":")
    if colon and ":" in rest and set(domain) == {"0"}:
        yield rest


def _is_usual(topology: Topology, end: str) -> bool:
    """Grace has dozens of NUMA nodes without memory of their own: of those with a known memory, the others are not."""
    device = topology.by_name[end]
    if device.kind == "numa":
        return device.id in topology.memory or not any(name.startswith("numa") for name in topology.memory)
    return device.kind in _ENDS


def _near(text: str, known: Mapping[str, str]) -> str:
    near = sorted(get_close_matches(text.lower(), known, _MOST, 0.6), key=natural)
    return f"did you mean {', '.join(near)}?" if near else "'linkgauge topology' shows what there is"
