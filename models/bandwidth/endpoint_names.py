"""Names of flow ends as users write them: "GPU3", "nic0", "mlx5_3", "numa1", an address without domain, "gpu*"."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase

from ..graph.path_types import natural, nics
from ..graph.topology import Device, Topology
from .link_levels import short

# A pattern applies to these kinds. If it matches none of them, it applies to all others: block devices, network
# devices.
_ENDS = frozenset({"gpu", "nic", "port", "numa", "nvme", "array"})
_MOST = 3  # suggested names


def resolve_ends(topology: Topology, text: str) -> tuple[str, ...]:
    """The ends that a name or a shell pattern means, in natural order, with their names in flows.

    Case does not matter. A NIC means its first port, so that the path includes the wire. LookupError carries a sentence
    for the user.
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
    """Lower-case name -> end. Names from the kernel or a driver take precedence over numbers."""
    known: dict[str, str] = {}
    for device in topology.devices:
        end = _end(topology, device)
        for name in (device.id, *device.aliases, *_without_domain(device)):
            known.setdefault(name.lower(), end)
    for number, nic in enumerate(nics(topology)):  # the numbers of the GPU and NIC matrix
        known.setdefault(f"nic{number}", _end(topology, nic.device))
    return known


def _end(topology: Topology, device: Device) -> str:
    """The name of a device in flows; for a NIC, its first port."""
    port = device.kind == "nic" and next((o.b for o in topology.links if o.a == device.id and o.kind == "port"), None)
    return port or short(device)


def _without_domain(device: Device) -> Iterator[str]:
    domain, colon, rest = device.id.partition(":")
    if colon and ":" in rest and set(domain) == {"0"}:
        yield rest


def _is_usual(topology: Topology, end: str) -> bool:
    """Whether a pattern includes the end. Not the dozens of NUMA nodes of Grace without memory, if other nodes have
    known memory.
    """
    device = topology.by_name[end]
    if device.kind == "numa":
        return device.id in topology.memory or not any(name.startswith("numa") for name in topology.memory)
    return device.kind in _ENDS


def _near(text: str, known: Mapping[str, str]) -> str:
    near = sorted(get_close_matches(text.lower(), known, _MOST, 0.6), key=natural)
    return f"did you mean {', '.join(near)}?" if near else "'linkgauge topology' shows what there is"
