"""`dcgmi diag`: the table until version 3 and from 4 on, JSON, cut, and rubbish; what becomes of what failed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.cli.main import main
from linkgauge.models.facts.gpu import Driver, Gpu, GpuLink
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.nvidia import dcgm

AT = 1795230000.0
HEAD = """\
Successfully ran diagnostic for group.
+---------------------------+------------------------------------------------+
| Diagnostic                | Result                                         |
+===========================+================================================+
"""
OLD = f"""\
{HEAD}\
|-----  Metadata  ----------+------------------------------------------------|
| DCGM Version              | 3.3.7                                          |
| Driver Version Detected   | 535.129.03                                     |
|-----  Deployment  --------+------------------------------------------------|
| Denylist                  | Pass                                           |
| Persistence Mode          | Fail                                           |
| Error                     | Persistence mode for GPU 1 is disabled. Enabl  |
|                           | e persistence mode                             |
+-----  Integration  -------+------------------------------------------------+
| PCIe                      | Pass - GPU: 0                                  |
|                           | Fail - GPU: 1                                  |
| Warning                   | GPU 1 is running at PCI link width 8X, which   |
|                           | is below the minimum                           |
| Info                      | GPU 0 GPU to Host bandwidth:  24.51 GB/s, GPU  |
|                           |  0 Host to GPU bandwidth:  25.12 GB/s, GPU 0   |
|                           | bidirectional bandwidth: 40.12 GB/s            |
+-----  Hardware  ----------+------------------------------------------------+
| GPU Memory                | Skip - All                                     |
| Warning                   | The memory test is skipped for this GPU.       |
+-----  Stress  ------------+------------------------------------------------+
| Targeted Stress           | Fail - GPUs: 0, 1                              |
+---------------------------+------------------------------------------------+
"""
NEW = f"""\
{HEAD}\
|-----  Deployment  --------+------------------------------------------------|
| software                  | Pass                                           |
|                           | GPU0: Pass                                     |
+-----  Integration  -------+------------------------------------------------+
| pcie                      | Fail                                           |
| Warning                   | There was an internal error during the test:   |
|                           | 'A child process (152) exited'                 |
|                           | GPU0: Pass                                     |
| Info: GPU0                | GPU to Host bandwidth:  55.01 GB/s             |
|                           | GPU1: Fail                                     |
| Warning: GPU1             | GPU 1's NvLink link 4 is currently down Check  |
|                           |  the log                                       |
+---------------------------+------------------------------------------------+
"""
NEW_JSON = """\
{
\t"DCGM Diagnostic" :
\t{
\t\t"test_categories" :
\t\t[
\t\t\t{
\t\t\t\t"category" : "Integration",
\t\t\t\t"tests" :
\t\t\t\t[
\t\t\t\t\t{
\t\t\t\t\t\t"name" : "pcie",
\t\t\t\t\t\t"results" :
\t\t\t\t\t\t[
\t\t\t\t\t\t\t{ "entity_group" : "GPU", "entity_id" : 0, "status" : "Pass",
\t\t\t\t\t\t\t  "info" : [ "GPU to Host bandwidth:\\t\\t55.01 GB/s" ] },
\t\t\t\t\t\t\t{ "entity_group" : "GPU", "entity_id" : 1, "status" : "Fail",
\t\t\t\t\t\t\t  "warnings" : [ { "error_id" : 1, "warning" : "GPU 1's NvLink link 4 is currently down" } ] }
\t\t\t\t\t\t],
\t\t\t\t\t\t"test_summary" : { "status" : "Fail", "warnings" : [ { "warning" : "An internal error" } ] }
\t\t\t\t\t}
\t\t\t\t]
\t\t\t}
\t\t]
\t},
\t"metadata" : { "Driver Version Detected" : "580.82.09", "version" : "4.2.3" }
}
"""
OLD_JSON = """\
{ "DCGM GPU Diagnostic" : { "test_categories" : [ { "category" : "Integration", "tests" : [ { "name" : "PCIe",
  "results" : [
    { "gpu_ids" : "0", "status" : "PASS",
      "info" : "GPU 0 GPU to Host bandwidth:\\t\\t24.51 GB/s, GPU 0 Host to GPU bandwidth:\\t\\t25.12 GB/s" },
    { "gpu_ids" : "1", "status" : "FAIL", "warnings" : "GPU 1 is running at PCI link width 8X" }
] } ] } ] } }
"""


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(dcgm.read(Part("log", 1, text, AT)))


def line(text: str, number: int) -> Evidence:
    return Evidence(f"log:{number}", text.splitlines()[number - 1].strip())


def rate(ends: tuple[str, str], value: float, where: Evidence) -> Observation:
    return Observation(
        about=Flow("copy", ends),
        quantity="rate",
        unit="bytes_per_second",
        value=value,
        at=AT,
        busy=True,
        evidence=where,
    )


def failed(test: str, subject: str, text: str, where: Evidence) -> Event:
    name = f"DCGM's test {test}"
    cites = dict.fromkeys(("kind", "name", "subject", "text"), where)
    key = f"test failed, {name}, {subject}"
    return Event(key=key, kind="test failed", name=name, subject=subject, text=text, cites=cites)


def test_the_table_until_version_3() -> None:
    """What is skipped is not said; a mode is a fact, and no failure."""
    mode, width, info = line(OLD, 11), line(OLD, 16), line(OLD, 18)
    text = "GPU 1 is running at PCI link width 8X, which is below the minimum"
    assert said(OLD) == [
        Driver(key="nvidia", version="535.129.03", cites={"version": line(OLD, 7)}),
        Gpu(key="gpu1", persistence=False, pcie_width=8, cites={"persistence": mode, "pcie_width": width}),
        Gpu(key="gpu0"),
        failed("PCIe", "gpu1", text, width),
        failed("Targeted Stress", "node", "it does not say why", line(OLD, 25)),
        NotChecked(
            what="dcgmi diag",
            subject="node",
            how="nvidia-smi -q",
            reason=Reason.OTHER,
            path="log:11",
            detail="DCGM's test Persistence Mode says: Persistence mode for GPU 1 is disabled. Enable persistence mode",
        ),
        rate(("gpu0", "host"), 24.51e9, info),
        rate(("host", "gpu0"), 25.12e9, info),
    ]


def test_the_table_from_version_4_on() -> None:
    down = line(NEW, 15)
    cites = dict.fromkeys(("gpu", "kind", "active"), down)
    internal = "There was an internal error during the test: 'A child process (152) exited'"
    assert said(NEW) == [
        Gpu(key="gpu0"),
        Gpu(key="gpu1"),
        GpuLink(key="gpu1/nvlink4", gpu="gpu1", kind="nvlink", active=False, cites=cites),
        failed("pcie", "node", internal, line(NEW, 10)),
        failed("pcie", "gpu1", "GPU 1's NvLink link 4 is currently down Check the log", down),
        rate(("gpu0", "host"), 55.01e9, line(NEW, 13)),
    ]


def test_json_says_the_same_as_the_table() -> None:
    kinds = (Gpu, GpuLink, Observation, Event)
    told = [one for one in said(NEW_JSON) if isinstance(one, kinds)]
    same = [one for one in said(NEW) if isinstance(one, kinds)]
    assert {getattr(one, "key", getattr(one, "about", None)) for one in told} == {
        getattr(one, "key", getattr(one, "about", None)) for one in same
    }
    assert Driver(
        key="nvidia", version="580.82.09", cites={"version": Evidence("log:1", "driver version 580.82.09")}
    ) in said(NEW_JSON)
    old = [one for one in said(OLD_JSON) if isinstance(one, Observation)]
    assert [(one.about, one.value) for one in old] == [
        (Flow("copy", ("gpu0", "host")), 24.51e9),
        (Flow("copy", ("host", "gpu0")), 25.12e9),
    ]
    assert [one.pcie_width for one in said(OLD_JSON) if isinstance(one, Gpu)] == [None, 8]
    assert [one.subject for one in said(OLD_JSON) if isinstance(one, Event)] == ["gpu1"]


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("Detected 3 volatile double-bit ECC error(s) in GPU 0.", {"ecc_uncorrected": 3}),
        ("A pending retired page has been detected in GPU 0.", {"remap_pending": True}),
        ("GPU 0 had uncorrectable memory errors and row remapping failed.", {"remap_failed": True}),
        ("GPU 0 had uncorrectable memory errors and 2 rows were remapped", {"remapped_uncorrectable": 2}),
        ("GPU 0 is running at PCI link generation 3, which is below", {"pcie_speed": 8e9}),
        ("Only 17 NvLinks are up out of the expected 18", {"nvlinks": 17}),
        ("NvSwitch 3 - Only 17 NvLinks are up out of the expected 18", {}),
        ("Clocks are being throttled for GPU 0", {}),
    ],
)
def test_what_messages_state(message: str, fields: dict[str, object]) -> None:
    text = NEW_JSON.replace("GPU 1's NvLink link 4 is currently down", message).replace(
        '"entity_id" : 1', '"entity_id" : 0'
    )
    (gpu,) = (one for one in said(text) if isinstance(one, Gpu))
    known = {name: getattr(gpu, name) for name in gpu.cites}
    assert known == fields


def test_an_xid() -> None:
    text = NEW_JSON.replace("GPU 1's NvLink link 4 is currently down", "Detected XID 79 for GPU 1")
    told = [one for one in said(text) if isinstance(one, Event) and one.kind == "xid"]
    assert [(one.code, one.subject) for one in told] == [(79, "gpu1")]


def test_it_did_not_run() -> None:
    text = '{ "DCGM GPU Diagnostic" : { "runtime_error" : "no GPUs", "version" : "3.3.1" } }'
    assert [(one.what, one.why) for one in said(text) if isinstance(one, NotChecked)] == [
        ("dcgmi diag", "log:1: DCGM's diagnosis did not run: no GPUs")
    ]


@pytest.mark.parametrize(
    ("text", "verdict", "codes"),
    [
        (NEW, "UNKNOWN", 1),
        (NEW_JSON.replace("GPU 1's NvLink link 4 is currently down", "Detected XID 79 for GPU 1"), "FAILED", 1),
        (OLD.replace("Fail - GPU", "Pass - GPU").replace("| Warning  ", "| Info     "), "OK", 0),
    ],
)
def test_what_failed_is_a_symptom(tmp_path: Path, text: str, verdict: str, codes: int) -> None:
    """A node of which another tool says that it failed is not well because nothing else was found."""
    (tmp_path / "diag.txt").write_text(text)
    told = CliRunner().invoke(main, ["diagnose", "--from", str(tmp_path / "diag.txt")]).output
    assert told.startswith(verdict)
    assert told.count("not-enough-evidence") == codes


@pytest.mark.parametrize("text", [OLD, NEW])
def test_cut_at_every_line_it_says_nothing_else(text: str) -> None:
    """A test whose row is the last has not said yet why."""
    lines = text.splitlines(keepends=True)
    whole = {getattr(one, "key", getattr(one, "about", None)) for one in said(text)}
    for end in range(len(lines)):
        told = dcgm.read(Part("log", 1, "".join(lines[:end]), AT))
        keys = {getattr(one, "key", getattr(one, "about", None)) for one in told}
        assert {key for key in keys if not str(key).startswith("test failed")} <= whole


words = st.sampled_from([*(OLD + NEW + NEW_JSON + OLD_JSON).splitlines(keepends=True), "\n", "| ", "GPU 0: Fail", "{"])


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join))
def test_any_text(text: str) -> None:
    for one in dcgm.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda below: (
            st.lists(below, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "test_categories",
                        "tests",
                        "results",
                        "status",
                        "warnings",
                        "info",
                        "name",
                        "gpu_ids",
                        "entity_group",
                        "entity_id",
                        "children",
                        "value",
                        "overflow",
                        "GPU",
                        "0",
                        "Errors",
                    ]
                ),
                below,
                max_size=5,
            )
        ),
    )
)
def test_any_json(value: object) -> None:
    for name in ('"DCGM Diagnostic"', '"body": {"GPU": 1}, "body"'):
        for one in dcgm.read(Part("log", 1, f"{{{name}: {json.dumps(value)}}}")):
            assert decode(encode(one)) == one
