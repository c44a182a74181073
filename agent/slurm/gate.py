"""May a job run on this node? Answered from what the service found last; nothing is asked and nothing measured."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass

from ...models.site.gate import Cause, Gate, causes
from ..inputs import resolve as inputs
from ..state import status_file as last
from ..state.status_file import Unknown

_SECONDS = 1.0  # that a file system may take to say whether a file is there


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a gate has to go by."""

    gate: Gate
    causes: tuple[Cause, ...] = ()  # that close it, or would
    unknown: str | None = None  # why nobody knows how the node is
    at: float | None = None  # when it was found, in seconds since 1970
    disabled: str | None = None  # why every gate is open
    strict: bool = False  # closed without being enforced, for who can go elsewhere

    @property
    def closed(self) -> bool:
        """Whether the node alone would let no job in."""
        return bool(self.causes) and (self.gate.enforce or self.strict) and self.disabled is None

    def __str__(self) -> str:
        if not self.causes:
            return f"open, although nobody knows how the node is: {self.unknown}" if self.unknown else "open"
        first = self.causes[0]
        more = f" (and {len(self.causes) - 1} more)" if len(self.causes) > 1 else ""
        said = f"{first}{more}: {first.text}"
        if self.disabled:
            return f"open, because {self.disabled}; else it would close for {said}"
        return f"closed for {said}" if self.closed else f"open, and would close, were it enforced, for {said}"


def view(site: str | None, folder: str, strict: bool = False) -> View:
    """Of the node whose service keeps its state in the folder. Raises BadInput for a site file that is wrong."""
    gate = inputs.site(site).gate
    disabled = _disabled(gate.disable_file)
    try:
        found = last.read(folder)
    except Unknown as reason:
        return View(
            gate=gate, disabled=disabled, strict=strict, unknown=str(reason), causes=_blocked(gate, str(reason))
        )
    closing = tuple(causes(found.findings, gate))
    unknown = "what decides could not be judged: 'linkgauge diagnose' says what" if found.verdict == "unknown" else None
    if unknown and not closing:
        closing = _blocked(gate, unknown)
    return View(gate=gate, disabled=disabled, strict=strict, unknown=unknown, causes=closing, at=found.at)


def _blocked(gate: Gate, why: str) -> tuple[Cause, ...]:
    return (Cause("unknown", "node", why),) if gate.unknown == "block" else ()


def _disabled(path: str) -> str | None:
    """Why every gate is open, in words. A file system that hangs is reason enough: it hangs on all nodes at once."""
    there: list[bool] = []
    asking = threading.Thread(target=lambda: there.append(os.path.exists(path)), daemon=True)
    asking.start()
    asking.join(_SECONDS)
    if not there:
        return f"nothing says within {_SECONDS:g} s whether {path} is there"
    return f"{path} is there" if there[0] else None
