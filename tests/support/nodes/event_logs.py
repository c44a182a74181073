"""Kernel logs of a node, and the findings that they cause."""

from __future__ import annotations

from linkgauge.models.evaluate import apply_rules
from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding, Origin
from linkgauge.models.site.schema import Site
from linkgauge.probes.kernel_log.patterns import group_events

NOW = 1.8e9
Summary = tuple[str, str, str]


def log(*lines: str, last: float = NOW - 60) -> list[Record]:
    """Lines a second apart, of which the last was then."""
    return list(group_events(((last - len(lines) + 1 + n, line) for n, line in enumerate(lines)), "log"))


def findings(*records: Record, origin: Origin = "live") -> list[Finding]:
    """Of those that this log makes; what the machine itself is worth is the business of others."""

    def evaluated(what: list[Record]) -> list[Finding]:
        return apply_rules(assemble(what, Site(), NOW, origin=origin))[0]

    quiet = {(one.code, one.subject) for one in evaluated([one for one in records if not isinstance(one, Event)])}
    return [one for one in evaluated(list(records)) if (one.code, one.subject) not in quiet]


def summaries(*records: Record, origin: Origin = "live") -> list[Summary]:
    return [(one.code, one.subject, one.severity) for one in findings(*records, origin=origin)]
