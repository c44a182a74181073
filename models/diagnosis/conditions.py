"""The conditions that steps of a repair can have (models/catalog/codes.toml), from values that were read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from ..catalog.gpus import product_of
from ..facts.gpu import Driver, Gpu
from ..facts.machine import Array, Disk, Mount, Net, Node, Nvme, Pci, Port, Service, Setting
from ..facts.reason import Reason
from ..inventory.device_names import address_of
from ..inventory.snapshot import Snapshot
from ..report import Finding
from ..rules.core.fabric_cards import unbound
from ..rules.host.settings import wrong_settings
from ..rules.nvlink.interconnect_kind import switches
from ..rules.pcie.pcie import busy_speed, rests

_MANAGER = "nvidia-fabricmanager"


class Condition(Struct, frozen=True):
    """A condition of a step: how `linkgauge explain` words it, and whether it holds for a finding."""

    words: str
    holds: Callable[[Snapshot, Finding], bool | None]


def _node(snapshot: Snapshot) -> Node | None:
    return snapshot.of(Node).get("node")


def _guest(snapshot: Snapshot, finding: Finding) -> bool:
    node = _node(snapshot)
    return bool(node and node.virtual)


def _in_container(snapshot: Snapshot, finding: Finding) -> bool | None:
    node = _node(snapshot)
    return None if node is None or node.container is None else bool(node.container)


def _on_host(snapshot: Snapshot, finding: Finding) -> bool | None:
    inside = _in_container(snapshot, finding)
    return None if inside is None or snapshot.context != "host" else not inside


def _manager_runs(snapshot: Snapshot, finding: Finding) -> bool | None:
    service = snapshot.of(Service).get(_MANAGER)
    return service.running if service else None


def _versions_differ(snapshot: Snapshot, finding: Finding) -> bool | None:
    service, driver = snapshot.of(Service).get(_MANAGER), snapshot.of(Driver).get("nvidia")
    known = service and driver and service.version and driver.version
    return service.version != driver.version if known and service and driver else None


def _rack(snapshot: Snapshot, finding: Finding) -> bool:
    products = [product_of(gpu, snapshot.of(Pci)) for gpu in snapshot.of(Gpu).values()]
    return any(product is not None and product.fabric and product.c2c_rate for product in products)


def _physical(*states: str) -> Callable[[Snapshot, Finding], bool | None]:
    """Whether the RDMA port is in one of these physical states (Linux sysfs-class-infiniband, phys_state)."""

    def holds(snapshot: Snapshot, finding: Finding) -> bool | None:
        port = snapshot.of(Port).get(finding.subject)
        if port is None:
            return False if finding.subject in snapshot.of(Net) else None
        return None if port.physical_state is None else port.physical_state.lower() in states

    return holds


def _switched_off(snapshot: Snapshot, finding: Finding) -> bool | None:
    port, net = snapshot.of(Port).get(finding.subject), snapshot.of(Net).get(finding.subject)
    if port:
        net = snapshot.of(Net).get(port.netdev or "") if port.link_layer == "Ethernet" else None
        return net.enabled is False if net and net.enabled is not None else False
    return None if net is None or net.enabled is None else not net.enabled


def _layer(name: str) -> Callable[[Snapshot, Finding], bool | None]:
    def holds(snapshot: Snapshot, finding: Finding) -> bool | None:
        port = snapshot.of(Port).get(finding.subject)
        if port is None:
            return name == "Ethernet" if finding.subject in snapshot.of(Net) else None
        return None if port.link_layer is None else port.link_layer == name

    return holds


def _virtual_function(snapshot: Snapshot, finding: Finding) -> bool:
    """Few ports are: a function that is not known is none."""
    function = snapshot.of(Pci).get(address_of(snapshot, finding.subject) or "")
    return function is not None and function.physfn is not None


def _under_load(snapshot: Snapshot, finding: Finding) -> bool | None:
    """Whether the speed was read under load, or the link keeps its speed at rest."""
    function = snapshot.of(Pci).get(finding.subject)
    if function is None:
        return None
    return busy_speed(snapshot, function.key) is not None or not rests(snapshot, function)


def _driver_loaded(snapshot: Snapshot, finding: Finding) -> bool | None:
    driver = snapshot.of(Driver).get("nvidia")
    return True if driver and (driver.version or driver.bound) else None


def gpu_of(snapshot: Snapshot, finding: Finding) -> Gpu | None:
    """The GPU that the finding is about."""
    address = address_of(snapshot, finding.subject)
    every = snapshot.of(Gpu).values()
    return next((gpu for gpu in every if gpu.key == finding.subject or (address and gpu.address == address)), None)


def _remap_failed(snapshot: Snapshot, finding: Finding) -> bool | None:
    gpu = gpu_of(snapshot, finding)
    return bool(gpu.remap_failed or gpu.unrepairable) if gpu else None


def _no_process(snapshot: Snapshot, finding: Finding) -> bool | None:
    gpu = gpu_of(snapshot, finding)
    return gpu.processes == 0 if gpu and gpu.processes is not None else None


def _peer_memory(snapshot: Snapshot, finding: Finding) -> bool | None:
    setting = snapshot.of(Setting).get("peer_memory")
    return None if setting is None or setting.value is None else setting.value in ("nvidia_peermem", "nv_peer_mem")


def _subject_is(*kinds: type) -> Callable[[Snapshot, Finding], bool | None]:
    """Whether the subject is of one of these kinds; None if it is of no known kind."""

    def holds(snapshot: Snapshot, finding: Finding) -> bool | None:
        of = {kind for kind in (Array, Mount, Disk, Nvme) if finding.subject in snapshot.of(kind)}
        if finding.subject in snapshot.of(Pci):
            of.add(Disk)
        return bool(of.intersection(kinds)) if of else None

    return holds


def _cpus_offline(snapshot: Snapshot, finding: Finding) -> bool:
    return finding.subject.startswith("package")


def _counters_rise(snapshot: Snapshot, finding: Finding) -> bool | None:
    """Whether an earlier reading of a counter of this GPU's links is known: then the rule saw the counter rise."""
    gpu = gpu_of(snapshot, finding)
    keys = (str(about).partition("/")[0] for about, _ in snapshot.earlier)
    return None if gpu is None else True if gpu.key in keys else None


def _unread(snapshot: Snapshot, finding: Finding) -> bool:
    return any(one.reason is Reason.PERMISSION for one in snapshot.not_checked)


def _guest_without_switches(snapshot: Snapshot, finding: Finding) -> bool:
    return _guest(snapshot, finding) and not switches(snapshot)


def _setting(name: str) -> Callable[[Snapshot, Finding], bool]:
    """Whether the finding is about this setting, alone or with others of its code."""
    return lambda snapshot, finding: name in wrong_settings(snapshot, finding.code)


_DISKS = (Disk, Nvme, Array, Mount)
CONDITIONS: Mapping[str, Condition] = {
    "guest": Condition("the node is a virtual machine", _guest),
    "node": Condition("all devices of the node have the fault", lambda _, one: one.subject == "node"),
    "container": Condition("this process is in a container", _in_container),
    "host": Condition("this process is on the host", _on_host),
    "fabric manager runs": Condition("the fabric manager runs", _manager_runs),
    "versions differ": Condition("fabric manager and driver have different versions", _versions_differ),
    "rack": Condition("the NVSwitches are in other trays of the rack", _rack),
    "switches seen": Condition("the node has NVSwitches", lambda snapshot, _: bool(switches(snapshot)) or None),
    "guest without switches": Condition("a virtual machine without NVSwitches", _guest_without_switches),
    "LinkUp": Condition("the physical state is LinkUp", _physical("linkup")),
    "disabled": Condition("the physical state is Disabled", _physical("disabled")),
    "switched off": Condition("the network device is switched off", _switched_off),
    "virtual function": Condition("a virtual function", _virtual_function),
    "InfiniBand": Condition("an InfiniBand port", _layer("InfiniBand")),
    "Ethernet": Condition("an Ethernet port", _layer("Ethernet")),
    "NIC without driver": Condition("a NIC has no driver", lambda snapshot, _: bool(unbound(snapshot))),
    "under load": Condition("the speed was read under load", _under_load),
    "driver loaded": Condition("the driver is loaded", _driver_loaded),
    "remap failed": Condition("the replacement failed", _remap_failed),
    "no process": Condition("no process uses the GPU", _no_process),
    "peer memory loaded": Condition("the peer-memory module is loaded", _peer_memory),
    "rising": Condition("the counter rises", _counters_rise),
    "values not read": Condition("values could not be read without root", _unread),
    "array": Condition("an array", _subject_is(Array)),
    "disk": Condition("a rate of a disk", lambda snapshot, one: bool(_subject_is(*_DISKS)(snapshot, one))),
    "governor": Condition("the frequency governor saves power", _setting("scaling_governor")),
    "energy preference": Condition("the energy preference saves power", _setting("energy_preference")),
    "sleep states": Condition("sleep states are deep", _setting("idle_latency")),
    "NUMA balancing": Condition("NUMA balancing is on", _setting("numa_balancing")),
    "CPUs offline": Condition("CPUs are offline", _cpus_offline),
}
