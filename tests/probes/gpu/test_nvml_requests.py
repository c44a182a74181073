"""Requests for numbered fields: one family each, halves of a refused one, few on Blackwell; numbers of each release.

Field numbers are those of nvml.h, of nvidia-ml-py 12.535.161 to 13.615.71 and of the
NVML change log (https://docs.nvidia.com/deploy/nvml-api/change-log.html).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml
import pytest
from msgspec.structs import replace

from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.probes.gpu.nvml import state, throttle_fields
from tests.support.gpu.nvml_answers import gpu, of, only, seen

MOST_VALUES = 60  # of one GPU in one cycle


def asked() -> Counter[int]:
    """How many field values each GPU was asked for since the last time."""
    requests, pynvml.nvmlLib.asked = pynvml.nvmlLib.asked, []
    counts: Counter[int] = Counter()
    for number, fields in requests:
        counts[number] += len(fields)
    return counts


def missed(said: list[Record]) -> dict[str, str]:
    return {one.what: one.detail for one in of(said, NotChecked)}


@pytest.mark.parametrize(
    ("field", "names"),
    [
        (94, {"pcie_replay"}),
        (142, {"remapped_correctable"}),
        (270, {"clocks_hw_thermal"}),
        (138, {"nvlink_tx_bytes"}),
        (230, {"recovery"}),
        (162, {"nvlink_errors"}),
    ],
)
def test_a_field_that_spoils_its_request_hides_no_other(
    driver: Callable[[str], Path], field: int, names: set[str]
) -> None:
    """NVML refuses the whole request: INVALID_ARGUMENT for a field that it cannot handle."""
    driver(f'gpus = 1\nlinks = 3\nrefused = [{field}]\n[fields]\n"138" = 7\n"139" = 9\n"161.2" = 4')
    said = list(state())
    assert missed(said) == {f"Gpu.{name}": "Invalid Argument" for name in names}
    assert seen(said).get(("gpu0", "ecc_corrected")) == 0
    assert seen(said).get(("gpu0", "nvlink_rx_bytes")) == 9 * 1024
    assert (seen(said).get(("gpu0", "nvlink_replay")) == 4) is (field != 161)
    expected = replace(gpu(), nvlinks=3, nvlinks_present=3)
    hidden: dict[str, Any] = {name: None for name in names if hasattr(expected, name)}
    assert only(said) == replace(expected, **hidden)


def test_a_refusal_of_the_whole_request_is_not_checked(driver: Callable[[str], Path]) -> None:
    """NOT_SUPPORTED of one field is an absence. Of the whole request it says nothing about any field."""
    driver("gpus = 1\n[returns]\nnvmlDeviceGetFieldValues = 3")
    said = list(state())
    assert {one.reason for one in of(said, NotChecked)} == {Reason.NOT_SUPPORTED}
    assert {"Gpu.recovery", "Gpu.pcie_replay", "Gpu.clocks_hw_thermal", "Gpu.nvlink_errors"} <= missed(said).keys()
    driver('gpus = 1\n[fields]\n"230" = "error 3"\n"94" = "error 3"\n"270" = "error 3"')
    assert missed(list(state())) == {}


def test_a_driver_without_requests_for_numbers_has_no_gaps(driver: Callable[[str], Path]) -> None:
    driver('gpus = 1\nlinks = 0\nmissing = ["nvmlDeviceGetFieldValues"]')
    assert missed(list(state())) == {}


@pytest.mark.parametrize(
    ("version", "fields"),
    [
        ("535.161.08", {}),
        ("570.172.08", {}),
        ("575.51.03", {"clocks_hw_thermal": 252, "clocks_hw_power_brake": 253}),
        ("580.65.06", {"clocks_hw_thermal": 252, "clocks_hw_power_brake": 253}),
        ("580.82.07", {"clocks_hw_thermal": 270, "clocks_hw_power_brake": 271}),
        ("580.126.09", {"clocks_hw_thermal": 270, "clocks_hw_power_brake": 271}),
        ("615.71.01", {"clocks_hw_thermal": 270, "clocks_hw_power_brake": 271}),
        ("", {"clocks_hw_thermal": 270, "clocks_hw_power_brake": 271}),
    ],
)
def test_throttle_times_have_other_numbers_in_other_releases(version: str, fields: dict[str, int]) -> None:
    assert throttle_fields(version) == {"clocks_sw_power": 74, "clocks_sw_thermal": 75, **fields}


def test_throttle_times_of_release_575(driver: Callable[[str], Path]) -> None:
    """There, 269 to 271 are settings of power smoothing."""
    numbers = '"75" = 1_000_000_000\n"252" = 2_000_000_000\n"253" = 3_000_000_000\n"270" = 9_000_000_000'
    driver(f'gpus = 1\n[answers]\nnvmlSystemGetDriverVersion = "575.51.03"\n[fields]\n{numbers}')
    times = {name: value for (_, name), value in seen(list(state())).items() if name.startswith("clocks_")}
    assert times == {
        "clocks_sw_power": 0,
        "clocks_sw_thermal": 1,
        "clocks_hw_thermal": 2,
        "clocks_hw_power_brake": 3,
    }


@pytest.mark.parametrize(
    ("version", "number", "action"),
    [
        ("580.95.05", 5, "bus reset"),
        ("595.45.04", 5, "recover IMEX domain"),
        ("615.71.01", 6, "bus reset"),
        ("570.86.10", 4, "drain and reset"),
    ],
)
def test_a_recovery_action_of_this_release(
    driver: Callable[[str], Path], version: str, number: int, action: str
) -> None:
    driver(f'gpus = 1\n[answers]\nnvmlSystemGetDriverVersion = "{version}"\n[fields]\n"230" = {number}')
    assert only(list(state())).recovery == action


def test_a_recovery_action_that_no_release_has(driver: Callable[[str], Path]) -> None:
    driver('gpus = 1\n[fields]\n"230" = 9')
    said = list(state())
    assert (only(said).recovery, missed(said)) == (None, {"Gpu.recovery": "9 is no recovery action"})


def test_mig_hides_remapped_rows(driver: Callable[[str], Path]) -> None:
    """nvml.h, nvmlDeviceGetRemappedRows: not supported on GPUs with MIG instances."""
    hidden = "\n".join(f'"{number}" = "error 3"' for number in (142, 143, 144, 145))
    rows = "[returns]\nnvmlDeviceGetRemappedRows = 3\nnvmlDeviceGetRetiredPagesPendingStatus = 3"
    driver(f"gpus = 1\nmig = 1\ninstances = [0]\n{rows}\n[fields]\n{hidden}")
    assert missed(list(state())) == {"Gpu.remap_pending": "the driver hides remapped rows while MIG is on"}
    driver(f"gpus = 1\n{rows}\n[fields]\n{hidden}")
    assert missed(list(state())) == {}


@pytest.mark.parametrize(("rows", "banks"), [(0, None), (3, 2)])
def test_spare_rows_are_read_if_rows_were_remapped(driver: Callable[[str], Path], rows: int, banks: int | None) -> None:
    """nvml.h, nvmlRowRemapperHistogramValues_t: `none` is the number of banks without spare rows."""
    driver(f'gpus = 1\nfull_banks = 2\n[fields]\n"142" = {rows}')
    assert only(list(state())).full_banks == banks


def test_sram_errors_are_read_apart(driver: Callable[[str], Path]) -> None:
    """nvmlEccSramErrorStatus_t: counts 3 and 4 are volatileUncParity and volatileUncSecDed."""
    driver('gpus = 1\n[fields]\n"4" = 9\n[sram_counts]\n"0" = 50\n"1" = 60\n"3" = 2\n"4" = 3\n"5" = 70')
    assert (only(list(state())).ecc_uncorrected, only(list(state())).sram_uncorrected) == (9, 5)


B200 = """
gpus = 8
speed = 53125
version = 8
[answers]
nvmlDeviceGetName = "NVIDIA B200"
[fields]
"161" = "error 3"
"162" = "error 3"
"163" = "error 3"
"214" = 0
"215" = 0
"219" = 0
"220" = 0x0FFE
"221" = 0
"235" = 900_000
"293" = 0x0307
"138" = 5
"139" = 5
"""
HISTOGRAM = "\n".join(f'"{number}" = {int(number < 238)}' for number in range(236, 251))


def of_links(said: list[Record]) -> dict[tuple[str, str], float]:
    return {key: value for key, value in seen(said).items() if "/nvlink" in key[0]}


def test_a_b200_is_asked_for_few_values_in_each_cycle(driver: Callable[[str], Path]) -> None:
    driver(B200 + HISTOGRAM)
    for cycle in range(25):
        said = list(state())
        counts = asked()
        assert len(counts) == 8
        assert max(counts.values()) <= MOST_VALUES, cycle
        links = {about for about, name in of_links(said) if name == "nvlink_fec_mended"}
        assert len(links) == 8 * min(cycle, 18)  # the histogram of one link of each GPU, in each cycle
    assert max(counts.values()) < 40
    sums = {name: value for (about, name), value in seen(said).items() if about == "gpu0" and "nvlink" in name}
    assert sums == {
        "nvlink_recovery": 0,
        "nvlink_recovery_failed": 0,
        "nvlink_symbol_errors": 0,
        "nvlink_effective_errors": 0,
        "nvlink_tx_bytes": 5 * 1024,
        "nvlink_rx_bytes": 5 * 1024,
    }


def test_single_links_are_read_when_a_sum_moves(driver: Callable[[str], Path]) -> None:
    file = driver(B200)
    list(state())
    asked()
    file.write_text(B200 + '"215.4" = 3\n"219.4" = 2000\n"220.4" = 0x0209\n"293.4" = 0x0307\n')
    found: list[dict[tuple[str, str], Any]] = []
    for _ in range(4):
        found.append({key: value for key, value in of_links(list(state())).items() if key[0] == "gpu0/nvlink4"})
        assert max(asked().values()) <= MOST_VALUES
    link = "gpu0/nvlink4"
    assert found[0] == {(link, "nvlink_recovery"): 3}
    assert found[3] == {
        (link, "nvlink_recovery"): 3,
        (link, "nvlink_effective_errors"): 2000,
        (link, "nvlink_effective_ber"): 2e-9,
        (link, "nvlink_raw_ber"): 3e-7,
    }
    file.write_text(B200)  # a reset of the GPU
    for _ in range(2):
        reset = {key: value for key, value in of_links(list(state())).items() if key[1] != "nvlink_effective_ber"}
    assert not [value for (_, name), value in reset.items() if value and name.endswith(("recovery", "errors"))]


def test_the_first_read_of_a_process_is_complete(driver: Callable[[str], Path]) -> None:
    driver(B200 + '"215.4" = 3\n"214.7" = 1\n"219.4" = 2000\n"220.4" = 0x0209\n')
    found = {key: value for key, value in of_links(list(state())).items() if key[0].startswith("gpu3/")}
    assert found["gpu3/nvlink4", "nvlink_recovery"] == 3
    assert found["gpu3/nvlink7", "nvlink_recovery_failed"] == 1
    assert found["gpu3/nvlink4", "nvlink_effective_ber"] == 2e-9


@pytest.mark.parametrize("sums", ["false", '"zero"', '"first"'])
def test_a_driver_without_true_sums_is_asked_for_each_link(driver: Callable[[str], Path], sums: str) -> None:
    """nvml.h promises sums only for traffic. The first read is complete; then one kind of counter is read in turn."""
    text = B200.replace("version = 8", f"version = 8\nsums = {sums}")
    file = driver(text + '"215.4" = 3\n"219.4" = 2000\n"220.4" = 0x0209\n')
    said = list(state())
    assert asked()[0] > MOST_VALUES
    assert (seen(said)["gpu2", "nvlink_recovery"], seen(said)["gpu2", "nvlink_symbol_errors"]) == (3, 0)
    assert seen(said)["gpu2/nvlink4", "nvlink_recovery"] == 3
    assert seen(said)["gpu2/nvlink4", "nvlink_effective_ber"] == 2e-9
    assert missed(said) == {}
    file.write_text(text + '"215.4" = 5\n"219.4" = 2000\n"220.4" = 0x0209\n')
    for _ in range(7):  # kinds of counters, and the bit error rates
        said = list(state())
        assert max(asked().values()) <= MOST_VALUES
    assert (seen(said)["gpu2", "nvlink_recovery"], seen(said)["gpu2/nvlink4", "nvlink_recovery"]) == (5, 5)


def test_speeds_are_read_again_after_an_hour_and_when_a_link_changes(
    driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    file = driver(B200)
    list(state())
    first = max(asked().values())
    list(state())
    assert max(asked().values()) < first <= MOST_VALUES
    now[0] += 3601
    list(state())
    assert max(asked().values()) == first - 3  # the sums were tested before
    file.write_text(B200.replace("version = 8", "version = 8\ndown = [5]"))
    said = list(state())
    assert max(asked().values()) == first - 1
    assert only([one for one in said if getattr(one, "key", "") == "gpu1"]).nvlinks == 17
