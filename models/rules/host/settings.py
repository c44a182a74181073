"""System settings. The row of a setting in catalog/settings.toml says which values are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase

from ...catalog.settings import Row, settings
from ...facts.gpu import Gpu, GpuPair
from ...facts.machine import NcclFailure, Node, Numa, Nvme, Package, Setting
from ...facts.pci_classes import AMD, NVIDIA
from ...facts.records import NotChecked
from ...facts.units import as_bytes
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import SEVERITIES, Finding
from ..core.gpus import gpu_product
from ..core.rule import Rule
from ..pcie.direct_paths import (
    adapters,
    direct_gpus,
    fabric_nics,
    gpus,
    may_be_reached,
    may_peer,
    peers,
)
from .job_limits import NOT_A_JOB

_X86 = ("GenuineIntel", "AuthenticAMD", "HygonGenuine")
_UNLIMITED = "unlimited"
_FEWEST_REDUCED = 5  # GPUs with which NCCL reduces arrays in the switches of a node (models/bandwidth/message_times.py)


def _on_metal(snapshot: Snapshot) -> bool:
    """Whether there is no hypervisor. Few dumps show this, so for dumps True if it is not known."""
    node = snapshot.of(Node).get("node")
    unknown = snapshot.origin == "dumps" and (node is None or node.virtual is None)
    return unknown or (node is not None and node.virtual is False)


def _in_guest(snapshot: Snapshot) -> bool:
    node = snapshot.of(Node).get("node")
    return node is not None and node.virtual is True


def _x86(snapshot: Snapshot) -> bool:
    """Whether the processors are x86. For dumps also True if no processor is known."""
    vendors = [package.vendor for package in snapshot.of(Package).values() if package.vendor]
    return any(vendor in _X86 for vendor in vendors) or (snapshot.origin == "dumps" and not vendors)


def _gpus(snapshot: Snapshot) -> object:
    """GPUs on the PCI bus. For dumps, GPUs that only a driver reports count too."""
    return gpus(snapshot) or (snapshot.origin == "dumps" and snapshot.of(Gpu))


def _peer_traffic(snapshot: Snapshot) -> object:
    """Whether devices communicate over PCIe: by the PCI tree, or in dumps without a tree if GPUs have no NVLink."""
    known = snapshot.of(Gpu).values()
    joined = any(gpu.nvlinks for gpu in known) or any(
        "NV" in (pair.path or "") for pair in snapshot.of(GpuPair).values()
    )
    likely = (
        snapshot.origin == "dumps" and not gpus(snapshot) and len(known) > 1 and not joined and may_be_reached(snapshot)
    )
    return likely or peers(snapshot) or (direct_gpus(snapshot) and fabric_nics(snapshot))


def _reduces_in_switches(snapshot: Snapshot) -> bool:
    """Whether the NVSwitches of this machine can reduce arrays: those of NVLink 4 and later."""
    known = [gpu_product(snapshot, gpu) for gpu in snapshot.of(Gpu).values()]
    return len(known) >= _FEWEST_REDUCED and all(one and one.fabric and (one.link_version or 0) >= 4 for one in known)


def _disabled_nvlinks(snapshot: Snapshot) -> bool:
    """Whether the driver starts no NVLink, several GPUs have NVLinks without a bridge, and no state of a link was read.

    The option alone does not show that links are active. So nothing is judged if it is off.
    """
    setting = snapshot.of(Setting).get("nvlink_disable")
    if setting is None or setting.value != "1":
        return False
    known = [(gpu, gpu_product(snapshot, gpu)) for gpu in snapshot.of(Gpu).values()]
    linked = [gpu for gpu, product in known if product and product.links and not product.bridged]
    return len(linked) > 1 and all(gpu.nvlinks is None for gpu in linked)


# The conditions that `where` of a row may name.
CONDITIONS: Mapping[str, Callable[[Snapshot], object]] = {
    "gpu": _gpus,
    "nvidia gpu": lambda snapshot: [f for f in gpus(snapshot) if f.vendor == NVIDIA],
    "amd gpu": lambda snapshot: [f for f in gpus(snapshot) if f.vendor == AMD],
    "direct gpu": direct_gpus,
    "gpu peers": may_peer,
    "nvswitch reductions": _reduces_in_switches,
    "disabled nvlinks": _disabled_nvlinks,
    "rdma": lambda snapshot: adapters(snapshot) or "memory registration" in snapshot.of(NcclFailure),
    "adapter": adapters,
    "verbs": lambda snapshot: [one for one in adapters(snapshot) if one.driver != "efa"],
    "efa": lambda snapshot: [one for one in adapters(snapshot) if one.driver == "efa"],
    "numa": lambda snapshot: sum(bool(one.cpus) for one in snapshot.of(Numa).values()) > 1,
    "nvme": lambda snapshot: snapshot.of(Nvme),
    "x86": _x86,
    "arm": lambda snapshot: snapshot.of(Package) and not _x86(snapshot),
    "bare metal": _on_metal,
    "guest": _in_guest,
    "peer traffic": _peer_traffic,
    "gpudirect": lambda snapshot: (
        [f for f in direct_gpus(snapshot) if f.vendor == NVIDIA] and fabric_nics(snapshot, "mlx5_core")
    ),
}


def has_code(code: str) -> Callable[[Snapshot, Setting], bool]:
    """A rule's `where`: settings whose rows have this code and apply to this machine."""

    def where(snapshot: Snapshot, setting: Setting) -> bool:
        row = _applicable(snapshot).get(setting.key)
        return row is not None and row.code == code

    return where


def evaluate(snapshot: Snapshot, setting: Setting) -> Iterator[Finding | NotChecked]:
    """One finding for all settings of one code with unwanted values. The first of these settings yields it."""
    row = settings()[setting.key]
    if row.context == "job" and snapshot.context == "host":
        if not any(its.service for _, its in _rows(snapshot, row.code or "")):  # a service hands its limits on to jobs
            yield NOT_A_JOB
        return
    wrong = [(other, its) for other, its in _rows(snapshot, row.code or "") if wrong_values(its, other)]
    if not wrong or wrong[0][0].key != setting.key:
        return
    texts = [
        its.says.format(value=" and ".join(_in_words(its, one) for one in wrong_values(its, other)))
        for other, its in wrong
    ]
    value = " and ".join(wrong_values(row, setting))
    yield Finding(
        code=row.code or "",
        severity=min((its.severity for _, its in wrong), key=SEVERITIES.index),
        subject="node",
        fact=texts[0].partition(": ")[0] + (f", and {len(texts) - 1} more" if texts[1:] else ""),
        message="; ".join(texts),
        expected=_wanted(row),
        observed=int(value) if row.unit and value.isdecimal() else value,
        unit=row.unit,
        expected_source=row.source,
        cause="; ".join(dict.fromkeys(its.cause for _, its in wrong if its.cause)) or None,
        evidence=tuple(other.cites["value"] for other, _ in wrong if "value" in other.cites),
    )


def _in_words(row: Row, value: str) -> str:
    return as_bytes(int(value)) if row.unit == "bytes" and value.isdecimal() else value


def wrong_settings(snapshot: Snapshot, code: str) -> frozenset[str]:
    """The names of the settings of this code with unwanted values."""
    return frozenset(other.key for other, its in _rows(snapshot, code) if wrong_values(its, other))


def has_wrong_value(snapshot: Snapshot, name: str) -> bool:
    """Whether a setting was read and has an unwanted value, on any machine."""
    setting = snapshot.of(Setting).get(name)
    return setting is not None and bool(wrong_values(settings()[name], setting))


def _rows(snapshot: Snapshot, code: str) -> Iterator[tuple[Setting, Row]]:
    """The settings of a code that apply here, in the order of the catalog."""
    for name, row in _applicable(snapshot).items():
        outside = row.context == "job" and snapshot.context == "host"
        if row.code == code and not outside:
            yield snapshot.of(Setting)[name], row


@once_per_snapshot
def _applicable(snapshot: Snapshot) -> Mapping[str, Row]:
    """The rows of the catalog with a code whose settings were found and apply here, by name of the setting."""
    known = snapshot.of(Setting)
    return {name: row for name, row in settings().items() if row.code and name in known and _concerns(snapshot, row)}


def _concerns(snapshot: Snapshot, row: Row) -> bool:
    if not all(any(CONDITIONS[name](snapshot) for name in condition.split("|")) for condition in row.where):
        return False
    return all(_is(snapshot, name, patterns) for name, patterns in row.only.items()) and not any(
        _is(snapshot, name, patterns) for name, patterns in row.unless.items()
    )


def _is(snapshot: Snapshot, name: str, patterns: tuple[str, ...]) -> bool:
    setting = snapshot.of(Setting).get(name)
    return setting is not None and setting.value is not None and _matches(setting.value, patterns)


def wrong_values(row: Row, setting: Setting) -> list[str]:
    """The values of the setting (one, or several with ", " between them) that the row does not want."""
    return [value for value in (setting.value or "").split(", ") if value and not _right(row, value)]


def _right(row: Row, value: str) -> bool:
    if row.more_than is None and row.at_most is None:
        return not _matches(value, row.unwanted) if row.unwanted else _matches(value, row.wanted)
    if not value.isdecimal():
        return value == _UNLIMITED
    return int(value) > row.more_than if row.more_than is not None else int(value) <= (row.at_most or 0)


def _matches(value: str, patterns: tuple[str, ...]) -> bool:
    return value in patterns or any("*" in pattern and fnmatchcase(value, pattern) for pattern in patterns)


def _wanted(row: Row) -> int | str:
    if row.more_than is not None:
        return _UNLIMITED
    if row.at_most is not None:
        return row.at_most
    return " or ".join(row.wanted) if row.wanted else f"not {' or '.join(row.unwanted)}"


RULES = tuple(
    Rule(code, Setting, ("value",), evaluate, has_code(code))
    for code in dict.fromkeys(row.code for row in settings().values() if row.code)
)
