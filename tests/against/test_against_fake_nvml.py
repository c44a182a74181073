"""The live path on a real library libnvidia-ml.so.1, which ctypes loads and a file controls at run time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from linkgauge.agent.measuring import session as measuring
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.models.facts.gpu import Driver, Gpu, GpuLink, GpuPair
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Observation, Record
from linkgauge.models.graph.topology import Device, Link, Topology
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.calls.worker import Workers
from linkgauge.probes.gpu.gpus import read_gpu_wiring, read_gpus
from tests.support.gpu.fake_nvml import BUSES
from tests.support.gpu.nvml_machine import Machine, bound, machine

pytestmark = pytest.mark.slow

CONTROL = Path("/dev/nvidiactl")


@pytest.fixture
def node(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Machine, Path]:
    """A node with eight healthy H100, and the file that controls them."""
    file = tmp_path / "gpus.conf"
    file.write_text("".join(f"gpu.{number}.bus_id=0000:{bus}:00.0\n" for number, bus in enumerate(BUSES)))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{library}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}")
    monkeypatch.setenv("FAKE_GPU_FILE", str(file))
    return machine(bound(*(f"0000:{bus}:00.0" for bus in BUSES))), file


def gpus(said: list[Record]) -> dict[str, Gpu]:
    return {one.key: one for one in said if isinstance(one, Gpu)}


def test_eight_gpus(node: tuple[Machine, Path]) -> None:
    host, _ = node
    said = [*read_gpus(host), *read_gpu_wiring(host)]
    assert [one for one in said if isinstance(one, NotChecked)] == []
    assert [(one.library, one.gpus) for one in said if isinstance(one, Driver) and one.gpus] == [("580.95.05", 8)]
    links = [one for one in said if isinstance(one, GpuLink) and one.active is not None]
    assert (len(links), {one.active for one in links}) == (144, {True})
    assert len([one for one in said if isinstance(one, GpuPair)]) == 28
    (calls,) = (one.value for one in said if isinstance(one, Observation) and one.quantity == "driver_calls")
    assert calls <= 430  # each request has one family of fields
    assert [gpu.nvlinks for gpu in gpus(list(read_gpus(host))).values()] == [18] * 8


def test_faults_while_it_runs(node: tuple[Machine, Path]) -> None:
    host, file = node
    assert gpus(list(read_gpus(host)))["gpu3"].pcie_width == 16
    with file.open("a") as faults:
        faults.write("gpu.3.pcie_width=8\ngpu.2.link.7.up=0\ngpu.5.lost=1\ngpu.6.ret.Temperature=999\n")
        faults.write("gpu.1.remap_pending=1\ngpu.0.procs=2\n")
    said = list(read_gpus(host))
    now = gpus(said)
    assert (now["gpu3"].pcie_width, now["gpu2"].nvlinks, now["gpu0"].processes) == (8, 17, 2)
    assert [key for key, gpu in now.items() if gpu.remap_pending] == ["gpu1"]
    assert [one.key for one in said if isinstance(one, GpuLink) and one.active is False] == ["gpu2/nvlink7"]
    failed = [one for one in said if isinstance(one, Gpu) and one.failure]
    assert failed == [Gpu(key="gpu5", failure="GPU is lost", failure_reason=Reason.LOST)]
    assert Gpu(key="gpu5", address="0000:64:00.0") in said
    assert [one for one in said if isinstance(one, NotChecked)] == [
        NotChecked(what="Gpu.temperature", subject="gpu6", reason=Reason.LOST, detail="Unknown Error")
    ]


def test_a_gpu_that_hangs(node: tuple[Machine, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    host, file = node
    monkeypatch.setenv("LINKGAUGE_NVML_SECONDS", "7.5")
    with file.open("a") as faults:
        faults.write("gpus=3\ngpu.1.delay_ms=60000\n")
    said = list(read_gpus(host))
    assert {key: gpu.failure for key, gpu in gpus(said).items() if gpu.failure} == {"gpu1": "no answer within 1.5 s"}
    assert [one.nvlinks for one in said if isinstance(one, Gpu) and not one.failure] == [18, 18]


@pytest.mark.skipif(CONTROL.exists(), reason="has a driver of its own")
def test_a_driver_that_fails_where_there_is_no_device(node: tuple[Machine, Path]) -> None:
    host, file = node
    file.write_text("init_error=9\n")
    (lost,) = (one for one in read_gpus(host) if not isinstance(one, Driver))
    assert isinstance(lost, NotChecked)
    assert lost.why == "Driver Not Loaded: /dev/nvidiactl: No such file or directory"


def test_the_whole_report(node: tuple[Machine, Path]) -> None:
    host, _ = node
    report = diagnose(host, SOURCES, measure_nothing, Site()).report
    assert [run.name for run in report.runs if not run.ok] == []
    assert sum(one.quantity == "processes" for one in report.observations) == 8


def test_what_nvlinks_carry(node: tuple[Machine, Path]) -> None:
    """The library counts the bytes of a simulated rate: in KiB, for all links together."""
    host, file = node
    with file.open("a") as traffic:
        traffic.write("gpu.*.nvlink_tx_kib_rate=1000000\n")
    first, second = (
        {
            (str(one.about), one.quantity): one
            for one in read_gpus(host)
            if isinstance(one, Observation) and one.quantity in ("nvlink_tx_bytes", "nvlink_rx_bytes")
        }
        for _ in range(2)
    )
    assert set(first) == {(f"gpu{number}", f"nvlink_{way}_bytes") for number in range(8) for way in ("tx", "rx")}
    assert {one.unit for one in first.values()} == {"bytes"}
    assert all(one.value >= first[key].value and one.value % 1024 == 0 for key, one in second.items())


def test_a_job_that_comes_between_two_probes_without_a_scheduler(
    node: tuple[Machine, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(measuring, "_LOOK", 0.0)
    host, file = node
    memory = [Device(f"numa{place}", "numa") for place in range(3)]
    links = [Link(f"package{place}>numa{place}", f"package{place}", f"numa{place}", "internal") for place in range(3)]
    sockets = [Device(f"package{place}", "package") for place in range(3)]
    report = Report(
        node=None,
        taken_at=None,
        source="live",
        context="host",
        profile=None,
        verdict="unknown",
        topology=Topology((*memory, *sockets), tuple(links)),
    )
    session = measuring.Session(measuring.MeasurementOptions(force=True, only=frozenset({"host_memory"})), host)
    probes = session.probes(report)
    names = [next(one.name for one in probes if one.name != "idle")]
    with file.open("a") as job:
        job.write("gpu.2.procs=1\n")
    said = [one for source in probes for one in source.read(host)]
    assert names == ["host_memory"]
    assert [one.why for one in said if isinstance(one, NotChecked)] == ["not measured: processes use gpu2"]
    assert session.stopped == "processes use gpu2"


def test_what_jobs_send_is_seen_in_the_second_in_which_they_do(node: tuple[Machine, Path]) -> None:
    """A thread in the child process of the service reads the counters."""
    _, file = node
    with file.open("a") as steering:
        steering.write(f"gpu.3.nvlink_tx_kib_rate={20 << 20}\ngpu.*.nvlink_rx_kib_rate=0\n")
    workers = Workers()
    try:
        assert list(workers.call("nvml_traffic", ("30",), 30)) == []
        seen: list[Record] = []
        until = time.monotonic() + 30
        while not seen and time.monotonic() < until:
            time.sleep(0.2)
            seen = list(workers.call("nvml_traffic", ("30",), 30))
    finally:
        workers.close()
    (one,) = seen
    assert isinstance(one, Observation)
    assert (one.about, one.quantity) == ("gpu3", "nvlink_traffic")
    assert one.value == pytest.approx(18 * 20 * 1024**3, rel=0.1)
