"""AMD GPUs and their xGMI links from sys/class/kfd, as amdgpu of Linux 6.8 shows them."""

from __future__ import annotations

from collections.abc import Mapping
from errno import EPERM
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.exporters.text.matrix import as_matrix
from linkgauge.exporters.text.tree import as_tree
from linkgauge.models.bandwidth.path_matrix import matrix
from linkgauge.models.facts.gpu import Gpu, GpuLink
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Record
from linkgauge.models.graph.routes import path_type, rated, route
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.capture.anonymize import scrub
from linkgauge.probes.gpu.amd_kfd import read_kfd
from linkgauge.probes.host.entries import Entry, Link, UnreadableFile
from linkgauge.probes.host.live import Live
from linkgauge.probes.host.recorded import Recorded
from tests.support.nodes.trees import tree

NODES = "sys/class/kfd/kfd/topology/nodes"
XGMI, PCIE = 11, 2
F = TypeVar("F", bound=Fact)


def properties(**numbers: int) -> str:
    return "\n".join(f"{name} {number}" for name, number in numbers.items())


def processor(number: int) -> dict[str, Entry]:
    return {
        f"{NODES}/{number}/gpu_id": "0",
        f"{NODES}/{number}/properties": properties(cpu_cores_count=128, location_id=0, domain=0),
    }


def gpu(number: int, bus: int, links: Mapping[int, tuple[int, int, int, int]], domain: int = 0) -> dict[str, Entry]:
    """A node; `links`: by node, the type, the weight, and the least and the greatest MB/s."""
    node = f"{NODES}/{number}"
    entries: dict[str, Entry] = {
        f"{node}/gpu_id": str(20000 + number),
        f"{node}/properties": properties(
            simd_count=1216, location_id=bus << 8, domain=domain, unique_id=10**18 + number
        ),
    }
    for place, (to, (kind, weight, least, most)) in enumerate(links.items()):
        entries[f"{node}/io_links/{place}/properties"] = properties(
            type=kind, node_from=number, node_to=to, weight=weight, min_bandwidth=least, max_bandwidth=most, flags=1
        )
    return entries


def function(
    address: str, path: str, numbers: str, speed: str = "32.0 GT/s PCIe", driver: str = ""
) -> dict[str, Entry]:
    """A PCI function below `path`, 16 lanes at `speed`; `numbers`: class, vendor and device."""
    folder = f"{path}/{address}"
    pci_class, vendor, device = numbers.split()
    entries: dict[str, Entry] = {
        f"{folder}/class": f"0x{pci_class}",
        f"{folder}/vendor": f"0x{vendor}",
        f"{folder}/device": f"0x{device}",
        f"{folder}/numa_node": "0",
        f"sys/bus/pci/devices/{address}": Link(f"../../../../{folder}"),
        f"{folder}/current_link_speed": speed,
        f"{folder}/max_link_speed": speed,
        f"{folder}/current_link_width": "16",
        f"{folder}/max_link_width": "16",
    }
    return {**entries, **({f"{folder}/driver": Link(f"/sys/bus/pci/drivers/{driver}")} if driver else {})}


def card(bus: int, device: str) -> dict[str, Entry]:
    """An accelerator on its root port, behind the two ports of its own that AMD's have."""
    root = f"sys/devices/pci0000:{bus:02x}"
    top, up, down, end = (f"0000:{bus + n:02x}:{'01' if n == 0 else '00'}.0" for n in range(4))
    return {
        **function(top, root, "060400 1022 14ab"),
        **function(up, f"{root}/{top}", "060400 1002 1500"),
        **function(down, f"{root}/{top}/{up}", "060400 1002 1501", "16.0 GT/s PCIe"),
        **function(end, f"{root}/{top}/{up}/{down}", f"120000 1002 {device}", "16.0 GT/s PCIe", "amdgpu"),
        f"{root}/{top}/{up}/{down}/{end}/mem_info_vram_total": "206141652992",
        f"{root}/{top}/{up}/{down}/{end}/product_name": "AMD Instinct MI300X OAM",
    }


BUSES = (0x00, 0x20, 0x40, 0x60, 0x80, 0xA0, 0xC0, 0xE0)


def mi300x() -> Recorded:
    """Eight GPUs with links between each two. The nodes of two processors come first."""
    entries = {**processor(0), **processor(1)}
    entries["sys/devices/system/node/online"] = "0"
    entries["sys/devices/system/node/node0/cpulist"] = "0-3"
    entries["sys/devices/system/node/node0/meminfo"] = "Node 0 MemTotal: 1000000000 kB"
    for place, bus in enumerate(BUSES):
        others = {2 + n: (XGMI, 15, 64000, 64000) for n in range(8) if n != place}
        entries |= gpu(2 + place, bus + 3, {place // 4: (PCIE, 20, 0, 63015), **others})
        entries |= card(bus, "74a1")
    return tree(entries)


def facts_of_gpus(recorded: Recorded) -> list[Record]:
    return [one for one in read_kfd(recorded) if isinstance(one, Gpu)]


def facts(said: list[Record], kind: type[F]) -> dict[str, F]:
    return {one.key: one for one in said if isinstance(one, kind)}


def test_eight_mi300x() -> None:
    said = list(read_kfd(mi300x()))
    gpus, links = facts(said, Gpu), facts(said, GpuLink)
    assert len(said) == len(gpus) + len(links) == 8 + 56
    folder = "sys/bus/pci/devices/0000:23:00.0"
    assert gpus["gpu1"] == Gpu(
        key="gpu1",
        name="AMD Instinct MI300X OAM",
        address="0000:23:00.0",
        memory=206141652992,
        numa=0,
        cites={
            "name": Evidence(f"{folder}/product_name", "AMD Instinct MI300X OAM"),
            "memory": Evidence(f"{folder}/mem_info_vram_total", "206141652992"),
            "numa": Evidence(f"{folder}/numa_node", "0"),
        },
    )
    assert links["gpu1/xgmi6"] == GpuLink(
        key="gpu1/xgmi6",
        gpu="gpu1",
        kind="xgmi",
        active=True,
        speed=64e9,
        remote="0000:e3:00.0",
        remote_kind="gpu",
        cites={"speed": Evidence(f"{NODES}/3/io_links/7/properties", "max_bandwidth 64000")},
    )


def test_their_links_in_the_topology() -> None:
    snapshot = assemble([one for reader in SOURCES for one in reader.read(mi300x())], Site(), 1000.0)
    assert sum(link.kind == "xgmi" for link in snapshot.topology.links) == 28  # both ends see each
    way = route(snapshot.topology, "gpu0", "gpu7")
    assert way
    assert path_type(snapshot.topology, way) == "NVL"
    assert [(rated(hop), len(hop.links)) for hop in way] == [(64e9, 1)]
    shown = as_matrix(matrix(snapshot)).splitlines()
    assert shown[1].split()[:3] == ["GPU0", "X", "XGMI"]
    assert "  XGMI = over xGMI" in shown
    others = ", ".join(f"gpu{n}" for n in range(7))
    assert f"GPU gpu7, 31.5 GB/s, 1002:74a1, memory 5300.0 GB/s, xGMI 64.0 GB/s each to {others}" in " ".join(
        as_tree(snapshot.topology).split()
    )


def test_nothing_is_wrong_with_them() -> None:
    report = diagnose(mi300x(), SOURCES, measure_nothing, Site()).report
    assert [(one.code, one.severity) for one in report.findings if one.severity != "info"] == []
    assert [one for one in report.not_checked if one.what.startswith("Gpu")] == []


def test_mi250x_has_several_links_between_two_dies_and_none_between_others() -> None:
    entries = {**processor(0)}
    joined = {1: {2: 4, 3: 1, 4: 0}, 2: {1: 4, 4: 2}, 3: {1: 1}, 4: {2: 2}}
    for number, others in joined.items():
        between = {other: (XGMI, 15 if count else 30, 50000, 50000 * count) for other, count in others.items()}
        entries |= gpu(number, number, {0: (XGMI, 15, 50000, 50000), **between})
    links = facts(list(read_kfd(tree(entries))), GpuLink)
    remotes = [(key, link.remote, link.remote_kind) for key, link in links.items()]
    assert remotes[:6] == [
        ("gpu0/xgmi0", None, "cpu"),
        *((f"gpu0/xgmi{n}", "0000:02:00.0", "gpu") for n in range(1, 5)),
        ("gpu0/xgmi5", "0000:03:00.0", "gpu"),
    ]
    assert [key for key, remote, _ in remotes if key.startswith("gpu1") and remote == "0000:04:00.0"] == [
        "gpu1/xgmi5",
        "gpu1/xgmi6",
    ]


@pytest.mark.parametrize(
    ("weight", "least", "most", "expected"),
    [
        (15, 0, 0, [None]),
        (30, 0, 0, []),
        (15, 50000, 0, []),
        (15, 0, 46000, [46e9]),
        (15, 50000, 150000, [50e9] * 3),
        (15, 1, 10**9, [1e6] * 32),
    ],
)
def test_how_many_links(weight: int, least: int, most: int, expected: list[float | None]) -> None:
    entries = {**gpu(0, 1, {1: (XGMI, weight, least, most)}), **gpu(1, 2, {})}
    assert [one.speed for one in facts(list(read_kfd(tree(entries))), GpuLink).values()] == expected


def test_partitions_of_a_gpu_are_one_gpu() -> None:
    entries = {**processor(0)}
    for number, bus in enumerate((1, 1, 2, 2), start=1):
        others = {other: (XGMI, 15, 64000, 64000) for other in (1, 2, 3, 4) if other != number}
        entries |= gpu(number, bus, others)
    for number in (2, 4):  # older kernels put the partition into the function, newer ones into the highest bits
        entries[f"{NODES}/{number}/properties"] = properties(location_id=(number // 2 << 8) | 1, domain=0)
    said = list(read_kfd(tree(entries)))
    assert {key: one.address for key, one in facts(said, Gpu).items()} == {
        "gpu0": "0000:01:00.0",
        "gpu2": "0000:02:00.0",
    }
    assert {key: one.remote for key, one in facts(said, GpuLink).items()} == {
        "gpu0/xgmi0": "0000:02:00.0",
        "gpu2/xgmi0": "0000:01:00.0",
    }


def test_beside_nvidia_they_have_other_names() -> None:
    entries = {**gpu(0, 1, {}, domain=0x10), "sys/bus/pci/drivers/nvidia/0000:81:00.0": "x"}
    assert [one.address for one in facts(list(read_kfd(tree(entries))), Gpu).values()] == ["0010:01:00.0"]
    assert list(facts(list(read_kfd(tree(entries))), Gpu)) == ["amd0"]


def test_what_would_not_say() -> None:
    entries = {
        **gpu(0, 1, {1: (XGMI, 15, 64000, 64000)}),
        **gpu(1, 2, {}),
        **gpu(2, 3, {}),
        **gpu(3, 4, {0: (11, 1, 1, 1)}),
    }
    entries[f"{NODES}/1/gpu_id"] = UnreadableFile(EPERM, "Operation not permitted")
    entries[f"{NODES}/2/properties"] = "simd_count 8\nlocation_id x"
    entries[f"{NODES}/3/io_links/0/properties"] = UnreadableFile(5, "Input/output error")
    lost = [one for one in read_kfd(tree(entries)) if isinstance(one, NotChecked)]
    assert lost == [
        NotChecked(
            what="Gpu",
            subject="node",
            reason=Reason.PERMISSION,
            path=f"{NODES}/1/gpu_id",
            detail="Operation not permitted",
            how="give this process the GPU, or run outside of its container or job",
        ),
        NotChecked(
            what="Gpu",
            subject="node",
            reason=Reason.UNREADABLE,
            path=f"{NODES}/2/properties",
            detail="has no location_id, domain",
        ),
        NotChecked(
            what="GpuLink",
            subject="gpu1",
            reason=Reason.UNREADABLE,
            path=f"{NODES}/3/io_links/0/properties",
            detail="Input/output error",
        ),
    ]


def test_no_amd_gpu_no_word() -> None:
    assert list(read_kfd(tree({}))) == []
    assert list(read_kfd(tree(processor(0)))) == []


def test_the_number_of_a_gpu_is_not_recorded() -> None:
    scrubbed = scrub(mi300x())
    assert str(scrubbed.entries[f"{NODES}/2/properties"]).endswith("unique_id 9000000000000000001")
    assert scrub(scrubbed) == scrubbed
    assert facts_of_gpus(scrubbed) == facts_of_gpus(mi300x())


ONE = gpu(1, 0x23, {0: (XGMI, 15, 64000, 128000)})
texts = st.sampled_from([b"", b"0", b"7", b"node_to 0\ntype 11", b"min_bandwidth 99999999999999999999"]) | st.binary(
    max_size=60
)


@given(st.dictionaries(st.sampled_from([*ONE, f"{NODES}/x/gpu_id", f"{NODES}/0/gpu_id"]), texts))
def test_any_bytes(contents: dict[str, bytes]) -> None:
    with TemporaryDirectory() as root:
        for path, content in {**{path: str(text).encode() for path, text in ONE.items()}, **contents}.items():
            (Path(root) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(root) / path).write_bytes(content)
        for said in read_kfd(Live(root)):
            assert decode(encode(said)) == said
