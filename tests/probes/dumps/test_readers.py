"""Properties of several readers: beginnings of outputs, order of lines, prefixes, two formats of one output."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Observation
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import is_filler, split
from linkgauge.probes.dumps.jobs import nccl_log
from linkgauge.probes.dumps.read import read_dump, recognise
from linkgauge.probes.dumps.registry import READERS
from linkgauge.probes.host.live import Live
from tests.support.dump_samples import SAMPLES, rendered, text_of
from tests.support.samples import BY_NAME, read

NO_BEGINNINGS = json.loads((Path(__file__).parent / "no_beginnings.json").read_text())


def sample(name: str) -> str:
    return text_of(SAMPLES / name)


def bare(reader: str, text: str) -> list[dict[str, Any]]:
    """The records of a reader, without the cited lines and the time of the last line of a log."""
    left = ("line", "lines", "why", "until")
    return [{k: v for k, v in rendered(one, text).items() if k not in left} for one in read(reader, text)]


def in_some_order(records: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(one, sort_keys=True) for one in records)


@pytest.mark.parametrize("reader", NO_BEGINNINGS)
def test_what_is_no_beginning(reader: str) -> None:
    begin = nccl_log.BEGIN if reader == "nccl_log" else BY_NAME[reader].begin
    assert [text for text in NO_BEGINNINGS[reader] if re.search(begin, text, re.MULTILINE)] == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "size",
        "# size time algbw",
        "# time size algbw busbw",
        "all_reduce_perf",
        "GPU0\t X \nGPU0 GPU\nGPU0\n",
        "CUDA error: out of memory",
        "# NCCL_P2P_DISABLE=1",
        "memlock=1",
        "The setting should be pcie.link.width.current=16 here.",
        "pcie.link.width.current: The width of the link",
        "8, 16, 4, 5",
    ],
)
def test_what_no_reader_recognises(text: str) -> None:
    assert not recognise(text)


def test_a_tree_of_functions_without_its_beginning_places_nothing() -> None:
    tree = sample("pci/lspci_tree/tree.txt")
    assert read("lspci_tree", "\n".join(tree.splitlines()[1:6])) == []
    assert [found.start() for found in re.finditer(BY_NAME["lspci_tree"].begin, f"$ lspci -tv\n{tree}", re.M)] == [12]


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("benchmarks/gpu_copy/results.txt", 0, None),
        ("host/environment/stated.txt", 0, None),
        ("host/kernel_text/log.txt", 1, None),
        ("nvidia/smi_nvlink/status.txt", 1, 19),
        ("nvidia/smi_topology/pcie.txt", 1, 4),
    ],
)
@given(order=st.randoms())
def test_lines_in_any_order(name: str, first: int, last: int | None, order: random.Random) -> None:
    reader, lines = name.split("/")[1], sample(name).splitlines()
    some = lines[first:last]
    order.shuffle(some)
    text = "\n".join([*lines[:first], *some, *(lines[last:] if last else ())])
    assert in_some_order(bare(reader, text)) == in_some_order(bare(reader, sample(name)))


def test_lines_backwards() -> None:
    text = sample("host/host_text/host.txt")
    assert in_some_order(bare("host_text", "\n".join(text.splitlines()[::-1]))) == in_some_order(
        bare("host_text", text)
    )


def test_functions_in_another_order() -> None:
    bridge, gpu = sample("pci/lspci/bridge_and_gpu.txt").split("\n\n")
    assert in_some_order(bare("lspci", f"{gpu}\n{bridge}\n")) == in_some_order(bare("lspci", f"{bridge}\n\n{gpu}"))


def test_columns_in_any_order() -> None:
    text = sample("nvidia/smi_csv/query.csv")
    rows = [line.split(", ") for line in text.splitlines()]
    for seed in range(50):
        order = random.Random(seed).sample(range(len(rows[0])), len(rows[0]))
        turned = "\n".join(", ".join(row[at] for at in order) for row in rows) + "\n"
        assert in_some_order(bare("smi_csv", turned)) == in_some_order(bare("smi_csv", text))


@given(st.randoms())
def test_lines_of_ranks_come_in_any_order(order: random.Random) -> None:
    lines = sample("benchmarks/nccl_log/log.txt").splitlines(keepends=True)
    tail = lines[8:]
    order.shuffle(tail)
    text = "".join(lines[:8] + tail)
    told = {(type(one), getattr(one, "key", "")) for one in nccl_log.read(Part("log", 1, text))}
    assert told == {(type(one), getattr(one, "key", "")) for one in nccl_log.read(Part("log", 1, "".join(lines)))}


def test_a_log_of_the_fabric_manager_in_any_order_and_cut() -> None:
    """A truncated log shows the state of the service at its end."""
    lines = sample("nvidia/fabric_log/log.txt").splitlines()
    for seed in range(50):
        some = random.Random(seed).sample(lines, len(lines))
        assert {one["record"] for one in bare("fabric_log", "\n".join(some))} == {"Service", "Driver", "Event"}
    logs = ["\n".join(lines[:end]) for end in range(1, len(lines) + 1)]
    states = [[one["running"] for one in bare("fabric_log", log) if one["record"] == "Service"] for log in logs]
    assert states == [[], [True], [True], [False], [False]]


NCCL_WORDS = [
    *["size", "time", "algbw", "busbw", "#", "8", "1.75", "1e999", "-1", "0:", "Rank", "device", "on", "[0x1]", "\n"],
    *["all_gather_perf", "[1,0]<stdout>:"],
    *sample("benchmarks/nccl/wide.txt").splitlines(),
    *sample("benchmarks/nccl/plain.txt").splitlines(),
]
PREFIXES = ["[1,0]<stdout>:", "[1,12]<stderr>: ", "0: ", "12:", "    ", "  [1,0]<stdout>:"]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("name", ["wide", "old", "plain", "timed"])
def test_prefixes_of_launchers(prefix: str, name: str) -> None:
    """The cited line is the line without its prefix."""
    text = TIMED if name == "timed" else sample(f"benchmarks/nccl/{name}.txt")
    assert read("nccl", "\n".join(prefix + line for line in text.splitlines())) == read("nccl", text) != []


TIMED = "\n".join(
    (
        "#       size         count      type   redop    root  cputime   algbw   busbw #wrong",
        "     8388608      2097152 float sum -1      8.4 99.52 174.16 0",
        " 17179869184   4294967296 float sum -1  17179.9 276.03 483.05 0",
    )
)


@pytest.mark.parametrize("prefix", ["[1,0]<stdout>:", "0: ", "    ", "2026-11-02 03:04:05 | "])
def test_prefixes_of_logs(prefix: str) -> None:
    text = sample("benchmarks/nccl_log/log.txt")
    behind = "".join(prefix + line for line in text.splitlines(keepends=True))
    assert recognise(behind)
    told = [list(nccl_log.read(Part("log", 1, one))) for one in (behind, text)]
    assert [(type(one), getattr(one, "key", "")) for one in told[0]] == [
        (type(one), getattr(one, "key", "")) for one in told[1]
    ]


@pytest.mark.parametrize("path", sorted((SAMPLES / "network/rdma_tools").glob("*.txt")), ids=lambda path: path.stem)
def test_lines_that_are_indented(path: Path) -> None:
    text = text_of(path)
    assert read("rdma_tools", "\n".join(f"    {line}" for line in text.splitlines())) == read("rdma_tools", text)


@pytest.mark.parametrize(
    ("reader", "one", "other"),
    [
        ("dcgm", "nvidia/dcgm/health.txt", "nvidia/dcgm/health_json.json"),
        ("dcgm", "nvidia/dcgm/topology.txt", "nvidia/dcgm/topology_json.json"),
        ("dcgm", "nvidia/dcgm/errors.txt", "nvidia/dcgm/errors_json.json"),
        ("storage_text", "host/storage_text/mount.txt", "host/storage_text/proc_mounts.txt"),
    ],
)
def test_two_forms_of_an_output_say_the_same(reader: str, one: str, other: str) -> None:
    assert bare(reader, sample(one)) == bare(reader, sample(other))


def test_what_stands_before_and_behind_a_json() -> None:
    """A prompt before the output, and a message of the tool behind it."""
    text = sample("host/storage_json/blockdevices.json")
    assert bare("storage_json", f"$ lsblk -J\n{text}\n") == bare("storage_json", text)
    text = sample("benchmarks/iperf/json.json")
    assert read("iperf", f"{text}\niperf3: interrupt") == read("iperf", text)


@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("benchmarks/cuda_bandwidth/text.txt", "cuda_bandwidth"),
        ("benchmarks/stream/old.txt", "stream"),
        ("benchmarks/stream/text.txt", "stream"),
        ("benchmarks/superbench/summary.json", "superbench"),
        ("nvidia/gds/beta.txt", "gds"),
        ("nvidia/gds/check.txt", "gds"),
    ],
)
def test_the_whole_output_is_one_part(name: str, reader: str) -> None:
    """The rules and headings inside an output do not end it."""
    parts = [(family, part) for family, part in split("log", sample(name), 0.0, READERS) if not is_filler(part)]
    assert [family for family, _ in parts] == [BY_NAME[reader]]
    assert list(BY_NAME[reader].read(parts[0][1])) == read(reader, sample(name))


def test_runs_of_a_loop_are_apart() -> None:
    two = sample("nvidia/smi_query/two_gpus.txt")
    gpus = [one for one in bare("smi_query", two + two.replace(" : P2", " : P0")) if one["record"] == "Gpu"]
    states = [(gpu["key"], gpu.get("performance_state")) for gpu in gpus]
    assert states == [("gpu0", 2), ("gpu1", None), ("gpu0", 0), ("gpu1", None)]


def test_what_follows_a_table_is_none_of_it() -> None:
    text = sample("nvidia/smi_csv/query.csv")
    assert read("smi_csv", f"{text}a, b, c\n1, 2\n") == read("smi_csv", text)


def test_a_table_of_perftest_without_its_end_hides_nothing() -> None:
    """Another reader reads the text behind the table."""
    rule, heading = "-" * 87, " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]"
    text = f"{rule}\n{heading}\n 65536 5000 392.10 391.85 0.747391\n# nThread 1 nGpus 8\n{rule}"
    found, row = re.finditer(BY_NAME["perftest"].begin, text, re.MULTILINE)
    assert text[: found.end()] == f"{rule}\n{heading}"
    assert row[0].startswith(" 65536")  # a row without its heading is read as well
    line = "9 Conflicting CPU freq Conflicting CPU freq"  # looking for the end takes no more time than the lines
    endless = f"{heading}\n" + 2000 * f"{line}\nConflicting CPU {line}\n"
    (found,) = re.finditer(BY_NAME["perftest"].begin, endless, re.MULTILINE)
    assert found[0] == heading


def test_of_a_function_that_was_cut_only_its_link_is_missed() -> None:
    lines = sample("pci/lspci/bridge_and_gpu.txt").splitlines()
    missed = [one for end in range(len(lines)) for one in bare("lspci", "\n".join(lines[:end])) if "what" in one]
    assert {one["what"] for one in missed} == {"Pci.width"}


@pytest.mark.parametrize(("op", "factor"), [("all_reduce", 2), ("all_gather", 1)])
@given(ranks=st.integers(2, 64), algorithm=st.floats(100, 500))
def test_ranks_from_two_bandwidths(op: str, factor: int, ranks: int, algorithm: float) -> None:
    bus = algorithm * (ranks - 1) / ranks * factor
    row = f"{1 << 30} {1 << 28} float sum -1 1073.7 {algorithm:.2f} {bus:.2f} 0 9.9 1.11 2.22 N/A"
    (one,) = bare("nccl", f"{op}_perf\n{sample('benchmarks/nccl/wide.txt').splitlines()[1]}\n{row}\n")
    ends = [f"rank{rank}" for rank in range(ranks)]
    assert one["about"] == {"op": op, "ends": f"rank0...{ends[-1]}" if ranks > 2 else ends, "size": 1 << 30}


@given(st.lists(st.sampled_from(NCCL_WORDS) | st.text(max_size=10), max_size=40).map(" ".join))
def test_rates_of_collectives_have_a_heading(text: str) -> None:
    assert recognise(text) or not [one for one in bare("nccl", text) if one["record"] == "Observation"]


def test_a_folder_of_dumps(tmp_path: Path) -> None:
    """A file in an unknown format is not checked, and the other files are read. A folder has its own files."""
    (tmp_path / "a.txt").write_text("nothing")
    (tmp_path / "b.txt").write_text(sample("benchmarks/nccl/wide.txt"))
    (tmp_path / "c.txt").mkdir()
    host = Live(str(tmp_path), "dumps")
    unknown, *rows = [one for name in ("a.txt", "b.txt", "c.txt") for one in read_dump(name, host)]
    assert isinstance(unknown, NotChecked)
    assert (unknown.subject, unknown.reason, unknown.detail) == ("a.txt", Reason.UNREADABLE, "not in a known format")
    assert [one.value for one in rows if isinstance(one, Observation)] == [174.16e9, 433.9e9, 483.05e9]
