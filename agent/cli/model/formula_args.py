"""`linkgauge formula`: turn its arguments into values and render the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from inspect import signature

import msgspec

from ....exporters.text.terminal import WIDTH, hanging, safe
from ....models.training.formulas import FORMULAS, PARAMETERS, computed, text_of
from ...inputs.site_file import BadInput
from .cluster_spec import ClusterSpec, cluster

_LABEL = 15


def listing() -> str:
    """Every formula: its parameters, and what it computes."""
    lines = list[str]()
    for name, function in FORMULAS.items():
        lines += hanging(f"{name} ", f"({', '.join(signature(function).parameters)})", WIDTH, 4)
        lines += hanging("    ", text_of(name), WIDTH)
    return "\n".join(lines)


def rendered(name: str, values: Sequence[str], machine: str | None, level: str, site: str | None, form: str) -> str:
    """The values of the formula, as text or JSON. Raises BadInput."""
    if name not in FORMULAS:
        near = get_close_matches(name, FORMULAS, 1)
        hint = f"did you mean {near[0]!r}?" if near else "'linkgauge formula' lists them"
        raise BadInput(f"no formula is called {name!r}; {hint}")
    known = _of_machine(machine, level, site) if machine else {}
    try:
        found = computed(name, _given(values), known)
    except ValueError as wrong:
        raise BadInput(str(wrong)) from None
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    lines = [f"{name:<{_LABEL}} {value:.5g} {unit}" for value, unit in zip(found.values, found.units, strict=True)]
    lines += ["", *hanging("", text_of(name), WIDTH), ""]
    for key, value in found.given.items():
        shown = f"{value:.6g}" if isinstance(value, (int, float)) else safe(str(value))
        lines += hanging(f"{key:<{_LABEL}} {shown:<12} ", PARAMETERS[key], WIDTH)
    return "\n".join(lines)


def _given(values: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not equals or not value:
            raise ValueError(f"{text!r}: write a parameter and its value: rate=400G")
        found[key] = value
    return found


def _of_machine(machine: str, level: str, site: str | None) -> Mapping[str, float]:
    """Values of the parameters that a machine type defines."""
    found = cluster(ClusterSpec(machine, 1 if level == "node" else 2, site=site))
    known = {"flops": found.flops, "rate": found.levels[0 if level == "node" else -1].rate}
    if found.gpu.memory_rate:
        known["memory_rate"] = found.gpu.memory_rate
    return {**known, "inside": found.levels[0].children}
