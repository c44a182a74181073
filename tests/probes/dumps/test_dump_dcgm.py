"""`dcgmi` nvlink, topo, discovery and health: as tables and as JSON, cut, and rubbish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Gpu, GpuLink, GpuPair
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.nvidia import dcgm

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
LINKS = """\
+----------------------+
|  NvLink Link Status  |
+----------------------+
GPUs:
    gpuId 0:
        U D U X U U _ _ _ _ _ _
    gpuId 1:
        _ _ _ _ _ _ _ _ _ _ _ _
NvSwitches:
    physicalId 9:
        U U X D D _

Key: Up=U, Down=D, Disabled=X, Not Supported=_
"""
ERRORS = """\
+-----------------------------+------------------------------------------------+
| NVLINK Error Counts                                                          |
| GPU 2                                                                        |
+=============================+================================================+
| Link 0                      |                                                |
| -> CRC FLIT Error           | 3                                              |
| -> CRC Data Error           | 4                                              |
| -> Replay Error             | 0                                              |
| Link 1                      |                                                |
| -> CRC FLIT Error           | 1                                              |
| -> Replay Error             | 0                                              |
+-----------------------------+------------------------------------------------+
"""
TOPOLOGY = """\
+-------------------+--------------------------------------------------------------------------------+
| Topology Information                                                                               |
| GPU ID: 1                                                                                          |
+===================+================================================================================+
| CPU Core Affinity | 0 - 2, 8                                                                       |
|                   | - 9, 12                                                                        |
| To GPU 0          | Connected via a single PCIe switch                                             |
|                   | Connected via two NVLINKs (Links: 0, 3)                                        |
| To GPU 2          | Connected via a CPU-level link                                                 |
+-------------------+--------------------------------------------------------------------------------+
"""
DEVICES = """\
2 GPUs found.
+--------+----------------------------------------------------------------------+
| GPU ID | Device Information                                                   |
+--------+----------------------------------------------------------------------+
| 0      | Name: NVIDIA A100-SXM4-80GB                                          |
|        | PCI Bus ID: 00000002:10:1C.0                                         |
|        | Device UUID: GPU-11111111-2222-3333-4444-555555555555                |
+--------+----------------------------------------------------------------------+
| 1      | Error: Cannot get device attributes for GPU.                         |
|        | Return: GPU is lost                                                  |
+--------+----------------------------------------------------------------------+
0 NvSwitches found.
"""
HEALTH = """\
+---------------------------+----------------------------------------------------------+
| Health Monitor Report                                                                |
+===========================+==========================================================+
| Overall Health            | Failure                                                  |
| GPU                       |                                                          |
| -> 0                      | Failure                                                  |
|    -> Errors              |                                                          |
|       -> PCIe system      | Warning                                                  |
|                           | Detected more than 8 PCIe replays per minute for GPU 0   |
|                           | : 13                                                     |
|       -> Memory system    | Failure                                                  |
|                           | GPU 0 had memory errors and row remappings are pending   |
+---------------------------+----------------------------------------------------------+
"""


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(dcgm.read(Part("log", 1, text, AT)))


def line(text: str, number: int) -> Evidence:
    return Evidence(f"log:{number}", text.splitlines()[number - 1].strip())


def link(key: str, active: bool, where: Evidence) -> GpuLink:
    cites = dict.fromkeys(("gpu", "kind", "active"), where)
    return GpuLink(key=key, gpu=key.partition("/")[0], kind="nvlink", active=active, cites=cites)


def count(about: str, quantity: str, value: float, where: Evidence) -> Observation:
    return Observation(about=about, quantity=quantity, unit="count", value=value, at=AT, evidence=where)


def test_link_states() -> None:
    """A row that may have been cut says nothing of how many there are."""
    row = line(LINKS, 6)
    assert said(LINKS) == [
        Gpu(key="gpu0", nvlinks=4, nvlinks_present=6, cites={"nvlinks": row, "nvlinks_present": row}),
        *(link(f"gpu0/nvlink{number}", number not in (1, 3), row) for number in range(6)),
        Gpu(key="gpu1"),
        NotChecked(
            what="NVSwitch ports",
            subject="nvswitch9",
            reason=Reason.OTHER,
            path="log:11",
            detail="DCGM shows as down its NVLink ports 3, 4",
            how="nvidia-smi nvlink -s, and the log of the fabric manager",
        ),
    ]
    assert plain(said(LINKS.replace(" _ _ _ _ _ _\n    gpuId 1", "\n    gpuId 1"))[0]) == plain(said(LINKS)[0])
    assert said(LINKS.replace(" X U U _ _ _ _ _ _\n    gpuId 1", "\n    gpuId 1"))[0] == Gpu(key="gpu0")


def test_error_counts() -> None:
    """Of each link what is not zero, and the sum. Both kinds of CRC errors are one."""
    six, seven, eight, ten = (line(ERRORS, number) for number in (6, 7, 8, 10))
    assert said(ERRORS) == [
        Gpu(key="gpu2"),
        count("gpu2/nvlink0", "nvlink_crc", 7.0, seven),
        count("gpu2/nvlink1", "nvlink_crc", 1.0, ten),
        count("gpu2", "nvlink_crc", 8.0, seven),
        count("gpu2", "nvlink_replay", 0.0, eight),
    ]
    assert six.text == "| -> CRC FLIT Error           | 3                                              |"


def test_errors_of_a_gpu_as_a_whole() -> None:
    text = re.sub(r"Link [01]", "Error Detail", ERRORS.partition("| Link 1")[0]).replace("CRC FLIT", "Rx Symbol")
    told = [one for one in said(text) if isinstance(one, Observation)]
    assert [(one.about, one.quantity, one.value) for one in told] == [
        ("gpu2", "nvlink_symbol_errors", 3.0),
        ("gpu2", "nvlink_crc", 4.0),
        ("gpu2", "nvlink_replay", 0.0),
    ]


def test_topology() -> None:
    cpus, near, far = line(TOPOLOGY, 5), line(TOPOLOGY, 7), line(TOPOLOGY, 9)
    pair = {"a": near, "b": near, "path": near}
    assert said(TOPOLOGY) == [
        Gpu(key="gpu1", cpus=(0, 1, 2, 8, 9, 12), cites={"cpus": cpus}),
        GpuPair(key="gpu0-gpu1", a="gpu0", b="gpu1", path="PIX", cites=pair),
        link("gpu1/nvlink0", True, near),
        link("gpu1/nvlink3", True, near),
        GpuPair(key="gpu1-gpu2", a="gpu1", b="gpu2", cites={"a": far, "b": far}),
    ]


def test_devices() -> None:
    name, address, uuid = line(DEVICES, 5), line(DEVICES, 6), line(DEVICES, 7)
    assert said(DEVICES) == [
        Gpu(
            key="gpu0",
            name="NVIDIA A100-SXM4-80GB",
            address="0002:10:1c.0",
            uuid="GPU-11111111-2222-3333-4444-555555555555",
            cites={"name": name, "address": address, "uuid": uuid},
        ),
        Gpu(key="gpu1", failure="GPU is lost", cites={"failure": line(DEVICES, 10)}),
        NotChecked(
            what="Gpu",
            subject="gpu1",
            reason=Reason.OTHER,
            path="log:9",
            detail="Error: Cannot get device attributes for GPU.",
            how="nvidia-smi -q; dmesg",
        ),
    ]


def test_health() -> None:
    """A failure is an event; a warning is kept as text; what they state of the GPU is a fact."""
    seen = line(HEALTH, 11)
    name, text = "DCGM's health watch, Memory system,", "GPU 0 had memory errors and row remappings are pending"
    assert said(HEALTH) == [
        Gpu(key="gpu0", remap_pending=True, cites={"remap_pending": seen}),
        Event(
            key=f"test failed, {name}, gpu0",
            kind="test failed",
            name=name,
            subject="gpu0",
            text=text,
            cites=dict.fromkeys(("kind", "name", "subject", "text"), seen),
        ),
        NotChecked(
            what="dcgmi health",
            subject="gpu0",
            how="dmesg; nvidia-smi -q; dcgmi diag -r 2",
            reason=Reason.OTHER,
            path="log:8",
            detail="DCGM's health watch, PCIe system, says warning: "
            "Detected more than 8 PCIe replays per minute for GPU 0 : 13",
        ),
    ]


HEALTH_JSON = """\
{
   "body" : {
      "GPU" : { "children" : { "0" : { "children" : { "Errors" : { "children" : {
         "PCIe system" : { "overflow" : [ "Detected more than 8 PCIe replays per minute for GPU 0", ": 13" ],
                           "value" : "Warning" },
         "Memory system" : { "overflow" : [ "GPU 0 had memory errors and row remappings are pending" ],
                             "value" : "Failure" }
      } } }, "value" : "Failure" } } },
      "Overall Health" : { "value" : "Failure" }
   },
   "header" : [ "Health Monitor Report" ]
}
"""
TOPOLOGY_JSON = """\
{
\t"body" :
\t{
\t\t"CPU Core Affinity" : { "overflow" : [ "- 9, 12" ], "value" : "0 - 2, 8" },
\t\t"To GPU 0" :
\t\t{
\t\t\t"overflow" : [ "Connected via two NVLINKs (Links: 0, 3)" ],
\t\t\t"value" : "Connected via a single PCIe switch"
\t\t},
\t\t"To GPU 2" : { "value" : "Connected via a CPU-level link" }
\t},
\t"header" : [ "Topology Information", "GPU ID: 1" ]
}
"""
ERRORS_JSON = """\
{ "body" : { "Link 0" : { "children" : { "CRC FLIT Error" : { "value" : 3 }, "CRC Data Error" : { "value" : 4 },
  "Replay Error" : { "value" : 0 } } }, "Link 1" : { "children" : { "CRC FLIT Error" : { "value" : 1 },
  "Replay Error" : { "value" : 0 } } } }, "header" : [ "NVLINK Error Counts", "GPU 2" ] }
"""


def plain(one: Record) -> tuple[object, ...]:
    """What is said, without where it stood."""
    names = (name for name in one.__dataclass_fields__ if name not in ("cites", "evidence", "why"))
    return (type(one), *(getattr(one, name) for name in names))


@pytest.mark.parametrize(("text", "same"), [(HEALTH_JSON, HEALTH), (TOPOLOGY_JSON, TOPOLOGY), (ERRORS_JSON, ERRORS)])
def test_json_says_the_same_as_the_text(text: str, same: str) -> None:
    assert [plain(one) for one in said(text)] == [plain(one) for one in said(same)]


def test_several_outputs_one_after_another() -> None:
    text = HEALTH_JSON + LINKS + TOPOLOGY_JSON + DEVICES
    apart = [plain(one) for output in (HEALTH_JSON, LINKS, TOPOLOGY_JSON, DEVICES) for one in said(output)]
    together = [plain(one) for one in said(text)]
    assert {one[1] for one in together} == {one[1] for one in apart}
    assert sum(one[0] is GpuLink for one in together) == 8
    assert sum(one[0] is NotChecked for one in together) == 3


def test_a_json_that_was_cut() -> None:
    told = said(HEALTH_JSON[:200])
    assert [(type(one), getattr(one, "what", "")) for one in told] == [(NotChecked, "dump")]


@pytest.mark.parametrize("text", [LINKS, ERRORS, TOPOLOGY, DEVICES, HEALTH])
def test_cut_at_every_line_it_says_nothing_else(text: str) -> None:
    lines = text.splitlines(keepends=True)
    whole = {(type(one), getattr(one, "key", getattr(one, "about", ""))) for one in said(text)}
    for end in range(len(lines)):
        told = list(dcgm.read(Part("log", 1, "".join(lines[:end]), AT)))
        assert {(type(one), getattr(one, "key", getattr(one, "about", ""))) for one in told} <= whole
        present = {one.nvlinks for one in told if isinstance(one, Gpu)}
        assert present <= {None, 4}


words = st.sampled_from(
    [*(LINKS + ERRORS + TOPOLOGY + DEVICES + HEALTH + HEALTH_JSON).splitlines(keepends=True), "\n", "| ", "-> ", "{"]
)


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in dcgm.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_are_none() -> None:
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20:
            assert not re.search(dcgm.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name
