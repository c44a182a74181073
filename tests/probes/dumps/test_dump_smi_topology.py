"""`nvidia-smi topo -m` and `-p2p`: with tabs and blanks, NICs, switches and bridges; cut, and of rubbish."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu, GpuPair
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.nvidia import smi_topology
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared"
LEGEND = "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\nNIC0: mlx5_0\n"
COMMAND = "$ nvidia-smi topo -p2p {}\n"


def printed(rows: Sequence[Sequence[str]], near: Sequence[str] = (), nics: int = 0) -> str:
    """A matrix of as many GPUs as rows; behind the cells of each what is near, in the tool's own tabs."""
    names = [*(f"GPU{n}" for n in range(len(rows))), *(f"NIC{n}" for n in range(nics))]
    heads = ["CPU Affinity", "NUMA Affinity", "GPU NUMA ID"] if near else []
    lines = ["\t".join(["", *names, *heads])]
    for n, row in enumerate(rows):
        behind = [near[n]] if near else []
        lines.append("\t".join([f"GPU{n}", *(f"{cell:^4}" for cell in row), *behind]))
    lines += ["\t".join([f"NIC{n}", *["SYS"] * (len(names)), "", "", ""]) for n in range(nics)]
    return "\n".join(lines) + "\n" + LEGEND


def said(text: str, file: str = "topo.txt") -> list[Record]:
    assert recognise(text)
    return list(smi_topology.read(Part(file, 1, text)))


def line(text: str, number: int, file: str = "topo.txt") -> Evidence:
    return Evidence(f"{file}:{number}", text.split("\n")[number - 1].strip())


def gpu(text: str, number: int, where: int, **fields: object) -> Gpu:
    return Gpu(key=f"gpu{number}", cites=dict.fromkeys(fields, line(text, where)), **fields)  # type: ignore[arg-type]


def pair(text: str, a: int, b: int, where: int, file: str = "topo.txt", **fields: str) -> GpuPair:
    cites = dict.fromkeys(fields, line(text, where, file))
    return GpuPair(key=f"gpu{a}-gpu{b}", a=f"gpu{a}", b=f"gpu{b}", cites=cites, **fields)


PCIE = printed(
    [["X", "PIX", "SYS", "PXB"], ["PIX", "X", "SOC", "SYS"], ["SYS", "SOC", "X", "NODE"]],
    ["0-3,8-9\t0\t\tN/A", "0-3\tN/A\t\tN/A", "\t1\t\tN/A"],
    nics=1,
)


def test_paths_and_what_is_near() -> None:
    assert said(PCIE) == [
        gpu(PCIE, 0, 2, cpus=(0, 1, 2, 3, 8, 9), numa=0),
        gpu(PCIE, 1, 3, cpus=(0, 1, 2, 3)),
        gpu(PCIE, 2, 4, numa=1),
        pair(PCIE, 0, 1, 2, path="PIX"),
        pair(PCIE, 0, 2, 2, path="SYS"),
        pair(PCIE, 1, 2, 3, path="SYS"),
    ]


def test_rows_that_are_indented() -> None:
    """The tool indents those of -p2p; what quotes it indents all."""
    rows = PCIE.replace("\nGPU", "\n GPU")
    quoted = "".join(f"    {text}\n" for text in PCIE.split("\n"))
    able = COMMAND.format("rw") + ABLE.replace("\nGPU", "\n GPU")
    assert said(rows) == said(quoted) == said(PCIE)
    assert said(able) == said(COMMAND.format("r") + ABLE)


def test_a_heading_that_was_stripped() -> None:
    """As collect_env of PyTorch prints it, behind what lscpu says."""
    for text in (PCIE, ABLE, printed([["X"]], ["0-3\t0\t\tN/A"])):
        assert said(text.lstrip()) == said(text)
    assert not recognise("GPU0\t X \tPHB\nGPU0 GPU\nGPU0\n")


def test_blanks_in_place_of_tabs() -> None:
    """Of a pasted matrix; where an affinity is missing, nobody knows which."""
    text = "      GPU0  GPU1  CPU Affinity  NUMA Affinity\nGPU0   X    NODE   0-1     0\nGPU1  NODE   X            1\n"
    assert said(text) == [gpu(text, 0, 2, cpus=(0, 1), numa=0), gpu(text, 1, 3), pair(text, 0, 1, 2, path="NODE")]


def test_links_to_switches_are_counted() -> None:
    """Eight GPUs whose pairs share all links; one with a link less, one without any."""
    rows = [["NV18"] * 8 for _ in range(8)]
    for odd, cell in ((2, "NV17"), (5, "SYS")):
        for n in range(8):
            rows[odd][n] = rows[n][odd] = cell
    for n in range(8):
        rows[n][n] = "X"
    counts = [one.nvlinks for one in said(printed(rows)) if isinstance(one, Gpu)]
    assert counts == [18, 18, 17, 18, 18, 0, 18, 18]


def test_a_matrix_alone_shows_a_gpu_without_links() -> None:
    """Its neighbours have all of theirs; of a matrix without NVLinks, or a good one, nothing is said."""

    def found(text: str) -> list[tuple[str, str, object]]:
        report = evaluate(assemble(said(text), Site(), 0.0, origin="dumps"))
        return [(one.code, one.subject, one.expected) for one in report.findings]

    good = [["X" if n == m else "NV18" for m in range(8)] for n in range(8)]
    bad = [["X" if n == m else "PIX" if 3 in (n, m) else "NV18" for m in range(8)] for n in range(8)]
    assert found(printed(bad)) == [("nvlink-inactive", "gpu3", 18)]
    assert found(printed(good)) == found(PCIE) == []


@pytest.mark.parametrize(
    "rows",
    [
        [
            ["X", "NV4", "NV4", "NV4"],
            ["NV4", "X", "NV4", "NV4"],
            ["NV4", "NV4", "X", "NV4"],
            ["NV4", "NV4", "NV4", "X"],
        ],
        [["X", "NV12"], ["NV12", "X"]],  # two of eight, or a bridge
        [["X", "NV18", "SYS"], ["NV18", "X", "SYS"], ["SYS", "SYS", "X"]],
    ],
)
def test_links_to_peers_are_not(rows: Sequence[Sequence[str]]) -> None:
    """Some may lead to GPUs that do not show."""
    assert [one for one in said(printed(rows)) if isinstance(one, Gpu)] == [
        Gpu(key=f"gpu{n}") for n in range(len(rows))
    ]
    assert not [one for one in said(printed(rows)) if isinstance(one, GpuPair) and one.path != "SYS"]


ABLE = printed([["X", "OK", "CNS", "DR"], ["OK", "X", "GNS", "NS"], ["CNS", "GNS", "X", "U"], ["DR", "NS", "TNS", "X"]])


@pytest.mark.parametrize(("letter", "field"), [("r", "read"), ("w", "write"), ("n", "nvlink"), ("a", "atomics")])
def test_what_peers_may_do(letter: str, field: str) -> None:
    text = COMMAND.format(letter) + ABLE
    words = ("ok", "chipset not supported", "disabled by registry", "GPU not supported", "not supported", "unknown")
    keys = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    assert [one for one in said(text) if isinstance(one, GpuPair)] == [
        pair(text, a, b, a + 3, **{field: word}) for (a, b), word in zip(keys, words, strict=True)
    ]


def test_a_file_name_says_what_a_matrix_is_about() -> None:
    text = printed([["X", "OK"], ["OK", "X"]])
    assert said(text, "p2p_write.txt")[-1] == pair(text, 0, 1, 2, "p2p_write.txt", write="ok")


def test_nobody_says_what_a_matrix_is_about() -> None:
    text = printed([["X", "OK"], ["OK", "X"]])
    assert said(text)[2:] == [
        NotChecked(
            what="GpuPair.read",
            subject="gpu0-gpu1",
            reason=Reason.OTHER,
            path="topo.txt:2",
            detail="nothing says which ability the matrix is about",
            how="keep the command with its output: nvidia-smi topo -p2p r",
        )
    ]


def test_unknown_cells_are_said() -> None:
    text = printed([["X", "??"], ["??", "X"]])
    assert said(text)[-1] == NotChecked(
        what="GpuPair.path", subject="gpu0-gpu1", reason=Reason.UNREADABLE, path="topo.txt:2", detail="'??' is no path"
    )


def test_cut_at_every_line() -> None:
    whole = {(type(one), getattr(one, "key", "")): one for one in said(PCIE)}
    lines = PCIE.split("\n")
    for end in range(1, len(lines)):
        for one in said("\n".join(lines[:end])):
            assert isinstance(one, NotChecked) or whole[type(one), getattr(one, "key", "")] == one


def test_rows_in_any_order() -> None:
    head, *rows = PCIE.split("\n")[:4]
    turned = "\n".join([head, *reversed(rows)])
    plain = {repr(strip(one)) for one in said(PCIE)}
    assert {repr(strip(one)) for one in said(turned)} == plain


def strip(one: Record) -> Record:
    return type(one)(**{name: getattr(one, name) for name in one.__dataclass_fields__ if name != "cites"})


@given(st.text() | st.text(alphabet="GPU01NVX \t\nSYOK-") | st.lists(st.sampled_from(PCIE.split("\n"))).map("\n".join))
def test_any_text(text: str) -> None:
    re.compile(smi_topology.BEGIN, re.MULTILINE).search(text)
    for one in smi_topology.read(Part("p2p_r", 1, text)):
        assert isinstance(one, (Fact, NotChecked))


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared with outputs of real tools")
def test_outputs_of_real_tools() -> None:
    """Every matrix is whole, and no other output holds one."""
    for path in sorted(SHARED.glob("data/outputs/*/*")) + sorted(SHARED.glob("cases/*/dumps/*")):
        parts = split(path.name, path.read_text("utf-8", "replace"), 0.0, READERS)
        found = [one for family, part in parts if family and family.name == "smi_topology" for one in family.read(part)]
        assert bool(found) == (
            "topo_m" in path.name or "topo-m" in path.name or "nvidia-smi-capture/linux" in str(path)
        ), path
        gpus = [one for one in found if isinstance(one, Gpu)]
        assert all(one.cpus and one.numa is not None for one in gpus), path
        assert not [one for one in found if isinstance(one, NotChecked)], path
