"""Building a node from a short TOML text: the complete sysfs and procfs tree, as a kernel would show it.

    hostname = "desk"

    [cpu]
    cores = 16

    [[root]]                                   # a PCI root
    bus = [0x00]
    numa = 0
    ports = ["rtx4090", "990pro", "i226"]      # each below its own root port
    integrated = ["ahci"]                      # on the root's own bus

    [device.gpu0]                              # by name, or by its PCI address
    speed = 2.5                                # trained speed when idle
    busy_speed = 16
    gpu = {power_limit = 350}                  # fields of the driver; others are those of a healthy GPU

The keys are those of schema.py. The models are those of device_models.toml and of the node's own [model.NAME] tables.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timezone
from functools import partial

import msgspec
import tomli

from ...models.facts.jsonl import encode
from ...models.facts.records import Record
from ..gpu.gpus import read_gpu_wiring, read_gpus
from ..host.entries import Folder, Link
from ..host.host import follow
from ..host.recorded import Recorded
from ..network.net import read_link_modes
from ..pcie.busy_speed import read_link_load
from ..pcie.config_space import read_pci_config
from ..storage.mounts import read_mounts
from ..storage.nvme_health import read_nvme_health
from ..system.services import read_services
from .amd import write_kfd
from .host import write_host
from .measured import PLANS, copies, probes_of
from .net import link_modes, write_net
from .nvml import manager, state, wiring, write_driver
from .pci import Function, place
from .pci_functions import busy_speeds, pci_ids, write_functions
from .platform import config_spaces, write_platform
from .schema import Node
from .storage import free_space, new_drives, write_storage
from .tree_writer import TreeWriter

# Sources that make calls; the others only read files.
_CALLING_SOURCES = (
    read_link_modes,
    read_mounts,
    read_nvme_health,
    read_pci_config,
    read_services,
    read_gpus,
    read_gpu_wiring,
    read_link_load,
)


def build(text: str) -> Recorded:
    """Return the node that a TOML text describes. Raises ValueError with the error in the description."""
    try:
        node = msgspec.convert(tomli.loads(text), Node)
    except RecursionError:
        raise ValueError("the description is nested too deeply") from None
    except ValueError as broken:
        raise ValueError(str(broken)) from None
    taken = _taken(node)
    functions = place(node)
    tree = TreeWriter()
    write_host(tree, node, taken)
    write_functions(tree, node, functions)
    write_net(tree, functions)
    write_storage(tree, node, functions)
    write_driver(tree, node, functions)
    write_kfd(tree, node, functions)
    write_platform(tree, node)
    tree.put("usr/share/misc/pci.ids", pci_ids(functions))
    for function in functions:
        _own_files(tree, f"{function.folder}/", function.change.files)
    _own_files(tree, "", node.files)
    return Recorded(taken, tree.entries, _calls(taken, tree, node, functions))


def _taken(node: Node) -> int:
    """Return the time of the capture in seconds since 1970. A time without a zone is in UTC."""
    taken = node.taken if node.taken.tzinfo else node.taken.replace(tzinfo=timezone.utc)
    if not 1970 < taken.year < 9999:
        raise ValueError(f"taken in {taken.year}: a capture is from this age")
    return int(taken.timestamp())


def _own_files(tree: TreeWriter, folder: str, files: Mapping[str, str]) -> None:
    """Write the literal files of the description, following the links of the tree."""

    def target(path: str) -> str | None:
        entry = tree.entries.get(path)
        return entry.target if isinstance(entry, Link) and isinstance(entry.target, str) else None

    for path, text in files.items():
        parts = path.removeprefix("/").split("/")
        if not all(part not in ("", ".", "..") and part.isprintable() for part in parts):
            raise ValueError(f"files: {path!r} is no path")
        above, _, name = f"{folder}{'/'.join(parts)}".rpartition("/")
        real = f"{follow(above, target)}/{name}" if above else name
        nearest = tree.entries[next(up for up in _upwards(real) if up in tree.entries)]
        if not isinstance(nearest, Folder) or isinstance(tree.entries.get(real), Folder):
            raise ValueError(f"files: {path!r} is a folder, or lies in a file")
        tree.put(real, text)


def _upwards(path: str) -> Iterator[str]:
    """Yield the folders above a path, nearest first."""
    while path:
        path = path.rpartition("/")[0]
        yield path


@dataclass
class _CallRecorder(Recorded):
    """A machine whose calls run functions; it stores the results."""

    functions: Mapping[str, Callable[..., Iterable[Record]]] = field(default_factory=dict)
    results: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        """Run the function of a call. Other calls, for example for the journal, yield nothing."""
        records = tuple(self.functions[what](*args)) if what in self.functions else ()
        self.results[(what, *args)] = tuple(map(encode, records))
        yield from records


def _calls(
    taken: int, tree: TreeWriter, node: Node, functions: list[Function]
) -> Mapping[tuple[str, ...], tuple[str, ...]]:
    """Return the calls of all sources on this tree, with their results."""
    machine = _CallRecorder(taken, tree.entries)
    machine.functions = {
        "ethtool": partial(link_modes, functions),
        "statvfs": partial(free_space, node),
        # The links of a measured machine were idle before.
        "link_load": partial(busy_speeds, () if node.measured else functions, float(taken)),
        "nvme_health": new_drives,
        "pci_config": partial(config_spaces, functions),
        "fabric_manager": partial(manager, node),
        "nvml": partial(state, tree, node, functions, float(taken)),
        "nvml_wiring": partial(wiring, tree, node, functions),
        **{name: partial(copies, name, tree, node, functions, float(taken)) for name in PLANS},
    }
    for source in _CALLING_SOURCES:
        deque(source(machine), maxlen=0)
    for probe in probes_of(machine) if node.measured else ():
        deque(probe(machine), maxlen=0)
    return machine.results
