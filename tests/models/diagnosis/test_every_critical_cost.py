"""Each critical finding of each code has a cost on each node: "cannot run", a factor, or "not known"; never nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from linkgauge.agent.pipeline.hang_guard import collect_all
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.exporters.html.report_page import as_html
from linkgauge.exporters.metrics.series import samples
from linkgauge.exporters.text.cost import cost_lines
from linkgauge.models.catalog import codes
from linkgauge.models.diagnosis.effects import effect_of
from linkgauge.models.diagnosis.impact import SHOWN, weigh
from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Cost, Finding
from linkgauge.models.site.schema import Site
from tests.support.nodes.described import EACH, node

CRITICAL = {name: code.cost for name, code in codes().items() if "critical" in code.severity}
BY_COST = {cost: name for name, cost in CRITICAL.items()}  # one code for each way in which a cost follows


def snapshot_of(name: str) -> Snapshot:
    return assemble(collect_all(SOURCES, node(name)), Site(), 1000, origin="capture")


def findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Of each kind of cost, on a device of each kind; and on a link of each kind, cut and at half of its rate."""
    subjects = {device.kind: device.id for device in reversed(snapshot.topology.devices)}
    for code in BY_COST.values():
        for subject in (*subjects.values(), "node", "0000:ff:1f.7"):
            yield Finding(code=code, severity="critical", subject=subject, message="wrong")
    for link in {link.kind: link for link in snapshot.topology.links if link.rated}.values():
        for left in (0.0, (link.rated or 0.0) / 2):
            yield Finding(
                code="pcie-link-narrow", severity="critical", subject=link.b, message="wrong", limits={link.id: left}
            )


@pytest.mark.parametrize("name", EACH)
def test_each_critical_finding_has_a_cost(name: str) -> None:
    snapshot = snapshot_of(name)
    all_at_once, _ = weigh(snapshot, [*findings(snapshot)])
    alone = dict[str, tuple[Cost, Mapping[str, float]]]()  # most findings have the effect of another one
    for finding, weighed in zip(findings(snapshot), all_at_once, strict=True):
        text = cost_lines(weighed)
        if (effect := repr(effect_of(snapshot, finding))) not in alone:
            [single], together = weigh(snapshot, [finding])
            assert (single.cost, single.impact) == (together.cost, together.factors)
            alone[effect] = together.cost, together.factors
        assert (weighed.cost, weighed.impact) == alone[effect]
        if weighed.cost == "slower":
            assert max(weighed.impact.values()) > SHOWN
            assert "times as long" in text[0]
        elif weighed.cost == "none":  # computed: each operation that uses the link is as fast as before
            assert finding.limits or CRITICAL[finding.code] == "port", weighed
            assert weighed.impact
            assert max(weighed.impact.values()) <= SHOWN
        else:
            words = {"unknown": "not known", "cannot run": "no job can use all GPUs of this node"}
            assert text[0] == words[weighed.cost]


def test_report_metrics_and_page_have_the_cost_of_each_finding() -> None:
    report = evaluate(
        assemble(collect_all(SOURCES, node("hgx-h100", "[device.gpu5]\nwidth = 8\n")), Site(), 1000, origin="capture")
    )
    serious = [one for one in report.findings if one.severity == "critical"]
    exported = {
        (one.labels["code"], one.labels["cost"])
        for one in samples(report, None, {}, "full")
        if one.metric == "linkgauge_finding_cost"
    }
    assert serious
    assert {(one.code, one.cost) for one in serious} <= exported
    page = as_html(report)
    assert all(line in page for one in serious for line in cost_lines(one))
