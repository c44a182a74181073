"""Outputs of tools that were cut: what stands before the cut is read, and where it is sure to be one a note says so."""

from __future__ import annotations

import pytest

from linkgauge.models.facts.records import Fact, NotChecked, Observation, Record
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS
from tests.probes.dumps.test_dump_cpus import NUMACTL
from tests.probes.dumps.test_dump_nvbandwidth import TEXT as NVBANDWIDTH
from tests.probes.dumps.test_dump_p2p_bandwidth import TEXT as P2P
from tests.probes.dumps.test_dump_smi_csv import CELLS
from tests.probes.dumps.test_dump_smi_csv import printed as csv
from tests.probes.dumps.test_dump_smi_query import NEW
from tests.probes.dumps.test_dump_smi_query import printed as query
from tests.probes.dumps.test_dump_smi_topology import PCIE
from tests.probes.dumps.test_nccl import FORMS, table
from tests.support.perftest_outputs import RATES, ROW, output
from tests.support.samples import samples

PERFTEST = output("RDMA_Write BW Test", RATES.format("Gb/sec"), ROW)
NCCL = table(*FORMS[0])
QUERY = query(("53:00.0", NEW), ("54:00.0", NEW))
XML = (
    '<nvidia_smi_log>\n\t<cuda_version>13.2</cuda_version>\n\t<gpu id="00000000:53:00.0">\n\t</gpu>\n</nvidia_smi_log>'
)


def said(text: str) -> list[Record]:
    return [one for family, part in split("log", text, 0.0, READERS) if family for one in family.read(part)]


def notes(text: str) -> list[str]:
    return [one.why for one in said(text) if isinstance(one, NotChecked) and "the output ends here" in one.why]


@pytest.mark.parametrize(
    ("text", "last", "what"),
    [
        (P2P, "     0 2494.76 376.65", "after 1 of 2 rows"),
        (P2P, "     1 371.02", "within a matrix of 2 columns"),
        (P2P, "     0 2494.76 376.6", "within a matrix of 2 columns"),
        (P2P, "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)", "before a matrix"),
        (NVBANDWIDTH, " 0       N/A    391.00", "after 1 of 2 rows"),
        (NVBANDWIDTH, " 0     55.61", "within a matrix of 2 columns"),
        (PERFTEST, " 65536      5000             392.10", "after 3 of 5 columns"),
        (NCCL, f"{536870912:12} {134217728:12} float sum", "after 4 of 13 columns"),
        (NUMACTL, "node 0 cpus: 0 1 2 3", "after 1 of 2 nodes"),
        (NUMACTL, "  0:  10  32", "after 1 of 2 rows of distances"),
        (PCIE, PCIE.split("\n")[1], "after the rows of 1 of 3 GPUs"),
        (PCIE, PCIE.split("\n")[3][:12], "within the row of GPU2"),
        (XML, '\t<gpu id="00000000:53:00.0">', "before </nvidia_smi_log>"),
    ],
)
def test_where_a_text_was_cut(text: str, last: str, what: str) -> None:
    cut = text[: text.index(last) + len(last)]
    assert notes(cut) == notes(cut + "\n\n") != []
    why = f"line {cut.count(chr(10)) + 1}: the output ends here, {what}; what stands before that was read"
    assert notes(cut) == [why]


def test_a_row_of_a_table_of_columns() -> None:
    text = csv([*CELLS])
    assert notes(text) == []
    assert len(notes(text[: text.rindex(",")])) == 1


def test_the_last_gpu_has_less_than_the_one_before_it() -> None:
    """One GPU alone may be all that was asked for, and another product shows other things."""
    lines = QUERY.split("\n")
    begun = max(number for number, line in enumerate(lines) if line.startswith("GPU "))
    ended = [end for end in range(begun + 2, len(lines)) if notes("\n".join(lines[:end]))]
    assert len(ended) > 20
    assert ended == list(range(ended[0], ended[-1] + 1))
    one = query(("53:00.0", NEW)).split("\n")
    assert not any(notes("\n".join(one[:end])) for end in range(len(one)))


@pytest.mark.parametrize("name", samples(recorded=False))
@pytest.mark.slow
def test_of_a_whole_text_nothing_is_said_to_be_cut(name: str) -> None:
    assert [note for text in samples()[name] for note in notes(text) if len(text) > 300] == []


@pytest.mark.parametrize("name", samples(recorded=False))
def test_cut_at_any_place_it_gives_what_it_has(name: str) -> None:
    """Nothing is raised, and there is not more in a piece than in the whole, the two ends of a thing aside."""
    for text in samples(recorded=False)[name]:
        ends = range(0, len(text), max(1, len(text) // 60))
        counts = [sum(isinstance(one, Fact | Observation) for one in said(text[:end])) for end in ends]
        assert max(counts, default=0) <= sum(isinstance(one, Fact | Observation) for one in said(text)) + 2
