"""A short run of bench/fuzz/fuzz.py on dump readers, and the failures that it found earlier."""

from __future__ import annotations

import json
from types import ModuleType

import pytest

from bench.fuzz.fuzz import ARCHIVES, NAMES, SHARED, fuzz, inputs_of
from linkgauge.models.facts.records import Evidence, NotChecked
from linkgauge.probes.dumps.benchmarks import fio, nccl, nvbandwidth, p2p_bandwidth
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.host.storage_json import read as read_json
from linkgauge.probes.dumps.network import ib_fabric
from linkgauge.probes.dumps.nvidia import bug_report, smi_csv, smi_table, smi_topology
from linkgauge.probes.dumps.pci import lspci
from linkgauge.probes.dumps.read import recognise

pytestmark = pytest.mark.slow

INPUTS, SEED = 300, 1
BLANKS = " " * 200_000


@pytest.mark.parametrize("name", [name for name in NAMES if name != SHARED])
def test_broken_texts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The inputs come from the samples of the tests only, so they are the same on each machine."""
    monkeypatch.setattr("linkgauge.probes.dumps.core.archives.MOST_BYTES", 1 << 20)
    monkeypatch.setattr("linkgauge.probes.dumps.core.archives.MOST_FILES", 200)
    outcome = fuzz(name, inputs_of(name, SEED, recorded=False), INPUTS if name != ARCHIVES else INPUTS // 3)
    assert [wrong for wrong, _ in outcome.failures] == []


def test_inputs_are_made_of_their_number_and_the_seed_alone() -> None:
    first, again, other = (inputs_of("fio", seed, recorded=False) for seed in (1, 1, 2))
    assert [first(n)[0] for n in range(20)] == [again(n)[0] for n in range(20)] != [other(n)[0] for n in range(20)]


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (nvbandwidth, "nvbandwidth Version: v0.4\n" + "\n" * 200_000 + "x"),
        (p2p_bandwidth, "P2P Connectivity Matrix\n" * 100_000),
        (p2p_bandwidth, f"Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n{BLANKS}x"),
        (smi_csv, f"index, name, uuid{BLANKS}x"),
        (smi_table, f"| NVIDIA-SMI 535.86\n| 0 a{BLANKS}x"),
        (smi_topology, "\t" + "GPU0\t" * 50_000 + "\nGPU0\t" + " X \t" * 50_000),
        (fio, '{"fio version": "3"}\n' + "{}\n" * 500_000),
        (bug_report, f"Model: a{BLANKS}\x00\nIRQ: 1\nBus Location: 0000:1b:00.0"),
        (ib_fabric, f"CA: x:\n{BLANKS}x"),
        (lspci, "00:00.0 Host bridge: x\n\tACSCtl:\t" + "a+ " * 6 + "a" * 200_000 + "-"),
    ],
    ids=lambda value: "" if isinstance(value, str) else value.__name__.rpartition(".")[2],
)
def test_stretches_of_one_letter_take_no_longer_than_others(reader: ModuleType, text: str) -> None:
    """No time is asserted. With an expression that backtracks, each text would take minutes."""
    assert all(reader.read(Part("log", 1, text)))


def test_a_line_of_blanks_is_recognised_as_nothing() -> None:
    assert not recognise(" " * 20_000 + "device_id: 27")


def test_what_is_cited_is_no_longer_than_a_line_of_a_terminal() -> None:
    row = f"8388608 2097152 float sum -1 99.5 99.52 174.16 0 9.9 1.11 2.22 {'N' * 5000}"
    heading = "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
    cited = [one.evidence.text for one in nccl.read(Part("log", 1, f"{heading}\n{row}")) if hasattr(one, "evidence")]
    assert cited == [row[:300]]
    kind = {"name": "sda", "type": "x" * 5000, "mountpoint": "/", "fstype": "ext4"}
    (mount,) = read_json(Part("log", 1, json.dumps({"blockdevices": [kind]})))
    assert not isinstance(mount, NotChecked)
    assert getattr(mount, "cites", {}).get("device") == Evidence("log:1", "sda")
