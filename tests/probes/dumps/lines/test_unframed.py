"""Outputs within frames and layouts: the readers get the same facts, from the same lines, as from the bare output.

The forms are those of syslog (RFC 3164), ts(1), Python's logging, klog, mpirun --tag-output, srun --label, torchrun,
kubectl logs --prefix, Docker's json-file, Ansible's stdout and stdout_lines, Markdown, terminals and mail programs.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.records import Fact, NotChecked, Observation, Record
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.lines.prefixes import layers
from linkgauge.probes.dumps.lines.quoted_lines import unfolded
from linkgauge.probes.dumps.lines.wrapped import joined
from linkgauge.probes.dumps.read import read_text
from tests.support.dump_samples import SAMPLES

TOPO = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-15\nGPU1\tNV4\t X \t0-15\n"
NVLINK = (
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n"
    "\t Link 0: 26.562 GB/s\n"
    "\t Link 1: <inactive>\n"
    "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-2)\n"
    "\t Link 0: 26.562 GB/s\n"
    "\t Link 1: 26.562 GB/s\n"
)
MATRIX = """Running device_to_device_memcpy_write_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A    380.10
 1    190.20       N/A
"""
XML = (SAMPLES / "host/hwloc_xml/cut.xml").read_text()
JSON = (SAMPLES / "network/net_json/rdma.json").read_text()
LSPCI = (SAMPLES / "pci/lspci/gpu.txt").read_text()
TEXTS = {"topo": TOPO, "nvlink": NVLINK, "matrix": MATRIX, "xml": XML, "json": JSON, "lspci": LSPCI}
Prefix = Callable[[int], str]


def clock(number: int) -> str:
    return f"03:{number // 60 % 60:02d}:{number % 60:02d}"


PREFIXES: dict[str, Prefix] = {
    "ISO time": lambda n: f"2026-11-21T{clock(n)}.123456Z ",
    "time in brackets": lambda n: f"[2026-11-21 {clock(n)}] ",
    "time of day": lambda n: f"{clock(n)} ",
    "ts(1)": lambda n: f"Nov 21 {clock(n)} ",
    "ts(1), first days": lambda n: f"Nov  2 {clock(n)} ",
    "seconds": lambda n: f"1795230000.{n:06d} ",
    "syslog": lambda n: f"Nov 21 {clock(n)} node1 check[4242]: ",
    "syslog without a number": lambda n: f"Nov 21 {clock(n)} node1 check: ",
    "journal": lambda n: f"2026-11-21T{clock(n)}+0000 node1 check[4242]: ",
    "logging": lambda n: f"2026-11-21 {clock(n)},123 - {('INFO', 'WARNING')[n % 2]} - ",
    "logger": lambda n: f"2026-11-21 {clock(n)},123 node.check INFO: ",
    "logging in brackets": lambda n: f"[2026-11-21 {clock(n)},123][INFO] ",
    "klog": lambda n: f"I1121 {clock(n)}.123456    4242 check.go:42] ",
    "level": lambda n: "INFO:root:",
    "host": lambda n: "node1: ",
    "host in brackets": lambda n: "[node1] ",
    "Ansible": lambda n: "node1 | ",
    "rank of mpirun": lambda n: "[1,0]<stdout>:",
    "rank of mpirun 5": lambda n: "[1,0]<stdout>: ",
    "rank of srun": lambda n: "0: ",
    "rank of torchrun": lambda n: "[rank0]: ",
    "pod": lambda n: "[pod/check-x7/main] ",
    "container": lambda n: f"2026-11-21T{clock(n)}.123456789Z stdout F ",
    "quote": lambda n: "> ",
    "quote in a quote": lambda n: ">> ",
    "grep -n": lambda n: f"{n + 1}:",
    "cat -n": lambda n: f"{n + 1:6}\t",
}


def read(text: str, name: str = "f") -> list[str]:
    """The facts and observations with the lines that they cite, without the texts of the lines."""
    return sorted(map(_plain, (one for one in read_text(name, text, 0.0) if not isinstance(one, NotChecked))))


def _plain(one: Record) -> str:
    if isinstance(one, Fact):
        cites = {name: cite.source for name, cite in one.cites.items()}
        values = {name: getattr(one, name) for name in one.__struct_fields__ if name not in ("cites", "at")}
        return f"{type(one).__name__} {values} {cites}"
    assert isinstance(one, Observation)
    return f"{one.about} {one.quantity} {one.value} {one.unit} {one.busy} {one.evidence.source}"


def lines_of(text: str) -> list[str]:
    return text.rstrip("\n").split("\n")


def framed(text: str, prefix: Prefix) -> str:
    return "".join(f"{prefix(number)}{line}\n" for number, line in enumerate(lines_of(text)))


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("text", TEXTS)
def test_a_prefix_before_each_line(text: str, prefix: str) -> None:
    assert read(TEXTS[text])
    assert read(framed(TEXTS[text], PREFIXES[prefix])) == read(TEXTS[text])


@given(
    st.sampled_from([NVLINK, TOPO, MATRIX]),
    st.sampled_from(["", *(name for name in PREFIXES if "time" in name or name in ("syslog", "klog", "ts(1)"))]),
    st.sampled_from(["", "level", "host in brackets", "rank of mpirun", "rank of torchrun", "quote"]),
)
def test_prefixes_of_prefixes(text: str, outer: str, inner: str) -> None:
    for name in filter(None, (inner, outer)):
        text, bare = framed(text, PREFIXES[name]), text
        assert read(text) == read(bare)


def escaped(text: str) -> str:
    return "| output |\n| --- |\n" + "".join(f"| {line.replace('|', chr(92) + '|')} |\n" for line in lines_of(text))


def container(text: str) -> str:
    logs = ({"log": f"{line}\n", "stream": "stdout", "time": "2026-11-21T03:00:00.1Z"} for line in lines_of(text))
    return "\n".join(map(json.dumps, logs))


def in_list(text: str) -> str:
    items = ",\n".join(f"        {json.dumps(line)}" for line in lines_of(text))
    return f'ok: [node1] => {{\n    "out.stdout_lines": [\n{items}\n    ]\n}}\n'


def in_string(text: str) -> str:
    return json.dumps({"host": "node1", "rc": 0, "stdout": text})


def in_python(text: str) -> str:
    return f"CompletedProcess(args=['check'], returncode=0, stdout={text!r})"


def page(text: str) -> str:
    return f"<html><body><pre>\n{html.escape(text, quote=False)}</pre></body></html>\n"


def spaced(text: str) -> str:
    return "".join(f"{line}\n\n" for line in lines_of(text))


FRAMES: tuple[Callable[[str], str], ...] = (container, in_list, in_string, in_python, page, spaced)


def without_lines(several: list[str]) -> list[str]:
    return [re.sub(r"'f:[0-9.]+'|f:[0-9.]+", "f", one) for one in several]


@pytest.mark.parametrize("frame", FRAMES, ids=lambda frame: frame.__name__)
@pytest.mark.parametrize("text", [TOPO, NVLINK, MATRIX, JSON, LSPCI], ids=["topo", "nvlink", "matrix", "json", "lspci"])
def test_a_frame_around_the_lines(text: str, frame: Callable[[str], str]) -> None:
    assert without_lines(read(frame(text))) == without_lines(read(text))


def test_a_markdown_table_with_a_line_in_each_row() -> None:
    for text in (TOPO.expandtabs(), NVLINK, MATRIX):
        assert without_lines(read(escaped(text))) == without_lines(read(text))


def test_evidence_names_the_line_within_a_string() -> None:
    (first, *_) = [one for one in read_text("f", in_string(NVLINK), 0.0) if isinstance(one, Fact)]
    assert (first.key, first.cites["name"].source) == ("gpu0", "f:1.1")
    assert first.cites["name"].text == "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)"


@pytest.mark.parametrize(
    "text",
    [
        '{"flags": [\n"UP",\n"LOWER_UP"\n]}',  # short strings are values
        "eth0: up\neth1: up",  # each line is about another device
        "mlx5_0: state ACTIVE\nmlx5_0: rate 400 Gb/sec",
        "GPU 0: NVIDIA H100\nGPU 0: 80 GB",
        "step 1\nstep 2",
    ],
)
def test_what_is_no_prefix(text: str) -> None:
    assert list(layers(text.split("\n"))) == []


def test_logs_keep_their_times() -> None:
    line = "Nov 21 03:04:05 n1 kernel: NVRM: Xid (PCI:0000:53:00): 79, pid=1, GPU has fallen off the bus."
    dated = "[Sat Nov 21 03:04:05 2026] NVRM: Xid (PCI:0000:53:00): 79, pid=1, GPU has fallen off the bus."
    for text in (line, dated):
        times = [one.at for one in read_text("f", f"{text}\n{text}\n", 0.0) if isinstance(one, Event)]
        assert times
        assert all(at is not None for at in times)


@given(st.lists(st.text(st.characters(exclude_characters="\n\r")), min_size=1))
def test_prefixes_and_strings_keep_the_order_of_lines(lines: list[str]) -> None:
    for bare in layers(lines):
        assert len(bare) == len(lines)
        assert all(line.endswith(rest) for line, rest in zip(lines, bare, strict=True))
    texts, origin = unfolded(lines) or (lines, list(range(len(lines))))
    assert len(texts) == len(origin)
    assert origin == sorted(origin)


def wrapped(text: str, width: int) -> Iterator[str]:
    for line in lines_of(text):
        yield from (line[start : start + width] for start in range(0, max(len(line), 1), width))


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("text", ["lspci", "xml", "json"])
def test_lines_that_a_terminal_wrapped(text: str, width: int) -> None:
    cut = "\n".join(wrapped(TEXTS[text], width)) + "\n"
    assert without_lines(read(cut)) == without_lines(read(TEXTS[text]))


@pytest.mark.parametrize("lead", ["", "    ", "- ", "| "])
def test_long_lines_that_begin_alike_are_not_joined(lead: str) -> None:
    """The longest lines of a log are followed by lines of their own, also if all lines are indented."""
    lines = [
        f"{lead}n{host}:100:120 [0] NCCL INFO comm 0x55aa rank {host} nranks 4 cudaDev 0 busId 5300{host} commId"
        for host in (1, 2)
    ]
    assert (
        list(joined("\n".join([f"{lead}n1:100:120 [0] NCCL INFO Using network IB", *lines, f"{lead}n1:1:2 [0]"]))) == []
    )


def test_evidence_of_a_wrapped_line_is_its_first_line() -> None:
    text = "41:00.0 Processing accelerators [1200]: Advanced Micro Devices, Inc. [AMD/ATI] Device [1002:74a1]\n" * 2
    text = text.replace("41:00.0", "42:00.0", 1)
    found = [one for one in read_text("f", "\n".join(wrapped(text, 80)), 0.0) if isinstance(one, Fact)]
    assert [(one.key, {cite.source for cite in one.cites.values()}) for one in found] == [
        ("0000:42:00.0", {"f:1"}),
        ("0000:41:00.0", {"f:3"}),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(
            f"2026-11-21 03:04:05 step {number} of the training, loss 2.3141, 412.1 tokens/s, a" for number in range(9)
        ),
        "\n".join(
            f"n1:{number}:12 [0] NCCL INFO comm 0x7f00 rank 0 nranks 2 cudaDev 0 nvmlDev 0" for number in range(9)
        ),
        "index, name, pci.bus_id, pcie.link.gen.current, pcie.link.width.current, a\n"
        + "\n".join(
            f"{number}, NVIDIA H100 80GB HBM3, 00000000:{number:02}:00.0, 5, 16, this is a" for number in range(20)
        ),
    ],
)
def test_rows_of_equal_length_are_not_joined(text: str) -> None:
    assert list(joined(text)) == []


def test_a_place_of_joined_lines() -> None:
    part = Part("f", 1, "a\nb\nc").unframed("ab\nc\nd", [0, 2, 2])
    assert [part.where(number) for number in range(3)] == ["f:1", "f:3.1", "f:3.2"]


def mixed(text: str) -> str:
    """Another program writes to the same terminal."""
    return "".join(f"{line}\nLoading checkpoint shards: done\n" for line in lines_of(text))


def test_lines_of_another_program_within_a_matrix() -> None:
    assert without_lines(read(mixed(MATRIX))) == without_lines(read(MATRIX))


DRIVE = "critical_warning : 0x1\navailable_spare : 3%\n"
MODULE = "\tIdentifier : 0x11 (QSFP28)\n\tModule temperature high alarm : On\n"
PORT = "NIC statistics:\n     rx_crc_errors_phy: 7\n     link_down_events_phy: 2\n"


@pytest.mark.parametrize("text", [DRIVE, MODULE, PORT], ids=["drive", "module", "port"])
@pytest.mark.parametrize("title", ["", "=== after ===\n"], ids=["alone", "with a title"])
def test_an_output_that_was_taken_twice_is_of_one_device(text: str, title: str) -> None:
    assert read(text)
    assert read(text + title + text) == read(text)


def test_other_values_are_of_another_device() -> None:
    for text, other in ((DRIVE, ("3%", "4%")), (MODULE, ("On", "Off")), (PORT, ("7", "8"))):
        assert len(read(text + text.replace(*other))) > len(read(text))
