"""The line that states how well the verdict is supported by independent evidence."""

from __future__ import annotations

from collections.abc import Mapping

from ...models.report import Corroboration, Coverage, CoverageGroup
from .terminal import safe
from .vocabulary import counted, listed

_MOST = 4  # subjects named in the line; the JSON has all
_BY: Mapping[Corroboration, str] = {
    "site": "site file",
    "profile": "machine type",
    "product": "product",
    "kin": "cohort",
    "baseline": "history",
    "load": "load",
}
_ONE: Mapping[CoverageGroup, str] = {"links": "link", "counts": "count", "states": "state"}


def coverage_text(coverage: Coverage) -> str:
    """ "96 of 99 links corroborated: 40 by machine type, 56 by cohort; 3 uncorroborated: 0000:81:00.0, ..."."""
    return ". ".join(_group(coverage, group) for group in _ONE if _size(coverage, group))


def _size(coverage: Coverage, group: CoverageGroup) -> int:
    without = sum(one.group == group for one in coverage.uncorroborated)
    return sum(coverage.corroborated.get(group, {}).values()) + without


def _group(coverage: Coverage, group: CoverageGroup) -> str:
    by = coverage.corroborated.get(group, {})
    without = [safe(one.subject) for one in coverage.uncorroborated if one.group == group]
    text = f"{sum(by.values())} of {counted(_size(coverage, group), _ONE[group])} corroborated"
    text += f": {', '.join(f'{by[name]} by {_BY[name]}' for name in _BY if name in by)}" if by else ""
    return text + (f"; {len(without)} uncorroborated: {listed(without, _MOST)}" if without else "")
