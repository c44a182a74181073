"""Counts of devices: by the machine type, by the board, and by equal PCIe switches of the node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ...facts.gpu import Driver, Gpu
from ...facts.machine import Node, Numa, Package, Pci
from ...facts.pci_classes import NETWORK_DISK, is_network_disk
from ...facts.records import Evidence
from ...inventory.drivers import lent
from ...inventory.inventory import Item
from ...inventory.positions import EmptyPosition, empty_positions, has_equal_switches, is_regular
from ...inventory.present import comparable, known_absent, removed
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.claims import BASES, Claim, Support
from ..core.fabric_cards import fabric_functions, of_fabric, rdma_functions
from ..core.machine_expectations import profile
from ..core.rule import Rule
from ..core.wording import function_name, location
from ..gpu.missing import whole

GPUS, NICS, DISKS = "number of GPUs", "number of RDMA NICs", "number of NVMe disks"
SOCKETS, NUMAS = "number of CPU packages", "number of NUMA nodes with CPUs"
OTHER_NICS = "number of NICs without RDMA"
CONTROLLERS = "number of storage controllers"
NVSWITCHES = "number of NVSwitches"
_PART = "a dump may show a part of the machine"
_WORDS = {"gpu": "GPU", "nic": "NIC", "nvme": "NVMe disk"}
_CODES = {"gpu": "gpu-missing", "nic": "nic-missing", "nvme": "storage-missing"}


def count_claims(snapshot: Snapshot) -> Iterator[Claim]:
    """The claims of all counts of a machine. Dumps show parts of a machine, so nothing supports theirs."""
    yield from _every(snapshot)


@once_per_snapshot
def _every(snapshot: Snapshot) -> tuple[Claim, ...]:
    made = (*_gpus(snapshot), *_nics(snapshot), *_disks(snapshot), *_processors(snapshot))
    if snapshot.origin == "dumps":
        return tuple(replace(one, supports=(), doubt=_PART) for one in made)
    return made


def _gpus(snapshot: Snapshot) -> Iterator[Claim]:
    listed = [one for one in snapshot.functions("gpu") if not one.physfn]
    number = len(listed) or len(snapshot.of(Gpu))
    full = whole(snapshot)
    supports = []
    if full:
        supports = [Support("site" if full.basis == "site" else "profile", full.count, full.name)]
    if number or full or snapshot.of(Driver) or earlier_count(snapshot, "gpu"):
        yield _claim(snapshot, GPUS, number, supports, "gpu")


def _nics(snapshot: Snapshot) -> Iterator[Claim]:
    number = len(fabric_functions(snapshot))
    by_machine = _of_machine(snapshot, "rdma")
    none = _is_metal(snapshot) or (_shows_pci(snapshot) and not snapshot.functions("nic"))
    if number or by_machine or none or earlier_count(snapshot, "nic"):
        yield _claim(snapshot, NICS, number, by_machine, "nic")
    others = sum(1 for one in snapshot.functions("nic") if not one.physfn) - len(rdma_functions(snapshot))
    if others or (number and by_machine and _shows_pci(snapshot)) or _is_partial(snapshot):
        yield _claim(snapshot, OTHER_NICS, others, [], "other nic")


def _disks(snapshot: Snapshot) -> Iterator[Claim]:
    number = sum(1 for one in snapshot.functions("nvme") if not one.physfn and not is_network_disk(one))
    by_machine = _of_machine(snapshot, "nvme")
    none = _is_metal(snapshot) or (_shows_pci(snapshot) and not snapshot.functions("storage"))
    if number or by_machine or none or earlier_count(snapshot, "nvme"):
        yield _claim(snapshot, DISKS, number, by_machine, "nvme")
    controllers = sum(1 for one in snapshot.functions("storage") if not one.physfn)
    if controllers or _is_metal(snapshot) or _is_partial(snapshot):
        yield _claim(snapshot, CONTROLLERS, controllers, [], "storage")
    if switches := len(snapshot.functions("nvswitch")):
        yield _claim(snapshot, NVSWITCHES, switches, [], "nvswitch")


def _is_metal(snapshot: Snapshot) -> bool:
    """Whether the PCI functions of a real machine are visible: a count of zero says something there.

    In a guest, only a machine without any NIC or disk is remarkable.
    """
    node = snapshot.of(Node).get("node")
    return _shows_pci(snapshot) and node is not None and node.virtual is False


def _is_partial(snapshot: Snapshot) -> bool:
    """Whether a dump shows PCI functions: it may lack some."""
    return bool(snapshot.of(Pci)) and snapshot.origin == "dumps"


def _shows_pci(snapshot: Snapshot) -> bool:
    return bool(snapshot.of(Pci)) and snapshot.origin != "dumps"


def _processors(snapshot: Snapshot) -> Iterator[Claim]:
    packages = len(snapshot.of(Package))
    numas = sum(1 for one in snapshot.of(Numa).values() if one.cpus)
    if packages:
        yield _claim(snapshot, SOCKETS, packages, _of_machine(snapshot, "sockets"), "package")
    if numas and (_of_machine(snapshot, "numa") or earlier_count(snapshot, "numa")):
        yield _claim(snapshot, NUMAS, numas, _of_machine(snapshot, "numa"), "numa")


def _of_machine(snapshot: Snapshot, field: str) -> list[Support]:
    known = profile(snapshot)
    count = getattr(known.machine, field) if known else None
    if known is None or count is None:
        return []
    return [Support("site" if known.basis == "site" else "profile", count, known.machine.name)]


def _claim(snapshot: Snapshot, quantity: str, number: int, supports: list[Support], kind: str) -> Claim:
    if not supports and kind == "gpu" and number and is_regular(snapshot, kind):  # NICs and disks are elsewhere, too
        supports = [Support("cohort", number, "as many below each of several equal switches")]
    history = earlier_count(snapshot, kind)
    if history and (history[1] or history[0] > number):
        source = f"{history[0]} {'when the node was accepted' if history[1] else 'before'}"
        supports = [*supports, Support("baseline", history[0], source)]
    return Claim(group="counts", subject=quantity, quantity="count", observed=number, supports=tuple(supports))


def earlier_count(snapshot: Snapshot, kind: str) -> tuple[int, bool] | None:
    """How many of a kind were there before, and whether an operator accepted all of them. NICs: RDMA devices."""
    before = comparable(snapshot)
    if before is None:
        return None
    items = _counted(snapshot, before.of(kind))
    return (len(items), all(item.accepted for item in items)) if items else None


def _counted(snapshot: Snapshot, items: Sequence[Item]) -> list[Item]:
    """The items that a count includes: of NICs only RDMA devices of the fabric, of disks only local ones."""
    local = [item for item in items if not (item.product or "").startswith(NETWORK_DISK)]
    nics = {item.key for item in of_fabric(snapshot, (item for item in local if item.kind == "nic"))}
    return [item for item in local if item.kind != "nic" or item.key in nics]


def empty_position(kind: str) -> Rule:
    """The rule for one kind of device: a switch has fewer devices than most equal switches of the node."""

    def where(snapshot: Snapshot, node: Node) -> bool:
        counted = kind == "gpu" and whole(snapshot) is not None  # gpu/missing.py reports a missing GPU
        return snapshot.origin != "dumps" and not counted and has_equal_switches(snapshot)

    def evaluate(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
        named = {port for item in known_absent(snapshot, kind) for port in item.above}
        found = [gap for gap in empty_positions(snapshot) if gap.kind == kind and gap.switch not in named]
        yield from (_empty(snapshot, gap) for gap in found)

    return Rule(_CODES[kind], Node, ("Pci", "Pci.pci_class", "Pci.vendor", "Pci.device"), evaluate, where)


def _empty(snapshot: Snapshot, gap: EmptyPosition) -> Finding:
    switch = snapshot.of(Pci)[gap.switch]
    word, product = _WORDS[gap.kind], gap.device.name or f"{gap.device.vendor:04x}:{gap.device.device:04x}"
    words = word if gap.usual == 1 else f"{word}s"
    source = f"{gap.agree} of {gap.switches} equal switches of this node have {gap.usual}"
    return Finding(
        code=_CODES[gap.kind],
        severity="info" if gap.kind == "nvme" else "warning",  # many machines have disks in some of their bays
        confidence="likely",
        subject=gap.switch,
        subject_name=function_name(snapshot, switch),
        message=f"{function_name(snapshot, switch)} has {gap.have} of {gap.usual} {words} ({product}); {source}",
        expected=gap.usual,
        observed=gap.have,
        unit="devices",
        basis=COHORT,
        expected_source=source,
        cause=f"a missing {word}: it has no power, is badly seated or failed; or this machine was built without it",
        location=location(switch, snapshot),
        evidence=(Evidence("PCI functions", f"{gap.have} below {gap.switch}"),),
    )


def too_few(code: str, quantity: str, field: str, what: str, kind: str) -> Rule:
    """The rule for a count of the machine type."""

    def where(snapshot: Snapshot, node: Node) -> bool:
        known = profile(snapshot)
        by_machine = known is not None and getattr(known.machine, field) is not None
        return by_machine or bool(earlier_count(snapshot, kind))

    def evaluate(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
        claim = next((one for one in count_claims(snapshot) if one.subject == quantity), None)
        against = claim.contradicted if claim else None
        gone = len(_counted(snapshot, (*removed(snapshot, kind), *(lent(snapshot, kind) if kind == "nic" else ()))))
        elsewhere = kind == "nic" and against and against.by != "baseline"  # network/port_state.py
        if claim and against and not elsewhere and claim.observed + gone < against.least:
            known = profile(snapshot)
            by_machine = known is not None and against.by != "baseline"
            yield Finding(
                code=code,
                severity="info" if against.by == "baseline" and node.virtual else "critical",
                subject="node",
                message=f"{claim.observed:.0f} of the {against.least:.0f} {what} of {against.source} are there"
                if by_machine
                else f"{claim.observed:.0f} of {against.least:.0f} {what} are there; {against.source}",
                expected=against.least,
                observed=claim.observed,
                unit="devices",
                basis=BASES[against.by],
                expected_source=known.source if known and by_machine else against.source,
                cause=f"{what} that failed, are not on the bus, or are switched off in the firmware setup",
                evidence=(Evidence(quantity, f"{claim.observed:.0f}"),),
            )

    return Rule(code, Node, ("Node.product", "Node.vendor", *_NEEDS[field]), evaluate, where)


_NEEDS = {
    "rdma": ("Rdma", "Pci", "Pci.pci_class"),
    "nvme": ("Pci", "Pci.pci_class"),
    "sockets": ("Package",),
    "numa": ("Numa",),
}
RULES = (
    *map(empty_position, _CODES),
    too_few("nic-missing", NICS, "rdma", "RDMA NICs", "nic"),
    too_few("storage-missing", DISKS, "nvme", "NVMe disks", "nvme"),
    too_few("cpu-missing", SOCKETS, "sockets", "CPU packages", "package"),
    too_few("cpu-missing", NUMAS, "numa", "NUMA nodes with CPUs", "numa"),
)
