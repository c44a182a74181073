"""Devices that were there before and are absent, new devices, and devices that changed (models/inventory)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ...facts.machine import Node, Numa, Nvme, Pci
from ...facts.pci_classes import card_of
from ...facts.reason import Reason
from ...facts.records import Evidence, NotChecked
from ...facts.units import as_bytes, as_utc
from ...inventory.drivers import without_driver
from ...inventory.inventory import PARTS, Change, Item, last_seen, same_machine
from ...inventory.present import changes, earlier_item, namespaces, present, removed
from ...inventory.snapshot import Snapshot
from ...report import Finding, Severity
from ..core.gpus import absent_switches
from ..core.rule import Rule
from ..core.wording import cited, gap
from ..gpu import missing

_CODES = {"gpu": "gpu-missing", "nic": "nic-missing", "nvme": "storage-missing", "nvswitch": "nvswitch-error"}
# Codes of devices without their driver.
_UNUSED = {**_CODES, "gpu": "gpu-driver-failed"}
_READ_BY = {"nvme": ("Nvme?", "Pci.driver?"), "gpu": ("Gpu?", "Pci.driver?")}
_WORDS = {"gpu": "GPU", "nic": "NIC", "nvme": "NVMe disk", "nvswitch": "NVSwitch"}
_MEMORY = 0.95  # of the earlier size: a kernel reserves less than this, and a memory module is more
_PRESENT = "present"


def has_earlier(snapshot: Snapshot, node: Node) -> bool:
    """Select nodes with an earlier inventory of the same machine."""
    before = snapshot.inventory
    return snapshot.origin != "dumps" and before is not None and same_machine(before, present(snapshot))


def had_memory(snapshot: Snapshot, numa: Numa) -> bool:
    """Select NUMA nodes whose earlier memory is known."""
    return earlier_item(snapshot, "numa", numa.key) is not None


def _not_compared(snapshot: Snapshot) -> Iterator[NotChecked]:
    """That there were devices before, and no PCI function is visible now: the tree of the kernel is gone."""
    before = snapshot.inventory
    if before and before.of(*PARTS) and not snapshot.of(Pci):
        why = f"no PCI function is visible; {len(before.of(*PARTS))} devices were there at {as_utc(before.taken_at)}"
        yield from gap(snapshot, "devices of earlier", "node", Reason.HIDDEN, why, "ls /sys/bus/pci/devices")


def removal(kind: str) -> Rule:
    """The rule for devices of one kind that are not on the bus any more."""

    def evaluate(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
        yield from _not_compared(snapshot)
        named = missing.named(snapshot) if kind == "gpu" else _named_switches(snapshot, node)
        cards: dict[str, list[Item]] = {}
        for item in removed(snapshot, kind):
            if item.key not in named:
                cards.setdefault(card_of(item.key), []).append(item)
        yield from (_removed(snapshot, node, several) for several in cards.values())

    return Rule(_CODES[kind], Node, ("Pci", "Pci.pci_class"), evaluate, has_earlier)


def _named_switches(snapshot: Snapshot, node: Node) -> Collection[str]:
    """Absent switches that nvlink/nvswitch.py reports, which it does on bare metal."""
    return () if node.virtual or node.container else absent_switches(snapshot).keys()


def _removed(snapshot: Snapshot, node: Node, functions: list[Item]) -> Finding:
    """The finding about one card; a NIC can have several functions."""
    item = functions[0]
    then = as_utc(last_seen(snapshot.inventory, item)) if snapshot.inventory else ""
    others = f" (and {', '.join(one.key for one in functions[1:])})" if functions[1:] else ""
    slot = f", slot {item.slot}" if item.slot else ""
    return Finding(
        code=_CODES[item.kind],
        severity=_severity(node, functions),
        subject=item.key,
        subject_name=_name(item),
        fact=f"{_more(len(functions) - 1)} not on the bus any more",
        message=f"{_name(item)} at {item.key}{others}{slot} is not on the bus any more; it was there at {then}",
        expected=_PRESENT,
        observed="absent",
        basis="baseline",
        expected_source=f"the inventory of {then}",
        case="absent" if item.kind == "nvswitch" else "removed",
        cause="power, seating, a failed device, or a device that was taken out or switched off",
        location=_location(item) | _port_above(snapshot, item),
        evidence=(Evidence("PCI functions", f"{item.key} is not listed"),),
    )


def without_its_driver(kind: str) -> Rule:
    """The rule for devices of one kind that are on the bus, and that no driver uses any more."""

    def evaluate(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
        yield from (_without_its_driver(snapshot, old, new) for old, new in without_driver(snapshot, kind))

    return Rule(_UNUSED[kind], Node, ("Pci", "Pci.pci_class", *_READ_BY.get(kind, ())), evaluate, has_earlier)


def _without_its_driver(snapshot: Snapshot, old: Item, new: Item) -> Finding:
    then = as_utc(last_seen(snapshot.inventory, old)) if snapshot.inventory else ""
    now = f"its driver ({new.driver}) does not use it any more, and did at {then}"
    if not new.driver:
        now = f"it has no driver any more; {old.driver or 'a driver'} used it at {then}"
    return Finding(
        code=_UNUSED[old.kind],
        severity="critical" if old.kind in ("gpu", "nvswitch") else "warning",
        subject=old.key,
        subject_name=_name(old),
        fact="is on the bus and has no driver any more",
        message=f"{_name(old)} at {old.key}: {now}",
        expected=old.driver or "a driver",
        observed=new.driver or "none",
        basis="baseline",
        expected_source=f"the inventory of {then}",
        cause="the device failed its start or a reset, and the driver gave it up; or somebody unbound it",
        location=_location(old),
        evidence=(Evidence("PCI functions", f"{old.key}: driver {new.driver or 'none'}"),),
    )


def had_disks(snapshot: Snapshot, controller: Nvme) -> bool:
    """Select NVMe controllers that had disks (namespaces) before."""
    item = earlier_item(snapshot, "nvme", controller.address or "")
    return item is not None and item.namespaces is not None


def fewer_disks(snapshot: Snapshot, controller: Nvme) -> Iterator[Finding]:
    """An NVMe controller has fewer namespaces than before. A controller that failed has other findings."""
    item, number = earlier_item(snapshot, "nvme", controller.address or ""), namespaces(snapshot, controller.key)
    if item is None or number is None or not item.namespaces or number >= item.namespaces or _is_dead(controller):
        return
    then = as_utc(last_seen(snapshot.inventory, item)) if snapshot.inventory else ""
    yield Finding(
        code="storage-missing",
        severity="warning",
        subject=item.key,
        subject_name=_name(item),
        fact=f"has {number} of {item.namespaces} disks",
        message=f"{_name(item)} has {number} of the {item.namespaces} namespaces (disks) that it had at {then}",
        expected=item.namespaces,
        observed=number,
        unit="devices",
        basis="baseline",
        expected_source=f"the inventory of {then}",
        cause="the drive failed and lost its namespaces; or somebody deleted or detached them",
        location=_location(item),
        evidence=(Evidence("sys/class/block", f"{controller.key}: {number}"),),
    )


def _is_dead(controller: Nvme) -> bool:
    return controller.state is not None and controller.state != "live"


def _more(others: int) -> str:
    return f"and {others} more function{'s' if others > 1 else ''} are" if others else "is"


def _severity(node: Node, functions: list[Item]) -> Severity:
    """Clouds add and remove disks and NICs of running guests, but not GPUs."""
    kind = functions[0].kind
    if kind in ("gpu", "nvswitch"):
        return "critical"
    if node.virtual:
        return "info"
    return "critical" if any(item.rdma for item in functions) else "warning"


def _location(item: Item) -> dict[str, str | int | None]:
    known = {"slot": item.slot, "label": item.label, "module_id": item.module_id}
    return {name: value for name, value in known.items() if value}


def _port_above(snapshot: Snapshot, item: Item) -> dict[str, str | int | None]:
    """The nearest port above its place that is still there."""
    present_ports = (one for one in item.above if one in snapshot.of(Pci))
    return {"port_above": port} if (port := next(present_ports, None)) else {}


def _name(item: Item) -> str:
    """As wording.function_name, for a device that may be absent: "GPU gpu3 (NVIDIA Corporation GH100)"."""
    return f"{_WORDS[item.kind]} {item.alias or item.key}" + (f" ({item.name})" if item.name else "")


def changed(snapshot: Snapshot, node: Node) -> Iterator[Finding | NotChecked]:
    """Devices that are new, were swapped, have another address or other firmware. Equal changes are one finding."""
    yield from _not_compared(snapshot)
    groups: dict[tuple[str | None, ...], list[Change]] = {}
    for change in changes(snapshot):
        if change.now:
            groups.setdefault(_equal(change), []).append(change)
    for several in groups.values():
        yield _changed(snapshot, several)


def _equal(change: Change) -> tuple[str | None, ...]:
    """What equal changes have in common."""
    old, new = change.before, change.now
    assert new
    if change.kind == "firmware" and old:
        return change.kind, new.kind, new.product, old.firmware, new.firmware
    return change.kind, new.key


def _changed(snapshot: Snapshot, several: list[Change]) -> Finding:
    old, new = several[0].before, several[0].now
    assert new
    then = as_utc(snapshot.inventory.taken_at) if snapshot.inventory else ""
    what, expected, observed = _in_words(several[0].kind, old, new)
    more = [change.now.key for change in several[1:] if change.now]
    return Finding(
        code="device-changed",
        severity="info",
        subject=new.key,
        subject_name=_name(new),
        message=f"{_name(new)}{f' and {len(more)} equal devices' if more else ''}: {what} (compared with {then})",
        expected=expected,
        observed=observed,
        basis="baseline",
        expected_source=f"the inventory of {then}",
        location=_location(new),
        evidence=(Evidence("PCI functions", ", ".join((new.key, *more))),),
    )


def _in_words(kind: str, old: Item | None, new: Item) -> tuple[str, str | None, str | None]:
    """The change as text, and both values."""
    if old is None:
        return f"a new device at {new.key}", "absent", _PRESENT
    if kind == "firmware":
        return f"firmware {new.firmware}, before {old.firmware}", old.firmware, new.firmware
    if kind == "moved":
        return f"the device of {old.key} is at {new.key} now", old.key, new.key
    place = "" if old.key == new.key else f", which was at {old.key}"
    return f"it took the place of another device ({_name(old)}{place})", _name(old), _name(new)


def less_memory(snapshot: Snapshot, numa: Numa) -> Iterator[Finding]:
    """A NUMA node has less memory than before. Hypervisors change the memory of guests."""
    node = snapshot.of(Node)["node"]
    item = earlier_item(snapshot, "numa", numa.key)
    if item is None or not item.memory or numa.memory is None or node.virtual is not False:
        return
    if numa.memory < _MEMORY * item.memory:
        then = as_utc(snapshot.inventory.taken_at) if snapshot.inventory else ""
        yield Finding(
            code="numa-memory-missing",
            severity="warning",
            subject=numa.key,
            message=f"{numa.key} has {as_bytes(numa.memory)} of memory; it had {as_bytes(item.memory)} at {then}",
            expected=item.memory,
            observed=numa.memory,
            unit="bytes",
            basis="baseline",
            expected_source=f"the inventory of {then}",
            cause="a memory module that failed its test at start, or that was taken out",
            evidence=cited(numa, "memory"),
        )


RULES = (
    *map(removal, _CODES),
    *map(without_its_driver, _UNUSED),
    Rule("storage-missing", Nvme, ("Disk?",), fewer_disks, had_disks),
    Rule("device-changed", Node, ("Pci", "Pci.pci_class"), changed, has_earlier),
    Rule("numa-memory-missing", Numa, ("memory",), less_memory, had_memory),
)
