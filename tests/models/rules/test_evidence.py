"""Values below independent evidence: NVLink rates, BAR1, memory of packages, firmware, hidden PCIe links."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from linkgauge.models.facts.gpu import GpuLink
from linkgauge.models.facts.machine import Numa, Nvme, Package, Rdma
from linkgauge.models.facts.records import Record
from tests.support.nodes.gpu_facts import BARE, address, board, findings, report_of, with_fields

MIB, GIB = 1 << 20, 1 << 30
SLOW = ("nvlink-slow", "warning", "certain")
GUEST = {"virtual": True}


def listed(records: Sequence[Record]) -> set[tuple[str, str]]:
    """The subjects and quantities without evidence."""
    coverage = report_of(records).coverage
    return {(one.subject, quantity) for one in coverage.uncorroborated for quantity in one.quantities}


def links(gpu: int, speed: float = 26.562e9) -> list[Record]:
    """The NVLinks of an H100; `speed` is that of the fourth."""
    return [
        GpuLink(
            key=f"gpu{gpu}/nvlink{n}", gpu=f"gpu{gpu}", kind="nvlink", active=True, speed=speed if n == 3 else 26.562e9
        )
        for n in range(18)
    ]


def test_one_link_at_half_speed() -> None:
    healthy = [*board(), *(one for gpu in range(8) for one in links(gpu))]
    assert findings(healthy) == ()
    (found,) = findings(
        [*board(), *(one for gpu in range(8) for one in links(gpu, 13.281e9 if gpu == 3 else 26.562e9))]
    )
    assert (found.code, found.subject, found.severity) == ("nvlink-slow", address(3), "warning")
    assert "nvlink3 (NVLink) at 13.3 GB/s" in found.message


@pytest.mark.parametrize("gpus", [(3,), tuple(range(8))])
def test_the_rate_of_all_links_is_halved(gpus: tuple[int, ...]) -> None:
    records = board()
    for number in gpus:
        records = with_fields(records, f"gpu{number}", nvlink_rate=12.5e9)
    assert [(one.code, one.subject) for one in findings(records)] == [("nvlink-slow", address(n)) for n in gpus]


@pytest.mark.parametrize("gpus", [(3,), tuple(range(8))])
@pytest.mark.parametrize("node", [{}, GUEST])
def test_a_small_window_beside_nvlink(gpus: tuple[int, ...], node: dict[str, bool]) -> None:
    """NICs use the window, too."""
    records = with_fields(board(), "node", **node)
    assert "pcie-bar1-small" not in {one.code for one in findings(records)}
    for number in gpus:
        records = with_fields(records, f"gpu{number}", bar1=256 * MIB)
    found = [one for one in findings(records) if one.code == "pcie-bar1-small"]
    assert [(one.subject, one.severity) for one in found] == [(address(n), "warning") for n in gpus]


def sockets(*memory: Sequence[int], **node: bool) -> list[Record]:
    """A machine with these gibibytes in the NUMA nodes of each package. Each NUMA node has one CPU."""
    records, cpu = list(with_fields([BARE], "node", **node)), 0
    for number, nodes in enumerate(memory):
        cpus = tuple(range(cpu, cpu + len(nodes)))
        records.append(Package(key=f"package{number}", cpus=cpus))
        records += [Numa(key=f"numa{n}", cpus=(n,), memory=size * GIB) for n, size in zip(cpus, nodes, strict=True)]
        cpu += len(nodes)
    return records


@pytest.mark.parametrize(
    ("memory", "subjects"),
    [
        (([512], [448]), ["numa1"]),  # one of eight modules of 64 GiB
        (([768], [704]), ["numa1"]),  # one of twelve
        (([128] * 4, [128, 64, 128, 128]), ["numa5"]),
        (([512], [512]), []),
        (([8, 16], [8, 16]), []),
        (([8, 16, 8, 16],), []),
        (([64, 64, 64, 32],), ["numa3"]),
        (([512], [500]), []),
    ],
)
def test_memory_of_packages(memory: Sequence[Sequence[int]], subjects: list[str]) -> None:
    assert [one.subject for one in findings(sockets(*memory)) if one.code == "numa-memory-missing"] == subjects
    assert findings(sockets(*memory, **GUEST)) == ()


def test_equal_memory_of_two_packages_is_no_evidence() -> None:
    memory = {("numa0", "memory of the NUMA node"), ("numa1", "memory of the NUMA node")}
    assert memory <= listed(sockets([256], [256]))
    assert memory & listed(sockets([256], [128])) == {("numa0", "memory of the NUMA node")}


def test_firmware_that_differs() -> None:
    nics = [Rdma(key=f"mlx5_{n}", board_id="MT_0838", firmware="28.39.1002") for n in range(4)]
    disks = [Nvme(key=f"nvme{n}", model="A" if n else "B", firmware="1" if n else "2") for n in range(3)]
    assert findings([BARE, *nics, *disks]) == ()
    (found,) = findings([BARE, *with_fields(nics, "mlx5_2", firmware="28.35.1012")])
    assert (found.code, found.subject, found.severity) == ("firmware-mixed", "mlx5_2", "info")
    assert found.message == ("4 equal NICs have different firmware: 3 of them 28.39.1002; mlx5_2: 28.35.1012")
    two = with_fields(board(), "gpu1", vbios="96.00.89.00.01")
    assert findings(two) == ()  # the others have no version
    for number in (0, *range(2, 8)):
        two = with_fields(two, f"gpu{number}", vbios="96.00.A5.00.01")
    assert [(one.code, one.subject) for one in findings(two)] == [("firmware-mixed", "gpu1")]


def test_a_board_whose_links_are_all_narrow() -> None:
    """The bus does not show the links, and the driver does. A GPU of a baseboard has 16 lanes."""
    records = board()
    for number in range(8):
        records = with_fields(records, f"gpu{number}", pcie_width=8)
    found = findings(records)
    assert [(one.code, one.subject, one.severity) for one in found] == [
        ("pcie-link-narrow", address(number), "critical") for number in range(8)
    ]
    card = with_fields(board(1), "gpu0", name="NVIDIA A10G", pcie_width=8)
    card = with_fields(card, address(0), device=0x2237)
    assert (address(0), "link width") in listed(card)
