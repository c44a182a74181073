"""Any text, as lines of the samples in any order and as JSON with other values: no reader raises, and all it gives is
a record that can be kept.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.records import Fact, NotChecked, Observation, Record
from tests.support.dump_samples import CHANGES, reader_of, sample_files, text_of
from tests.support.samples import BY_NAME, read, samples
from tests.support.texts import found_in

TEXTS = samples(recorded=False)
# Texts on which a reader failed earlier, or that no sample has.
PIECES: dict[str, list[str]] = {
    "bug_report": ["NVRM version: NVIDIA UNIX 1.2", "Bus Location: x"],
    "cpu_text": ["9" * 30, "-1", ":", "0-"],
    "cuda_bandwidth": ["1.0", "8 Device(s)"],
    "dcgm": ["| ", "-> ", "GPU 0: Fail", "{"],
    "environment": ["NCCL_", "=", "'", '"', "99x ", "gpu"],
    "fi_info": ["bus_id: ", "fi_getinfo: -1"],
    "gds": ["gdsio -f /dev/a -d 0", "IOMMU: enabled\n", "0.000000"],
    "host_text": ["ulimit -l\n", "(kbytes, -l)"],
    "hwloc_text": ["PCI ", "(P#"],
    "hwloc_xml": ["<object ", "</object>", '"'],
    "ib_fabric": ["CA: "],
    "iperf": ['{"start": {"'],
    "kernel_text": ["[", "2026-11-02T03:04:05+9999 a kernel: ", "9999-12-31T23:59:59-2359 a kernel: ", "3,1,5,-;"],
    "lspci": ["Width x", "GT/s, ", "[size=", "(rev ff)", "BAR 1: ", "ACSCtl:\t", "\x00", "[10de:2330]", "Device "],
    "lspci_records": ['"', "[", "\\", "Slot:\t"],
    "lspci_tree": ["-[0000:00]-+-", "+-", "\\-", "-[01]----", "00.0", "|"],
    "nccl": ["1e999", "-1", "[1,0]<stdout>:", "Rank", "on", "[0x1]", "all_gather_perf", "size", "busbw"],
    "nccl_topo": ["<cpu numaid='0'>", ' link_width="-1"', ' vendor="-"', '<xgmi target="" count=""/>', "<!--", "&lt;"],
    "numactl": ["node ", "9" * 30, "0-"],
    "p2p_bandwidth": [" 0 ", "N/A", "D\\D", "Device=0 CANNOT Access"],
    "perftest": ["Picking device No. 3\n", "BW average[", "#bytes ", "Device : x\n"],
    "rdma_tools": ["Port ", "GID[ ", ": "],
    "rocm_copy": ["N/A", "0.000", " Device: 3, x, 0:0.0", "GPU 00 ->"],
    "rocm_smi": ["GPU1 0 XGMI\n", "}"],
    "storage_json": ['{"Devices": [', "{"],
    "storage_text": ["[2/1]", "(F)", "/dev/", "%"],
    "sysfs_text": ["/sys/", "cat ", "0000:53:00.0/", "63", "Unknown"],
}
anything = st.text(max_size=9)


def checked(records: list[Record]) -> None:
    for one in records:
        assert isinstance(one, Fact | NotChecked | Observation)
        assert decode(encode(one)) == one
        if isinstance(one, Event) and one.at is not None and one.first is not None and one.until is not None:
            assert one.first <= one.at <= one.until


@pytest.mark.parametrize("reader", BY_NAME)
@given(data=st.data())
def test_any_lines(reader: str, data: st.DataObject) -> None:
    lines = [line for text in TEXTS[reader] for line in text.splitlines(keepends=True)]
    some = st.sampled_from([*lines, *PIECES.get(reader, ()), "\n", " ", "\t"]) | anything
    text = data.draw(st.lists(some, max_size=40).map("".join) | st.text())
    re.search(BY_NAME[reader].begin, text, re.MULTILINE)
    checked(read(reader, text, data.draw(st.sampled_from(["log", "p2p_r", "ethtool_-i_eth0", "rank5/results.json"]))))


DOCUMENTS = [path for path in sample_files() if path.suffix == ".json" and not path.name.endswith(CHANGES)]
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["XGMI", "16 GT/s", "1-2"]) | anything
)


def names_in(value: Any) -> set[str]:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {*(value if isinstance(value, dict) else ()), *(name for one in below for name in names_in(one))}


def changed(value: Any, data: st.DataObject, other: st.SearchStrategy[Any]) -> Any:
    """The document with one changed value."""
    if not isinstance(value, dict | list) or not value or data.draw(st.integers(0, 4)) == 0:
        return data.draw(other)
    at = data.draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    new = {place: changed(one, data, other) if place == at else one for place, one in pairs}
    return new if isinstance(value, dict) else list(new.values())


@pytest.mark.parametrize("reader", sorted({reader_of(path) for path in DOCUMENTS}))
@given(data=st.data())
def test_any_values_in_json(reader: str, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([path for path in DOCUMENTS if reader_of(path) == reader]))
    value = json.loads(text_of(path))
    names = st.sampled_from(sorted(names_in(value)))
    other = st.recursive(
        leaves, lambda one: st.lists(one, max_size=3) | st.dictionaries(names, one, max_size=5), max_leaves=8
    )
    checked(read(reader, json.dumps(changed(value, data, other), indent=data.draw(st.sampled_from([None, 1])))))


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        ("iperf", '{"start": {"connected": [], "test_start": {}}, "x": ' + "[" * 100_000),
        ("storage_json", '{"blockdevices": [' + '{"name": "sda", "type": "disk", "children": [' * 5000),
    ],
)
def test_json_that_is_nested_without_end(reader: str, text: str) -> None:
    """The objects before the end of the text may be read."""
    first, *others = read(reader, text)
    assert isinstance(first, NotChecked)
    assert {one.key for one in others if isinstance(one, Fact)} <= {"sda"}


def test_json_that_is_nested_almost_as_deeply_as_the_stack() -> None:
    """Such a document could be decoded, but printing its value raised RecursionError."""
    before, after = '[{"ifindex": 1, "ifname": "lo", "mtu": 65536, "link_type": ', "}]"
    for depth in range(700, sys.getrecursionlimit()):
        checked(read("net_json", f"{before}{'[' * depth}{']' * depth}{after}"))


RUBBISH: list[Any] = [None, [], {}, "", "x", 0, -1, 1e300, [None], [[1]], [["x"]], [["1e9"]], [["-1.0"]], [["0"]]]


@pytest.mark.parametrize("value", RUBBISH)
def test_rubbish_in_place_of_rates(value: Any) -> None:
    for reader, document in (
        (
            "fio",
            {"fio version": "3", "jobs": [{"groupid": 0, "read": {"bw_bytes": value}}], "disk_util": [{"name": "a"}]},
        ),
        ("fio", {"fio version": "3", "jobs": [{"groupid": value, "read": value, "job options": value}]}),
        ("fio", {"fio version": "3", "jobs": value, "global options": value, "disk_util": value}),
        ("nvbandwidth", {"nvbandwidth": value}),
        ("nvbandwidth", {"nvbandwidth": {"testcases": value}}),
        (
            "nvbandwidth",
            {"nvbandwidth": {"testcases": [{"name": "host_to_device_memcpy_ce", "bandwidth_matrix": value}]}},
        ),
    ):
        assert not [one for one in read(reader, json.dumps(document, indent=1)) if isinstance(one, Observation)]


@pytest.mark.parametrize("rates", [(10**400, 1.0), (1.0, float("nan")), (float("inf"), 1.0), (1.0, -1.0)])
def test_numbers_of_nccl_tests_that_are_no_rates(rates: tuple[float, float]) -> None:
    row = {"size": 8, "out_of_place": dict(zip(("alg_bw", "bus_bw"), rates, strict=True))}
    assert read("nccl_json", json.dumps({"version": 2, "results": [row]})) == []


def test_json_of_disks_that_are_none() -> None:
    text = '{"blockdevices": [1, null, {"name": 7}, {"name": "sd\\u0000a"}], "Devices": {}}'
    assert read("storage_json", text) == []


def test_a_number_of_many_digits_is_no_count() -> None:
    """The interpreter refuses to convert more than 4,300 digits."""
    line = f"| Double Bit ECC Errors              | {'9' * 5000} |"
    text = f"| GPU ID: 3                                                                    |\n{line}\n"
    assert found_in(text) == []


@pytest.mark.parametrize("repeats", [1, 100, 3000])
def test_a_message_after_many_beginnings_of_others_in_one_line_is_found(repeats: int) -> None:
    text = "log: " + "it is lost, " * repeats + "GPU 0000:BA:00.0 is lost\n"
    assert found_in(text) == [("gpu-missing", "critical", "0000:ba:00.0")]
