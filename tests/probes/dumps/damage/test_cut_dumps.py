"""Truncated outputs: the text before the cut is read, and a NotChecked reports each certain cut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from linkgauge.models.facts.records import Fact, Flow, NotChecked, Observation, Record
from linkgauge.probes.dumps.read import read_text
from tests.support.dump_samples import AT, CHANGES, SAMPLES, TEXTS, outputs, sample_files, text_of
from tests.support.samples import read, recorded_texts

WHOLE = [path for path in sample_files() if path.suffix != TEXTS and not path.name.endswith(CHANGES)]
# Fields that differ in a truncated text: sums, the end of a log, texts and names over several lines.
CHANGED = {
    "iperf": {"rate"},
    "nccl_log": {"via"},
    "kernel_text": {"until", "at", "count", "recent", "bursts"},
    "sysfs_text": {"value"},
    "net_tools": {"max_speed"},
    "dcgm": {"nvlink_crc", "text", "cpus"},
    "dcgm_diag": {"text"},
    "fabric_log": {"running"},
    # Of a slowdown the lines with its reason can be missing.
    "smi_query": {"mig_instances", "clock_reasons"},
}
# Keys that only a truncated text has: one GPU of two has no number; a test without its reason is a failure.
MADE = {"smi_query": {"0000:53:00.0"}, "dcgm_diag": {"test failed, DCGM's test Persistence Mode, node"}}


def sample(name: str) -> str:
    return text_of(SAMPLES / name)


def parts_of(records: Iterable[Record]) -> dict[tuple[str, object], set[tuple[str, object]]]:
    """The known fields of each fact, and the values of each observation."""
    found: dict[tuple[str, object], set[tuple[str, object]]] = defaultdict(set)
    for one in records:
        if isinstance(one, Fact):
            names = (name for name in one.__struct_fields__ if name not in ("key", "cites"))
            known = {(name, repr(getattr(one, name))) for name in names if getattr(one, name) is not None}
            found[type(one).__name__, one.key] |= known
        elif isinstance(one, Observation):
            found["Observation", one.about].add((one.quantity, one.value))
    return found


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_cut_at_each_line_it_says_nothing_else(path: Path) -> None:
    (output,) = outputs(path)
    reader = path.relative_to(SAMPLES).parts[1]
    whole, lines = parts_of(read_text(output.name, output.text, AT)), output.text.splitlines(keepends=True)
    for end in range(len(lines)):
        for thing, fields in parts_of(read_text(output.name, "".join(lines[:end]), AT)).items():
            if thing[1] not in MADE.get(reader, ()):
                assert thing in whole, end
                other = fields - whole[thing]
                assert {name for name, _ in other} <= CHANGED.get(reader, set()), end


@pytest.mark.parametrize(
    "name",
    [
        "benchmarks/cuda_bandwidth/text.txt",
        "benchmarks/iperf/one_stream.txt",
        "benchmarks/nccl/old.txt",
        "benchmarks/nccl/plain.txt",
        "benchmarks/nccl/wide.txt",
        "benchmarks/nvbandwidth/text.txt",
        "benchmarks/p2p_bandwidth/text.txt",
        "benchmarks/perftest/bandwidth.txt",
        "benchmarks/stream/text.txt",
    ],
)
def test_cut_at_each_character_no_number_lacks_its_last_digits(name: str) -> None:
    """A copy behind the cut is not concurrent with the others. iperf3 shows the received or the sent rate."""
    text, reader = sample(name), name.split("/")[1]
    whole = rates(read(reader, text)) + ([(Flow("tcp", ("host", "network")), 23.3e9 / 8)] if reader == "iperf" else [])
    for end in range(len(text)):
        assert set(rates(read(reader, text[:end]))) <= set(whole), end


def rates(records: Iterable[Record]) -> list[tuple[Flow, float]]:
    found = [one for one in records if isinstance(one, Observation)]
    return [(replace(one.about, beside=()), one.value) for one in found if isinstance(one.about, Flow)]


def test_cut_at_each_character_a_row_of_columns_says_nothing_else() -> None:
    text = sample("nvidia/smi_csv/query.csv")
    whole = parts_of(read("smi_csv", text))
    for end in range(text.rstrip().rindex("\n") + 1, len(text)):
        for thing, fields in parts_of(read("smi_csv", text[:end])).items():
            assert fields <= whole[thing], end


def test_cut_at_each_character_a_log_says_no_other_things() -> None:
    log = sample("host/kernel_text/log.txt")
    for end in range(len(log)):
        assert all(str(getattr(one, "text", None) or "") in log for one in read("kernel_text", log[:end])), end


@pytest.mark.parametrize(
    "name",
    [
        "benchmarks/fio/json.json",
        "benchmarks/iperf/json.json",
        "benchmarks/nccl_json/nccl_tests.json",
        "benchmarks/nvbandwidth/json.json",
        "benchmarks/superbench/summary.json",
        "host/hwloc_xml/topology.xml",
        "host/nccl_topo/small.xml",
        "host/storage_json/blockdevices.json",
        "network/net_json/rdma.json",
        "nvidia/dcgm/health_json.json",
    ],
)
def test_json_and_xml_that_were_cut_say_so(name: str) -> None:
    text = sample(name).rstrip()
    for end in range(len(text) // 3, len(text), 7):
        assert any(isinstance(one, NotChecked) for one in read(name.split("/")[1], text[:end])), end


def notes(text: str) -> list[str]:
    records = read_text("log", text, AT)
    return [one.why for one in records if isinstance(one, NotChecked) and "the output ends here" in one.why]


P2P, NVBANDWIDTH = "benchmarks/p2p_bandwidth/text.txt", "benchmarks/nvbandwidth/text.txt"
NCCL, NUMACTL, PCIE = "benchmarks/nccl/wide.txt", "host/numactl/numactl.txt", "nvidia/smi_topology/pcie.txt"


@pytest.mark.parametrize(
    ("name", "last", "what"),
    [
        (P2P, "     0 2494.76 376.65", "after 1 of 2 rows"),
        (P2P, "     1 371.02", "within a matrix of 2 columns"),
        (P2P, "     0 2494.76 376.6", "within a matrix of 2 columns"),
        (P2P, "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)", "before a matrix"),
        (NVBANDWIDTH, " 0       N/A    391.00", "after 1 of 2 rows"),
        (NVBANDWIDTH, " 0     55.61", "within a matrix of 2 columns"),
        ("benchmarks/perftest/bandwidth.txt", " 65536      5000             392.10", "after 3 of 5 columns"),
        (NCCL, f"{536870912:12} {134217728:12} float sum", "after 4 of 13 columns"),
        (NUMACTL, "node 0 cpus: 0 1 2 3", "after 1 of 2 nodes"),
        (NUMACTL, "  0:  10  32", "after 1 of 2 rows of distances"),
        (PCIE, "GPU0\t X  \tPIX \tSYS \tPXB \t0-3,8-9\t0\t\tN/A", "after the rows of 1 of 3 GPUs"),
        (PCIE, "GPU2\tSYS \tSO", "within the row of GPU2"),
        ("nvidia/smi_query/xml.xml", '  <gpu id="00000000:01:00.0">', "before </nvidia_smi_log>"),
    ],
)
def test_where_a_text_was_cut(name: str, last: str, what: str) -> None:
    text = sample(name)
    cut = text[: text.index(last) + len(last)]
    assert notes(cut) == notes(cut + "\n\n") != []
    why = f"line {cut.count(chr(10)) + 1}: the output ends here, {what}; everything before it was read"
    assert notes(cut) == [why]


def test_a_row_of_a_table_of_columns() -> None:
    text = sample("nvidia/smi_csv/query.csv")
    assert notes(text) == []
    assert len(notes(text[: text.rindex(",")])) == 1


def test_the_last_gpu_has_less_than_the_one_before_it() -> None:
    """A single GPU may be the complete output, and another product shows other fields."""
    head, first, _ = sample("nvidia/smi_query/two_gpus.txt").split("\nGPU ")
    lines = f"{head}\nGPU {first}\nGPU {first.replace('53:00.0', '54:00.0')}".split("\n")
    begun = max(number for number, line in enumerate(lines) if line.startswith("GPU "))
    ended = [end for end in range(begun + 2, len(lines)) if notes("\n".join(lines[:end]))]
    assert len(ended) > 20
    assert ended == list(range(ended[0], ended[-1] + 1))
    one = f"{head.replace(': 2', ': 1')}\nGPU {first}".split("\n")
    assert not any(notes("\n".join(one[:end])) for end in range(0, len(one), 5))


def test_a_whole_text_is_not_called_cut() -> None:
    texts = [*map(text_of, WHOLE), *recorded_texts()]
    assert {note: text for text in texts if len(text) > 300 for note in notes(text)} == {}


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: str(path.relative_to(SAMPLES)))
def test_cut_at_any_place_it_gives_what_it_has(path: Path) -> None:
    """No reader raises. A part has at most two records more than the whole."""

    def count(text: str) -> int:
        return sum(isinstance(one, Fact | Observation) for one in read_text("log", text, AT))

    text = text_of(path)
    assert max(count(text[:end]) for end in range(0, len(text), max(1, len(text) // 40))) <= count(text) + 2
