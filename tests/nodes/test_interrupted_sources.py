"""A source that a hanging file or a bug interrupts leaves gaps and gives no findings."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import pytest

from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Fact, Record, Run
from linkgauge.models.facts.registry import kind_name
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from tests.support.nodes.described import ALL, EACH, node


def evaluated(records: Iterable[Record], now: float) -> Report:
    return evaluate(assemble(records, Site(), now, origin="live"))


def faults(report: Report) -> set[tuple[str, str]]:
    """Code and subject of the findings that need an action."""
    return {(one.code, one.subject) for one in report.findings if one.severity != "info"}


@pytest.mark.parametrize("name", EACH)
def test_what_was_cut_off_is_not_known_and_nothing_is_missed(name: str) -> None:
    """Each source, before its first word, in the middle and before its last: no GPU is missing because of it."""
    host = node(name)
    collected = {reader.name: collect(reader, host) for reader in SOURCES}
    known = faults(evaluated(chain(*collected.values()), host.now()))
    for source in SOURCES:
        records = collected[source.name]
        for length in {0, 1, 2, len(records) // 2, len(records) - 2} & set(range(len(records) - 1)):
            run = Run(name=source.name, ok=False, seconds=10, at=host.now())
            missed = source.not_checked(Reason.NO_ANSWER, "no answer within 10 s", path="a file")
            cut = (*records[:length], *missed, run)
            report = evaluated(chain(*{**collected, source.name: cut}.values()), host.now())
            assert faults(report) <= known, (source.name, length)
            assert report.verdict in ("unknown", "failed"), (source.name, length)


@pytest.mark.parametrize("name", ALL)
def test_sources_give_only_the_kinds_that_they_declare(name: str) -> None:
    host = node(name)
    for reader in SOURCES:
        kinds = {kind_name(type(one)) for one in reader.read(host) if isinstance(one, Fact)}
        assert kinds <= {word.partition(".")[0] for word in reader.provides}
