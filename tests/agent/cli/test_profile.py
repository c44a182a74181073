"""Machine types written from accepted nodes: their content, and that they recognise the node without a finding."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.agent.cli.main import main
from linkgauge.agent.pipeline.diagnose import read_snapshot
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.exporters.formats.nccl_xml import as_nccl_xml
from linkgauge.exporters.formats.site_toml import FROM_NODE, as_toml
from linkgauge.models.bandwidth.profile_from_node import Unrecognisable, machine_of
from linkgauge.models.catalog import machines
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Node
from linkgauge.models.facts.records import Evidence, Flow, Observation
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.site.schema import Machine, Rate, Site, read_site
from linkgauge.probes.host.recorded import dump
from linkgauge.probes.synthetic.build import build
from tests.support.nodes.described import ALL, FOLDER, node, report_of


def snapshot_of(name: str) -> Snapshot:
    return read_snapshot(node(name), SOURCES, Site())


def observed(
    ends: tuple[str, ...], gigabytes: float, size: int = 1 << 28, op: str = "copy", **more: object
) -> Observation:
    flow = Flow(op, ends, size, **more)  # type: ignore[arg-type]
    return Observation(
        about=flow,
        quantity="rate",
        unit="bytes_per_second",
        value=gigabytes * 1e9,
        at=1.0,
        evidence=Evidence("host_copy", "x"),
    )


@pytest.mark.parametrize("name", ALL)
def test_a_node_is_whole_by_the_type_that_is_written_from_it(name: str) -> None:
    snapshot = snapshot_of(name)
    try:
        text = as_toml(machine_of(snapshot, "ours"))
    except Unrecognisable:
        assert name in ("container", "server-raid")
        return
    report = report_of(node(name), read_site(text))
    assert report.profile
    assert report.profile.name == "ours"
    before = report_of(node(name))
    assert {(f.code, f.subject) for f in report.findings} <= {(f.code, f.subject) for f in before.findings}


def test_what_is_written() -> None:
    snapshot = snapshot_of("hgx-h100")
    copies = [observed((f"numa{gpu // 4}", f"gpu{gpu}"), 55 + gpu / 100) for gpu in range(8)]
    beside = observed(("numa0", "gpu0"), 30, beside=(("numa0", "gpu1"),))
    small = observed(("numa0", "gpu0"), 3, size=1 << 20)
    memory = [observed((f"numa{n}",), 100 + n) for n in range(2)]
    collectives = [
        observed(tuple(f"rank{n}" for n in range(ranks)), rate, size=size, op="all_gather")
        for ranks, rate, size in ((8, 350, 1 << 30), (8, 360, 8 << 30), (8, 20, 1 << 20), (4, 300, 8 << 30))
    ]
    collectives.append(observed(tuple(f"rank{n}" for n in range(8)), 350, size=8 << 30, op="collective"))
    seen = (*copies, beside, small, *memory, *collectives)
    assert as_toml(machine_of(replace(snapshot, observations=seen), "rack 7")) == WRITTEN


WRITTEN = """\
[[machine]]
name = "rack 7"
source = "hgx as it was accepted on 2026-11-21; else as hgx-h100-8"
product = "SYS-821GE-TNHR"
vendor = "Supermicro"
gpu = "NVIDIA H100 80GB HBM3"
gpus = 8
links = 18
rdma = 10
nvme = 8
sockets = 2
numa = 2
nic_places = [
    "0000:11:00.0",
    "0000:11:00.1",
    "0000:1c:00.0",
    "0000:1f:00.0",
    "0000:3c:00.0",
    "0000:3f:00.0",
    "0000:9c:00.0",
    "0000:9f:00.0",
    "0000:bc:00.0",
    "0000:bf:00.0",
]
mig = false
ecc = true
persistence = true
compute_mode = "default"

[machine.gpu_places]
1 = "0000:1b:00.0"
2 = "0000:1e:00.0"
3 = "0000:3b:00.0"
4 = "0000:3e:00.0"
5 = "0000:9b:00.0"
6 = "0000:9e:00.0"
7 = "0000:bb:00.0"
8 = "0000:be:00.0"

[machine.bus_bandwidth]
all_reduce = [400e9, 478e9, 483e9]
all_gather = [339.5e9, 355e9, 370.8e9]

[[machine.rates]]
op = "copy"
ends = ["numa*", "gpu*"]
low = 53.35e9
typical = 55.04e9
high = 56.72e9
source = "8 measured when the node was accepted (host_copy)"

[[machine.rates]]
op = "copy"
ends = ["numa*"]
low = 85e9
typical = 100.5e9
high = 116.1e9
source = "2 measured when the node was accepted (host_copy)"
"""


@pytest.mark.parametrize(
    ("name", "broken", "code"),
    [
        ("hgx-h100", "[device.gpu5]\ngone = true\n", "gpu-missing"),
        ("hgx-h100", "[device.gpu3]\ninactive = [7]\n", "nvlink-inactive"),
        ("azure-nd-h100-v5", "[device.mlx5_3]\nrate = 100\n", "nic-rate-low"),
        ("p5-tree", "[device.gpu5]\ngone = true\n", "gpu-missing"),
    ],
)
def test_the_site_file_finds_a_broken_node_of_its_type(name: str, broken: str, code: str) -> None:
    ours = machine_of(snapshot_of(name), "ours")
    report = report_of(node(name, broken), Site(machine=(ours,)))
    (finding,) = [one for one in report.findings if one.severity != "info"]
    assert (finding.code, finding.basis) == (code, "site")


def test_what_differs_between_equal_devices_is_left_out() -> None:
    snapshot = snapshot_of("hgx-h100")
    gpus = dict(snapshot.of(Gpu))
    gpus["gpu3"] = replace(gpus["gpu3"], mig=True, nvlinks=17)
    machine = machine_of(replace(snapshot, facts={**snapshot.facts, Gpu: gpus}), "ours")
    assert (machine.mig, machine.links, machine.ecc, machine.gpus) == (None, None, True, 8)


def test_what_the_node_did_not_show_stays_as_its_type_says() -> None:
    """With ports of two rates, the type knows the fabric's ports. Its rates apply to flows that were not measured."""
    ours = machine_of(snapshot_of("oci-h100"), "ours")
    assert (ours.rdma, ours.rdma_rate, ours.source) == (
        18,
        25e9,
        "oci as it was accepted on 2026-11-21; else as oci-bm.gpu.h100.8",
    )
    (rate,) = read_site(RATED).rates
    snapshot = snapshot_of("p5-tree")
    assert snapshot.machine
    with_rate = replace(snapshot, machine=msgspec.structs.replace(snapshot.machine, rates=(rate,)))
    assert machine_of(with_rate, "ours").rates == (rate,)
    measured = replace(with_rate, observations=(observed(("numa0", "gpu0"), 14),))
    assert [one.typical for one in machine_of(measured, "ours").rates] == [14e9]


RATED = """
[[rates]]
ends = ["numa*", "gpu*"]
low = 12e9
typical = 13e9
high = 14e9
source = "rack 7"
"""


@pytest.mark.parametrize("product", ["Virtual Machine", None])
def test_a_node_that_nothing_tells_from_others(product: str | None) -> None:
    snapshot = assemble([Node(key="node", product=product, vendor="Microsoft Corporation")], Site(), 0.0)
    with pytest.raises(Unrecognisable):
        machine_of(snapshot, "ours")


def test_names_with_the_letters_of_patterns_are_taken_as_they_are() -> None:
    snapshot = assemble([Node(key="node", product="X[1]*", vendor="A?")], Site(), 0.0)
    machine = machine_of(snapshot, "ours")
    again = assemble([Node(key="node", product="X[1]*", vendor="A?")], Site(machine=(machine,)), 0.0)
    assert again.machine == machine
    other = assemble([Node(key="node", product="X1y", vendor="AB")], Site(machine=(machine,)), 0.0)
    assert other.machine is None


def test_it_is_read_again_as_it_was() -> None:
    machine = machine_of(snapshot_of("vm-p5"), "ours")
    assert read_site(as_toml(machine)).machine == (machine,)
    assert msgspec.structs.asdict(machine)["gpu_path"] == "pcie4x8"


@example(1.0, [1e6, 1e6, 1e6], ["\x85"])  # where str.splitlines() would break a line
@given(
    st.floats(0, 1e18, exclude_min=True),
    st.lists(st.floats(1e6, 1e18), min_size=3, max_size=3).map(sorted),
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"))),
)
def test_any_rates_and_words_are_read_again(port: float, rates: list[float], words: list[str]) -> None:
    low, typical, high = rates
    rate = Rate(ends=("numa*", "gpu*"), low=low, typical=typical, high=high, source="x")
    machine = Machine(
        name="x",
        source="x",
        gpu="*",
        rdma_rate=port,
        rates=(rate,),
        healthy=tuple(words),
        bus_bandwidth={"all_reduce": (low, typical, high)},
    )
    assert read_site(as_toml(machine)).machine == (machine,)


def test_every_type_of_the_catalog_is_read_again() -> None:
    for machine in machines():
        assert read_site(as_toml(machine)).machine == (machine,)


def test_a_cut_dump_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "cut.xml"
    path.write_text(as_nccl_xml(snapshot_of("p5-tree"))[:4000])
    done = CliRunner().invoke(main, ["profile", "--from-node", "--from", str(path)])
    assert done.exit_code == 0
    assert re.fullmatch(r"cut\.xml: line \d+: .*; everything before it was read\n", done.stderr)


@pytest.mark.parametrize(
    ("asked", "code", "begins"),
    [
        (["p5"], 0, '# recognised by DMI product name p5.48xlarge\n\n[[machine]]\nname = "aws-p5.48xlarge"\n'),
        (["p5", "--from-node", "--name", "rack 7"], 0, f'{FROM_NODE}[[machine]]\nname = "rack 7"\n'),
        (["p5", "aws-p4d.24xlarge"], 0, '[[machine]]\nname = "aws-p4d.24xlarge"\n'),
        (
            ["p5", "aws-p4d.24xlarg"],
            64,
            "Error: no machine type is called 'aws-p4d.24xlarg'; did you mean 'aws-p4d.24xlarge'?\n",
        ),
        (["p5", "x"], 64, "Error: no machine type is called 'x'; 'linkgauge profile --list' lists them\n"),
        (["p5", ""], 64, "Error: no machine type is called ''; 'linkgauge profile --list' lists them\n"),
        (["p5", "--from-node", "--name", ""], 64, "Error: --name: a machine type needs a name\n"),
        (["p5", "--name", "x"], 64, "Usage: linkgauge profile [OPTIONS] [MACHINE]\n"),
        (["p5", "x", "--list"], 64, "Usage: linkgauge profile [OPTIONS] [MACHINE]\n"),
        (
            ["broken", "--from-node"],
            64,
            "Error: this node is failed (pcie-link-narrow 0000:53:00.0), and its machine type would",
        ),
        (["broken", "--from-node", "--anyway"], 0, FROM_NODE),
        (
            ["bare"],
            64,
            "Error: no known machine type fits this node; 'linkgauge profile --from-node' writes one from it\n",
        ),
        (["bare", "--from-node"], 64, "Error: nothing distinguishes this node from others: it has no DMI product name"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)
def test_the_command(asked: list[str], code: int, begins: str, tmp_path: Path) -> None:
    further = {"p5": "", "broken": "[device.gpu0]\nwidth = 8\n"}
    described = "" if asked[0] == "bare" else (FOLDER / "p5-tree.toml").read_text() + further[asked[0]]
    path = tmp_path / "node.capture"
    path.write_text(dump(build(described)))
    done = CliRunner().invoke(main, ["profile", *asked[1:], "--from", str(path)], prog_name="linkgauge")
    assert (done.exit_code, done.output[: len(begins)]) == (code, begins)


def test_all_types_are_listed() -> None:
    done = CliRunner().invoke(main, ["profile", "--list"])
    assert [line.split()[0] for line in done.output.splitlines()] == [machine.name for machine in machines()]
