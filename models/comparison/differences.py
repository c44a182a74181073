"""The differences between two sides, the most relevant first. Equal differences of several devices are one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..facts.records import Flow
from ..graph.path_types import natural
from ..report import Finding, Report
from .fields import GROUPS, Field, Group
from .pairs import paired
from .side import TRAINED, Item, Side, Value

# Shares by which equal rates and capacities differ without a reason. The scatter of copies is 0.2 to 2 %
# (docs/reference/accuracy.md); a firmware does not always keep equally many megabytes of the memory.
_NOISE = {"rates": 0.05, "hardware": 0.01}
# A device that only one side has is a difference. Bridges and virtual interfaces come and go with others.
_STATES = frozenset({"Setting", "Service", "Mount", "Driver"})
_DEVICES = frozenset(
    {
        *("gpu", "nic", "nvme", "nvswitch", "storage", "disk", "port", "display", "pci", "package", "numa"),
        *("Gpu", "Rdma", "Port", "Nvme", "Disk", "Package", "Array"),
    }
)


class Difference(Struct, frozen=True, kw_only=True):
    """What differs for one or more devices. None: this side does not have it."""

    group: Group
    devices: tuple[str, ...]  # names; () for the node
    what: str
    a: Value | None
    b: Value | None
    unit: str | None = None


class Comparison(Struct, frozen=True, kw_only=True):
    """The differences, and what could not be compared."""

    differences: tuple[Difference, ...]
    compared: int  # number of values that both sides have
    not_compared: tuple[str, ...]


def compare(a: Side, b: Side) -> Comparison:
    """Compare two nodes, or one node at two times."""
    pairs = paired(a, b)
    both = [(a.items[one], b.items[other]) for one, other in pairs.items()]
    names = {theirs.name: ours.name for ours, theirs in both} | {pairs[one]: one for one in pairs}
    found = [*_verdict(a.report, b.report), *_present(a, b, pairs)]
    for ours, theirs in both:
        found += _values(ours, theirs)
    found += _findings(a.report, b.report, names)
    found += _rates(a.report, b.report, names)
    compared = sum(len(ours.values.keys() & theirs.values.keys()) for ours, theirs in both)
    return Comparison(differences=_merged(found), compared=compared, not_compared=tuple(_left_out(a, b)))


def _verdict(a: Report, b: Report) -> Iterator[Difference]:
    types = [one.profile.name if one.profile else "none" for one in (a, b)]
    for what, one, other in (("verdict", a.verdict, b.verdict), ("machine type", *types)):
        if one != other:
            yield Difference(group="verdict", devices=(), what=what, a=one, b=other)


def _present(a: Side, b: Side, pairs: Mapping[str, str]) -> Iterator[Difference]:
    """Devices, settings and services that only one side has."""
    states = a.complete and b.complete
    for side, done in ((a, pairs.keys()), (b, set(pairs.values()))):
        for key, item in side.items.items():
            group = _group(item.kind, states)
            if key in done or group is None:
                continue
            shown = item.product if item.product not in ("", key) else "present"
            here, there = (shown, None) if side is a else (None, shown)
            yield Difference(group=group, devices=(item.name,), what=item.kind, a=here, b=there)


def _group(kind: str, states: bool) -> Group | None:
    """The group of a difference in presence. `states`: whether both sides know settings. None: it says nothing."""
    if kind in _DEVICES:
        return "devices"
    return "settings" if kind in _STATES and states else None


def _values(ours: Item, theirs: Item) -> Iterator[Difference]:
    """Values that both sides know and that differ. A trained rate follows from width and speed, which say more."""
    differing = {
        field
        for field in ours.values.keys() & theirs.values.keys()
        if not _equal(ours.values[field], theirs.values[field], _NOISE.get(field.group, 0.0))
    }
    says_more = any(field.group == "links" and field != TRAINED for field in differing)
    for field in ours.values:
        if field in differing and not (field == TRAINED and says_more):
            yield _difference(ours, field, theirs)


def _difference(ours: Item, field: Field, theirs: Item) -> Difference:
    return Difference(
        group=field.group,
        devices=(ours.name,),
        what=field.label,
        a=ours.values[field],
        b=theirs.values[field],
        unit=field.unit,
    )


def _equal(one: Value, other: Value, noise: float) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) <= noise * max(abs(one), abs(other))
    return one == other


def _findings(a: Report, b: Report, names: Mapping[str, str]) -> Iterator[Difference]:
    """Findings that only one side has. The subjects of `b` have the names of `a`."""

    def by_subject(report: Report, names: Mapping[str, str]) -> Mapping[tuple[str, str], Finding]:
        return {
            (one.code, "-".join(names.get(end, end) for end in one.subject.split("-"))): one for one in report.findings
        }

    ours, theirs = by_subject(a, {}), by_subject(b, names)
    for key in ours.keys() | theirs.keys():
        if key in ours and key in theirs:
            continue
        finding = ours.get(key) or theirs[key]
        fact = finding.fact or finding.message
        yield Difference(
            group="findings",
            devices=(finding.device or finding.subject,),
            what=finding.code,
            a=fact if key in ours else None,
            b=fact if key in theirs else None,
        )


def _rates(a: Report, b: Report, names: Mapping[str, str]) -> Iterator[Difference]:
    """Measured rates of equal flows."""

    def renamed(flow: Flow) -> Flow:
        beside = tuple(tuple(names.get(end, end) for end in ends) for ends in flow.beside)
        return replace(flow, ends=tuple(names.get(end, end) for end in flow.ends), beside=beside)

    theirs = {renamed(level.flow): level.observed for level in b.levels if level.observed}
    for level in a.levels:
        other = theirs.get(level.flow)
        if level.observed and other and not _equal(level.observed, other, _NOISE["rates"]):
            yield Difference(
                group="rates",
                devices=(level.flow.subject,),
                what=level.op,
                a=level.observed,
                b=other,
                unit="bytes_per_second",
            )


def _merged(found: list[Difference]) -> tuple[Difference, ...]:
    """Equal differences of several devices as one, in the order of the groups and of the devices."""
    alike: dict[Difference, list[str]] = defaultdict(list)
    for one in found:
        alike[replace(one, devices=())].extend(one.devices)
    merged = [replace(one, devices=tuple(sorted(names, key=natural))) for one, names in alike.items()]
    return tuple(sorted(merged, key=lambda one: GROUPS.index(one.group)))


def _left_out(a: Side, b: Side) -> Iterator[str]:
    if not (a.complete and b.complete):
        yield "settings and most versions: a report does not contain them; compare captures (linkgauge capture)"
    if not any(level.observed for level in a.report.levels) or not any(level.observed for level in b.report.levels):
        yield "rates: not measured on both sides"
