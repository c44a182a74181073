"""Faults of GPUs and of the host that a state shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from random import Random

from bench.accuracy.edits import Edit, logged, lowered, measured, names_of, set_fields, together, without
from bench.accuracy.faults import Case, Cases, Fault, Kind, below, drawn, group_of, is_guest
from bench.accuracy.healthy_nodes import HealthyNode
from bench.accuracy.measured import Loss
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Array, Mount, Node, Numa, Nvme, Package, Pci, Rdma, Service, Setting
from linkgauge.models.facts.recovery import OF_NODE
from linkgauge.models.rules.host.counts import NUMAS, SOCKETS
from linkgauge.models.rules.pcie.direct_paths import peers

# recovery action of the driver after an Xid
_RECOVERIES = {48: "GPU reset", 79: "node reboot", 95: "GPU reset", 119: "GPU reset"}
_COMPARED = 2  # devices of a product, among which one firmware differs
_SMALLEST_COHORT = 4  # flows of a kind; among fewer, the slow one cannot be identified
# A field of the GPU's driver, its value, and the finding code.
_GPU_STATES: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "a row waits for a reset": ("gpu-row-remap", {"remap_pending": True, "recovery": "GPU reset"}),
    "a row could not be replaced": ("gpu-row-remap", {"remap_failed": True}),
    "errors of SRAM": ("gpu-ecc", {"sram_threshold": True}),
    "the power limit is low": ("gpu-clocks-limited", {"power_limit": 0.6}),
    "the driver wants a reset": ("gpu-xid", {"recovery": "GPU reset"}),
    "its fabric is not healthy": ("nvlink-fabric-incomplete", {"fabric_faults": ("degraded bandwidth",)}),
}


def gpu_state(name: str) -> Kind:
    """One GPU has this state. The driver of the GPU must report these fields."""
    code, changed = _GPU_STATES[name]

    def draw(node: HealthyNode, chance: Random) -> Fault | None:
        gpus = [gpu for gpu in node.snapshot.of(Gpu).values() if all(getattr(gpu, key) is not None for key in changed)]
        gpu = drawn(chance, [gpu for gpu in gpus if "fabric_faults" not in changed or gpu.fabric_state == "completed"])
        if gpu is None:
            return None
        fields = dict(changed)
        if "power_limit" in fields:
            fields["power_limit"] = round((gpu.power_limit_default or gpu.power_limit or 0) * 0.6)
        names = _names(node, gpu)
        return Fault(code, names, names, set_fields(Gpu, gpu.key, **fields))

    return draw


def throttled(node: HealthyNode, chance: Random) -> Fault | None:
    """Heat throttles a GPU."""
    gpu = drawn(chance, [gpu for gpu in node.snapshot.of(Gpu).values() if gpu.clock_reasons is not None])
    if gpu is None:
        return None
    reasons = ("hardware slowdown", "hardware thermal slowdown")
    names = _names(node, gpu)
    return Fault("gpu-throttled", names, names, set_fields(Gpu, gpu.key, clock_reasons=reasons, temperature=92.0))


def _names(node: HealthyNode, gpu: Gpu) -> frozenset[str]:
    return frozenset({gpu.key, *(names_of(node.snapshot, gpu.address) if gpu.address else ())})


def xid(node: HealthyNode, chance: Random) -> Fault | None:
    """The driver logs an error that needs at least a reset, and requests that action."""
    gpu = drawn(chance, [gpu for gpu in node.snapshot.of(Gpu).values() if gpu.address and node.origin != "dumps"])
    if gpu is None or gpu.address is None:
        return None
    code = chance.choice(list(_RECOVERIES))
    line = f"NVRM: Xid (PCI:{gpu.address.rpartition('.')[0]}): {code}, pid=1, what happened"
    edit = together(logged(line, node.now - 600), set_fields(Gpu, gpu.key, recovery=_RECOVERIES[code]))
    of_node = {"node"} if _RECOVERIES[code] in OF_NODE else set[str]()
    return Fault("gpu-xid", frozenset({gpu.address}), _names(node, gpu) | of_node, edit)


def access_control(node: HealthyNode, chance: Random) -> Fault | None:
    """The ports of one switch redirect the traffic between its devices to the root (ACS)."""
    functions = node.snapshot.of(Pci)
    redirected: dict[str, set[str]] = {}
    for pair in peers(node.snapshot) if not is_guest(node) else ():
        for port in pair.ports:
            above = functions[port].parent
            device = node.snapshot.topology.find(port)
            if functions[port].acs is not None and above in functions and device and device.kind == "downstream-port":
                redirected.setdefault(str(above), set()).add(port)
    switch = drawn(chance, sorted(redirected))
    if switch is None:
        return None
    edit = together(*(set_fields(Pci, port, acs=("ReqRedir", "CmpltRedir")) for port in sorted(redirected[switch])))
    about = below(node, switch)
    over_pcie = not any(link.kind in ("nvlink", "xgmi") for link in node.snapshot.topology.links)
    ends = [flow.ends for flow in node.rates if about.issuperset(flow.ends)] if over_pcie else []
    return Fault("pcie-acs-redirect", frozenset({switch}), about, edit, Loss(pairs=dict.fromkeys(ends, 0.5)))


def translated(node: HealthyNode, chance: Random) -> Fault | None:
    """The IOMMU translates the addresses of all devices except one."""
    row = node.snapshot.of(Setting).get("iommu")
    x86 = any(package.vendor in ("GenuineIntel", "AuthenticAMD") for package in node.snapshot.of(Package).values())
    if row is None or row.value is None or "identity" not in row.value or node.origin == "dumps" or not x86:
        return None  # Arm processors always translate
    return Fault(
        "iommu-translation", frozenset({"node"}), frozenset({"node"}), set_fields(Setting, "iommu", value="DMA-FQ")
    )


def governor(node: HealthyNode, chance: Random) -> Fault | None:
    """The processors prefer to save power (severity info)."""
    if "energy_preference" not in node.snapshot.of(Setting):
        return None
    edit = set_fields(Setting, "energy_preference", value="power")
    return Fault("cpu-governor", frozenset({"node"}), frozenset({"governor"}), edit, info=True)


def memory_gone(node: HealthyNode, chance: Random) -> Fault | None:
    """A NUMA node with processors has no memory or half of it. A hypervisor may give a guest half of it."""
    numas = [one for one in node.snapshot.of(Numa).values() if one.cpus and one.memory]
    numa = drawn(chance, numas)
    if numa is None or len(numas) < 2:
        return None
    left = chance.choice([0] if is_guest(node) else [0, 2])
    edit = set_fields(Numa, numa.key, memory=(numa.memory or 0) // left if left else 0)
    return Fault("numa-memory-missing", frozenset({numa.key}), frozenset({"memory"}), edit)


def memory_failed(node: HealthyNode, chance: Random) -> Fault | None:
    """A memory module had an uncorrectable error."""
    names = [str(one.about) for one in node.snapshot.observations if one.quantity == "ue_count"]
    name = drawn(chance, names)
    if name is None:
        return None
    edit = measured(name, "ue_count", 1, node.now)
    return Fault("host-memory-errors", frozenset({name}), frozenset({name}), edit)


def member_lost(node: HealthyNode, chance: Random) -> Fault | None:
    """An array runs without one of its disks."""
    array = drawn(chance, [one for one in node.snapshot.of(Array).values() if one.members])
    if array is None:
        return None
    edit = set_fields(Array, array.key, faulty=(chance.choice(array.members or ()),), missing=1)
    return Fault("storage-degraded", frozenset({array.key}), frozenset({array.key, *(array.members or ())}), edit)


def no_manager(node: HealthyNode, chance: Random) -> Fault | None:
    """The fabric manager does not run, and no GPU has joined its fabric."""
    service = node.snapshot.of(Service).get("nvidia-fabricmanager")
    gpus = [gpu for gpu in node.snapshot.of(Gpu).values() if gpu.fabric_state == "completed"]
    if service is None or not service.running or not gpus or any(gpu.mig for gpu in gpus):
        return None
    edits: list[Edit] = [set_fields(Gpu, gpu.key, fabric_state="in progress") for gpu in gpus]
    edit = together(*edits, set_fields(Service, service.key, running=False))
    about = frozenset(name for gpu in gpus for name in _names(node, gpu))
    return Fault("fabric-manager-down", frozenset({service.key}), about, edit)


def host_cases(node: HealthyNode) -> Cases:
    """Memory, processors, disks and mounts."""
    memory, missing = (
        frozenset({"numa-memory-missing"}),
        frozenset({"numa-memory-missing", "cpu-missing", "cpu-throttled"}),
    )
    packages = node.snapshot.of(Package)
    for numa in node.snapshot.of(Numa).values():
        of = {key for key, package in packages.items() if set(package.cpus or ()) & set(numa.cpus or ())}
        names = frozenset({numa.key, *of, "node"})
        for share, text in ((0, "no memory"), (0.5, "half its memory"), (0.875, "7/8 of its memory")):
            if numa.memory and numa.cpus:
                edit = set_fields(Numa, numa.key, memory=int(numa.memory * share))
                yield Case(f"NUMA node with {text}", numa.key, edit, memory, names, ("memory",))
        if numa.cpus and len(numa.cpus) > 1 and of:  # some dumps have only lists of CPUs
            for text, keep in (("half its CPUs", len(numa.cpus) // 2), ("one CPU offline", len(numa.cpus) - 1)):
                edit = _cpus(node, numa, keep)
                yield Case(f"NUMA node with {text}", numa.key, edit, missing, names, ("cpu", "processor", "core"))
    for package in packages.values():
        cpus = set(package.cpus or ())
        of = {numa.key for numa in node.snapshot.of(Numa).values() if cpus & set(numa.cpus or ())}
        if len(packages) > 1:
            names, words = frozenset({package.key, "node", *of, SOCKETS, NUMAS}), ("count",)
            yield Case(
                "removal of a processor", package.key, _no_processor(node, {package.key, *of}), missing, names, words
            )
    yield from _disk_cases(node)


def _no_processor(node: HealthyNode, gone: Collection[str]) -> Edit:
    """Packages and NUMA nodes that the firmware does not list."""
    facts, packages = node.snapshot.of(Node)["node"], node.snapshot.of(Package)
    absent = sum(len(packages[key].cpus or ()) for key in gone if key in packages)
    return together(without(gone), *lowered(Node, facts, present_cpus=(facts.present_cpus or 0) - absent))


def _cpus(node: HealthyNode, numa: Numa, keep: int) -> Edit:
    """Only the first CPUs of a NUMA node are online."""
    cpus = numa.cpus or ()
    gone = set(cpus[keep:])
    edits = [set_fields(Numa, numa.key, cpus=cpus[:keep])]
    for package in node.snapshot.of(Package).values():
        if package.cpus and gone & set(package.cpus):
            left = tuple(cpu for cpu in package.cpus if cpu not in gone)
            cores = max(1, (package.cores or 0) * len(left) // len(package.cpus))
            edits += lowered(Package, package, cpus=left, cores=cores)
    return together(*edits)


def _disk_cases(node: HealthyNode) -> Cases:
    degraded = frozenset({"storage-degraded"})
    mounts = node.snapshot.of(Mount)
    for mount in mounts.values():
        if mount.read_only is False and (mount.device or "").startswith("/dev/"):  # only these have errors of a disk
            names = frozenset(key for key, other in mounts.items() if other.device == mount.device)
            edit = together(*(set_fields(Mount, key, stopped=True) for key in names))
            yield Case("file system read-only", mount.key, edit, degraded, names | {str(mount.device)})
    for kind, name in ((Rdma, "NIC"), (Nvme, "disk")):
        groups = Counter(group_of(node, key) for key in node.snapshot.of(kind))
        for fact in node.snapshot.of(kind).values():
            if groups[group_of(node, fact.key)] < _COMPARED:
                continue  # no equal device has another firmware
            if firmware := getattr(fact, "firmware", None):
                edit = set_fields(kind, fact.key, firmware=f"{firmware}.1")
                codes = frozenset({"firmware-mixed", "driver-mismatch", "device-misplaced"})
                names = frozenset({fact.key, *names_of(node.snapshot, fact.key)})
                yield Case(f"firmware of a {name} differs", fact.key, edit, codes, names, ("firmware",), info=True)


KINDS: Mapping[str, Kind] = {
    **{name: gpu_state(name) for name in _GPU_STATES},
    "too hot": throttled,
    "an Xid": xid,
    "access control on a switch": access_control,
    "addresses are translated": translated,
    "a governor that saves power": governor,
    "memory is missing": memory_gone,
    "memory failed": memory_failed,
    "an array lost a member": member_lost,
    "no fabric manager": no_manager,
}
