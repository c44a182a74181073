"""Results of nvbandwidth: text of several versions, JSON, cut and rubbish, and what is expected of the copies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import HostBridge, Numa, Pci
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.benchmarks import nvbandwidth
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared/data/outputs"
AT = 1795230000.0
TEXT = """\
nvbandwidth Version: v0.8
Built from Git version: v0.8

CUDA Runtime Version: 12080
CUDA Driver Version: 12080
Driver Version: 570.86.15

Device 0: NVIDIA H200 (00000000:18:00)
Device 1: NVIDIA H200 (00000001:2a:00)

Running host_to_device_memcpy_ce.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0     55.61     54.99

SUM host_to_device_memcpy_ce 110.60

Running device_to_host_bidirectional_memcpy_sm.
memcpy SM CPU(row) <-> GPU(column) bandwidth (GB/s)
           0         1
 0     51.00     52.00

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    391.00
 1    392.00       N/A

Running device_to_device_memcpy_write_ce.
memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0      0.00    393.00
 1    394.00      0.00

Running device_to_device_bidirectional_memcpy_write_ce.
memcpy CE GPU(row) <-> GPU(column) Write1 bandwidth (GB/s)
           0         1
 0       N/A    381.00
 1    382.00       N/A

memcpy CE GPU(row) <-> GPU(column) Write2 bandwidth (GB/s)
           0         1
 0       N/A    383.00
 1    384.00       N/A

memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)
           0         1
 0       N/A    764.00
 1    766.00       N/A

Running all_to_host_memcpy_ce.
memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0     52.50     52.60

Running all_to_one_write_ce.
memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)
           0         1
 0    390.00    390.00

Running host_device_latency_sm.
memory latency SM CPU(row) <-> GPU(column) (ns)
           0         1
 0    700.00    701.00
"""
TO_HOST = (("gpu0", "host"), ("gpu1", "host"))
FLOWS = [
    (14, Flow("copy", ("host", "gpu0")), 55.61),
    (14, Flow("copy", ("host", "gpu1")), 54.99),
    (21, Flow("copy-sm", ("gpu0", "host"), beside=(("host", "gpu0"),)), 51.0),
    (21, Flow("copy-sm", ("gpu1", "host"), beside=(("host", "gpu1"),)), 52.0),
    (26, Flow("copy", ("gpu1", "gpu0")), 391.0),
    (27, Flow("copy", ("gpu0", "gpu1")), 392.0),
    (32, Flow("copy", ("gpu0", "gpu1")), 393.0),
    (33, Flow("copy", ("gpu1", "gpu0")), 394.0),
    (38, Flow("copy", ("gpu1", "gpu0"), beside=(("gpu0", "gpu1"),)), 381.0),
    (39, Flow("copy", ("gpu0", "gpu1"), beside=(("gpu1", "gpu0"),)), 382.0),
    (43, Flow("copy", ("gpu0", "gpu1"), beside=(("gpu1", "gpu0"),)), 383.0),
    (44, Flow("copy", ("gpu1", "gpu0"), beside=(("gpu0", "gpu1"),)), 384.0),
    (54, Flow("copy", ("gpu0", "host"), beside=(("gpu1", "host"),)), 52.5),
    (54, Flow("copy", ("gpu1", "host"), beside=(("gpu0", "host"),)), 52.6),
]


def said(text: str) -> list[Record]:
    assert recognise(text)
    return list(nvbandwidth.read(Part("log", 1, text, AT)))


def line(number: int) -> Evidence:
    return Evidence(f"log:{number}", TEXT.splitlines()[number - 1].strip())


def rate(flow: Flow, value: float, evidence: Evidence) -> Observation:
    return Observation(
        about=flow, quantity="rate", unit="bytes_per_second", value=value * 1e9, at=AT, busy=True, evidence=evidence
    )


WHOLE = [
    Driver(key="nvidia", version="570.86.15", cites={"version": line(6)}),
    Gpu(key="gpu0", name="NVIDIA H200", address="0000:18:00.0", cites={"name": line(8), "address": line(8)}),
    Gpu(key="gpu1", name="NVIDIA H200", address="0001:2a:00.0", cites={"name": line(9), "address": line(9)}),
    *(rate(flow, value, line(number)) for number, flow, value in FLOWS),
]


def test_a_whole_run() -> None:
    assert said(TEXT) == WHOLE


def test_cut_at_any_place_it_says_no_other_things() -> None:
    for end in range(len(TEXT)):
        for one in nvbandwidth.read(Part("log", 1, TEXT[:end], AT)):
            if not isinstance(one, Driver | NotChecked):
                about = [(w.about, w.value) for w in WHOLE if isinstance(w, Observation)]
                assert (
                    isinstance(one, Gpu)
                    or (isinstance(one, Observation) and (one.about, one.value) in about)
                    or (
                        isinstance(one, Observation)
                        and one.about in [Flow(f.op, f.ends, beside=()) for _, f, _ in FLOWS]
                    )
                    or _part_of_all(one)
                )


def _part_of_all(one: Record) -> bool:
    """Of copies at the same time, those that were cut off are not beside."""
    return isinstance(one, Observation) and isinstance(one.about, Flow) and one.about.ends in TO_HOST


def test_headings_alone_tell_the_direction_to_the_host() -> None:
    text = "memcpy SM CPU(row) <- GPU(column) bandwidth (GB/s)\n          0         1\n0     52.77     52.78\n"
    told = [(one.about, one.value) for one in said(text) if isinstance(one, Observation)]
    assert told == [(Flow("copy-sm", ends), value) for ends, value in zip(TO_HOST, (52.77e9, 52.78e9), strict=True)]
    peers = "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n   0   1\n0  N/A  26.34\n"
    assert said(peers) == []


def test_gpus_that_only_a_matrix_names() -> None:
    text = (
        "Running host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n  0  3\n0 1.00  2.00\n"
    )
    assert [one for one in said(text) if isinstance(one, Gpu)] == [Gpu(key="gpu0"), Gpu(key="gpu3")]


def document(*tests: dict[str, Any]) -> str:
    whole = {"nvbandwidth": {"CUDA Runtime Version": 12040, "Driver Version": "550.54.15", "testcases": list(tests)}}
    return json.dumps(whole, indent=3, separators=(",", " : "))


H2D = {
    "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
    "bandwidth_matrix": [["55.6123", "N/A"]],
    "name": "host_to_device_memcpy_ce",
    "status": "Passed",
    "sum": 55.6,
}
WAIVED = {"name": "device_to_device_memcpy_read_ce", "status": "Waived"}
SAMPLES = (TEXT, document(H2D, WAIVED))


def test_json() -> None:
    text = document(H2D, WAIVED)
    name = next(n for n, one in enumerate(text.splitlines(), 1) if '"name" : "host' in one)
    evidence = Evidence(f"log:{name}", "host_to_device_memcpy_ce [0][0]: 55.6123")
    assert said(text) == [
        Driver(key="nvidia", version="550.54.15", cites={"version": Evidence("log:1", "Driver Version: 550.54.15")}),
        rate(Flow("copy", ("host", "gpu0")), 55.6123, evidence),
        Gpu(key="gpu0"),
    ]


def test_json_that_was_cut_is_not_checked() -> None:
    text = document(H2D, WAIVED)
    (one,) = said(text[: text.index("status")])
    assert isinstance(one, NotChecked)
    assert (one.what, one.subject) == ("dump", "log")


@pytest.mark.parametrize("value", [None, [], {}, "", 0, [None], [[1]], [["x"]], [["1e9"]], [["-1.0"]], [["0"]]])
def test_json_of_rubbish(value: Any) -> None:
    assert not [one for one in said(document({**H2D, "bandwidth_matrix": value})) if isinstance(one, Observation)]
    for text in (json.dumps({"nvbandwidth": value}), json.dumps({"nvbandwidth": {"testcases": value}})):
        assert not [one for one in nvbandwidth.read(Part("log", 1, text)) if isinstance(one, Observation)]


@pytest.mark.parametrize("text", ["", "nvbandwidth", "Running out of memory.", "{}", "memcpy", "./nvbandwidth -t 0"])
def test_what_is_no_output(text: str) -> None:
    assert not re.search(nvbandwidth.BEGIN, text, re.MULTILINE)


words = st.sampled_from([*TEXT.splitlines(keepends=True), "\n", " 0 ", "1.00", "N/A", '{"nvbandwidth":', "[", "]", "}"])


@given(st.lists(words | st.text(max_size=10), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in nvbandwidth.read(Part("log", 1, text)):
        assert decode(encode(one)) == one


def report(*more: Record) -> Report:
    return evaluate(assemble([*said(TEXT), *more], Site(), AT, origin="dumps"))


def matrix(rows: list[list[float]]) -> str:
    heading = "      ".join(str(n) for n in range(len(rows)))
    body = "\n".join(f"{n} " + " ".join("N/A" if not v else f"{v:.2f}" for v in row) for n, row in enumerate(rows))
    name = "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)"
    return f"{name}\n {heading}\n{body}\n"


@pytest.mark.parametrize(
    ("slow", "expected"),
    [
        (lambda i, j: 3 in (i, j), {"gpu3"}),  # one GPU of eight
        (lambda i, j: i // 4 == j // 4, set()),  # all of one socket: another way, and nobody says what it should give
        (lambda i, j: False, set()),
    ],
)
def test_peers_of_unknown_ways(slow: Any, expected: set[str]) -> None:
    """One slow GPU is the odd one; a third of all pairs are pairs of another kind."""
    rows = [[0.0 if i == j else 13.1 if slow(i, j) else 26.3 for j in range(8)] for i in range(8)]
    found = evaluate(assemble(said(matrix(rows)), Site(), AT, origin="dumps")).findings
    assert {one.code for one in found} <= {"bandwidth-low"}
    assert all(set(one.subject.split("-")) & expected for one in found)
    assert bool(found) == bool(expected)


def test_the_host_is_the_memory_near_the_gpu() -> None:
    """On two sockets the copies of both GPUs are expected over their own links."""
    places = [(0, "0000:17:00.0", "0000:18:00.0"), (1, "0001:29:00.0", "0001:2a:00.0")]
    facts: list[Record] = []
    for numa, root, gpu in places:
        bridge = f"pci{root[:7]}"
        facts += [
            Numa(key=f"numa{numa}", cpus=(numa,)),
            HostBridge(key=bridge, numa=numa),
            Pci(key=root, parent=bridge, pci_class=0x060400, speed=32e9, width=16, max_speed=32e9, max_width=16),
            Pci(
                key=gpu,
                parent=root,
                pci_class=0x030200,
                vendor=0x10DE,
                device=0x2335,
                speed=32e9,
                width=16,
                max_speed=32e9,
                max_width=16,
            ),
        ]
    levels = {level.ends: level for level in report(*facts).levels if not level.beside and level.op == "copy"}
    for number, (_, root, gpu) in enumerate(places):
        (expected,) = levels["host", f"gpu{number}"].expected
        assert (expected.basis, expected.bottleneck) == ("capability", f"{root}>{gpu}")
    assert not report(*facts).findings


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_recorded_outputs() -> None:
    told = said((SHARED / "nvbandwidth/nvbandwidth_README_samples_a100.txt").read_text())
    assert len([one for one in told if isinstance(one, Observation)]) == 56 + 8 + 8
    for path in sorted(SHARED.rglob("*")):
        if path.is_file() and path.stat().st_size < 1 << 20 and path.parent.name != "nvbandwidth":
            assert not re.search(nvbandwidth.BEGIN, path.read_text(errors="replace"), re.MULTILINE), path.name


def test_devices_below_the_version_of_the_driver() -> None:
    """The line of the driver may be of any text; what follows it is this tool's."""
    text = "Driver Version: 570.124.06\n\nhost1\nDevice 0: NVIDIA H100 80GB HBM3 (00000000:19:00)\n"
    told = [one for family, part in split("f", text, 0.0, READERS) if family for one in family.read(part)]
    assert [one.key for one in told if isinstance(one, Driver | Gpu)] == ["nvidia", "gpu0"]
