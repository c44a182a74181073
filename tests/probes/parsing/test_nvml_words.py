"""Names for NVML's numbers, and any answer of a driver."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import pynvml
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.probes.gpu import nvml_threads
from linkgauge.probes.gpu.nvml import state
from linkgauge.probes.gpu.nvml_topology import wiring
from linkgauge.probes.parsing.nvml_enums import (
    bit_error_rate,
    clock_reasons,
    members,
    nvlink_generation,
    nvlink_rate,
    pci_address,
    pcie_speed,
)
from tests.support.gpu import nvml_stub

WORD = st.integers(0, (1 << 32) - 1)
ANSWERS = st.one_of(WORD, st.sampled_from([0, 1, 2, 15, 16, 255]))
TEXTS = st.sampled_from(["", "hex ff", "hex 1b5b324a", "\u03bc", "NVIDIA H100 80GB HBM3"])
ERRORS = st.sampled_from([1, 2, 3, 4, 6, 7, 10, 13, 14, 15, 16, 17, 22, 25, 26, 27, 999, 123456])


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("00000000:1B:00.0", "0000:1b:00.0"),
        ("0000:1b:00.1", "0000:1b:00.1"),
        ("00010000:E1:00.0", "10000:e1:00.0"),  # a domain that VMD made up
        ("FFFFFFFF:FF:FF.0", None),
        ("00000000:00:00.0", None),
        (b"00000000:1B:00.0", "0000:1b:00.0"),
    ],
)
def test_addresses(text: str | bytes, address: str | None) -> None:
    assert pci_address(text) == address


@given(st.text() | st.binary())
def test_what_is_no_address(text: str | bytes) -> None:
    with pytest.raises(ValueError, match="is no PCI address"):
        pci_address(text)


@pytest.mark.parametrize(
    ("version", "gigabytes", "generation", "carried"),
    [
        (1, 20.0, 1, None),
        (2, 25.781, 2, 25e9),  # V100
        (4, 25.0, 3, 25e9),
        (5, 25.0, 3, 25e9),  # A100
        (5, 14.062, 3, 14.06e9),  # RTX 3090
        (6, 26.562, 4, 25e9),
        (7, 26.562, 4, 25e9),  # H100, as its driver says
        (7, 53.125, 5, 50e9),
        (8, 53.125, 5, 50e9),
        (8, 106.25, 6, 100e9),
        (9, None, None, None),
        (0, None, None, None),
    ],
)
def test_generations_of_nvlink(
    version: int, gigabytes: float | None, generation: int | None, carried: float | None
) -> None:
    speed = gigabytes and gigabytes * 1e9
    assert nvlink_generation(version, speed) == generation
    if speed and carried:
        assert nvlink_rate(speed, generation) == carried


def test_speeds() -> None:
    assert [pcie_speed(number) for number in range(8)] == [None, 2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9, 128e9]
    assert pcie_speed(0) is None
    with pytest.raises(ValueError, match="8 is no PCIe generation"):
        pcie_speed(8)


def test_bit_error_rates() -> None:
    assert bit_error_rate(0x0F0C) == 15e-12
    assert bit_error_rate(0x0FFE) == 15e-254
    assert bit_error_rate(0) == 0


@given(st.sets(st.integers(0, 300)))
def test_members_of_a_bit_map(numbers: set[int]) -> None:
    words = [sum(1 << number % 64 for number in numbers if number // 64 == at) for at in range(5)]
    assert members(words) == tuple(sorted(numbers))


@given(st.integers(0, (1 << 64) - 1))
def test_each_reason_is_one_bit(bits: int) -> None:
    assert len(clock_reasons(bits)) == (bits & 0x1FF).bit_count()


def table(names: Iterable[str], values: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.sampled_from(sorted(names)), values, max_size=12)


@settings(max_examples=40)
@given(
    answers=table(nvml_stub.ANSWERS, ANSWERS | TEXTS),
    fields=table(
        [*nvml_stub.FIELDS, "90", "91", "164", "170", "172", "166", "215", "220", "221"],
        ANSWERS | ERRORS.map("error {}".format),
    ),
    returns=table([*nvml_stub.ANSWERS, *nvml_stub.FUNCTIONS], ERRORS),
    fabric=table(["state", "status", "clique", "health"], st.integers(0, 255)),
    links=st.integers(0, 40),
    mig=st.integers(0, 2),
)
def test_whatever_a_driver_answers(
    answers: dict[str, object],
    fields: dict[str, object],
    returns: dict[str, object],
    fabric: dict[str, object],
    links: int,
    mig: int,
) -> None:
    """The reader gives valid records and raises no exception."""
    text = {name: value for name, value in nvml_stub.ANSWERS.items() if isinstance(value, str)}
    answers = {name: value for name, value in answers.items() if isinstance(value, str) == (name in text)}
    tables = {"fabric": fabric, "answers": answers, "fields": fields, "returns": returns}
    lines = [f"gpus = 2\nlinks = {links}\nmig = {mig}"]
    for name, rows in tables.items():
        lines += [f"[{name}]", *(f'"{row}" = {json.dumps(value)}' for row, value in rows.items())]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        file = Path(folder) / "driver.toml"
        file.write_text("\n".join(lines))
        patch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
        patch.setattr(pynvml, "nvmlLib", nvml_stub.Driver(file))
        patch.setattr(nvml_threads, "CONTROL", str(file))
        for said in (*state(), *wiring()):
            assert decode(encode(said)) == said
