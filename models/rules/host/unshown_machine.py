"""Variables that switch off a fast path, in a text that does not show whether the machine has this path.

A log of NCCL alone names no PCI function and no RDMA device. Such a variable is information and a gap, because with the
path it would be critical.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.settings import Row, settings
from ...facts.machine import Pci, Rdma, Setting
from ...facts.reason import Reason
from ...facts.records import NotChecked
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited
from .settings import CONDITIONS, wrong_values

_CODE = "nccl-env"
_PATHS = frozenset({"rdma", "adapter", "verbs", "gpudirect"})
_HOW = "ibstat on this machine"


def is_undecided(snapshot: Snapshot, setting: Setting) -> bool:
    """Select variables of dumps whose row needs a path that no fact shows or excludes."""
    row = settings().get(setting.key)
    if row is None or row.code != _CODE or snapshot.origin != "dumps":
        return False
    if len(snapshot.of(Pci)) + len(snapshot.of(Rdma)):
        return False
    return bool(_missing(snapshot, row)) and _missing(snapshot, row) <= _PATHS


def _missing(snapshot: Snapshot, row: Row) -> set[str]:
    """The conditions of the row that no fact meets."""
    needed = (condition.split("|") for condition in row.where)
    return {name for names in needed if not any(CONDITIONS[one](snapshot) for one in names) for name in names}


def undecided(snapshot: Snapshot, setting: Setting) -> Iterator[Finding | NotChecked]:
    """The variable has a value that switches the path off."""
    row = settings()[setting.key]
    wrong = wrong_values(row, setting)
    if not wrong:
        return
    value = " and ".join(wrong)
    yield Finding(
        code=_CODE,
        severity="info",
        confidence="possible",
        subject="node",
        fact=f"{setting.key}={value} is in force",
        message=f"{row.says.format(value=value)}. The text does not show whether this machine has such a path",
        expected=f"not {value}",
        observed=value,
        expected_source=row.source,
        cause=row.cause,
        evidence=cited(setting, "value"),
    )
    why = f"{setting.key}={value}: the text does not show the devices of the machine"
    yield NotChecked(what="Setting", subject=setting.key, reason=Reason.INCOMPLETE, detail=why, how=_HOW)


RULES = (Rule(_CODE, Setting, ("value",), undecided, is_undecided),)
