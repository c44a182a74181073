"""The repair ticket of one device as text: location, part, findings, evidence and tests done."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...models.catalog import codes
from ...models.facts.gpu import Driver
from ...models.facts.machine import Node
from ...models.facts.records import Fact
from ...models.facts.registry import kind_name
from ...models.facts.units import as_gigabytes, as_utc
from ...models.inventory.inventory import last_seen
from ...models.inventory.name_resolver import is_present, names_of
from ...models.inventory.snapshot import Snapshot
from ...models.report import Finding, Level, Report
from ..text.quantities import quantity, seen
from ..text.terminal import hanging, safe
from ..text.vocabulary import in_words

WIDTH = 98
_PART_FIELDS = (  # fields of facts that identify a part, in this order
    "name",
    "model",
    "hca_type",
    "board_part",
    "board_id",
    "vbios",
    "firmware",
    "driver",
    "slot",
    "label",
    "module_id",
    "address",
    "rate",
    "width",
    "max_width",
    "state",
    "physical_state",
)
_MACHINE = ("vendor", "product", "board", "bios", "kernel")


def as_ticket(snapshot: Snapshot, report: Report, subject: str, serials: Mapping[str, str] | None) -> str:
    """The ticket. `serials`: name -> serial number, None without --serial. The subject "node" has all findings."""
    names = names_of(snapshot, subject) or frozenset({subject})
    about = [one for one in report.findings if subject == "node" or one.subject in names or _touches(one, names)]
    sections = (
        _machine(snapshot, report, serials),
        _part(snapshot, names, serials) if subject != "node" else [],
        *(_finding(one) for one in about),
        [] if about else _nothing(report, subject),
        _tests(report, names if subject != "node" else None),
    )
    return "\n\n".join("\n".join(lines) for section in sections if (lines := list(section))) + "\n"


def _nothing(report: Report, subject: str) -> list[str]:
    about = "No finding" if subject == "node" else f"No finding is about {safe(subject)}"
    return [f"{about}; the verdict on the node is {report.verdict}."]


def _touches(finding: Finding, names: frozenset[str]) -> bool:
    """Whether the finding limits a link that ends at one of the names: "0000:52:01.0>0000:53:00.0"."""
    return any(not names.isdisjoint(link.split(">")) for link in finding.limits)


def _machine(snapshot: Snapshot, report: Report, serials: Mapping[str, str] | None) -> Iterator[str]:
    yield f"TICKET  {safe(report.node or 'unnamed node')}  {safe(report.taken_at or '')}"
    node = snapshot.of(Node).get("node")
    if node:
        for name in _MACHINE:
            yield from _row(name.upper() if name == "bios" else name, getattr(node, name))
    yield from _row("machine type", report.profile.name if report.profile else None)
    yield from _row("place", ", ".join(f"{name} {value}" for name, value in snapshot.site.labels.items()) or None)
    for driver in snapshot.of(Driver).values():
        yield from _row(f"{driver.key} driver", driver.version)
    yield from _serial(serials, {"node"})


def _part(snapshot: Snapshot, names: frozenset[str], serials: Mapping[str, str] | None) -> Iterator[str]:
    yield f"PART  {', '.join(map(safe, sorted(names)))}"
    shown: dict[str, object] = {}
    for fact in _facts(snapshot, names):
        known = fact.__struct_fields__
        kind = kind_name(type(fact))
        for name in _PART_FIELDS:
            value = getattr(fact, name) if name in known else None
            if value is not None:
                words = in_words(kind, [name], "", False).removesuffix(" of ")
                text = as_gigabytes(value) if name == "rate" else value
                shown.setdefault(words, text)
    if not shown:
        yield from _absent(snapshot, names)
    for words, text in shown.items():
        yield from _row(words, text)
    for name in sorted(names & snapshot.site.cables.keys()):
        yield from _row(f"cable of {name}", snapshot.site.cables[name])
    yield from _serial(serials, names)
    yield from _renamed(snapshot, names)


def _absent(snapshot: Snapshot, names: frozenset[str]) -> Iterator[str]:
    """A device that is absent, from the inventory of earlier."""
    before = snapshot.inventory
    item = next(filter(None, map(before.find, sorted(names))), None) if before else None
    if before and item:
        yield from _row("state", f"absent; it was there at {as_utc(last_seen(before, item))}")
        yield from _row("name", item.name)
        yield from _row("firmware", item.firmware)
        yield from _row("PSID" if item.rdma else "board part", item.part)
        yield from _row("slot", item.slot)
        yield from _row("label", item.label)
        yield from _row("module id", item.module_id)
        yield from _row("PCI address", item.key)


def _renamed(snapshot: Snapshot, names: frozenset[str]) -> Iterator[str]:
    """Absent devices that had the name of this one before."""
    for item in snapshot.inventory.devices if snapshot.inventory else ():
        if item.alias in names and item.key not in names and not is_present(snapshot, item.key):
            yield from _row("caution", f"{item.alias} was the device at {item.key} before, which is absent")


def _facts(snapshot: Snapshot, names: frozenset[str]) -> Iterator[Fact]:
    for facts in snapshot.facts.values():
        for fact in facts.values():
            if fact.key in names or getattr(fact, "address", None) in names:
                yield fact


def _serial(serials: Mapping[str, str] | None, names: frozenset[str] | set[str]) -> Iterator[str]:
    if serials is None:
        yield from _row("serial number", "not asked for (--serial)")
        return
    found = [serials[name] for name in sorted(names) if name in serials]
    yield from _row("serial number", found[0] if found else "not shown (root may read more)")


def _finding(finding: Finding) -> Iterator[str]:
    yield f"{finding.severity.upper()}  {finding.code}  {safe(finding.subject)}"
    yield from hanging("  ", safe(finding.message), WIDTH)
    unit = finding.unit
    yield from _row("expected", quantity(finding.expected, unit) if finding.expected is not None else None)
    yield from _row("observed", quantity(finding.observed, unit) if finding.observed is not None else None)
    yield from _row("after", finding.expected_source)
    yield from _row("likely cause", finding.cause)
    place = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in finding.location.items() if value)
    yield from _row("where", place or None)
    yield from _row("since", finding.since)
    for line in finding.evidence:
        yield from _row("seen", seen(line))
    yield from _row("to confirm", "")
    yield from (f"    {command}" for command in codes()[finding.code].confirm)  # not wrapped, for copying


def _tests(report: Report, names: frozenset[str] | None) -> Iterator[str]:
    yield "TESTS DONE"
    done = [run.name.replace("_", " ") for run in report.runs if run.ok]
    failed = [run.name.replace("_", " ") for run in report.runs if not run.ok]
    yield from _row("read", ", ".join(done) or None)
    yield from _row("failed", ", ".join(failed) or None)
    for level in _measured(report.levels, names):
        best = f", typically {as_gigabytes(level.expected[0].typical)}" if level.expected else ""
        yield from _row("measured", f"{level.op} {level.flow.subject}: {as_gigabytes(level.observed or 0.0)}{best}")
    evaluated = sum(report.checks.values())
    yield from _row("judged", f"{evaluated} of {len(report.checks)} checks")


def _measured(levels: Sequence[Level], names: frozenset[str] | None) -> list[Level]:
    return [one for one in levels if one.observed is not None and (names is None or not names.isdisjoint(one.ends))]


def _row(label: str, value: object) -> Iterator[str]:
    if value is not None:
        yield from hanging(f"  {label:<22}", safe(str(value)), WIDTH)
