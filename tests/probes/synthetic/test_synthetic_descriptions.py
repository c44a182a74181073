"""Descriptions of synthetic nodes: each is built, or refused in a sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.merge import merge
from linkgauge.models.facts.records import Fact
from linkgauge.probes.host.recorded import Recorded, dump, parse
from linkgauge.probes.synthetic.build import build
from linkgauge.probes.synthetic.device_models import models
from tests.support.nodes.synthetic_machines import GPU, NAMES, NODES, SMALL, said_of


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hostname =", "Invalid value"),
        ("host = 'a'", "Object contains unknown field `host`"),
        ("[cpu]\nsockets = 0", "Expected `int` >= 1 - at `$.cpu.sockets`"),
        ("[cpu]\nsockets = 64\ncores = 512", "65536 CPUs in 64 NUMA nodes: 2048 and 64 are the most"),
        ("taken = 1066-10-14T09:00:00Z", "taken in 1066: a capture is from this age"),
        ("[[root]]\nbus = [0]\nports = ['h101']", "no model is called 'h101'; there are 7450, 990pro, a100"),
        ("[[root]]\nbus = [0]\nport = 'h100'\nports = ['h100']", "h100 is a gpu, not a port"),
        ("[[root]]\nbus = [254]\nswitches = [['h100']]", "the root at bus 0xfe has no bus left for all of its devices"),
        ("[[root]]\nbus = [1, 1]\nports = ['h100']", "two devices are at 0000:01:01.0"),
        (f"[[root]]\nbus = [1]\nintegrated = {['ast'] * 32}", "bus 0x01 has no room for a device number 32"),
        (f"{SMALL}[device.gpu1]\nwidth = 8", "device 'gpu1': there is none; there are, among others, gpu0"),
        (f"{SMALL}[device.gpu0]\nwidth = 8\n[device.'{GPU}']", f"device '{GPU}' is 'gpu0': put all of its changes in"),
        (f"{SMALL}[device.gpu0]\nwith = 8", "Object contains unknown field `with`"),
        (f"{SMALL}[device.gpu0]\nspeed = 15", "15 GT/s is no speed of PCIe: 2.5, 5, 8, 16, 32 and 64 are"),
        (f"{SMALL}[device.gpu0]\nerrors = {{Rx = 1}}", f"{GPU}: AER has no error Rx"),
        (f"{SMALL}[files]\n'sys/../a' = ''", "files: 'sys/../a' is no path"),
        (f"{SMALL}[files]\n'sys/class' = ''", "files: 'sys/class' is a folder, or lies in a file"),
        (f"{SMALL}[files]\n'proc/cpuinfo/a' = ''", "files: 'proc/cpuinfo/a' is a folder, or lies in a file"),
        ("[array.md0]\nmembers = ['sda']", "array 'md0': there is no disk 'sda'; there are none"),
        ("[[root]]\nbus = [1]\nports = ['efa']\n[device.efa_0]\nrate = 3", "efa_0: no lanes have a rate of 3 Gb/s"),
        (
            "[[root]]\nbus = [1]\nintegrated = ['ahci', 'efa']\n[device.sda]\nvfs = 120\n[device.efa_0]\nvfs = 120",
            "a virtual function would be at",
        ),
        ("[[root]]\nbus = [0]\nswitches = [[[[['efa']]]]]", "Expected `str`, got `array`"),
        ("[[root]]\nbus = [0]\nswitch = 'efa'\nswitches = [['h100']]", "efa is a nic, not a port"),
        ("[[root]]\nbus = [0]\nslot = 31\nintegrated = ['ast', 'ast']", "bus 0x00 has no room for a device number 32"),
        ("[[root]]\nbus = [0]\ndomain = []", "Expected `array` of length >= 1 - at `$.root[0].domain`"),
        ("[[root]]\nbus = [0]\ndomain = [1, 1]\nports = ['efa']", "two devices are at 0001:00:01.0"),
        ("a = " + "[" * 100_000, "the description is nested too deeply"),
    ],
)
def test_what_makes_no_node_is_said_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=".") as raised:
        build(text)
    assert message in str(raised.value)


DEVICES = st.sampled_from(sorted(name for name, model in models().items() if model.kind != "port"))
SOME = st.lists(DEVICES | st.just(""), max_size=3).map(list)
CHANGES = st.sampled_from(
    [
        "speed = 2.5",
        "width = 8",
        "width = 0",
        "max_speed = 16",
        "max_width = 4",
        "busy_speed = 5",
        "lost = true",
        'driver = ""',
        "numa = 1",
        'slot = "1"',
        'label = "a b"',
        "vfs = 3",
        "errors = {RxErr = 1}",
        "up = false",
        "enabled = false",
        "rate = 100",
        "partner = 10",
        "counters = {rx_errors = 2, link_downed = 3}",
        'state = "dead"',
        "gone = true",
        "bar1 = 0",
        "gpu = {power = 3}",
        "inactive = [0]",
        "unlisted = true",
        "size = 0",
        "partitions = [1, 1000]",
        'files = {"net/eth0/mtu" = "x", "a/b" = "c", class = "?"}',
    ]
)


@st.composite
def descriptions(draw: st.DrawFn) -> str:
    cpu = [f"{key} = {draw(st.integers(1, 3))}" for key in ("sockets", "cores", "threads", "numa_nodes")]
    lines = ["[cpu]", *cpu]
    for bus in range(draw(st.integers(0, 3))):
        lines += ["[[root]]", f"bus = [{bus * 0x40}]", f"numa = {bus - 1}", f"ports = {draw(SOME)}"]
        lines += [f"switches = {draw(st.lists(st.lists(DEVICES | SOME, max_size=3), max_size=2))}"]
        lines += [f"integrated = {draw(st.lists(DEVICES, max_size=3))}"]
        lines += [f'port = "{draw(st.sampled_from(["root-gen3", "aws-port"]))}"']
    addresses = build("\n".join(lines)).list("sys/bus/pci/devices")
    for address in draw(st.lists(st.sampled_from(addresses), max_size=4, unique=True)) if addresses else ():
        lines += [f'[device."{address}"]', *draw(st.lists(CHANGES, unique_by=lambda line: line.split()[0]))]
    return "\n".join(lines)


def built(text: str) -> Recorded | None:
    """None where the text was refused, as it should be: with a sentence."""
    try:
        return build(text)
    except ValueError as refused:
        if not str(refused):
            raise
        return None


@given(descriptions())
def test_a_description_that_makes_sense_is_built_and_read(text: str) -> None:
    machine = built(text)
    if machine is None:  # a virtual function where a device is: there is no such machine
        return
    assert parse(dump(machine)) == machine
    facts, _ = merge(said for said in said_of(machine) if isinstance(said, Fact))
    assert set(facts.get(Pci, {})) == set(machine.list("sys/bus/pci/devices"))


VALUES = [
    "0",
    "-1",
    "2.5",
    "1e300",
    "nan",
    '""',
    '"../x"',
    "true",
    "[]",
    '["h100"]',
    '[["efa"]]',
    '{"a/b" = "c"}',
    "2026-11-21",
    "[0, 1]",
    '"lo"',
    '"nvme0n1"',
    "0xff",
]


@given(st.sampled_from(NAMES[:2]), st.data())
def test_a_damaged_description_is_built_or_refused(name: str, data: st.DataObject) -> None:
    lines = (NODES / f"{name}.toml").read_text().split("\n")
    line = data.draw(st.sampled_from([number for number, line in enumerate(lines) if " = " in line]))
    lines[line] = f"{lines[line].partition(' = ')[0]} = {data.draw(st.sampled_from(VALUES))}"
    machine = built("\n".join(lines))
    assert machine is None or parse(dump(machine)) == machine


@given(st.text())
def test_any_text_is_built_or_refused(text: str) -> None:
    machine = built(text)
    assert machine is None or parse(dump(machine)) == machine
