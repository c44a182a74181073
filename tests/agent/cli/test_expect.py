"""`linkgauge expect`: whole outputs of described nodes, the documented examples, names, and all mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.agent.cli.main import main
from linkgauge.agent.cli.model.expect_args import expect
from linkgauge.agent.cli.options.input import OPS, VIA
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.pipeline.diagnose import read_snapshot
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.exporters.commands.expect import as_hierarchy, as_json
from linkgauge.exporters.commands.expect_flows import as_flows
from linkgauge.exporters.text.terminal import cells
from linkgauge.models.bandwidth.breakdown import Explained, explained
from linkgauge.models.bandwidth.endpoint_names import resolve_ends
from linkgauge.models.bandwidth.link_levels import hierarchy
from linkgauge.models.facts.records import COLLECTIVES, EGRESS, Evidence, Flow, Observation
from linkgauge.models.graph.topology import Device, Link, Topology
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.recorded import dump
from tests.support.nodes.described import node

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests/golden/expect"
ASKED = {
    "p5-tree": (
        "",
        "numa0 GPU0",
        "gpu0 gpu1",
        "gpu0 gpu1 --via net",
        "gpu0 gpu1 --via host",
        "GPU0 NIC3",
        "efa_[0-3]->numa0 gpu0->numa0 --concurrent",
    ),
    "hgx-h100": ("", "gpu* --op all_reduce --size 64MiB", "gpu[0-3]->numa* --concurrent", "gpu0->nic*"),
    "gh200": ("", "numa0 gpu0", "gpu0 numa0", "mlx5_0", "gpu0->numa0 numa0->gpu0 --concurrent"),
    "desktop": ("", "gpu0", "nvme0 numa0", "numa0 gpu0 --size 1M"),
}


@cache
def snapshot_of(name: str, further: str = "") -> Snapshot:
    return read_snapshot(node(name, further), SOURCES, Site())


def asked(snapshot: Snapshot, command: str, form: str = "text") -> str:
    """The output of the command, whose arguments are written as in a shell."""
    words, options = [], {"--op": "", "--via": "", "--size": ""}
    given = iter(command.split())
    for word in given:
        if word in options:
            options[word] = next(given)
        elif word != "--concurrent":
            words.append(word)
    op, via, size = (options[name] for name in ("--op", "--via", "--size"))
    return expect(snapshot, words, op or None, via, size or None, "--concurrent" in command, form)


@pytest.mark.parametrize("name", ASKED)
def test_whole_outputs(name: str, golden: Callable[[Path, str], None]) -> None:
    outputs = (
        f"$ linkgauge expect {command}".rstrip() + f"\n{asked(snapshot_of(name), command)}" for command in ASKED[name]
    )
    golden(GOLDEN / f"{name}.txt", "\n".join(outputs))


def test_a_broken_node_has_its_odd_ones_in_rows_of_their_own(golden: Callable[[Path, str], None]) -> None:
    snapshot = snapshot_of("hgx-h100", "[device.gpu1]\nwidth = 8\n[device.gpu3]\ninactive = [7]\n")
    golden(GOLDEN / "hgx-h100_broken.txt", asked(snapshot, "") + "\n" + asked(snapshot, "gpu1 numa0"))


def one(name: str, command: str) -> tuple[float | None, float, str | None]:
    """The rated and the typical rate of the only flow in GB/s, and the id of its bottleneck."""
    (flow,) = json.loads(asked(snapshot_of(name), command, "json"))
    best = flow["level"]["expected"][0]
    return round(flow["level"]["rated"] / 1e9, 2), round(best["typical"] / 1e9, 1), best["bottleneck"]


def test_what_was_measured_on_a_p5() -> None:
    """The Smol Training Playbook, GPU communication: 14.2 to a GPU, 38 and 42 over EFA, 3.2 through host memory."""
    assert one("p5-tree", "numa0 gpu0") == (15.75, 14.2, "0000:44:00.0>0000:45:00.0")
    assert one("p5-tree", "gpu0 gpu1 --via net") == (50.0, 40.0, "0000:4f:00.0>efa_0/1")
    assert one("p5-tree", "gpu0 gpu1 --via host") == (15.75, 3.2, "0000:44:00.0>0000:45:00.0")
    rated, typical, held = one("p5-tree", "gpu0 gpu1")
    assert rated == 450.0
    assert 357 < typical < 424
    assert held == "+".join(f"gpu0/nvlink{number}" for number in range(18))


def test_what_hangs_on_one_switch_shares_its_uplink() -> None:
    flows = json.loads(asked(snapshot_of("p5-tree"), "efa_[0-3]->numa0 gpu0->numa0 --concurrent", "json"))
    got = [flow["level"]["expected"][0]["typical"] for flow in flows]
    assert len(got) == 5
    assert sum(got) == pytest.approx(14.2e9, rel=0.01)
    uplinks = [step for flow in flows for step in flow["ways"][0] if step["bottleneck"]]
    assert {(*step["links"], step["flows"]) for step in uplinks} == {("0000:44:00.0>0000:45:00.0", 5)}
    alone = json.loads(asked(snapshot_of("p5-tree"), "efa_[0-3]->numa0", "json"))
    assert sum(flow["level"]["expected"][0]["typical"] for flow in alone) > 30e9


def test_json_has_levels_and_hops() -> None:
    levels = json.loads(asked(snapshot_of("desktop"), "", "json"))
    assert [(one["op"], one["ends"]) for one in levels][:2] == [("triad", ["gpu0"]), ("copy", ["numa0", "gpu0"])]
    (flow,) = json.loads(asked(snapshot_of("p5-tree"), "gpu0 nic3", "json"))
    assert list(flow) == ["level", "path_type", "seconds", "sized", "unknown", "ways"]
    assert flow["level"]["ends"] == ["gpu0", "efa_3/1"]
    assert [(step["sender"], step["receiver"], step["kind"]) for step in flow["ways"][0]] == [
        ("gpu0", "gpu0", "memory"),
        ("gpu0", "0000:46:0c.0", "pcie"),
        ("0000:46:0c.0", "0000:45:00.0", "internal"),
        ("0000:45:00.0", "0000:46:0b.0", "internal"),
        ("0000:46:0b.0", "efa_3", "pcie"),
        ("efa_3", "efa_3/1", "port"),
    ]


def test_measured_rates_are_shown_beside_expected_rates() -> None:
    snapshot = snapshot_of("gh200")
    seen = Observation(
        about=Flow("copy", ("numa0", "gpu0")),
        quantity="rate",
        unit="bytes_per_second",
        value=123.4e9,
        at=0.0,
        evidence=Evidence("a.txt:1", "123.4"),
    )
    measured = replace(snapshot, observations=(seen,))
    header, *rows = asked(measured, "").splitlines()[2:]
    assert "measured" in header
    assert [line.split()[-2] for line in rows if line.startswith("host to GPU")] == ["123.4"]
    assert "measured    123.4 GB/s\n" in asked(measured, "numa0 gpu0")


NAMES = {
    "GPU0": "gpu0",
    "gpu0": "gpu0",
    "0000:53:00.0": "gpu0",
    "53:00.0": "gpu0",
    "NIC3": "efa_3/1",
    "efa_3": "efa_3/1",
    "EFA_3/1": "efa_3/1",
    "0000:52:00.0": "efa_3/1",
    "numa1": "numa1",
    "Nvme2": "nvme2",
}


@pytest.mark.parametrize("text", NAMES)
def test_names(text: str) -> None:
    assert resolve_ends(snapshot_of("p5-tree"), text) == (NAMES[text],)


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("GPU[0-2]", ("gpu0", "gpu1", "gpu2")),
        ("numa*", ("numa0", "numa1")),
        ("efa_1?", tuple(f"efa_{n}/1" for n in range(10, 20))),  # the NIC and its port are one end
        ("nvme[12]*", ("nvme1", "nvme2")),  # not its block devices
        ("0000:53:*", ("gpu0",)),
    ],
)
def test_patterns(text: str, ends: tuple[str, ...]) -> None:
    assert resolve_ends(snapshot_of("p5-tree"), text) == ends


def test_patterns_of_numa_nodes_leave_out_those_without_memory() -> None:
    assert resolve_ends(snapshot_of("gh200"), "numa*") == ("numa0",)


MISTAKES = {
    "gpu9 numa0": "this node has no device 'gpu9'; did you mean gpu5 or gpu6 or gpu7? 'linkgauge topology' lists all "
    "names",
    "frobnicate": "this node has no device 'frobnicate'; 'linkgauge topology' lists all names",
    "tpu* numa0": "nothing in this node matches 'tpu*'; 'linkgauge topology' lists all names",
    "gpu0 GPU0": "both ends are gpu0: name it once for its memory, or name two different ends",
    "gpu0 gpu1 gpu2": "3 ends: name one or two, or several flows as 'gpu0->numa0'",
    "gpu0->numa0 gpu1": "'gpu0->numa0' is a flow and 'gpu1' is one end: do not mix them",
    "gpu0->": "'gpu0->' is not a flow: write it as 'gpu0->numa0'",
    "gpu0->gpu1->gpu2": "'gpu0->gpu1->gpu2' is not a flow: write it as 'gpu0->numa0'",
    "gpu0->gpu1 --op all_reduce": "all ends of all_reduce send: write the ends without '->'",
    "gpu0 --op all_reduce": "all_reduce needs at least two GPUs that reach each other; given: gpu0",
    "gpu0 numa0 --via nvlink": "there is no path over nvlink from gpu0 to numa0",
    "gpu[01]->numa0 --via nvlink": "there is no path over nvlink from gpu0 to numa0 (and 1 more)",
    "numa0": "the memory rate of numa0 is not known",
    "nvme0": "nvme0 alone is not a flow: name two ends",
    "nvfabric --op egress": "none of these reaches a NIC: nvfabric",
    "gpu0 gpu1 --size many": "--size many: not a size: write 64MiB, 1G or a number of bytes",
    "gpu0 gpu1 --size 0": "--size 0: write a size from 1 byte to 1 PiB",
    "gpu0 gpu1 --size 9999T": "--size 9999T: write a size from 1 byte to 1 PiB",
    "--concurrent": "--op, --via, --size and --concurrent apply to flows: name the ENDS of the flows",
    "--op copy": "--op, --via, --size and --concurrent apply to flows: name the ENDS of the flows",
    "gpu0 gpu1 --op cpy": "Invalid value for '--op'",
    "gpu0 gpu1 --via tcp": "Invalid value for '--via'",
    "gpu0 gpu1 --format xml": "Invalid value for '--format'",
}


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("expect") / "p5.capture"
    path.write_text(dump(node("p5-tree")))
    return str(path)


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_sentence(capture: str, command: str) -> None:
    done = CliRunner().invoke(main, ["expect", "--from", capture, *command.split()])
    assert done.exit_code == 64
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith(f"Error: {MISTAKES[command]}")


def test_the_command_prints_the_same(capture: str) -> None:
    for command in ("", "gpu0 gpu1 --via host", "gpu*->numa* --concurrent", "gpu* --op all_reduce --size 1G"):
        done = CliRunner().invoke(main, ["expect", "--from", capture, *command.split()])
        assert (done.exit_code, done.stdout) == (0, asked(snapshot_of("p5-tree"), command))


def test_examples_of_the_documentation() -> None:
    """docs/operate/expect.md shows the exact output, up to "..."."""
    text = (ROOT / "docs" / "operate" / "expect.md").read_text()
    examples = re.findall(r"^\$ linkgauge expect(.*) --from p5\.capture\n((?s:.*?))^```$", text, re.MULTILINE)
    assert examples
    for command, shown in examples:
        printed = asked(snapshot_of("p5-tree"), command.replace("'", ""))
        assert printed == shown or (shown.endswith("\n...\n") and printed.startswith(shown.removesuffix("...\n")))


def test_choices_of_the_command_are_those_of_the_model() -> None:
    assert set(OPS) >= (COLLECTIVES | {EGRESS}) - {"collective"}
    assert {"host", "net"} < set(VIA)


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), ("64MiB", 64 << 20), ("64M", 64 << 20), ("64MB", 64_000_000), ("1.5k", 1536)]
)
def test_sizes(text: str, size: int) -> None:
    (flow,) = json.loads(asked(snapshot_of("p5-tree"), f"numa0 gpu0 --size {text}", "json"))
    assert flow["level"]["size"] == size
    assert 0 < flow["sized"] <= 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("64M", "64 MiB"), ("64MB", "64 MB"), ("1.5M", "1536 KiB"), ("999", "999 B"), ("2T", "2048 GiB")],
)
def test_a_size_is_printed_in_the_unit_of_the_option(text: str, expected: str) -> None:
    assert f"\nsize        messages of {expected}: " in asked(snapshot_of("p5-tree"), f"numa0 gpu0 --size {text}")


def test_flows_without_a_path_say_why(capture: str) -> None:
    lost = "the memory rate of numa0 is not known"
    assert asked(snapshot_of("p5-tree"), "gpu0->numa0").endswith("a few bytes\n")
    done = CliRunner().invoke(main, ["expect", "--from", capture, "*"])
    assert f"\n{lost}\n" in done.stdout
    assert "\nnvme0 alone is not a flow: name two ends\n" in done.stdout
    done = CliRunner().invoke(main, ["expect", "--from", capture, "*", "--format", "json"])
    assert lost in done.stderr.splitlines()
    assert len(json.loads(done.stdout)) == 40


def test_small_messages_get_less_and_the_share_is_shown() -> None:
    whole, small = (asked(snapshot_of("p5-tree"), f"numa0 gpu0 --size {size}") for size in ("1GiB", "64KiB"))
    assert "messages of 1 GiB: they reach 100% of the rate of long ones" in whole
    assert "messages of 64 KiB: they reach " in small
    assert "no published rate" in asked(snapshot_of("p5-tree"), "nvme1 numa0 --size 64KiB")


def test_the_ends_of_a_collective_are_ranks() -> None:
    assert asked(snapshot_of("p5-tree"), "gpu0 gpu1 --op all_reduce").startswith("gpu0, gpu1: all_reduce, NVL; ")


def test_a_machine_of_which_nothing_is_known() -> None:
    snapshot = assemble([], Site(), 0.0)
    assert asked(snapshot, "") == (
        "this node: of no machine type that is known here\n\n"
        "This node has no GPU, RDMA device or NVMe disk, and no memory with a known rate.\n"
    )
    assert asked(snapshot, "", "json") == "[]\n"
    with pytest.raises(BadInput, match="this node has no device 'gpu0'"):
        asked(snapshot, "gpu0 numa0")


LETTERS = st.text(st.sampled_from("ab:/ \x1b\u202e\u4e2d9"), min_size=1, max_size=40)
KINDS = ("gpu", "nic", "port", "numa", "nvme", "array", "disk", "package", "upstream-port", "root-port", "fabric")
PEERS = {"gpu", "numa", "fabric"}  # devices that NVLink, xGMI and C2C connect
OTHER_LINKS = ("pcie", "memory", "interconnect", "internal", "function", "port", "disk", "member")
LINKS = ("nvlink", "xgmi", "c2c", *OTHER_LINKS)
GRADES = ("", "pcie5x16", "pcie3x4", "nvlink4", "c2c4", "xgmi", "hbm", "ddr5", "infiniband", "efa", "odd")
RATES = st.none() | st.floats(1e6, 1e13)


@st.composite
def cases(draw: st.DrawFn) -> Snapshot:
    """Devices of any kind and name, with any links."""
    names = draw(st.lists(LETTERS, min_size=2, max_size=9, unique=True))
    aliases = st.lists(LETTERS, max_size=1).map(tuple)
    devices = [Device(name, draw(st.sampled_from(KINDS)), aliases=draw(aliases)) for name in names]
    kind_of = {device.id: device.kind for device in devices}
    links = []
    for number, (a, b) in enumerate(draw(st.lists(st.tuples(*[st.sampled_from(names)] * 2), max_size=14))):
        kind = draw(st.sampled_from(LINKS if {kind_of[a], kind_of[b]} <= PEERS else OTHER_LINKS))
        grade, back = draw(st.sampled_from(GRADES)), draw(RATES)
        links.append(Link(f"{number}>{a}", a, b, kind, draw(RATES), draw(RATES | st.just(0.0)), back, grade))
    known = {name for device in devices for name in (device.id, *device.aliases)}
    assume(len(known) == sum(1 + len(device.aliases) for device in devices))
    return replace(assemble([], Site(), 0.0), topology=Topology(tuple(devices), tuple(links)))


def shown(text: str) -> None:
    assert all(cells(line) < 100 for line in text.splitlines())
    assert all(line.isprintable() for line in text.split("\n"))


@given(cases())
def test_any_node_is_shown_in_less_than_100_columns(snapshot: Snapshot) -> None:
    tiers = hierarchy(snapshot)
    shown(as_hierarchy(snapshot, tiers))
    levels = json.loads(as_json([level for tier in tiers for level in tier.levels]))
    assert [tuple(level["ends"]) for level in levels] == [level.ends for tier in tiers for level in tier.levels]


@given(cases(), st.sampled_from(OPS), st.sampled_from(("", *VIA)), st.none() | st.integers(1, 1 << 40), st.booleans())
def test_any_flows_are_shown_in_less_than_100_columns(
    snapshot: Snapshot, op: str, via: str, size: int | None, concurrent: bool
) -> None:
    names = [device.id for device in snapshot.topology.devices]
    flows = [Flow(op, (a, b), size, via) for a in names for b in names if a != b] + [Flow(op, (names[0],), size, via)]
    found = explained(snapshot, flows, concurrent)
    as_json(found)
    if found:
        shown(as_flows(found[:1]))
        shown(as_flows(found, ["x" * 200, "\x1b[31m"]))
    for flow in found:
        holds(flow)


def holds(flow: Explained) -> None:
    """The bounds ascend, and the bottleneck is a hop of the flow."""
    for expected in flow.level.expected:
        assert expected.low <= expected.typical * (1 + 1e-9)
        assert expected.typical <= expected.high * (1 + 1e-9)
        held = {"+".join(step.links) for path in flow.ways for step in path if step.bottleneck}
        assert held == {expected.bottleneck}
    assert (flow.unknown is None) == bool(flow.level.expected)


@given(cases(), LETTERS)
def test_any_name_means_devices_or_is_a_sentence(snapshot: Snapshot, text: str) -> None:
    try:
        ends = resolve_ends(snapshot, text)
    except LookupError:
        assert snapshot.topology.find(text) is None
    else:
        assert ends
        assert all(snapshot.topology.find(end) for end in ends)
