"""The report of `linkgauge fabric` as text and as JSON."""

from __future__ import annotations

import msgspec

from linkgauge.exporters.commands.fabric import as_json, as_text
from linkgauge.models.fabric.fabric_localization import Cause
from linkgauge.models.fabric.report import FabricReport, Member, Rate, node_findings
from linkgauge.models.fabric.wiring import Pair, Port

PAIRS = (Pair(Port("node5"), Port("node1")), Pair(Port("node5"), Port("node2")))
PORT = Cause(
    kind="port", names=("node5",), direction="send", pairs=PAIRS, rate=20e9, carried=21e9, usual=48e9, alone=20.1e9
)
_UPLINK = Cause(
    kind="uplink", names=("leaf0", "leaf1"), direction="both", pairs=PAIRS, rate=9e9, carried=36e9, usual=48e9
)
SHARED = msgspec.structs.replace(_UPLINK, alone=47e9, shared=True, elsewhere=36e9)
UPLINK = msgspec.structs.replace(_UPLINK, alone=9e9, elsewhere=190e9)
PAIR = Cause(kind="pair", names=("node1->node2",), direction="send", pairs=PAIRS[:1], rate=9e9, carried=9e9, usual=48e9)
REPORT = FabricReport(
    taken_at="2026-11-21T03:00:00Z",
    seconds=12.4,
    planned_seconds=10.5,
    planned_bytes=1e12,
    rounds=14,
    rounds_of_all_pairs=14,
    members=(
        Member(node="node1", verdict="ok"),
        Member(node="node5", verdict="failed", first_finding="pcie-link-narrow mlx5_0", places=("eth1: leaf1 swp6",)),
        Member(node="node7", lost="no answer within 10 s"),
    ),
    rates=(Rate("node5", "node1", "", 0, 20e9),),
    causes=(PORT, UPLINK, SHARED, PAIR),
    places={"node5": "leaf1 swp6", "leaf0": "below spine", "leaf1": "below spine"},
    not_measured=("node1->node2: \x1b[2Jno rate",),
)
TEXT = """\
DEGRADED  2 nodes, 1 flow in 12 s

Slow
  node5 sends 20.0 GB/s in 2 flows; other nodes reach 48.0 GB/s; a flow alone reaches 20.1 GB/s
    (leaf1 swp6)
  the uplink between leaf0 and leaf1 carries at most 36.0 GB/s: 2 flows over it reach 9.00 GB/s,
    others 48.0 GB/s; a flow alone reaches 9.00 GB/s; other uplinks carry 190.0 GB/s (leaf0: below
    spine, leaf1: below spine)
  node1->node2 reaches 9.00 GB/s; other pairs reach 48.0 GB/s; not measured again

Shared by several nodes, not a fault
  the uplink between leaf0 and leaf1 carries at most 36.0 GB/s: 2 flows over it reach 9.00 GB/s,
    others 48.0 GB/s; a flow alone reaches 47.0 GB/s (leaf0: below spine, leaf1: below spine)

Lost nodes
  node7: no answer within 10 s

Their own diagnoses
  node5: failed for pcie-link-narrow mlx5_0

Not measured
  node1->node2: \\x1b[2Jno rate
"""


def test_the_text_names_causes_nodes_and_gaps() -> None:
    assert as_text(REPORT) == TEXT


def test_json_holds_the_report() -> None:
    assert msgspec.json.decode(as_json(REPORT), type=FabricReport) == REPORT


def test_the_verdict_is_never_ok_with_a_gap() -> None:
    good = msgspec.structs.replace(REPORT, members=REPORT.members[:1], causes=(), not_measured=())
    assert REPORT.verdict == "degraded"
    assert good.verdict == msgspec.structs.replace(good, causes=(SHARED,)).verdict == "ok"
    for gap in ({"members": REPORT.members}, {"rates": ()}, {"not_measured": ("a",)}):
        assert msgspec.structs.replace(good, **gap).verdict == "unknown"


def test_only_a_confirmed_port_or_node_is_a_certain_finding_of_its_node() -> None:
    (found,) = node_findings(REPORT, "node5")
    assert (found.code, found.subject, found.confidence, found.observed) == ("node-slow", "node5", "certain", 20e9)
    assert [*node_findings(REPORT, "node1")] == []
    guessed = msgspec.structs.replace(REPORT, causes=(msgspec.structs.replace(PORT, alone=None),))
    assert [one.confidence for one in node_findings(guessed, "node5")] == ["likely"]
