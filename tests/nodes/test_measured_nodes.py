"""From a plan to a finding without a GPU: a described node answers the calls that the probes of copies plan."""

from __future__ import annotations

import pytest

from linkgauge.models.facts.records import NotChecked
from linkgauge.models.report import Report
from linkgauge.probes.host.recorded import dump, parse
from linkgauge.probes.measure.probe import Effort
from linkgauge.probes.synthetic.build import build
from tests.support.nodes.described import found, missed, node, report_of
from tests.support.nodes.measured_nodes import HEALTHY, NODE, measured, row

AT_REST = "[device.gpu2]\nspeed = 2.5\n"
GPU3, GPU2, UPLINK = "0000:3e:00.0", "0000:3b:00.0", "0000:19:00.0"


def hgx(*further: str, effort: Effort = "quick") -> Report:
    return measured(node(NODE, HEALTHY + "".join(further)), effort)


@pytest.mark.parametrize(
    ("effort", "levels"), [("quick", 16 + 8 + 8 + 8), ("full", 16 + 16 + 32 + 16 + 56 + 56 + 56 + 8)]
)
def test_a_healthy_node_has_nothing_but_levels(effort: Effort, levels: int) -> None:
    report = hgx(effort=effort)
    assert (report.verdict, found(report), len(report.levels)) == ("ok", [], levels)
    assert [level for level in report.levels if not level.expected] == []
    assert missed(report) == missed(report_of(node(NODE)))


def test_all_that_is_planned_was_measured() -> None:
    """Each level of effort finds the calls that its plans make, whatever else the node says."""
    calls = [call[0] for call in node(NODE, HEALTHY).calls if call[0] in ("host_copy", "peer_copy", "device_memory")]
    assert calls == ["host_copy", "peer_copy", "device_memory", *["host_copy"] * 3, *["peer_copy"] * 3, "device_memory"]
    assert parse(dump(node(NODE, HEALTHY))) == node(NODE, HEALTHY)


def test_a_gpu_that_is_slow_to_and_from_the_host() -> None:
    report = hgx(row("numa*", "gpu3", 27.0), row("gpu3", "numa*", 26.5))
    assert (report.verdict, found(report)) == ("failed", [("bandwidth-low", GPU3)])
    (finding,) = report.findings
    assert finding.explains == ("bandwidth-low:numa0-gpu3", "bandwidth-low:gpu3-numa0")
    assert [level.observed for level in report.levels if level.ends == ("numa0", "gpu3")] == [27e9, 27e9]


@pytest.mark.parametrize(("pair", "effort"), [(("gpu2", "gpu3"), "quick"), (("gpu2", "gpu5"), "full")])
def test_a_pair_that_is_slow_in_one_direction(pair: tuple[str, str], effort: Effort) -> None:
    """The ring of the quick level has each GPU with its neighbour; the others are found among all pairs."""
    assert found(hgx(row(*pair, 120.0), row(*pair, 54.0, 2), effort=effort)) == [("bandwidth-low", "-".join(pair))]
    assert found(hgx(row("gpu2", "gpu5", 120.0))) == []


def test_an_uplink_that_collapses_when_two_gpus_share_it() -> None:
    """Each of them alone is as fast as ever."""
    report = hgx(row("numa0", "gpu0", 6.0, 7), row("numa0", "gpu1", 6.0, 7))
    assert found(report) == [("pcie-concurrent-collapse", UPLINK)]
    assert report.findings[0].explains == ("bandwidth-low:numa0-gpu0", "bandwidth-low:numa0-gpu1")


def test_slow_at_rest_differs_from_stuck() -> None:
    """A link at 2.5 GT/s is a gap while nothing moves; well if it woke when bytes moved; a fault if it did not."""
    unmeasured = report_of(node(NODE, AT_REST))
    assert found(unmeasured) == []
    assert ("Pci.speed", GPU2) in missed(unmeasured)
    woken = hgx(AT_REST)
    assert (woken.verdict, found(woken), woken.checks["pcie-link-slow"]) == ("ok", [], True)
    assert ("Pci.speed", GPU2) not in missed(woken)
    slow = (row("numa*", "gpu2", 3.2), row("gpu2", "numa*", 3.2))
    stuck = hgx(AT_REST, "busy_speed = 2.5\n", *slow)
    assert (stuck.verdict, found(stuck)) == ("failed", [("pcie-link-slow", GPU2)])
    assert stuck.findings[0].explains == ("bandwidth-low:numa0-gpu2", "bandwidth-low:gpu2-numa0")


def test_memory_that_is_slow_and_memory_faster_than_can_be() -> None:
    assert found(hgx(row("gpu6", "", 1200.0))) == [("bandwidth-low", "gpu6")]
    invalid = hgx(row("gpu6", "", 4260.0))  # both directions of 2130 GB/s added twice
    assert (invalid.verdict, found(invalid)) == ("ok", [("measurement-invalid", "gpu6")])
    assert [level.ends for level in invalid.levels if level.ends == ("gpu6",)] == []


def test_what_no_row_is_about_was_not_measured() -> None:
    report = measured(node(NODE, row("numa0", "gpu*", 55.4)))
    assert {level.ends[1] for level in report.levels} == {"gpu0", "gpu1", "gpu2", "gpu3"}
    assert not [one for one in report.not_checked if isinstance(one, NotChecked) and one.what == "host_copy"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate = 0", "Expected `float` > 0.0 - at `$.measured[0].rate`"),
        ("to = 'gpu1'", "Object missing required field `rate` - at `$.measured[0]`"),
        ("rate = 1\nfrom = 'numa0'", "Object contains unknown field `from` - at `$.measured[0]`"),
    ],
)
def test_what_is_no_measurement_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=".") as raised:
        build(f"[[measured]]\n{text}")
    assert str(raised.value) == message
