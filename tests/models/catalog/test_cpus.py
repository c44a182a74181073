"""The catalog of processors: each name finds its row, and each row has the values of the makers' data sheets."""

from __future__ import annotations

import re

import pytest

from linkgauge.models.catalog.cpus import Processor, processor_of, processors
from linkgauge.models.facts.machine import Package

NAMES = [processor.name for processor in processors()]


def found(model: str | None, *beside: str, memory: int | None = None) -> str | None:
    processor = processor_of(Package(key="package0", model=model), beside, memory)
    return processor.name if processor else None


@pytest.mark.parametrize("one", processors(), ids=NAMES)
def test_a_row_says_where_it_comes_from_and_fits_its_memory(one: Processor) -> None:
    assert one.source
    assert not one.source.endswith(".")
    assert re.compile(one.model)
    speeds = {"ddr4": range(2133, 3201), "ddr5": range(4400, 6401), "lpddr5x": range(6000, 8534)}
    assert round(one.transfers / 1e6) in speeds[one.memory]
    assert one.channels in (4, 6, 8, 12)
    joint = one.interconnect
    assert joint is None or (1e10 < joint.rate <= 64e9 and joint.links in (2, 3, 4))


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz", "Broadwell-EP"),  # DGX-1
        ("Intel(R) Xeon(R) CPU E5-2620 v4 @ 2.10GHz", None),  # its memory is slower
        ("Intel(R) Xeon(R) CPU E5-2698 v3 @ 2.30GHz", None),
        ("Intel(R) Xeon(R) Platinum 8168 CPU @ 2.70GHz", "Skylake-SP"),  # DGX-2
        ("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", "Skylake-SP"),
        ("Intel(R) Xeon(R) Silver 4114 CPU @ 2.20GHz", None),
        ("Intel(R) Xeon(R) Platinum 9242 CPU @ 2.30GHz", "Cascade Lake AP"),
        ("Intel(R) Xeon(R) Platinum 8275CL CPU @ 3.00GHz", "Cascade Lake-SP"),  # p4d
        ("Intel(R) Xeon(R) Gold 6226R CPU @ 2.90GHz", "Cascade Lake-SP"),
        ("Intel(R) Xeon(R) Gold 6326 CPU @ 2.90GHz", "Ice Lake-SP"),
        ("Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz", "Ice Lake-SP"),
        ("Intel(R) Xeon(R) Gold 6342 CPU @ 2.80GHz", "Ice Lake-SP"),
        ("Intel(R) Xeon(R) Gold 6330 CPU @ 2.00GHz", "Ice Lake-SP, DDR4-2933"),
        ("Intel(R) Xeon(R) Gold 6330N CPU @ 2.20GHz", None),
        ("Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz", None),  # Cooper Lake
        ("Intel(R) Xeon(R) Platinum 8376HL CPU @ 2.60GHz", None),
        ("Intel(R) Xeon(R) Platinum 8480C", "Sapphire Rapids"),  # DGX H100
        ("Intel(R) Xeon(R) Platinum 8462Y+", "Sapphire Rapids"),
        ("Intel(R) Xeon(R) Gold 6430", None),  # DDR5-4400
        ("Intel(R) Xeon(R) CPU Max 9480", None),
        ("Intel(R) Xeon(R) Platinum 8570", "Emerald Rapids"),  # DGX B200
        ("Intel(R) Xeon(R) Platinum 8592+", "Emerald Rapids"),
        ("Intel(R) Xeon(R) Platinum 8558", None),  # DDR5-5200
        ("Intel(R) Xeon(R) Platinum 8559C", None),  # no published values: a processor made for Amazon
        ("Intel(R) Xeon(R) 6980P", "Granite Rapids AP"),
        ("Intel(R) Xeon(R) 6776P", "Granite Rapids SP"),  # DGX B300
        ("Intel(R) Xeon(R) 6780E", None),
        ("AMD EPYC 7601 32-Core Processor", "Naples"),
        ("AMD EPYC 7251 8-Core Processor", None),
        ("AMD EPYC 7742 64-Core Processor", "Rome"),  # DGX A100
        ("AMD EPYC 7R32", "Rome"),
        ("AMD EPYC 7V12 64-Core Processor", "Rome"),
        ("AMD EPYC 7543 32-Core Processor", "Milan"),
        ("AMD EPYC 75F3 32-Core Processor", "Milan"),
        ("AMD EPYC 7R13 Processor", "Milan"),  # p5
        ("AMD EPYC 7773X 64-Core Processor", "Milan"),
        ("AMD EPYC 9654 96-Core Processor", "Genoa"),
        ("AMD EPYC 9V84 96-Core Processor", "Genoa"),
        ("AMD EPYC 9V33X 96-Core Processor", "Genoa"),
        ("AMD EPYC 9754 128-Core Processor", "Genoa"),
        ("AMD EPYC 9V64H Processor", None),  # its memory is HBM
        ("AMD EPYC 8534P 64-Core Processor", "Siena"),
        ("AMD EPYC 9575F 64-Core Processor", "Turin"),
        ("AMD EPYC 4564P 16-Core Processor", None),  # a desktop's
        ("AMD Ryzen Threadripper PRO 7975WX 32-Cores", None),
        ("Intel(R) Core(TM) i9-13900K", None),
        ("Neoverse-N1", "Ampere Altra and Graviton2"),
        ("Neoverse-V2", None),  # Grace, Graviton4 or Axion
        ("Neoverse-V2 + Cortex-A78AE", None),
        ("POWER9, altivec supported", None),
        ("", None),
        (None, None),
    ],
)
def test_a_package_is_found_by_its_name(model: str | None, name: str | None) -> None:
    assert found(model) == name


def test_what_stands_beside_it_tells_what_a_core_is_part_of() -> None:
    assert found("Neoverse-V2", "GH200 96GB", memory=128_000_000_000) == "Grace, 120 or 240 GB"
    assert found("Neoverse-V2", "GH200 144GB", memory=515_396_075_520) == "Grace, 480 GB"
    assert found("Neoverse-V2", "GH200 96GB") == "Grace, 480 GB"  # the slower of both, where its size is not known
    assert found("Neoverse-V2", "GB200", memory=515_396_075_520) == "Grace of GB200"
    assert found("Neoverse-V2", "H100 PCIe 80GB") is None
    assert found("POWER9, altivec supported", "V100 SXM2 16GB") == "POWER9 of the AC922"


@pytest.mark.parametrize(
    ("name", "rate"),
    [  # GB/s of a package, as the makers' data sheets have them
        ("Broadwell-EP", 76.8),
        ("Skylake-SP", 128.0),
        ("Cascade Lake-SP", 140.8),
        ("Ice Lake-SP", 204.8),
        ("Sapphire Rapids", 307.2),
        ("Emerald Rapids", 358.4),
        ("Granite Rapids AP", 614.4),
        ("Naples", 170.6),
        ("Rome", 204.8),
        ("Milan", 204.8),
        ("Genoa", 460.8),
        ("Siena", 230.4),
        ("Turin", 576.0),
        ("Grace, 120 or 240 GB", 512.0),
        ("Grace, 480 GB", 384.0),
        ("POWER9 of the AC922", 170.6),
    ],
)
def test_memory_gives_what_data_sheets_print(name: str, rate: float) -> None:
    (one,) = (processor for processor in processors() if processor.name == name)
    assert one.memory_rate / 1e9 == pytest.approx(rate, abs=0.05)
