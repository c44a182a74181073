"""Missing GPUs: too few GPUs, GPUs that the driver has lost, and GPUs that fell off the bus."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ...catalog.baseboards import baseboards
from ...facts.gpu import Gpu
from ...facts.machine import Event, Node, Pci
from ...facts.pci_classes import NVIDIA
from ...facts.records import Evidence
from ...inventory.present import removed
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import Basis, Finding
from ..core.gpus import (
    bound_gpus,
    driver_was_queried,
    function_of,
    gpu_evidence,
    gpu_name,
    gpu_product,
    is_lost,
    place_of,
    subject_of,
)
from ..core.log_history import events, logged, since
from ..core.machine_expectations import profile
from ..core.rule import Rule

_FELL_OFF = 79  # Xid: the GPU has fallen off the bus
_MODULES = range(1, 9)  # module numbers on a board of eight (oci-dr-hpc shapes.json; HGX B200 captures)
_HALF = 4


class Whole(Struct, frozen=True):
    """The number of GPUs of the complete machine, and the source of the number."""

    count: int
    name: str
    basis: Basis
    source: str


@once_per_snapshot
def whole(snapshot: Snapshot) -> Whole | None:
    """The complete machine: by machine type, else by baseboard (its NVSwitches or module numbers). None: not known."""
    known = profile(snapshot)
    if known and known.machine.gpus is not None:
        return Whole(known.machine.gpus, known.machine.name, known.basis, known.source)
    if not _bare(snapshot):
        return None
    return _by_switches(snapshot) or _by_modules(snapshot)


def _bare(snapshot: Snapshot) -> bool:
    """Whether the whole machine is visible. Guests and containers see parts of it, dumps show parts."""
    node = snapshot.of(Node).get("node")
    return snapshot.origin != "dumps" and node is not None and node.virtual is False and not node.container


def _by_switches(snapshot: Snapshot) -> Whole | None:
    """The number of boards from the NVSwitches, rounded up, because a switch may be missing too."""
    ids = [f"{f.vendor:04x}:{f.device:04x}" for f in snapshot.functions("nvswitch") if f.device]
    for board in baseboards():
        if number := -(-ids.count(board.switch) // board.switches):
            name = board.name if number == 1 else f"{board.name} of {number} boards"
            return Whole(number * board.gpus, name, "profile", board.source)
    return None


def _by_modules(snapshot: Snapshot) -> Whole | None:
    """The number of GPUs from the highest module number, on a board of eight with more than half of the GPUs visible.

    It requires that every GPU is bound to the driver and that the driver reports its module number. Then a gap in the
    numbers is a missing GPU. Boards of four use other numbers.
    """
    gpus = [gpu for gpu in snapshot.of(Gpu).values() if gpu.module_id in _MODULES]
    places = {gpu.module_id for gpu in gpus if gpu.module_id}
    products = [gpu_product(snapshot, gpu) for gpu in gpus]
    alone = len(gpus) == len(places) == len(snapshot.of(Gpu)) == len(bound_gpus(snapshot)) == len(_listed(snapshot))
    if not alone or len(places) <= _HALF or not all(product and product.fabric for product in products):
        return None
    return Whole(max(places), "this board", "profile", "modules of a baseboard are numbered from 1")


def _listed(snapshot: Snapshot) -> list[Pci]:
    """The NVIDIA GPUs on the bus."""
    return [f for f in snapshot.functions("gpu") if f.vendor == NVIDIA and not f.physfn]


def has_expected_count(snapshot: Snapshot, node: Node) -> bool:
    """Select nodes with a known number of GPUs."""
    return whole(snapshot) is not None


def too_few(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The node has fewer GPUs than the complete machine. GPUs that other findings name as missing do not count."""
    full = whole(snapshot)
    assert full
    listed = [f for f in snapshot.functions("gpu") if not f.physfn]
    seen = len(listed) if listed else len(snapshot.of(Gpu))
    by_name = named(snapshot) if listed else frozenset()
    by_name |= {item.key for item in removed(snapshot, "gpu")}
    if seen + len(by_name) >= full.count:
        return
    gap = _gap(snapshot, full.count, full.count - seen)
    yield Finding(
        code="gpu-missing",
        severity="critical",
        subject="node",
        message=f"{seen} of the {full.count} GPUs of {full.name} are there"
        + (f"; no answer from module {' and '.join(map(str, gap))}" if gap else ""),
        expected=full.count,
        observed=seen,
        unit="gpus",
        basis=full.basis,
        expected_source=full.source,
        cause="a GPU that is not on the bus at all: power, seating, or taken out",
        location={"module_id": gap[0] if len(gap) == 1 else ", ".join(map(str, gap))} if gap else {},
        evidence=(Evidence("PCI functions", ", ".join(f.key for f in listed) or "no GPU"),),
    )


def _gap(snapshot: Snapshot, count: int, absent: int) -> list[int]:
    """The module numbers without a GPU, if there are as many of them as missing GPUs."""
    taken = [gpu.module_id for gpu in snapshot.of(Gpu).values()]
    free = [number for number in range(1, count + 1) if number not in taken]
    clear = None not in taken and len(set(taken)) == len(taken) and count == len(_MODULES)
    return free if clear and len(free) == absent else []


def lost(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The driver reports that the GPU is lost. pcie/not_responding.py reports it if the bus shows it too."""
    if not is_lost(gpu) or _function_is_lost(snapshot, gpu):
        return
    yield Finding(
        code="gpu-missing",
        severity="critical",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)} is lost: its driver gets no answer from it ({gpu.failure})",
        expected="an answer",
        observed=gpu.failure,
        cause="it fell off the bus: power, overheating, firmware, or a dead link; the kernel log says which came first",
        location=place_of(snapshot, gpu),
        evidence=(*gpu_evidence(gpu, "failure"), *logged(snapshot, gpu.address or "")),
    )


def _function_is_lost(snapshot: Snapshot, gpu: Gpu) -> bool:
    if gpu.address:
        function = function_of(snapshot, gpu)
        return bool(function and function.lost)
    return any(function.lost for function in _listed(snapshot))


def _lost_and_unlisted(snapshot: Snapshot) -> set[str]:
    return {subject_of(gpu) for gpu in snapshot.of(Gpu).values() if is_lost(gpu) and function_of(snapshot, gpu) is None}


@once_per_snapshot
def off_the_bus(snapshot: Snapshot) -> dict[str, Event]:
    """The addresses of GPUs that fell off the bus by the kernel's log and are not listed any more, with the event."""
    listed = snapshot.of(Pci) if snapshot.origin != "dumps" else {}  # a dump of lspci may show one function of many
    logged = {event.subject: event for event in events(snapshot, "xid") if event.code == _FELL_OFF and event.subject}
    return {address: event for address, event in logged.items() if listed and address not in listed}


def named(snapshot: Snapshot) -> frozenset[str]:
    """The addresses of GPUs that are not on the bus and that the driver or the kernel's log names."""
    return frozenset({*_lost_and_unlisted(snapshot), *off_the_bus(snapshot)})


def any_off_the_bus(snapshot: Snapshot, node: Node) -> bool:
    """Select nodes whose kernel's log names such a GPU."""
    return bool(off_the_bus(snapshot))


def fell_off(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The kernel's log says that a GPU fell off the bus, and the bus does not list it any more."""
    known = _lost_and_unlisted(snapshot)
    for address, event in off_the_bus(snapshot).items():
        if address in known:
            continue
        yield Finding(
            code="gpu-missing",
            severity="critical",
            subject=address,
            fact=f"fell off the bus (Xid {_FELL_OFF})",
            message=f"the GPU at {address} fell off the bus (Xid {_FELL_OFF}), and is not listed any more",
            expected="a GPU",
            observed="none",
            cause="power, overheating, firmware, or a dead link; see the kernel log before this event",
            since=since(event),
            evidence=logged(snapshot, address),
        )


@once_per_snapshot
def gone(snapshot: Snapshot) -> frozenset[str]:
    """The addresses of GPUs that a finding reports as missing. Other rules skip the log events of these GPUs."""
    functions = {function.key for function in _listed(snapshot) if function.lost}
    return frozenset(
        {*functions, *off_the_bus(snapshot), *(subject_of(g) for g in snapshot.of(Gpu).values() if is_lost(g))}
    )


RULES = (
    Rule(
        "gpu-missing",
        Node,
        ("Pci", "Pci.pci_class", "Pci.vendor", "Node.product", "Node.vendor"),
        too_few,
        has_expected_count,
    ),
    Rule("gpu-missing", Node, ("Pci",), fell_off, any_off_the_bus),
    Rule("gpu-missing", Gpu, (), lost, driver_was_queried),
)
