"""Machine types written from accepted nodes: what they say, and that they recognise the node and find it whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from nodes import ALL, FOLDER, node, report_of

from linkgauge.agent.cli import main
from linkgauge.agent.pipeline import look
from linkgauge.agent.sources import READERS
from linkgauge.exporters.profile import FROM_NODE, as_toml
from linkgauge.models.accepted import Unrecognisable, machine_of
from linkgauge.models.assemble import assemble
from linkgauge.models.case import Case
from linkgauge.models.catalog import machines
from linkgauge.models.facts import Node
from linkgauge.models.gpu_facts import Gpu
from linkgauge.models.said import Evidence, Flow, Observation
from linkgauge.models.site import Site, read_site
from linkgauge.probes.recorded import dump
from linkgauge.probes.synthetic import build


def case_of(name: str) -> Case:
    return look(node(name), READERS, Site())


def observed(ends: tuple[str, ...], gigabytes: float, **more: object) -> Observation:
    flow = Flow("copy", ends, 1 << 28, **more)  # type: ignore[arg-type]
    return Observation(about=flow, quantity="rate", unit="bytes_per_second", value=gigabytes * 1e9, at=1.0,
                       evidence=Evidence("host_copy", "x"))  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_a_node_is_whole_by_the_type_that_is_written_from_it(name: str) -> None:
    case = case_of(name)
    try:
        text = as_toml(machine_of(case, "ours"))
    except Unrecognisable:
        assert name in ("container", "server-raid")
        return
    report = report_of(node(name), read_site(text))
    assert report.profile
    assert report.profile.name == "ours"
    before = report_of(node(name))
    assert {(f.code, f.subject) for f in report.findings} <= {(f.code, f.subject) for f in before.findings}


def test_what_is_written() -> None:
    case = case_of("hgx-h100")
    copies = [observed((f"numa{gpu // 4}", f"gpu{gpu}"), 55 + gpu / 100) for gpu in range(8)]
    beside = observed(("numa0", "gpu0"), 30, beside=(("numa0", "gpu1"),))
    memory = [observed((f"numa{n}",), 100 + n) for n in range(2)]
    assert as_toml(machine_of(replace(case, observations=(*copies, beside, *memory)), "rack 7")) == WRITTEN


WRITTEN = """\
[[machine]]
name = "rack 7"
source = "hgx as it was accepted on 2026-11-21"
product = "SYS-821GE-TNHR"
vendor = "Supermicro"
gpu = "NVIDIA H100 80GB HBM3"
gpus = 8
links = 18
rdma = 10
nvme = 8
sockets = 2
numa = 2
mig = false
ecc = true
persistence = true
compute_mode = "default"

[machine.bus_bandwidth]
all_reduce = [
    330000000000.0,
    478000000000.0,
    483000000000.0,
]

[[machine.rates]]
op = "copy"
ends = [
    "numa*",
    "gpu*",
]
low = 53350000000.0
typical = 55040000000.0
high = 56720000000.0
source = "8 measured when the node was accepted (host_copy)"

[[machine.rates]]
op = "copy"
ends = [
    "numa*",
]
low = 85000000000.0
typical = 100500000000.0
high = 116100000000.0
source = "2 measured when the node was accepted (host_copy)"
"""


def test_what_differs_between_equal_devices_is_left_out() -> None:
    case = case_of("hgx-h100")
    gpus = dict(case.of(Gpu))
    gpus["gpu3"] = replace(gpus["gpu3"], mig=True, nvlinks=17)
    machine = machine_of(replace(case, facts={**case.facts, Gpu: gpus}), "ours")
    assert (machine.mig, machine.links, machine.ecc, machine.gpus) == (None, None, True, 8)


@pytest.mark.parametrize("product", ["Virtual Machine", None])
def test_a_node_that_nothing_tells_from_others(product: str | None) -> None:
    case = assemble([Node(key="node", product=product, vendor="Microsoft Corporation")], Site(), 0.0)
    with pytest.raises(Unrecognisable):
        machine_of(case, "ours")


def test_names_with_the_letters_of_patterns_are_taken_as_they_are() -> None:
    case = assemble([Node(key="node", product="X[1]*", vendor="A?")], Site(), 0.0)
    machine = machine_of(case, "ours")
    again = assemble([Node(key="node", product="X[1]*", vendor="A?")], Site(machine=(machine,)), 0.0)
    assert again.machine == machine
    other = assemble([Node(key="node", product="X1y", vendor="AB")], Site(machine=(machine,)), 0.0)
    assert other.machine is None


def test_it_is_read_again_as_it_was() -> None:
    machine = machine_of(case_of("vm-p5"), "ours")
    assert read_site(as_toml(machine)).machine == (machine,)
    assert msgspec.structs.asdict(machine)["gpu_path"] == "pcie4x8"


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
        (["p5", "x", "--list"], 64, "Usage: linkgauge profile [OPTIONS] [MACHINE]\n"),
        (
            ["broken", "--from-node"],
            64,
            "Error: this node is failed (pcie-link-narrow 0000:53:00.0): a machine type of it would",
        ),
        (["broken", "--from-node", "--anyway"], 0, FROM_NODE),
        (["bare"], 64, "Error: no machine type fits this node; 'linkgauge profile --from-node' writes one from it\n"),
        (["bare", "--from-node"], 64, "Error: nothing tells this node from others: no DMI product name of its own"),
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
