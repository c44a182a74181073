"""Changes during a job: counters of a recorded node at two times, and the peaks that the service recorded."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.service.job_window import close_window, open_window, updated_peaks
from linkgauge.agent.state import status_file
from linkgauge.exporters.commands.window import as_json, as_text
from linkgauge.models.diagnosis.counter_diff import Change, Count, changes
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.records import Evidence, Flow, Observation
from linkgauge.probes.host.recorded import Recorded
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node, report_of, with_entry

PORT = "sys/devices/pci0000:10/0000:10:01.0/0000:11:00.0/infiniband/mlx5_0/ports/1/counters"
LATER = {
    f"{PORT}/symbol_error": "12",
    f"{PORT}/link_downed": "1",
    f"{PORT}/port_rcv_data": "250000000000",  # of four bytes each
    "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_total_time_ms": "2500",
    "sys/devices/system/edac/mc/mc0/ce_count": "3",
}
XID = "NVRM: Xid (PCI:0000:1b:00): 94, pid=4711, name=python, Contained"
REDUCED = XID.replace("python", "some-program-1")
TOLD = """\
job 4711: 2026-11-21T03:00:00Z to 2026-11-21T04:00:00Z, 3600 s
errors     mc0              ce_count                3
errors     mlx5_0/1         symbol_error            12
flaps      mlx5_0/1         link_downed             1
throttled  package0         throttle_time           2.5 s
bytes      mlx5_0/1         port_rcv_data           1 TB
peak       mlx5_0/1         most in a second        47.3 GB/s
"""


def after(changed: dict[str, str] = LATER, seconds: int = 3600) -> Recorded:
    recorded = node("hgx-h100")
    for path, text in changed.items():
        recorded = with_entry(recorded, path, text)
    return replace(recorded, taken=recorded.taken + seconds)


def records(*since: int) -> str:
    """The kernel's log with a line so many seconds after the job began."""
    recorded = node("hgx-h100")
    up = recorded.taken - int((recorded.read("proc/stat") or "").split()[1])
    return "\n".join(f"3,{number},{up + at}000000,-;{XID}" for number, at in enumerate(since))


def traffic(rate: float, about: str = "mlx5_0/1") -> Observation:
    evidence = Evidence("port_xmit_data", "")
    return Observation(
        about=about, quantity="port_traffic", unit="bytes_per_second", value=rate, at=1.0, evidence=evidence
    )


def test_each_event_of_a_job_is_reported_once(tmp_path: Path) -> None:
    folder = str(tmp_path)
    open_window(node("hgx-h100"), folder, "4711")
    status_file.write(
        folder, report_of(node("hgx-h100")), time.time(), 15.0, {"4711": {"mlx5_0/1": 47.3e9}, "4712": {}}
    )
    window = close_window(after({**LATER, "dev/kmsg": records(60)}), folder, "4711")
    assert as_text(window) == f"{TOLD}logged     0000:1b:00.0     2026-11-21T03:01:00Z  {REDUCED}\n"
    assert as_json(window).count("\n") == 1
    with pytest.raises(BadInput, match="job 4711 has no open window"):
        close_window(after(), folder, "4711")


def test_earlier_log_lines_are_not_reported(tmp_path: Path) -> None:
    open_window(node("hgx-h100"), str(tmp_path), "1")
    assert close_window(after({"dev/kmsg": records(-60)}), str(tmp_path), "1").logged == ()


def test_a_quiet_time(tmp_path: Path) -> None:
    open_window(node("hgx-h100"), str(tmp_path), "1")
    status_file.write(str(tmp_path), report_of(node("hgx-h100")), time.time(), 15.0, {})
    text = as_text(close_window(after({}, 60), str(tmp_path), "1"))
    assert text == (
        "job 1: 2026-11-21T03:00:00Z to 2026-11-21T03:01:00Z, 60 s\nno errors, no flaps, nothing throttled\n"
    )


def test_without_a_service_the_missing_peak_is_reported(tmp_path: Path) -> None:
    open_window(node("hgx-h100"), str(tmp_path), "1")
    assert [text.partition(": ")[0] for text in close_window(after({}), str(tmp_path), "1").not_read] == ["node peak"]


def test_a_lost_device_is_reported(tmp_path: Path) -> None:
    open_window(node("hgx-h100"), str(tmp_path), "1")
    assert "eth0" in close_window(node("container"), str(tmp_path), "1").gone


@pytest.mark.parametrize("job", ["", "../x", "a b", "-1", "x" * 65, "1/2", "1\n"])
def test_names_that_are_none(job: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a valid job name"):
        open_window(node("desktop"), str(tmp_path), job)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"version": 2, "at": 1, "booted": 1, "counts": []}', "\x00\xff"])
def test_a_damaged_file_is_reported(content: str, tmp_path: Path) -> None:
    (tmp_path / "windows").mkdir()
    (tmp_path / "windows" / "1.json").write_text(content)
    with pytest.raises(BadInput, match="the window of job 1 cannot be read: "):
        close_window(node("desktop"), str(tmp_path), "1")


def test_windows_that_stay_open_are_forgotten(tmp_path: Path) -> None:
    open_window(node("desktop"), str(tmp_path), "old")
    os.utime(tmp_path / "windows" / "old.json", (1e9, 1e9))
    open_window(node("desktop"), str(tmp_path), "new")
    assert os.listdir(tmp_path / "windows") == ["new.json"]


def test_nothing_is_forgotten_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "old.json").touch()
    os.utime(tmp_path / "precious" / "old.json", (1e9, 1e9))
    (tmp_path / "windows").symlink_to("precious")
    with pytest.raises(BadInput, match="--state-dir"):
        open_window(node("desktop"), str(tmp_path), "1")
    assert os.listdir(tmp_path / "precious") == ["old.json"]


def test_the_service_can_list_windows_whatever_the_umask_of_a_prolog(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        open_window(node("desktop"), str(tmp_path), "1")
    finally:
        os.umask(before)
    assert (tmp_path / "windows").stat().st_mode & 0o777 == 0o755


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "windows").write_text("")
    with pytest.raises(BadInput, match="--state-dir"):
        open_window(node("desktop"), str(tmp_path), "1")


def test_the_service_follows_windows_that_are_open(tmp_path: Path) -> None:
    open_window(node("desktop"), str(tmp_path), "1")
    first = {"traffic": [traffic(5.0), traffic(7.0, "mlx5_1/1")]}
    peaks = updated_peaks(str(tmp_path), {"0": {"mlx5_0/1": 9.0}}, first)
    assert peaks == {"1": {"mlx5_0/1": 5.0, "mlx5_1/1": 7.0}}
    assert updated_peaks(str(tmp_path), peaks, {"traffic": [traffic(4.0)]}) == peaks
    assert updated_peaks(str(tmp_path / "nowhere"), peaks, {"traffic": [traffic(4.0)]}) == {}


def collective(rate: float, size: int = 64 << 20, ends: tuple[str, ...] = ("GPU-b", "GPU-a")) -> Observation:
    return Observation(
        about=Flow("all_reduce", ends, size),
        quantity="job_bus_bandwidth",
        unit="bytes_per_second",
        value=rate,
        at=1.0,
        evidence=Evidence("text", ""),
    )


def test_a_window_has_what_the_collectives_of_the_job_reached(tmp_path: Path) -> None:
    """The highest rate counts: a mean of a shorter window contains waiting. Of small sizes latency decides."""
    folder = str(tmp_path)
    open_window(node("hgx-h100"), folder, "1")
    gpus = [Gpu(key="gpu0", uuid="GPU-a"), Gpu(key="gpu1", uuid="GPU-b")]
    peaks: Mapping[str, Mapping[str, float]] = {}
    for rate in (210e9, 231e9, 80e9):
        seen = [collective(rate), collective(9e9, 1 << 20), collective(rate / 2, ends=("GPU-a", "GPU-x"))]
        peaks = updated_peaks(folder, peaks, {"gpus": gpus, "traffic": [traffic(5e9)], "jobs": seen})
    status_file.write(folder, report_of(node("hgx-h100")), time.time(), 15.0, peaks)
    assert as_text(close_window(after({}), folder, "1")).splitlines()[2:] == [
        "peak       mlx5_0/1         most in a second        5.00 GB/s",
        "reached    GPU-x-gpu0       all_reduce 64 MiB       115.5 GB/s",
        "reached    gpu0-gpu1        all_reduce 64 MiB       231.0 GB/s",
    ]


def test_names_that_change_each_cycle_do_not_fill_the_status_file(tmp_path: Path) -> None:
    open_window(node("desktop"), str(tmp_path), "1")
    seen = {"jobs": [collective(1e9, ends=("GPU-a", f"GPU-{number}")) for number in range(1000)]}
    assert len(updated_peaks(str(tmp_path), {}, seen)["1"]) == 256


def test_a_service_writes_its_last_word_with_the_peaks(service: Callable[..., Node], tmp_path: Path) -> None:
    open_window(node("desktop"), str(tmp_path), "1")
    one = service(tmp_path)
    one.daemon.traffic = lambda host: [traffic(5e9)]
    report = one.cycle()
    ended = one.host.now() - one.daemon.every
    found = status_file.read(str(tmp_path), now=ended + 1, booted=0.0)
    assert found.findings == report.findings
    assert (found.at, found.verdict, found.peaks) == (ended, report.verdict, {"1": {"mlx5_0/1": 5e9}})


_counts = st.dictionaries(
    st.tuples(
        st.sampled_from(["gpu0", "gpu0/nvlink1", "mlx5_0/1"]),
        st.sampled_from(["symbol_error", "nvlink_crc", "rx_bytes", "link_downed", "clocks_sw_power", "other"]),
        st.sampled_from(["count", "bytes", "seconds"]),
    ),
    st.integers(0, 1 << 40).map(float),
)


@given(_counts, _counts)
def test_nothing_rises_by_less_than_nothing_nor_by_more_than_was_counted(
    before: dict[Count, float], after: dict[Count, float]
) -> None:
    found, gone = changes(before, after)
    assert all(0 < one.value <= after[one.about, one.quantity, one.unit] for one in found)
    assert all(one.at_least == (after[key] < before[key]) for one in found for key in [_key(one)])
    assert set(gone) == {about for about, _, _ in before} - {about for about, _, _ in after}
    assert changes(after, after)[0] == ()


def _key(one: Change) -> Count:
    return one.about, one.quantity, one.unit
