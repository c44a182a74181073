"""What NVIDIA's driver says of its GPUs, through the real pynvml, from a stub of the driver (nvml_stub.py)."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nvml_stub
import pynvml
import pytest

from linkgauge.models.gpu_facts import Driver, Gpu, GpuLink, GpuPair
from linkgauge.models.said import NotChecked, Observation, Said
from linkgauge.probes.child import Children
from linkgauge.probes.nvml import state
from linkgauge.probes.nvml_wiring import wiring

STUB = Path(nvml_stub.__file__)
MOST_CALLS = 400  # of one look at 8 GPUs with 18 NVLinks each
DRIVER = Driver(key="nvidia", library="580.95.05", nvml="13.580.95.05", cuda="13.0", gpus=8)
MIB = 1 << 20
COUNTERS = ("pcie_replay", "ecc_corrected", "ecc_uncorrected", "nvlink_replay", "nvlink_recovery", "nvlink_crc")
THROTTLED = ("clocks_sw_power", "clocks_sw_thermal", "clocks_hw_thermal", "clocks_hw_power_brake")


def gpu(number: int = 0) -> Gpu:
    """A healthy H100 at rest."""
    return Gpu(
        key=f"gpu{number}",
        name="NVIDIA H100 80GB HBM3",
        uuid=f"GPU-a1b2c3d4-0000-1111-2222-00000000000{number}",
        address=f"0000:{nvml_stub.BUSES[number]:02x}:00.0",
        recovery="none",
        pcie_speed=32e9,
        pcie_width=16,
        pcie_max_speed=32e9,
        pcie_max_width=16,
        performance_state=0,
        clock=345e6,
        memory_clock=2619e6,
        application_clock=1980e6,
        clock_reasons=("idle",),
        power=70.5,
        power_limit=700.0,
        power_limit_default=700.0,
        temperature=34.0,
        memory=81559 * MIB,
        memory_used=MIB,
        ecc=True,
        ecc_pending=True,
        ecc_corrected=0,
        ecc_uncorrected=0,
        ecc_corrected_lifetime=0,
        ecc_uncorrected_lifetime=0,
        sram_threshold=False,
        remapped_correctable=0,
        remapped_uncorrectable=0,
        remap_pending=False,
        remap_failed=False,
        nvlinks=18,
        nvlinks_present=18,
        nvlink_rate=25e9,
        fabric_state="completed",
        fabric_status="Success",
        fabric_clique=0,
        mig=False,
        mig_instances=0,
        persistence=True,
        compute_mode="default",
        processes=0,
    )


def nvlink(gpu: int, link: int, active: bool = True) -> GpuLink:
    return GpuLink(
        key=f"gpu{gpu}/nvlink{link}",
        gpu=f"gpu{gpu}",
        kind="nvlink",
        active=active,
        version=4 if active else None,
        speed=26.562e9 if active else None,
    )


def facts(said: list[Said]) -> list[Said]:
    return [one for one in said if not isinstance(one, Observation)]


def of(said: list[Said], kind: type[Said]) -> list[Any]:
    return [one for one in said if isinstance(one, kind)]


def only(said: list[Said]) -> Gpu:
    (one,) = of(said, Gpu)
    assert isinstance(one, Gpu)
    return one


def seen(said: list[Said]) -> dict[tuple[str, str], float]:
    return {(str(one.about), one.quantity): one.value for one in of(said, Observation)}


def through_a_child(file: Path, monkeypatch: pytest.MonkeyPatch, call: str = "nvml", seconds: float = 60) -> list[Said]:
    monkeypatch.setenv("NVML_STUB", str(file))
    return list(Children((sys.executable, str(STUB))).ask(call, [], seconds))


def called(file: Path) -> Counter[str]:
    return Counter(Path(f"{file}.log").read_text().split())


def test_eight_healthy_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "driver.toml"
    file.write_text("")
    said = through_a_child(file, monkeypatch)
    expected = [one for number in range(8) for one in (gpu(number), *(nvlink(number, link) for link in range(18)))]
    assert facts(said) == [DRIVER, *expected]
    calls = called(file)
    counted = {(f"gpu{number}", name): 0.0 for number in range(8) for name in ("processes", *COUNTERS, *THROTTLED)}
    assert seen(said) == {**counted, ("nvidia", "driver_calls"): calls.total()}
    assert calls.total() <= MOST_CALLS
    assert "nvmlDeviceGetPcieThroughput" not in calls


def test_eight_busy_gpus_take_no_more_calls_than_they_may(driver: Callable[[str], Path]) -> None:
    file = driver("processes = [5012, 5012, 5013]")
    said = list(state())
    assert [one.processes for one in of(said, Gpu)] == [2] * 8
    assert seen(said)["nvidia", "driver_calls"] == called(file).total() <= MOST_CALLS


def test_faults_that_come_while_it_runs(driver: Callable[[str], Path]) -> None:
    file = driver("gpus = 1")
    before = list(state())
    file.write_text(
        "gpus = 1\ndown = [7]\nsram = 1\nfabric = {state = 2, health = 0}\n"
        "[answers]\nnvmlDeviceGetCurrPcieLinkWidth = 8\nnvmlDeviceGetCurrentClocksEventReasons = 0xC8\n"
        '[fields]\n"94" = 12\n"4" = 1\n"144" = 1\n"230" = 1\n"270" = 2_500_000_000\n"161.3" = 40\n"163.3" = 2\n'
    )
    now = list(state())
    (was, is_now) = only(before), only(now)
    assert was == gpu()
    assert is_now == replace(
        was,
        nvlinks=17,
        pcie_width=8,
        sram_threshold=True,
        ecc_uncorrected=1,
        remap_pending=True,
        recovery="GPU reset",
        clock_reasons=("hardware slowdown", "hardware thermal slowdown", "hardware power brake"),
        fabric_state="in progress",
        fabric_status=None,
        fabric_clique=None,
    )
    assert of(now, GpuLink) == [nvlink(0, link, active=link != 7) for link in range(18)]
    changed = {name: value for name, value in seen(now).items() if value != seen(before).get(name)}
    assert changed == {
        ("gpu0", "pcie_replay"): 12,
        ("gpu0", "ecc_uncorrected"): 1,
        ("gpu0", "clocks_hw_thermal"): 2.5,
        ("gpu0", "nvlink_replay"): 40,
        ("gpu0/nvlink3", "nvlink_replay"): 40,
        ("gpu0", "nvlink_crc"): 2,
        ("gpu0/nvlink3", "nvlink_crc"): 2,
    }
    assert of(now, NotChecked) == []


BLACKWELL = """
gpus = 1
speed = 53125
version = 8
links = 2
fabric = { state = 3, clique = 4, cluster = "5f1e2d3c4b5a69788796a5b4c3d2e1f0", health = 0x%x }
[answers]
nvmlDeviceGetName = "NVIDIA B200"
[fields]
"161" = "error 3"
"162" = "error 3"
"163" = "error 3"
"215" = 0
"215.1" = 3
"214" = 1
"221" = 0
"219" = 0
"220" = 0x0FFE
"293" = 0x0307
"235" = 900000
"236.1" = 41
"238.1" = 2
"""


def test_nvlink_5_counts_as_infiniband_does(driver: Callable[[str], Path]) -> None:
    driver(BLACKWELL % 0x51AA)
    said = list(state())
    assert [(link.version, link.speed) for link in of(said, GpuLink)] == [(5, 53.125e9)] * 2
    assert only(said).nvlink_rate == 50e9
    assert {name: value for name, value in seen(said).items() if "nvlink" in name[1]} == {
        ("gpu0", "nvlink_recovery"): 3,
        ("gpu0/nvlink1", "nvlink_recovery"): 3,
        ("gpu0", "nvlink_recovery_failed"): 2,
        ("gpu0/nvlink0", "nvlink_recovery_failed"): 1,
        ("gpu0/nvlink1", "nvlink_recovery_failed"): 1,
        ("gpu0", "nvlink_symbol_errors"): 0,
        ("gpu0", "nvlink_effective_errors"): 0,
        ("gpu0/nvlink0", "nvlink_effective_ber"): 15e-254,
        ("gpu0/nvlink1", "nvlink_effective_ber"): 15e-254,
        ("gpu0/nvlink0", "nvlink_fec_mended"): 0,
        ("gpu0/nvlink1", "nvlink_fec_mended"): 3,
        ("gpu0/nvlink0", "nvlink_raw_ber"): 3e-7,
        ("gpu0/nvlink1", "nvlink_raw_ber"): 3e-7,
    }
    assert of(said, NotChecked) == []


@pytest.mark.parametrize(
    ("health", "faults"),
    [
        (0x51AA, ()),  # nothing wrong
        (0, None),  # nobody says
        (0x1, ("degraded bandwidth",)),
        (0x54, ("route recovery", "route unhealthy", "access timeout recovery")),
        (0x500, ("incorrect configuration: insufficient NVLinks",)),
        (0xE00, ("incorrect configuration: 14",)),
        (0xA100, ("no partition assigned", "global fabric manager disconnected")),
    ],
)
def test_the_health_of_a_fabric(driver: Callable[[str], Path], health: int, faults: tuple[str, ...] | None) -> None:
    driver(BLACKWELL % health)
    one = only(list(state()))
    assert one.fabric_faults == faults
    assert (one.fabric_clique, one.fabric_cluster) == (4, "5f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")


def test_a_fabric_that_was_joined_with_an_error(driver: Callable[[str], Path]) -> None:
    driver("gpus = 1\nfabric = { state = 3, status = 23 }")
    assert only(list(state())).fabric_status == "Error 23"


@pytest.mark.parametrize("version", [2, 0])
def test_fabrics_of_older_drivers(driver: Callable[[str], Path], version: int) -> None:
    driver(f"gpus = 1\nfabric_version = {version}\nfabric = {{ state = 3, clique = 9 }}")
    assert only(list(state())) == replace(gpu(), fabric_clique=9)


def test_an_a100_counts_in_fields_of_each_link(driver: Callable[[str], Path]) -> None:
    counted = {**dict.fromkeys((*range(32, 60), *range(96, 120)), 0), 46: 2, 119: 4, 102: 8}
    counts = "\n".join(f'"{number}" = {count}' for number, count in counted.items())
    unknown = "\n".join(f'"{number}" = "error 3"' for number in (161, 164, 166))
    version = "[answers]\nnvmlDeviceGetNvLinkVersion = 5"
    driver(f"gpus = 1\nlinks = 12\nspeed = 25000\n{version}\n[fields]\n{unknown}\n{counts}")
    said = list(state())
    assert [(link.version, link.speed) for link in of(said, GpuLink)] == [(3, 25e9)] * 12
    assert only(said).nvlink_rate == 25e9
    assert {name: value for name, value in seen(said).items() if "nvlink" in name[1]} == {
        ("gpu0", "nvlink_replay"): 2,
        ("gpu0/nvlink0", "nvlink_replay"): 2,
        ("gpu0", "nvlink_recovery"): 4,
        ("gpu0/nvlink11", "nvlink_recovery"): 4,
        ("gpu0", "nvlink_crc"): 8,
        ("gpu0/nvlink6", "nvlink_crc"): 8,
    }


def test_counts_of_links_that_are_down(driver: Callable[[str], Path]) -> None:
    """What such a link does not count is no gap; what it did counts."""
    driver('gpus = 1\nlinks = 2\ndown = [1]\n[fields]\n"161.1" = 3\n"162.1" = "error 999"\n"163.1" = "error 29"')
    said = list(state())
    assert {name: value for name, value in seen(said).items() if "nvlink" in name[1]} == {
        ("gpu0", "nvlink_replay"): 3,
        ("gpu0/nvlink1", "nvlink_replay"): 3,
        ("gpu0", "nvlink_recovery"): 0,
        ("gpu0", "nvlink_crc"): 0,
    }
    assert of(said, NotChecked) == []


def test_a_card_without_nvlink(driver: Callable[[str], Path]) -> None:
    driver("gpus = 1\nlinks = 0\nfabric = { state = 0 }\nversion = 0")
    said = list(state())
    assert only(said) == replace(
        gpu(),
        nvlinks=0,
        nvlinks_present=0,
        nvlink_rate=None,
        fabric_state="not supported",
        fabric_status=None,
        fabric_clique=None,
    )
    assert not [one for one in seen(said) if "nvlink" in one[1]]


def test_links_that_were_cut_off_in_the_factory(driver: Callable[[str], Path]) -> None:
    driver("gpus = 1\nlinks = 5\ncut = [1, 2]")
    links = [f"gpu0/nvlink{link}" for link in (0, 3, 4)]
    said, lasting = list(state()), list(wiring())
    assert (only(said).nvlinks, only(said).nvlinks_present) == (3, 3)
    assert [link.key for link in of(said, GpuLink)] == [link.key for link in of(lasting, GpuLink)] == links


def test_a_gpu_with_a_grace_processor(driver: Callable[[str], Path]) -> None:
    driver('gpus = 1\nlinks = 0\nc2c = 3\n[fields]\n"171.1" = 0')
    said = list(state())
    assert (only(said).c2c_links, only(said).c2c_rate) == (2, 44.712e9)
    assert of(said, GpuLink) == [
        GpuLink(
            key=f"gpu0/c2c{link}",
            gpu="gpu0",
            kind="c2c",
            active=link != 1,
            speed=None if link == 1 else 44.712e9,
            remote_kind="cpu",
        )
        for link in range(3)
    ]


def test_a_gpu_cut_into_instances(driver: Callable[[str], Path]) -> None:
    driver("gpus = 1\nmig = 1\ninstances = [0, 1, 4]")
    assert only(list(state())) == replace(gpu(), mig=True, mig_instances=3)


def test_an_old_driver(driver: Callable[[str], Path]) -> None:
    """Functions and fields that it does not have are silence, not errors; older ones take their place."""
    newer = (
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetGpuFabricInfo",
        "nvmlDeviceGetSramEccErrorStatus",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetModuleId",
        "nvmlDeviceGetMemoryAffinity",
        "nvmlDeviceGetNvLinkRemoteDeviceType",
    )
    unknown = "\n".join(f'"{number}" = "error 2"' for number in (*range(1, 7), 142, 143, 144, 145, 186, 189, 190, 230))
    driver(f"gpus = 2\nprocesses = [77]\nrows = [2, 1, 1, 0]\nmissing = {list(newer)}\n[fields]\n{unknown}")
    said = list(state())
    assert of(said, Gpu)[0] == replace(
        gpu(),
        recovery=None,
        sram_threshold=None,
        remapped_correctable=2,
        remapped_uncorrectable=1,
        remap_pending=True,
        remap_failed=False,
        fabric_state=None,
        fabric_status=None,
        fabric_clique=None,
        mig=None,
        mig_instances=None,
        processes=1,
    )
    lasting = list(wiring())
    assert (of(lasting, Gpu)[0].module_id, of(lasting, Gpu)[0].numa) == (None, None)
    assert of(lasting, GpuLink)[0] == GpuLink(key="gpu0/nvlink0", remote="0000:05:00.0")
    assert of([*said, *lasting], NotChecked) == []


def test_an_older_package(driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetSramEccErrorStatus", "NVMLLibraryMismatchError"):
        monkeypatch.delattr(pynvml, name, raising=False)
    pages = "[returns]\nnvmlDeviceGetRemappedRows = 3\n[answers]\nnvmlDeviceGetRetiredPagesPendingStatus = 1"
    driver(f'gpus = 1\n[fields]\n"144" = "error 3"\n{pages}')
    assert facts(list(state()))[1] == replace(gpu(), sram_threshold=None, remap_pending=True)  # an older GPU, too


def test_what_one_gpu_would_not_say(driver: Callable[[str], Path]) -> None:
    driver(
        "gpus = 2\n[gpu.1.returns]\nnvmlDeviceGetCurrPcieLinkWidth = 999\nnvmlDeviceGetNvLinkState = 4\n"
        'nvmlDeviceGetComputeRunningProcesses_v3 = 4\n[gpu.1.fields]\n"144" = "error 999"\n"94" = "error 4"\n'
        "[gpu.1.answers]\nnvmlDeviceGetCurrPcieLinkGeneration = 77\nnvmlDeviceGetComputeMode = 9"
    )
    said = list(state())
    why = {lost.what: (lost.subject, lost.why, lost.how) for lost in of(said, NotChecked)}
    assert why == {
        "Gpu.pcie_speed": ("gpu1", "77 is no PCIe generation", None),
        "Gpu.pcie_width": ("gpu1", "Unknown Error", None),
        "Gpu.compute_mode": ("gpu1", "9 is none of 0, 2, 3", None),
        "Gpu.processes": ("gpu1", "Insufficient Permissions", "run as root"),
        "Gpu.remap_pending": ("gpu1", "Unknown Error", None),
        "Gpu.pcie_replay": ("gpu1", "Insufficient Permissions", "run as root"),
        "Gpu.nvlinks": ("gpu1", "link 0: Insufficient Permissions", "run as root"),
    }
    assert of(said, Gpu) == [
        gpu(0),
        replace(
            gpu(1),
            pcie_speed=None,
            pcie_width=None,
            compute_mode=None,
            processes=None,
            remap_pending=None,
            nvlinks=None,
            nvlinks_present=None,
            nvlink_rate=None,
        ),
    ]


def test_numbers_that_are_all_refused(driver: Callable[[str], Path]) -> None:
    driver("gpus = 1\n[returns]\nnvmlDeviceGetFieldValues = 999")
    said = list(state())
    wanted = {"remapped_correctable", "remapped_uncorrectable", "remap_pending", "remap_failed", "recovery"}
    lost = {*wanted, "pcie_replay", *THROTTLED, "nvlink_errors", "nvlink_rx_bytes", "nvlink_tx_bytes"}
    assert of(said, NotChecked) == [
        NotChecked(what=what, subject="gpu0", why="Unknown Error")
        for what in [one.what for one in of(said, NotChecked)]
    ]
    assert {one.what for one in of(said, NotChecked)} == {f"Gpu.{name}" for name in lost}
    assert only(said).ecc_corrected == 0  # by its call


def test_one_gpu_that_gives_nothing_but_errors(driver: Callable[[str], Path]) -> None:
    driver("gpus = 2\nlinks = 0\n[gpu.0.returns]\n'*' = 999\nnvmlDeviceGetHandleByIndex_v2 = 0")
    assert of(list(state()), Gpu)[0] == Gpu(key="gpu0", failure="Unknown Error")
    driver("gpus = 2\nlinks = 0\n[gpu.1.returns]\n'*' = 999")
    said = list(state())
    assert of(said, Gpu)[1:] == [Gpu(key="gpu1", failure="Unknown Error")]
    assert of(said, NotChecked) == []


def test_a_gpu_that_only_others_may_ask(driver: Callable[[str], Path]) -> None:
    driver("gpus = 2\n[gpu.1.returns]\nnvmlDeviceGetHandleByIndex_v2 = 4")
    said = list(state())
    assert of(said, Gpu) == [gpu(0)]
    how = "run as root"
    assert of(said, NotChecked) == [NotChecked(what="Gpu", subject="gpu1", why="Insufficient Permissions", how=how)]


def test_a_gpu_that_is_lost_between_two_calls(driver: Callable[[str], Path]) -> None:
    driver("gpus = 3\n[gpu.1]\nlost_after = 5")
    said = list(state())
    known = {name: getattr(gpu(1), name) for name in ("name", "uuid", "address", "pcie_speed")}
    assert of(said, Gpu) == [gpu(0), Gpu(key="gpu1", failure="GPU is lost", **known), gpu(2)]
    assert of(said, NotChecked) == []


@pytest.mark.parametrize("calls", [0, 1, 20, 21, 22, 30, 40, 41, 42, 43])
def test_a_gpu_can_be_lost_at_any_call(driver: Callable[[str], Path], calls: int) -> None:
    driver(f"gpus = 2\n[gpu.0]\nlost_after = {calls}")
    said = list(state())
    failures = [one.failure for one in of(said, Gpu)]
    assert failures == ["GPU is lost" if calls < 43 else None, None]
    assert of(said, NotChecked) == []


def test_no_gpus(driver: Callable[[str], Path]) -> None:
    driver("gpus = 0")
    assert facts(list(state())) == [replace(DRIVER, gpus=0)]
    assert list(wiring()) == []


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (9, "Driver Not Loaded"),
        (18, "RM has detected an NVML/RM version mismatch."),
        (999, "Unknown Error"),
        (27, "Error 27"),
    ],
)
def test_a_driver_that_fails(driver: Callable[[str], Path], error: int, failure: str) -> None:
    driver(f"[returns]\nnvmlInitWithFlags = {error}")
    assert list(state()) == [Driver(key="nvidia", failure=failure)]
    assert list(wiring()) == [NotChecked(what="GpuPair", subject="node", why=failure)]


@pytest.mark.parametrize(
    ("text", "why", "how"),
    [
        (
            "[returns]\nnvmlInitWithFlags = 12",
            "NVML Shared Library Not Found",
            "install the driver's libnvidia-ml.so.1",
        ),
        ("[returns]\nnvmlInitWithFlags = 4", "Insufficient Permissions", "run as root"),
        (
            "device = '/nowhere/nvidiactl'\n[returns]\nnvmlInitWithFlags = 9",
            "Driver Not Loaded: /nowhere/nvidiactl: No such file or directory",
            "run as root",
        ),
    ],
)
def test_what_is_our_own_lack_is_not_the_drivers_fault(
    driver: Callable[[str], Path], text: str, why: str, how: str
) -> None:
    driver(text)
    how = f"{how}; in a container, give it the GPUs (--gpus all)"
    assert list(state()) == [NotChecked(what="Gpu", subject="node", why=why, how=how)]
    assert list(wiring()) == [NotChecked(what="GpuPair", subject="node", why=why, how=how)]


def test_without_the_package(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ModuleNotFoundError(\"No module named 'pynvml'\")")
    script = tmp_path / "child.py"
    script.write_text("from linkgauge.probes.calls import main\nmain()")
    why, how = "No module named 'pynvml'", "install the package nvidia-ml-py"
    said = list(Children((sys.executable, str(script))).ask("nvml", [], 60))
    assert said == [NotChecked(what="Gpu", subject="node", why=why, how=how)]


def test_a_driver_that_hangs(driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    driver("[returns]\nnvmlInitWithFlags = 'hang'")
    monkeypatch.setenv("LINKGAUGE_NVML_SECONDS", "0.1")
    assert list(state()) == [Driver(key="nvidia", failure="no answer within 0.1 s")]


def test_one_gpu_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are there, what came before is kept, and the process ends, though a thread of it never will."""
    file = tmp_path / "driver.toml"
    file.write_text("gpus = 3\n[gpu.1.returns]\nnvmlDeviceGetCurrPcieLinkGeneration = 'hang'")
    monkeypatch.setenv("LINKGAUGE_NVML_SECONDS", "7.5")
    said = through_a_child(file, monkeypatch)
    known = {name: getattr(gpu(1), name) for name in ("name", "uuid", "address")}
    assert of(said, Gpu) == [gpu(0), Gpu(key="gpu1", failure="no answer within 1.5 s", **known), gpu(2)]
    assert of(said, NotChecked) == []


def test_what_lasts_until_a_reset(driver: Callable[[str], Path]) -> None:
    file = driver("")
    said = list(wiring())
    assert of(said, Gpu) == [
        Gpu(
            key=f"gpu{number}",
            board_part="692-2G520-0200-000",
            module_id=number + 1,
            vbios="96.00.99.00.01",
            virtualization="none",
            pcie_own_max_speed=32e9,
            clock_max=1980e6,
            memory_clock_max=2619e6,
            application_clock_default=1980e6,
            bar1=131072 * MIB,
            numa=number // 4,
            cpus=tuple(range(64 * (number // 4), 64 * (number // 4) + 16)),
        )
        for number in range(8)
    ]
    assert of(said, GpuLink) == [
        GpuLink(key=f"gpu{number}/nvlink{link}", remote=f"0000:0{5 + link % 4}:00.0", remote_kind="switch")
        for number in range(8)
        for link in range(18)
    ]
    ok: dict[str, Any] = dict.fromkeys(("read", "write", "nvlink", "atomics"), "ok")
    assert of(said, GpuPair) == [
        GpuPair(key=f"gpu{a}-gpu{b}", a=f"gpu{a}", b=f"gpu{b}", **ok, path="NODE" if a // 4 == b // 4 else "SYS")
        for a in range(8)
        for b in range(a + 1, 8)
    ]
    assert of(said, NotChecked) == []
    assert called(file)["nvmlDeviceGetPcieThroughput"] == 0


def test_switches_that_are_not_shown(driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for nothing in ("FFFFFFFF:FF:FF.0", "00000000:00:00.0", "none"):

        def shown(*given: Any, text: str = nothing) -> int:
            return nvml_stub.fill(given[-1]._obj, busId=text.encode())

        monkeypatch.setitem(nvml_stub.FUNCTIONS, "nvmlDeviceGetNvLinkRemotePciInfo_v2", shown)
        driver("gpus = 1\nlinks = 1")
        assert of(list(wiring()), GpuLink) == [GpuLink(key="gpu0/nvlink0", remote_kind="switch")]


def test_pairs_of_a_gpu_that_hangs_or_is_lost(driver: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKGAUGE_NVML_SECONDS", "5")
    driver("gpus = 4\nlinks = 0\n[gpu.0.returns]\nnvmlDeviceGetP2PStatus = 'hang'\n[gpu.2.returns]\n'*' = 15")
    said = list(wiring())
    late, lost = "no answer within 1 s", "GPU is lost"
    assert [pair.key for pair in of(said, GpuPair)] == ["gpu1-gpu3"]
    assert of(said, NotChecked) == [
        NotChecked(what="GpuLink.remote", subject="gpu2", why=lost),
        NotChecked(what="GpuPair", subject="gpu2", why=lost),
        NotChecked(what="GpuPair", subject="gpu0-gpu1", why=late),
        NotChecked(what="GpuPair", subject="gpu0-gpu3", why=late),
    ]
