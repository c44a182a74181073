"""Comparisons of nodes: nothing differs from itself, and a change of a node is the only difference."""

from __future__ import annotations

from functools import cache

import msgspec
import pytest
from msgspec.structs import replace

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.exporters.commands.compare import as_text
from linkgauge.models.comparison.differences import Comparison, Difference, compare
from linkgauge.models.comparison.side import Side, of_report, of_snapshot
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.synthetic.build import build
from tests.support.nodes.described import ALL, FOLDER, node


def side(recorded: Recorded) -> Side:
    return of_snapshot(*diagnose(recorded, SOURCES, measure_nothing, Site()))


@cache
def whole(name: str, further: str = "") -> Side:
    return side(node(name, further))


def lines(comparison: Comparison) -> list[str]:
    """The text without the names of the two sides."""
    return as_text(comparison, "a", "b").splitlines()[3:]


def mirrored(one: Difference) -> Difference:
    return replace(one, a=one.b, b=one.a, devices=())


@pytest.mark.parametrize("name", ALL)
def test_a_node_does_not_differ_from_itself(name: str) -> None:
    found = compare(whole(name), whole(name))
    assert found.differences == ()
    assert found.compared > 20


@pytest.mark.parametrize("other", ["vm-p5", "server-raid"])
def test_both_orders_give_the_same_differences(other: str) -> None:
    there = compare(whole("hgx-h100"), whole(other)).differences
    back = compare(whole(other), whole("hgx-h100")).differences
    assert len(there) > 10
    assert {replace(one, devices=()) for one in there} == {mirrored(one) for one in back}


# A change of the described node, and the text of all differences. The first is a change of firmware and settings, as
# after an update; the others are one fault each.
CHANGES = {
    "an update": (
        [('bios = "2.1"', 'bios = "2.3"'), ('iommu = "identity"', 'iommu = "lazy"')],
        "",
        [
            "Settings",
            "  iommu, iommu_guest: setting identity -> lazy",
            "Versions",
            "  node: BIOS 2.1 -> 2.3",
        ],
    ),
    "a narrow GPU": (
        [],
        "[device.gpu1]\nwidth = 8\n",
        [
            "Verdict",
            "  verdict ok -> failed",
            "Links",
            "  0000:1a:03.0, gpu1: PCIe width 16 lanes -> 8 lanes",
            "Findings",
            "  only in B: pcie-link-narrow gpu1 (module 2, 1e:00.0) runs on x8 of x16",
        ],
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_is_the_only_difference(case: str) -> None:
    edits, further, expected = CHANGES[case]
    text = (FOLDER / "hgx-h100.toml").read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    found = lines(compare(whole("hgx-h100"), side(build(text + further))))
    assert [line for line in found[: found.index("Not compared")] if line] == expected


def test_an_absent_gpu_is_a_device_of_one_side() -> None:
    found = compare(whole("hgx-h100"), whole("hgx-h100", "[device.gpu5]\ngone = true\n")).differences
    devices = [one for one in found if one.group == "devices"]
    assert [(one.devices, one.a, one.b) for one in devices] == [(("gpu5",), "NVIDIA H100 SXM5 80GB", None)]


def test_devices_with_other_addresses_are_the_same() -> None:
    """A machine of the same type that numbers its buses differently."""
    text = (FOLDER / "hgx-h100.toml").read_text()
    moved = text.replace("bus = [0x18, 0x38]", "bus = [0x19, 0x39]").replace("bus = [0x10]", "bus = [0x0c]")
    assert moved != text
    found = compare(whole("hgx-h100"), side(build(moved))).differences
    assert [one for one in found if one.group in ("devices", "links")] == []


def test_reports_have_links_and_findings_but_no_settings() -> None:
    text = (FOLDER / "hgx-h100.toml").read_text().replace('bios = "2.1"', 'bios = "2.3"')
    a, b = whole("hgx-h100").report, side(build(text + "[device.mlx5_4]\nwidth = 8\n")).report
    found = compare(of_report(a), of_report(msgspec.json.decode(msgspec.json.encode(b), type=type(b))))
    assert [line for line in lines(found) if line] == [
        "Verdict",
        "  verdict ok -> failed",
        "Links",
        "  mlx5_4: trained rate 63.0 GB/s -> 31.5 GB/s",
        "Findings",
        "  only in B: pcie-link-narrow mlx5_4 (3c:00.0) runs on x8 of x16",
        "Not compared",
        "  settings and most versions: a report does not contain them; compare captures (linkgauge",
        "    capture)",
        "  rates: not measured on both sides",
    ]
