"""GPUs and NICs at other PCI addresses than the machine type has: swapped cables or cards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...facts.gpu import Gpu
from ...facts.machine import Node, Pci, Rdma
from ...facts.reason import Reason
from ...facts.records import Evidence, NotChecked
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.machine_expectations import profile
from ..core.rule import Rule
from ..core.wording import gap

_SAME = 0.5  # share of the addresses; with fewer matches, the firmware numbers the buses differently
_MOST_NAMED = 4  # devices that a message names


def has_places(snapshot: Snapshot, node: Node) -> bool:
    """Select nodes whose machine type has PCI addresses of devices."""
    mine = profile(snapshot)
    return mine is not None and bool(mine.machine.gpu_places or mine.machine.nic_places)


def misplaced(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """Devices at unexpected addresses. One finding, because a misplaced device takes the place of another."""
    mine = profile(snapshot)
    assert mine
    here = {str(gpu.module_id): gpu.address for gpu in snapshot.of(Gpu).values() if gpu.module_id is not None}
    nics = [one.address for one in snapshot.of(Rdma).values() if one.address and not _is_virtual(snapshot, one.address)]
    wanted = [*mine.machine.gpu_places.values(), *mine.machine.nic_places]
    found = {address for address in (*here.values(), *nics) if address}
    if len(found & set(wanted)) < _SAME * min(len(wanted), len(found)):
        why = f"hardly any PCI address matches {mine.machine.name}: the firmware numbers the buses differently"
        yield from gap(
            snapshot, "places of devices", "node", Reason.OTHER, why, "write the machine type anew: linkgauge profile"
        )
        return
    moved = [*_gpus(mine.machine.gpu_places, here), *_nics(mine.machine.nic_places, nics)]
    if not moved:
        return
    more = f" and {len(moved) - _MOST_NAMED} more" if len(moved) > _MOST_NAMED else ""
    named = ", ".join(f"{name} is at {at}, not at {due}" for name, at, due in moved[:_MOST_NAMED])
    yield Finding(
        code="device-misplaced",
        severity="warning",
        # At other addresses than those of the machine type, the buses may be renumbered.
        confidence="certain" if all(at in wanted for _, at, _ in moved) else "likely",
        subject=moved[0][1] if len(moved) == 1 else "node",
        message=f"not where {mine.machine.name} has it: {named}{more}",
        expected=", ".join(due for _, _, due in moved),
        observed=", ".join(at for _, at, _ in moved),
        basis=mine.basis,
        expected_source=mine.source,
        cause="cables or cards that were swapped when the machine was built or repaired",
        evidence=tuple(Evidence(name, at) for name, at, _ in moved),
    )


def _gpus(places: Mapping[str, str], here: Mapping[str, str | None]) -> Iterator[tuple[str, str, str]]:
    """Misplaced GPUs by module number: name, actual address, expected address."""
    for module, due in places.items():
        at = here.get(module)
        if at and at != due:
            yield f"GPU module {module}", at, due


def _nics(places: Sequence[str], here: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Pairs each NIC at an unexpected address with an empty expected address: name, actual, expected.

    If there are more NICs than places, none is paired. Missing NICs belong to port_state.py.
    """
    lost = [due for due in places if due not in here]
    strange = [at for at in here if at not in places]
    for at, due in zip(strange, lost, strict=False) if len(here) <= len(places) else ():
        yield "a NIC", at, due


def _is_virtual(snapshot: Snapshot, address: str) -> bool:
    function = snapshot.of(Pci).get(address)
    return function is not None and function.physfn is not None


RULES = (Rule("device-misplaced", Node, ("Gpu", "Rdma", "Node.product"), misplaced, has_places),)
