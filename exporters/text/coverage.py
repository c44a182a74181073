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
    "cohort": "cohort",
    "baseline": "history",
    "load": "load",
}
_ONE: Mapping[CoverageGroup, str] = {"links": "link", "counts": "count", "states": "state"}


def coverage_text(coverage: Coverage, brief: bool) -> str:
    """ "96 of 99 links corroborated: 40 by machine type, 56 by cohort; 3 uncorroborated: 0000:81:00.0, ...".

    `brief`: only the numbers, "96 of 99 links, 5 of 5 counts corroborated".
    """
    groups = [group for group in _ONE if _size(coverage, group)]
    if brief and groups:
        return f"{', '.join(_share(coverage, group) for group in groups)} corroborated"
    return ". ".join(_group(coverage, group) for group in groups)


def _share(coverage: Coverage, group: CoverageGroup) -> str:
    """ "96 of 99 links"."""
    return f"{sum(coverage.corroborated.get(group, {}).values())} of {counted(_size(coverage, group), _ONE[group])}"


def _size(coverage: Coverage, group: CoverageGroup) -> int:
    without = sum(one.group == group for one in coverage.uncorroborated)
    return sum(coverage.corroborated.get(group, {}).values()) + without


def _group(coverage: Coverage, group: CoverageGroup) -> str:
    by = coverage.corroborated.get(group, {})
    without = [safe(one.subject) for one in coverage.uncorroborated if one.group == group]
    text = f"{_share(coverage, group)} corroborated"
    text += f": {', '.join(f'{by[name]} by {_BY[name]}' for name in _BY if name in by)}" if by else ""
    return text + (f"; {len(without)} uncorroborated: {listed(without, _MOST)}" if without else "")
