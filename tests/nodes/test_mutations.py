"""Broken nodes: each fault gives exactly one finding or one gap, on the right subject."""

from __future__ import annotations

import pytest

from tests.support.nodes.described import found, missed, node, report_of
from tests.support.nodes.mutation_rows import (
    ROWS,
    Mutation,
    Named,
)

CASES = [pytest.param(name, *row, id=f"{name}: {row[0]}") for name, rows in ROWS.items() for row in rows]


@pytest.mark.parametrize(("name", "what", "mutation", "finding", "gap"), CASES)
def test_mutation(name: str, what: str, mutation: Mutation, finding: Named, gap: Named) -> None:
    base, broken = report_of(node(name)), report_of(mutation(node(name)))
    known = found(base)
    new = [one for one in broken.findings if (one.code, one.subject) not in known]
    assert [(one.code, one.subject) for one in new] == ([finding] if finding else []), what
    assert missed(broken) - missed(base) == ({gap} if gap else set()), what
    assert all(one.message and one.evidence and one.remedy and one.cause for one in new)


def test_severities() -> None:
    """The severity of each finding: critical, warning or info."""
    expected = {
        ("hgx-h100", "GPU on x8"): "critical",
        ("hgx-h100", "port down"): "critical",
        ("hgx-h100", "no subnet manager"): "critical",
        ("hgx-h100", "GPU without driver"): "critical",
        ("hgx-h100", "GPU lent to a guest"): "info",
        ("hgx-h100", "uplink built slow"): "critical",
        ("server-raid", "NVMe on x2"): "warning",
        ("server-raid", "array broken"): "critical",
        ("desktop", "port down"): "info",
        ("vm-p5", "EFA missing"): "warning",
    }
    for (name, what), severity in expected.items():
        row = next(row for row in ROWS[name] if row[0] == what)
        assert [f.severity for f in report_of(row[1](node(name))).findings if (f.code, f.subject) == row[2]] == [
            severity
        ]


def test_described_nodes_are_healthy() -> None:
    """A state by design gives an info finding and no other finding."""
    seen = {name: (report_of(node(name)).verdict, found(report_of(node(name)))) for name in ("server-raid", "hgx-h100")}
    assert seen == {"server-raid": ("ok", []), "hgx-h100": ("ok", [])}
