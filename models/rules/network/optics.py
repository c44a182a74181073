"""Optical modules that report values outside of their own thresholds."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.machine import Net
from ...facts.network_paths import Optics
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.rule import Rule
from ..core.wording import cited

_MOST_NAMED = 6


def outside(snapshot: Snapshot, module: Optics) -> Iterator[Finding]:
    """A temperature, power or current is beyond an alarm or warning threshold of the module.

    Without light on an unused port the receive power is low. So a module of a port without carrier is "info".
    """
    found = (*(module.alarms or ()), *(module.warnings or ()))
    if not found:
        return
    port = snapshot.of(Net).get(module.net or "")
    unused = port is not None and (port.enabled is False or port.carrier is False)
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    name = f"the optical module of {module.net}" if module.net else "an optical module"
    verb = "reports" if module.stated else "has values beyond its thresholds:"
    fields = ["alarms" if module.alarms else "warnings", *(["measured"] if module.measured else [])]
    yield Finding(
        code="nic-optics",
        severity="info" if unused else "warning",
        confidence="certain" if module.stated else "likely",
        subject=module.net or module.key,
        case=_case(found),
        fact=f"reports {', '.join(found[:_MOST_NAMED])}{more}",
        message=f"{name} {verb} {', '.join(found[:_MOST_NAMED])}{more}{_values(module)}",
        expected="none",
        observed=", ".join(found),
        cause="a laser that is off or failing, a dirty or bent fiber, no light from the other end, or heat",
        evidence=cited(module, *fields),
    )


def _values(module: Optics) -> str:
    """The measured values behind the alarms: "; laser output power: 0.1023 mW / -9.90 dBm"."""
    return "".join(f"; {value}" for value in (module.measured or ())[:_MOST_NAMED])


def _case(found: tuple[str, ...]) -> str | None:
    """ "heat" if all values are temperatures, "power" if none is."""
    hot = ["temperature" in one.lower() for one in found]
    return "heat" if all(hot) else None if any(hot) else "power"


RULES = (Rule("nic-optics", Optics, ("alarms", "warnings"), outside),)
