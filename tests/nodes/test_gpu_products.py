"""The catalog of GPUs: each number has a source and fits the others, and a GPU is found by what its driver says."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from linkgauge.models.catalog.gpus import Product, product_of, products
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Pci
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Machine, Site

TABLE = Path(__file__).parents[3] / "shared" / "facts" / "gpus.csv"
NAMES = [product.name for product in products()]

# One link in one direction, in bytes per second: NVIDIA's white papers of each generation.
NVLINK_RATES = {1: {20e9}, 2: {25e9}, 3: {25e9, 14.0625e9}, 4: {25e9}, 5: {50e9}}
# Which numbers several products share; their names tell them apart.
SHARED = {
    "10de:1e30": {"Quadro RTX 6000", "Quadro RTX 8000"},
    "10de:1e78": {"Quadro RTX 6000", "Quadro RTX 8000"},
    "10de:25b6": {"A2", "A16"},
}


def product(name: str) -> Product:
    return next(one for one in products() if one.name == name)


def test_names_and_numbers_are_those_of_one_product() -> None:
    assert [name for name, times in Counter(NAMES).items() if times > 1] == []
    called = Counter(name for one in products() for name in one.called)
    assert [name for name, times in called.items() if times > 1] == []
    owners: dict[str, set[str]] = {}
    for one in products():
        for number in one.ids:
            owners.setdefault(number, set()).add(one.name)
    assert {number: names for number, names in owners.items() if len(names) > 1} == SHARED


@pytest.mark.parametrize("one", products(), ids=NAMES)
def test_a_row_says_where_it_comes_from_and_fits_its_generation(one: Product) -> None:
    assert one.source
    assert not one.source.endswith(".")
    assert one.ids
    assert all(re.fullmatch(r"(10de|1002|1da3|1d0f):[0-9a-f]{4}", number) for number in one.ids)
    assert one.pcie in range(3, 7)
    assert one.width in (8, 16)
    assert one.memory is None or one.memory % (1 << 30) == 0
    assert one.memory_rate is None or 1e11 < one.memory_rate < 1e13
    if one.link_version is not None:
        assert one.link_kind == "nvlink"
        assert one.link_rate in NVLINK_RATES[one.link_version]
        assert one.links
    if one.link_kind == "nvlink":
        assert (one.link_rate is None) == (one.link_version is None) == (not one.links)
    if one.fabric:
        assert (one.link_version or 0) >= 4
        assert not one.bridged
    assert one.c2c_rate in (None, 450e9, 225e9, 300e9)  # a Grace processor has one GPU or two; GB10
    assert one.peers or "GeForce" in one.called[0]


@pytest.mark.parametrize("one", products(), ids=NAMES)
def test_a_gpu_is_found_by_its_number_or_its_name(one: Product) -> None:
    for number in one.ids:
        vendor, device = (int(part, 16) for part in number.split(":"))
        functions = {"0000:01:00.0": Pci(key="0000:01:00.0", vendor=vendor, device=device)}
        at = Gpu(key="gpu0", address="0000:01:00.0")
        assert product_of(at, functions) is (one if number not in SHARED else None)
        for name in one.called:
            named = Gpu(key="gpu0", address="0000:01:00.0", name=name)
            assert product_of(named, functions) is one
    for name in one.called:
        assert product_of(Gpu(key="gpu0", name=name), {}) is one
        assert product_of(Gpu(key="gpu0", name=name.removeprefix("NVIDIA ").upper()), {}) is one


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA GH200 480GB", "GH200 96GB"),  # not the H200 in its name
        ("NVIDIA H100 PCIe", "H100 PCIe 80GB"),
        ("NVIDIA H100", "H100 SXM5 94GB"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),
        ("GRID A100-10C", None),
        ("NVIDIA A100-10C", None),
        ("GRID A100X-1-5CME", None),
        ("NVIDIA A100-SXM4-80GB-something", None),
        ("", None),
    ],
)
def test_names_that_look_alike(name: str, expected: str | None) -> None:
    found = product_of(Gpu(key="gpu0", name=name), {})
    assert (found.name if found else None) == expected


def test_a_slice_has_the_number_of_the_whole_and_not_its_links() -> None:
    functions = {"0000:01:00.0": Pci(key="0000:01:00.0", vendor=0x10DE, device=0x20F1)}
    whole = Gpu(key="gpu0", address="0000:01:00.0")
    assert product_of(whole, functions) is product("A100 PCIe 40GB")
    for part in (
        Gpu(key="gpu0", address="0000:01:00.0", name="GRID A100-10C"),
        Gpu(key="gpu0", address="0000:01:00.0", virtualization="vGPU"),
    ):
        assert product_of(part, functions) is None


@pytest.mark.parametrize(
    ("pattern", "numbers", "name"),
    [
        ("*MI300X*", (0x1002, 0x74A1), "MI300X"),
        ("HL-225*", (0x1DA3, 0x1020), "Gaudi 2"),
        ("Trainium2", (0x1D0F, 0x7364), "Trainium2"),
    ],
)
def test_a_site_file_knows_machines_of_accelerators_without_a_driver(
    pattern: str, numbers: tuple[int, int], name: str
) -> None:
    """By the catalog's names for the PCI numbers, where no driver says a name."""
    machine = Machine(name="ours", source="the order", gpu=pattern, gpus=8)
    vendor, device = numbers
    function = Pci(key="0000:01:00.0", pci_class=0x120000, vendor=vendor, device=device)
    snapshot = assemble([function], Site(machine=(machine,)), 1.0)
    assert snapshot.machine == machine
    assert (snapshot.matched_by or "").startswith("PCI numbers of ")
    gpu = Gpu(key="gpu0", name="something else", address="0000:01:00.0")
    assert product_of(gpu, snapshot.of(Pci)) is product(name)
    assert assemble([function, gpu], Site(machine=(machine,)), 1.0).machine is None


# Where the catalog says something else than the table that was collected, and why.
DIFFERENT = {
    "MI350X": {"link_rate": 76.8e9},  # 153.6 GB/s both directions; the table has 76.5
    "MI355X": {"link_rate": 76.8e9},
    # A row of the catalog is one of the two dies, which the kernel shows as a GPU each.
    "MI250X": {"links": 8, "memory": 64 << 30, "memory_rate": 1638e9},
    "MI300A": {"links": 6, "link_rate": 64e9},  # the table has none
    "B300 SXM": {"memory": None},  # makers and drivers disagree on what 288 GB are
    "GB300": {"memory": None},
    "GH200 144GB": {"memory_rate": 4.9e12},  # NVIDIA's data sheet of the HBM3e variant
    "Trainium1": {"links": 4},  # a hypercube of 16
}
SPLIT = {"V100 PCIe 16GB": {"10de:1db6"}}  # one row there, two here
OTHER_NAMES = {
    "V100 PCIe 16/32": "V100 PCIe 16GB",
    "A100 SXM4 40GB": "A100 SXM4 40GB",
    "H20": "H20 96GB",
    "Gaudi2": "Gaudi 2",
    "Gaudi3": "Gaudi 3",
}


@pytest.mark.skipif(not TABLE.is_file(), reason="the table that was collected is not beside this repository")
def test_the_catalog_has_what_was_collected_but_for_named_differences() -> None:
    differing: dict[str, dict[str, float | str | None]] = {}
    for row in csv.DictReader(TABLE.read_text().splitlines()):
        one = product(OTHER_NAMES.get(row["gpu"], row["gpu"]))
        listed = re.findall(r"[0-9a-f]{4}:[0-9a-f]{4}", row["pci_ids"])
        assert set(listed) <= set(one.ids) | SPLIT.get(one.name, set()), row["gpu"]
        differences = {field: mine for field, mine, theirs in _compared(one, row) if mine != theirs}
        if differences:
            differing[one.name] = differences
    assert differing == DIFFERENT


def _compared(one: Product, row: dict[str, str]) -> Iterator[tuple[str, float | str | None, float | str | None]]:
    """Field by field, what the catalog and the table say; without what the table leaves open."""
    if row["pcie_gen_max"]:
        yield "pcie", one.pcie, int(row["pcie_gen_max"])
    if row["nvlink_gen"].isdecimal():
        yield "link_version", one.link_version, int(row["nvlink_gen"])
    rate, memory = row["nvlink_GBps_per_link_uni"], float(row["mem_GB"])
    if rate or one.link_rate:
        yield "link_rate", one.link_rate, float(rate) * 1e9 if rate else None
    links = row["nvlink_links"]
    yield "links", one.links, int(links) if links.isdecimal() else 0
    yield "memory", one.memory, memory * (1 << 30)
    yield "memory_rate", one.memory_rate, float(row["mem_BW_GBps"]) * 1e9
    yield "memory_kind", one.memory_kind, "hbm" if "HBM" in row["mem_type"] else "gddr"
