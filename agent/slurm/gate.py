"""Decide whether a job may run on this node. The only input is the status file; nothing is read or measured."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from ...models.site.gate import Cause, Gate, causes
from ..inputs import resolve as inputs
from ..state import status_file
from ..state.status_file import Unknown

_UNKNOWN = "some vital checks could not be evaluated: 'linkgauge diagnose' lists them"
_SECONDS = 1.0  # timeout of the check whether a file exists


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The state of a gate and its reasons."""

    gate: Gate
    causes: tuple[Cause, ...] = ()  # findings that close it, or would if it were enforced
    unknown: str | None = None  # why the status of the node is unknown
    at: float | None = None  # time of the status, in seconds since 1970
    disabled: str | None = None  # why all gates are disabled
    strict: bool = False  # close although the site file does not enforce it: the job can use another node

    @property
    def closed(self) -> bool:
        """Whether the gate refuses jobs."""
        return bool(self.causes) and (self.gate.enforce or self.strict) and self.disabled is None

    def __str__(self) -> str:
        if not self.causes:
            return f"open, although the status of the node is unknown: {self.unknown}" if self.unknown else "open"
        first = self.causes[0]
        more = f" (and {len(self.causes) - 1} more)" if len(self.causes) > 1 else ""
        reasons = f"{first}{more}: {first.text}"
        if self.disabled:
            return f"open, because {self.disabled}; else it would close for {reasons}"
        return f"closed for {reasons}" if self.closed else f"open; with enforce = true it would close for {reasons}"


def view(site: str | None, folder: str, strict: bool = False) -> View:
    """The gate of the node whose service uses this state folder. Raises BadInput if the site file is wrong."""
    gate = inputs.site(site).gate
    disabled = _disabled(gate.disable_file)
    try:
        found = status_file.read(folder)
    except Unknown as reason:
        return View(
            gate=gate, disabled=disabled, strict=strict, unknown=str(reason), causes=_blocked(gate, str(reason))
        )
    closing = tuple(causes(found.findings, gate))
    unknown = _UNKNOWN if found.verdict == "unknown" else None
    if unknown and not closing:
        closing = _blocked(gate, unknown)
    return View(gate=gate, disabled=disabled, strict=strict, unknown=unknown, causes=closing, at=found.at)


def _blocked(gate: Gate, why: str) -> tuple[Cause, ...]:
    return (Cause("unknown", "node", why),) if gate.unknown == "block" else ()


def _disabled(path: str) -> str | None:
    """Why all gates are disabled, as text. A hung file system disables them too: it hangs on all nodes at once."""
    exists: list[bool] = []
    check = threading.Thread(target=lambda: exists.append(os.path.exists(path)), daemon=True)
    check.start()
    check.join(_SECONDS)
    if not exists:
        return f"the file system of {path} did not answer within {_SECONDS:g} s"
    return f"{path} exists" if exists[0] else None
