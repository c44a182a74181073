"""Damage that the other lines of an output contradict: the result is the same facts or a gap, never another fact."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from linkgauge.models.facts.gpu import Gpu, GpuLink, GpuPair
from linkgauge.models.facts.machine import Event, Mount, Net, Numa, Nvme, Pci, Port, Service
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


def test_flags_of_a_capability_are_of_the_same_function() -> None:
    power = "\tCapabilities: [80] Power Management version 3\n\t\tFlags: PMEClk- DSI- D1- D2- AuxCurrent=0mA\n"
    before = "\tCapabilities: [220 v1] Access"
    assert before in BRIDGE
    assert facts(BRIDGE.replace(before, f"{power}{before}"), Pci) == facts(BRIDGE, Pci)
    ended = BRIDGE.replace(before, f"\tFlags: bus master, fast devsel, latency 0\n{before}")
    assert not any((key, name) == ("0000:40:01.1", "acs") for key, name, _ in facts(ended, Pci))


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


@pytest.mark.parametrize("letters", range(1, 12))
def test_a_row_of_links_that_is_cut(letters: int) -> None:
    """Each GPU has 6, 12, 18 or 36 letters, as many as the version of DCGM knows links."""
    row = " ".join(["U", "D", "U", "X", *"UUUUUUUU"][:letters])
    text = f"GPUs:\n    gpuId 0:\n        {row}\n    gpuId 1:\n        U U U U U U U U U U U U\n"
    counted = {name for key, name, _ in facts(text, Gpu) if key == "gpu0"}
    assert ("nvlinks" in counted) == (letters == 6)


@pytest.mark.parametrize("column", range(4))
@pytest.mark.parametrize("letter", "QZ#9")
def test_a_letter_that_imex_does_not_print(column: int, letter: str) -> None:
    rows = [[str(node), *"CCNC"] if node != 2 else [str(node), *"NNCN"] for node in range(4)]
    rows[0][1 + column] = letter
    text = "\n".join(["Nodes From\\To  0   1   2   3", *("   ".join(["     ", *row]) for row in rows), ""])
    states = [value for _, name, value in facts(text, Service) if name == "state"]
    assert not any("node 0" in value for value in states)
    assert has_gap(text)


RAS = "GPU[4]: \tRAS INFO\n       Block     Status  Correctable Error  Uncorrectable Error\n"


@pytest.mark.parametrize("block", ["QFX", "GQX", "GFQ", "GF", "UMCC"])
def test_a_block_that_no_gpu_has(block: str) -> None:
    text = (
        f"{RAS}         UMC    ENABLED   9   0\n         GFX    ENABLED   2   1\n         {block}    ENABLED   2   1\n"
    )
    assert ("gpu4", "ecc_corrected", "11") in facts(text, Gpu)
    assert has_gap(text)


def test_a_matrix_below_a_damaged_heading() -> None:
    text = sample("amd/rocm_smi/text.txt")
    whole = facts(text, GpuLink)
    for damaged in without_each(r"\n(?=[ ]+GPU0[ ]+GPU1)|(?<=[a-z])[ ](?=between two GPUs)|[ ]=+$", text):
        assert facts(damaged, GpuLink) <= whole, damaged


def test_a_table_of_xids_without_a_name_of_a_column() -> None:
    for names in ("Xid  Count", "  Xid  Count"):
        text = f"{names}\n0    0    0\n3    79   1\n"
        assert not [one for one in records(text) if isinstance(one, Event)]
        assert has_gap(text)


@pytest.mark.parametrize("lost", ['"LOWER_UP"],', ' "LOWER_UP"],', ', "LOWER_UP"]', "]"])
def test_a_list_of_json_without_its_end(lost: str) -> None:
    text = '[{"ifindex": 1, "ifname": "eth0", "flags": ["BROADCAST", "UP", "LOWER_UP"], "mtu": 9000}]\n'
    damaged = text.replace(lost, "", 1)
    assert not any(value == "False" for _, _, value in facts(damaged, Net))
    assert has_gap(damaged)


@pytest.mark.parametrize("end", range(len("15e-255") + 1))
def test_a_rate_of_errors_without_its_exponent(end: int) -> None:
    text = f"GPU 1: NVIDIA H200 (UUID: GPU-1)\n\t Link 4: Effective BER: {'15e-255'[:end]}\n"
    assert found_in(text) == [] or "-" in "15e-255"[:end]


def test_rows_of_two_gpus_with_one_number() -> None:
    """Rows of two machines. The second machine has errors."""
    row = "|   0  NVIDIA A10          On   | 00000000:{}:00.0 Off |                    {} |\n"
    more = "|  0%   31C    P8    16W / 150W |      2MiB / 23028MiB |      0%      Default |\n"
    rule = "+-------------------------------+----------------------+----------------------+\n"
    text = f"{rule}{row.format('18', 0)}{more}{rule}{row.format('AF', 3)}{more}{rule}"
    assert ("gpu0", "address", "'0000:18:00.0'") in facts(text, Gpu)
    assert not any(subject == "0000:18:00.0" for _, _, subject in found_in(text))
    assert has_gap(text)


@pytest.mark.parametrize(
    "line",
    [
        'The governor "schedutil" may  which speed to use',
        " Found ACS enabled for switch 0001:40:01.1 Found ACS enabled for switch 86:10.0",
    ],
)
def test_damaged_lines_of_tools_are_no_sentences(line: str) -> None:
    assert found_in(f"{line}\n") == []


@pytest.mark.parametrize(
    "heading", ["GPU 0: H100(UUID: GPU-0123)", "GPU 0: H100 (UUI: GPU-0123)", "GPU 0: (UUID: GPU-1"]
)
def test_a_list_of_links_below_a_damaged_heading_has_no_count(heading: str) -> None:
    text = f"{heading}\n\t Link 0: 25 GB/s\n"
    assert not any(name.startswith("nvlinks") for _, name, _ in facts(text, Gpu))
    assert found_in(text) == []


def test_a_rate_of_osu_without_its_last_digit() -> None:
    head = "# OSU MPI-CUDA Bi-Directional Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n1048576     "
    assert rates(f"{head}44310.22\n")
    for end in range(1, len("44310.22")):
        assert not rates(f"{head}{'44310.22'[:end]}\n")


def test_an_array_without_the_name_of_an_active_disk() -> None:
    lines = "md0 : active raid1 sdb1[1] sda1[0] sdc1[2](S)\n      1023936 blocks super 1.0 [2/2] [UU]\n"
    for damaged in without_each(r" sd[ab]1\[[01]\]", f"Personalities : [raid1]\n{lines}"):
        assert found_in(damaged) == []
        assert has_gap(damaged)
