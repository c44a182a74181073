"""GPUs that are not there: too few of them, lost to their driver, or off the bus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...catalog.baseboards import baseboards
from ...catalog.gpus import product_of
from ...facts.gpu import Gpu
from ...facts.machine import Event, Node, Pci
from ...facts.pci_classes import NVIDIA
from ...facts.records import Evidence
from ...inventory.snapshot import Snapshot
from ...report import Basis, Finding
from ..core.like_gpus import (
    asked,
    called,
    function_of,
    held,
    is_lost,
    place_of,
    proof,
    subject_of,
)
from ..core.log_history import events, logged, since
from ..core.machine_expectations import profile
from ..core.rule import Rule

_FELL_OFF = 79  # Xid: the GPU has fallen off the bus
_MODULES = range(1, 9)  # numbers of the places on a board of eight (oci-dr-hpc shapes.json; HGX B200 captures)
_HALF = 4


@dataclass(frozen=True, slots=True)
class Whole:
    """How many GPUs the whole machine has, and who says so."""

    count: int
    name: str
    basis: Basis
    source: str


def whole(snapshot: Snapshot) -> Whole | None:
    """By the machine type; else by the baseboard, which shows by its NVSwitches or by the numbers of its modules."""
    known = profile(snapshot)
    if known and known.machine.gpus is not None:
        return Whole(known.machine.gpus, known.machine.name, known.basis, known.source)
    if not _bare(snapshot):
        return None
    return _by_switches(snapshot) or _by_modules(snapshot)


def _bare(snapshot: Snapshot) -> bool:
    """Where the whole machine is seen: guests and containers are given parts of it, dumps show parts."""
    node = snapshot.of(Node).get("node")
    return snapshot.origin != "dumps" and node is not None and node.virtual is False and not node.container


def _by_switches(snapshot: Snapshot) -> Whole | None:
    """By the NVSwitches, rounded up: one of them may be missing too."""
    ids = [f"{f.vendor:04x}:{f.device:04x}" for f in snapshot.functions("nvswitch") if f.device]
    for board in baseboards():
        if number := -(-ids.count(board.switch) // board.switches):
            name = board.name if number == 1 else f"{board.name} of {number} boards"
            return Whole(number * board.gpus, name, "profile", board.source)
    return None


def _by_modules(snapshot: Snapshot) -> Whole | None:
    """By the highest module number, on a board of eight of which more than half are seen.

    Only where nothing is hidden: every GPU is bound to the driver, which lists it and says its number. A gap is then
    one that is gone. Boards of four number theirs in other ways.
    """
    gpus = [gpu for gpu in snapshot.of(Gpu).values() if gpu.module_id in _MODULES]
    places = {gpu.module_id for gpu in gpus if gpu.module_id}
    products = [product_of(gpu, snapshot.of(Pci)) for gpu in gpus]
    alone = len(gpus) == len(places) == len(snapshot.of(Gpu)) == len(held(snapshot)) == len(_listed(snapshot))
    if not alone or len(places) <= _HALF or not all(product and product.fabric for product in products):
        return None
    return Whole(max(places), "this board", "profile", "modules of a baseboard are numbered from 1")


def _listed(snapshot: Snapshot) -> list[Pci]:
    """The NVIDIA GPUs on the bus."""
    return [f for f in snapshot.functions("gpu") if f.vendor == NVIDIA and not f.physfn]


def counted(snapshot: Snapshot, node: Node) -> bool:
    """Where somebody says how many there should be."""
    return whole(snapshot) is not None


def too_few(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """Fewer GPUs than the whole machine has, those aside that are missed by name."""
    full = whole(snapshot)
    assert full
    listed = [f for f in snapshot.functions("gpu") if not f.physfn]
    seen = len(listed) if listed else len(snapshot.of(Gpu))
    by_name = {*_lost_and_unlisted(snapshot), *fallen(snapshot)} if listed else set()
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
    """The places of the baseboard that nobody has, where they are as many as are absent."""
    taken = [gpu.module_id for gpu in snapshot.of(Gpu).values()]
    free = [number for number in range(1, count + 1) if number not in taken]
    clear = None not in taken and len(set(taken)) == len(taken) and count == len(_MODULES)
    return free if clear and len(free) == absent else []


def lost(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The driver says that the GPU is lost. Where the bus says it too, that is said under the function (lost.py)."""
    if not is_lost(gpu) or _said_of_function(snapshot, gpu):
        return
    yield Finding(
        code="gpu-missing",
        severity="critical",
        subject=subject_of(gpu),
        subject_name=called(snapshot, gpu),
        message=f"{called(snapshot, gpu)} is lost: its driver gets no answer from it ({gpu.failure})",
        expected="an answer",
        observed=gpu.failure,
        cause="it fell off the bus: power, overheating, firmware, or a dead link; the kernel log says which came first",
        location=place_of(snapshot, gpu),
        evidence=(*proof(gpu, "failure"), *logged(snapshot, gpu.address or "")),
    )


def _said_of_function(snapshot: Snapshot, gpu: Gpu) -> bool:
    if gpu.address:
        function = function_of(snapshot, gpu)
        return bool(function and function.lost)
    return any(function.lost for function in _listed(snapshot))


def _lost_and_unlisted(snapshot: Snapshot) -> set[str]:
    return {subject_of(gpu) for gpu in snapshot.of(Gpu).values() if is_lost(gpu) and function_of(snapshot, gpu) is None}


def fallen(snapshot: Snapshot) -> dict[str, Event]:
    """The addresses of which the kernel's log says that the GPU fell off the bus, and that are listed no more."""
    listed = snapshot.of(Pci) if snapshot.origin != "dumps" else {}  # a dump of lspci may show one function of many
    told = {event.subject: event for event in events(snapshot, "xid") if event.code == _FELL_OFF and event.subject}
    return {address: event for address, event in told.items() if listed and address not in listed}


def some_fell(snapshot: Snapshot, node: Node) -> bool:
    """Where the kernel's log names one."""
    return bool(fallen(snapshot))


def fell_off(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The kernel's log says that a GPU fell off the bus, and the bus does not list it any more."""
    known = _lost_and_unlisted(snapshot)
    for address, event in fallen(snapshot).items():
        if address in known:
            continue
        yield Finding(
            code="gpu-missing",
            severity="critical",
            subject=address,
            message=f"the GPU at {address} fell off the bus (Xid {_FELL_OFF}), and is not listed any more",
            expected="a GPU",
            observed="none",
            cause="power, overheating, firmware, or a dead link; what the kernel logged before says more",
            since=since(event),
            evidence=logged(snapshot, address),
        )


def gone(snapshot: Snapshot) -> frozenset[str]:
    """The addresses of GPUs that are said to be missing: what the log says of how they went adds nothing."""
    functions = {function.key for function in _listed(snapshot) if function.lost}
    return frozenset({*functions, *fallen(snapshot), *(subject_of(g) for g in snapshot.of(Gpu).values() if is_lost(g))})


RULES = (
    Rule("gpu-missing", Node, ("Pci", "Pci.pci_class", "Pci.vendor", "Node.product", "Node.vendor"), too_few, counted),
    Rule("gpu-missing", Node, ("Pci",), fell_off, some_fell),
    Rule("gpu-missing", Gpu, (), lost, asked),
)
