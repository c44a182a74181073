"""Damage that the other lines of an output contradict: the result is the same facts or a gap, never another fact."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from linkgauge.models.facts.gpu import Gpu, GpuPair
from linkgauge.models.facts.machine import Mount, Net, Numa, Nvme, Pci, Port
from linkgauge.models.facts.records import Fact, NotChecked, Observation, Record
from linkgauge.probes.dumps.read import read_text
from tests.support.dump_samples import AT, SAMPLES, outputs
from tests.support.texts import found_in


def sample(name: str, title: str = "") -> str:
    return next(one.text for one in outputs(SAMPLES / name) if title in one.name)


def records(text: str) -> list[Record]:
    return list(read_text("text", text, AT))


def facts(text: str, *kinds: type[Fact]) -> set[tuple[str, str, str]]:
    """The key, the name and the value of each known field."""
    return {
        (one.key, name, repr(getattr(one, name)))
        for one in records(text)
        if isinstance(one, kinds)
        for name in one.__struct_fields__
        if name not in ("key", "cites") and getattr(one, name) is not None
    }


def has_gap(text: str) -> bool:
    return any(isinstance(one, NotChecked) for one in records(text))


def without_each(pattern: str, text: str) -> Iterator[str]:
    """The text without each match of the pattern."""
    yield from (text[: found.start()] + text[found.end() :] for found in re.finditer(pattern, text, re.MULTILINE))


BRIDGE = sample("pci/lspci/bridge_and_gpu.txt")
HEADER = next(line for line in BRIDGE.split("\n") if line.startswith("41:00.0"))


@pytest.mark.parametrize("end", range(0, len(HEADER) // 3, 2))
@pytest.mark.parametrize("blank", ["\n\n", "\n"])
def test_a_function_without_its_header_adds_nothing_to_the_one_above(end: int, blank: str) -> None:
    own = {one for one in facts(BRIDGE, Pci) if one[0] == "0000:40:01.1"}
    cut = BRIDGE.replace(f"\n\n{HEADER}", f"{blank}{HEADER[:end]}")
    assert {one for one in facts(cut, Pci) if one[0] == "0000:40:01.1"} == own


@pytest.mark.parametrize("lines", range(4, 15))
def test_a_header_of_ones_below_registers_is_of_another_function(lines: int) -> None:
    """The tool prints the registers or that line, never both."""
    text = "\n".join(
        [*BRIDGE.split("\n")[:lines], "\t!!! Unknown header type 7f", "\tKernel driver in use: nvidia", ""]
    )
    assert not any((name, value) == ("lost", "True") for _, name, value in facts(text, Pci))
    assert has_gap(text)
    whole = f"{HEADER}\n\t!!! Unknown header type 7f\n\tKernel driver in use: nvidia\n"
    assert ("0000:41:00.0", "lost", "True") in facts(whole, Pci)


def test_a_row_of_a_matrix_with_the_name_of_another_gpu() -> None:
    text = sample("nvidia/smi_topology/able.txt")
    whole = facts(text, GpuPair)
    for row in range(4):
        for other in set(range(4)) - {row}:
            wrong = text.replace(f"\nGPU{row}", f"\nGPU{other}")
            assert facts(wrong, GpuPair) <= whole, (row, other)
            assert has_gap(wrong)


ROCM, BENCH = sample("benchmarks/rocm_copy/rocm.txt"), sample("benchmarks/rocm_copy/bench.txt")


def rates(text: str) -> set[tuple[object, float]]:
    return {(one.about, one.value) for one in records(text) if isinstance(one, Observation)}


@pytest.mark.parametrize("text", [ROCM, BENCH], ids=["rocm_bandwidth_test", "TransferBench"])
def test_a_matrix_without_a_cell(text: str) -> None:
    for damaged in without_each(r"(?<=[ ])(?:\d+\.\d+|N/A|(?:CPU|GPU) \d\d(?!\d*[ ]+->)|\d(?=  |$))", text):
        assert rates(damaged) <= rates(text), damaged


def test_a_size_that_is_cut() -> None:
    line = "Bytes Per Direction 268435456"
    sizes = {getattr(about, "size", None) for about, _ in rates(BENCH)}
    for end in range(len(line) - 8, len(line)):
        assert {getattr(about, "size", None) for about, _ in rates(BENCH.replace(line, line[:end]))} <= {None, *sizes}


def test_a_rate_without_its_point() -> None:
    text = sample("benchmarks/pairwise/short.texts", "a matrix of nodes")
    for damaged in without_each(r"\.", text):
        assert found_in(damaged) == found_in(text)
        assert has_gap(damaged)


@pytest.mark.parametrize("lines", range(2, 5))
def test_lines_of_another_tool_are_of_another_drive(lines: int) -> None:
    worn = sample("host/smart_log/short.texts", "a worn drive whose spare blocks are whole").split("\n")
    other = "available_spare : 100%\navailable_spare_threshold : 10%\npercentage_used : 3%\nmedia_errors : 0\n"
    text = "\n".join([*worn[:lines], other])
    assert ("nvme", "used", "3") not in facts(text, Nvme)
    assert {severity for _, severity, _ in found_in(text)} == {"warning"}


FLAGS = "BROADCAST,MULTICAST,UP,LOWER_UP"


@pytest.mark.parametrize("place", [place for place, letter in enumerate(FLAGS) if letter != ","])
def test_a_word_that_is_no_flag(place: int) -> None:
    flags = FLAGS[:place] + "Q" + FLAGS[place + 1 :]
    listed = ", ".join(f'"{flag}"' for flag in flags.split(","))
    for text in (
        f"2: eth0: <{flags}> mtu 9000 qdisc mq state UP\n    link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff\n",
        f'[{{"ifindex": 2, "ifname": "eth0", "flags": [{listed}], "mtu": 9000, "link_type": "ether"}}]\n',
    ):
        assert not any(value == "False" for _, _, value in facts(text, Net))
        assert has_gap(text)


def test_cpus_without_a_blank() -> None:
    cpus = " ".join(map(str, (*range(8), *range(96, 112))))
    text = f"available: 1 nodes (0)\nnode 0 cpus: {cpus}\nnode 0 size: 1024 MB\nnode 0 free: 900 MB\n"
    whole = facts(text, Numa)
    assert len(whole) == 2
    for damaged in without_each(r"(?<=\d) (?=\d+(?: |$))", text.replace("node 0 ", "node 0\t")):
        assert facts(damaged.replace("\t", " "), Numa) <= whole
    for number in range(2, 112):
        fused = text.replace(cpus, " ".join(map(str, range(number))) + f" {number}{number + 1}")
        assert not any(name == "cpus" for _, name, _ in facts(fused, Numa)), number
        assert has_gap(fused)


@pytest.mark.parametrize("end", range(len("LinkUp")))
@pytest.mark.parametrize(
    "form",
    [
        "CA/RT PortInfo:\n# Port info: Lid 2 port 9\nLinkState:.......................Active\nPhysLinkState:...{}\n",
        '[{{"ifindex": 0, "ifname": "mlx5_0", "port": 1, "state": "ACTIVE", "physical_state": "{}"}}]\n',
        '       3    1[  ] ==( 4X  53.125 Gbps Active/  {})==>       1    5[  ] "MF0;sw" ( )\n',
    ],
)
def test_a_physical_state_that_is_cut(form: str, end: int) -> None:
    assert not any(name == "physical_state" for _, name, _ in facts(form.format("LinkUp"[:end]), Port))


def test_memory_without_a_digit() -> None:
    """The last digit is 0 here: without it the number has whole MiB, too."""
    text = sample("amd/rocm_smi/json.json")
    size = re.search(r'Total Memory \(B\)": "(\d+)"', text)
    assert size
    for damaged in without_each(r"\d(?!$)", size[1]):
        assert facts(text.replace(size[0], size[0].replace(size[1], damaged)), Gpu) <= facts(text, Gpu)


def test_two_file_systems_on_one_path() -> None:
    text = sample("host/storage_text/df.txt")
    cut = text.replace("/home\n", "/\n")
    assert has_gap(cut)
    assert not any(key == "/" for key, _, _ in facts(cut, Mount))
    assert found_in(cut) == found_in(text)
