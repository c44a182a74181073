"""Platform files of a synthetic node: frequency policy, thermal and memory counters, limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...models.facts.machine import Pci
from ...models.facts.records import Evidence, Record
from ..pcie.config_space import WANTED
from .host import listed
from .pci import Function
from .schema import Node
from .tree_writer import TreeWriter

_CPUS = "sys/devices/system/cpu"
_CONTROLLERS = "sys/devices/system/edac/mc"
# Drivers of the frequency policy, by processor vendor.
_POLICIES = {"GenuineIntel": "intel_pstate", "AuthenticAMD": "amd-pstate-epp"}
_PAYLOAD, _READ_REQUEST = 256, 512  # bytes; their codes in Device Control are 1 and 2
_CONTROL = 2 << 12 | 1 << 11 | 1 << 5 | 1 << 4


def write_platform(tree: TreeWriter, node: Node) -> None:
    """Write files of the machine and of the reading process. A virtual machine has no policy and no counters."""
    cpus = node.cpu.sockets * node.cpu.cores * node.cpu.threads
    nodes = node.cpu.sockets * node.cpu.numa_nodes
    tree.put("proc/2/comm", "kthreadd")
    tree.put("proc/sys/kernel/numa_balancing", 0)
    tree.put(
        "proc/self/limits",
        "\n".join(
            (
                f"{'Limit':<26}{'Soft Limit':<21}{'Hard Limit':<21}Units",
                f"{'Max locked memory':<26}{'unlimited':<21}{'unlimited':<21}bytes",
            )
        ),
    )
    lists = {"CapEff": "0" * 16, "Cpus_allowed_list": listed(range(cpus)), "Mems_allowed_list": listed(range(nodes))}
    tree.put("proc/self/status", "\n".join(f"{name}:\t{value}" for name, value in lists.items()))
    policy = _POLICIES.get(node.cpu.vendor)
    if node.virtual or policy is None:
        return
    for socket in range(node.cpu.sockets):
        first = f"{_CPUS}/cpu{socket * node.cpu.cores}"
        tree.files(
            f"{first}/cpufreq",
            scaling_driver=policy,
            scaling_governor="performance",
            energy_performance_preference="performance",
        )
        if node.cpu.vendor == "GenuineIntel":
            tree.put(f"{first}/thermal_throttle/package_throttle_total_time_ms", 0)
    for controller in range(nodes):
        tree.files(f"{_CONTROLLERS}/mc{controller}", ce_count=0, ue_count=0)


def config_spaces(functions: Iterable[Function]) -> Iterator[Record]:
    """Yield the results of `pci_config`. Access control is off unless described, so that peers communicate directly."""
    for function in functions:
        change, path = function.change, f"{function.folder}/config"
        port = function.model.kind == "port"
        if function.model.speed is None or function.model.emulated or not (port or function.model.kind in WANTED):
            continue
        cites = {"max_payload": Evidence(path, f"DevCtl {_CONTROL:#06x}")}
        yield Pci(
            key=function.address,
            max_payload=_PAYLOAD,
            max_read_request=change.max_read_request or _READ_REQUEST,
            relaxed_ordering=True,
            acs=tuple(change.acs) if port else None,
            cites=cites | ({"acs": Evidence(path, " ".join(change.acs) or "nothing on")} if port else {}),
        )
