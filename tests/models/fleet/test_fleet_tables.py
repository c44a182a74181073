"""The tables of a small fleet: what each fault shows, and that two engines give the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from linkgauge.exporters.commands.fleet import as_text, reasons_by_node
from linkgauge.exporters.html.fleet_page import as_html
from linkgauge.models.fleet.rows import Measured, Row, measured, rows_of
from linkgauge.models.graph.topology import Topology
from linkgauge.models.report import Report
from tests.support.fleet.reports import half_ports, healthy, lost_nic, noisy, slow_gpu
from tests.support.screens import screen

if TYPE_CHECKING:
    from linkgauge.models.fleet.tables import Fleet

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("ibis"), reason="the extra [fleet] is not installed"),
]


def with_firmware(report: Report, **versions: str) -> Report:
    """The report with these versions of NICs; others have one version."""
    devices = tuple(
        replace(one, firmware=versions.get(one.aliases[0], "28.39.1002")) if one.kind == "nic" else one
        for one in report.topology.devices
    )
    return replace(report, topology=Topology(devices, report.topology.links))


def fleet_reports() -> Iterator[Report]:
    """Healthy nodes, and one of each fault. Two reports are of one node, of which the newer one counts."""
    random = Random(1)
    good = with_firmware(healthy())
    broken = {
        "half": half_ports(good, random),
        "lost": lost_nic(good, random),
        "slow": slow_gpu(good, random),
        "other": with_firmware(good, mlx5_2="28.36.0000"),
        "narrow": with_firmware(screen("pcie")),
        "absent": with_firmware(screen("absent")),
    }
    for number in range(12):
        yield replace(noisy(good, random), node=f"good{number:02}")
    for name, report in broken.items():
        yield replace(report, node=name)
    yield replace(broken["half"], node="good00", taken_at="2020-01-01T00:00:00Z")


def rows() -> list[Row]:
    return [row for number, report in enumerate(fleet_reports()) for row in rows_of(report, f"file{number}")]


def tables_of(several: Iterable[Row], engine: str = "duckdb") -> Fleet:
    import ibis
    import pandas
    import pyarrow

    from linkgauge.agent.fleet.ingest import SCHEMA
    from linkgauge.models.fleet.tables import evaluate

    pytest.importorskip(engine)
    connection = getattr(ibis, engine).connect()
    frame = pandas.DataFrame(several, columns=Row._fields)
    stored = pyarrow.Table.from_pandas(frame, SCHEMA, preserve_index=False)
    return evaluate(connection, connection.create_table("rows", stored))


@pytest.fixture(scope="module")
def found() -> Fleet:
    return tables_of(rows())


def test_the_nodes_to_drain_and_their_reasons(found: Fleet) -> None:
    ranked = [(one.node, one.drain, one.stops) for one in found.nodes.itertuples()]
    assert ranked[0] == ("absent", 1, 1)
    assert {(name, drain) for name, drain, _ in ranked} == {
        (name, 1) for name in ("absent", "half", "lost", "slow", "narrow")
    }
    why = reasons_by_node(found)
    assert why["half"] == [
        "mlx5_2/1 runs at 25.0 GB/s; the median of equal nodes is 50.0 GB/s (and 7 more of this kind)"
    ]
    assert why["lost"] == ["mlx5_9 is absent; equal nodes have Mellanox ConnectX-7 there"]
    assert why["narrow"] == ["pcie-link-narrow: gpu1 (module 2, 1e:00.0) runs on x8 of x16"]
    assert why["absent"] == [
        "7 of 8 GPUs",
        "gpu-missing: gpu3 (module 4, 3e:00.0) is not on the bus any more",
    ]
    assert all("the median of equal nodes is" in line for line in why["slow"])


def test_what_differs(found: Fleet) -> None:
    columns = ["node", "quantity", "position", "text", "usual"]
    assert found.differences[columns].to_numpy().tolist() == [
        ["other", "firmware", "mlx5_2", "28.36.0000", "28.39.1002"]
    ]
    absent = {(one.node, one.position) for one in found.absences.itertuples()}
    assert absent == {
        *(("lost", name) for name in ("mlx5_9", "mlx5_9/1", "ib7")),
        ("absent", "module 4"),
    }


def test_the_fleet_corroborates_rates_of_ports(found: Fleet) -> None:
    (ports,) = [one for one in found.gaps.itertuples() if one.quantity == "port rate"]
    assert ports.things - ports.by_fleet == 10  # nine ports at half their rate, and the absent one
    assert ports.nodes == 18


def test_two_engines_give_the_same_tables(found: Fleet) -> None:
    import pandas

    other = tables_of(rows(), "polars")
    for name, table in found.tables.items():
        pandas.testing.assert_frame_equal(table, other.tables[name], check_dtype=False, obj=name)


def test_what_the_fleet_agrees_on(found: Fleet) -> None:
    from linkgauge.models.catalog import machines
    from linkgauge.models.fleet.agreement import agreed

    (machine,) = agreed(found, machines())
    assert (machine.name, machine.gpus, machine.links) == ("hgx-h100-8", 8, 18)
    rates: dict[tuple[str, ...], Any] = {one.ends: one for one in machine.rates}
    assert rates["numa*", "gpu*"].typical == pytest.approx(55.4e9, rel=0.01)
    assert rates["numa*", "gpu*"].low == pytest.approx(0.97 * 55.4e9, rel=0.01)


def test_hostile_names_stay_text(found: Fleet) -> None:
    name = "<script>\x1b[2J\u202e"
    evil = [row._replace(node=name) if row.node == "half" else row for row in rows()]
    shown = tables_of(evil)
    assert "\x1b" not in as_text(shown)
    assert "<script>" not in as_html(shown)
    assert "\u202e" not in as_html(shown)


def evaluated(several: Iterable[Report]) -> Fleet:
    """The tables of these reports, of one node each."""
    named = (replace(report, node=f"node{number:02}") for number, report in enumerate(several))
    return tables_of(row for one in named for row in rows_of(one, str(one.node)))


def test_another_kind_of_node_is_no_fault() -> None:
    """A third of the nodes has ports of half the rate and one NIC less: they were bought so."""
    random = Random(2)
    other = lost_nic(half_ports(healthy(), random), random)
    found = evaluated([*[healthy()] * 10, *[other] * 5])
    assert len(found.nodes) == 5
    assert set(found.nodes["drain"]) == {0}


def test_a_single_slow_flow_is_to_inspect() -> None:
    def slower(report: Report, flows: int) -> Report:
        levels = [replace(one, observed=0.7 * (one.observed or 0.0)) for one in report.levels[:flows]]
        return replace(report, levels=(*levels, *report.levels[flows:]))

    found = evaluated([*[healthy()] * 10, slower(healthy(), 1), slower(healthy(), 2)])
    assert [(one.node, one.drain) for one in found.nodes.itertuples()] == [("node11", 1), ("node10", 0)]


def test_what_cannot_be_compared_is_no_reason() -> None:
    """Outputs of tools without a NIC, another product at a position, and nodes of no known machine type."""
    random = Random(3)
    part = replace(lost_nic(healthy(), random), source="dumps")
    slower = half_ports(healthy(), random)
    devices = tuple(replace(one, name=f"other {one.name}") if one.name else one for one in slower.topology.devices)
    other = replace(slower, topology=Topology(devices, slower.topology.links))
    unknown = replace(other, profile=None, topology=Topology(devices[:20], slower.topology.links))
    found = evaluated([*[healthy()] * 10, part, other, *[replace(healthy(), profile=None)] * 5, unknown])
    assert found.nodes.to_numpy().tolist() == []
    assert {one.machine for one in found.machines.itertuples()} == {
        "hgx-h100-8",
        "8 x NVIDIA H100 SXM5 80GB",
        "unknown machine type",
    }


def test_a_measured_quantity_keeps_its_parts() -> None:
    for what in (Measured("copy"), Measured("all_reduce", "nvlink", 1 << 30, 7)):
        assert measured(what.key) == what


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
@pytest.mark.parametrize("first", [True, False])
def test_of_two_reports_of_one_time_the_worse_one_counts(engine: str, first: bool) -> None:
    several = [healthy(), replace(screen("absent"), taken_at=healthy().taken_at)]
    files = zip(several if first else several[::-1], ("a.json", "b.json"), strict=True)
    tables = tables_of([row for one, file in files for row in rows_of(replace(one, node="node1"), file)], engine)
    assert [(one.node, one.drain) for one in tables.nodes.itertuples()] == [("node1", 1)]
    assert int(tables.machines["failed"].sum()) == 1
    assert int(tables.machines["nodes"].sum()) == 1
