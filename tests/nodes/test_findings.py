"""Every finding code: one rule gives it, and one fault alone causes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from linkgauge.models.bandwidth.expectations import levels
from linkgauge.models.catalog import codes
from linkgauge.models.diagnosis.attribution import attribute
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Finding
from linkgauge.models.rules import RULES
from linkgauge.models.site.schema import Site
from tests.support.nodes.broken_facts import FACTS, Facts
from tests.support.nodes.broken_nodes import BROKEN, HGX
from tests.support.nodes.gpu_facts import NOW
from tests.support.nodes.mutation_rows import ROWS

RULED = {rule.code for rule in RULES}
MADE = {
    *(finding[0] for rows in ROWS.values() for _, _, finding, _ in rows if finding),
    *(broken.finding[0] for broken in BROKEN.values() if broken.finding),
    *(code for _, code, _, _ in HGX.values()),
    *FACTS,
}


def snapshot_of(facts: Facts, records: Sequence[Record]) -> Snapshot:
    site = facts.site or Site()
    about: dict[str, Any] = {"origin": facts.origin, "context": facts.context, "inventory": facts.inventory}
    return assemble(records, site, NOW, past=facts.past, **about)


def test_each_code_is_made_by_something_broken() -> None:
    """By a mutation of a node, a described node, or facts: each of these tables is tested row by row."""
    assert sorted(MADE ^ codes().keys()) == []


def test_no_rule_has_a_code_of_its_own() -> None:
    assert sorted(RULED - codes().keys()) == []


@pytest.mark.parametrize("code", sorted(codes().keys() - RULED))
def test_a_code_without_a_rule_comes_from_flows(code: str) -> None:
    """In the scenario of this code."""
    facts = FACTS[code]
    snapshot = snapshot_of(facts, [*facts.well, *facts.further])
    assert code in {one.code for one in attribute(snapshot, levels(snapshot), ())}


@pytest.mark.parametrize("code", FACTS)
def test_facts_that_are_broken_are_one_finding(code: str) -> None:
    facts = FACTS[code]
    well, ill = (evaluate(snapshot_of(facts, records)) for records in (facts.well, [*facts.well, *facts.further]))
    assert code not in {one.code for one in well.findings}
    assert [summary_of(one) for one in ill.findings if summary_of(one) not in map(summary_of, well.findings)] == [
        (code, facts.subject, facts.severity)
    ]
    (found,) = (one for one in ill.findings if one.code == code)
    assert found.message.isprintable()
    assert found.remedy


def summary_of(finding: Finding) -> tuple[str, str, str]:
    return finding.code, finding.subject, finding.severity
