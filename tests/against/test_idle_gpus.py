"""Which GPUs count as in use, on a real library libnvidia-ml.so.1 that a file controls at run time."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Timer

import pytest

from linkgauge.agent.measuring.idle import busy_reason
from linkgauge.models.report import Report
from linkgauge.probes.gpu.nvml_use import gpu_use
from linkgauge.probes.host.entries import Entry
from tests.support.gpu.nvml_machine import Machine, bound, machine

pytestmark = pytest.mark.slow

REPORT = Report(node=None, taken_at=None, source="live", context="host", profile=None, verdict="unknown")
# GB200 with four GPUs: numa0 and numa1 are the processors, numa2, numa10, numa18 and numa26 the memory of the GPUs.
GRACE = {f"sys/devices/system/node/node{node}/cpulist": "" for node in (2, 10, 18, 26)}
NODES = {"sys/devices/system/node/node0/cpulist": "0-71", "sys/devices/system/node/node1/cpulist": "72-143", **GRACE}


@pytest.fixture
def node(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[Machine, Path]]:
    """A node with two GPUs, and the file that controls them."""
    file = tmp_path / "gpus.conf"
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{library}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}")
    monkeypatch.setenv("FAKE_GPU_FILE", str(file))
    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))

    def made(lines: str) -> tuple[Machine, Path]:
        file.write_text(f"gpus=2\n{lines}\n")
        files: Mapping[str, Entry] = {**bound("0000:13:00.0", "0000:14:00.0"), **NODES}
        return machine(files), file

    return made


def gpus_in_use(host: Machine) -> str | None:
    """The reason, if it is about GPUs. The processors of the machine that tests run on may be busy too."""
    why = busy_reason(REPORT, host)
    return why if why and "gpu" in why.lower() else None


def test_memory_that_the_driver_scrubs_is_no_job(node: Callable[[str], tuple[Machine, Path]]) -> None:
    """nvidia-smi(1): "During driver initialization when ECC is enabled one can see high GPU and Memory Utilization".

    It ends within 2 s (https://docs.nvidia.com/deploy/driver-persistence/overview.html: 1 to 3 s for each GPU).
    """
    host, file = node("gpu.*.util=100")
    assert gpus_in_use(host) == "gpu0, gpu1 compute"
    ending = Timer(1.5, lambda: file.write_text("gpus=2\n"))
    ending.start()
    assert gpus_in_use(host) is None
    ending.join()


def test_a_process_needs_no_second_look(node: Callable[[str], tuple[Machine, Path]]) -> None:
    host, file = node("gpu.*.util=100\ngpu.1.procs=1")
    ending = Timer(60, lambda: file.write_text("gpus=2\n"))
    ending.start()
    assert gpus_in_use(host) == "processes use gpu1"
    ending.cancel()


def test_memory_of_a_grace_gpu_is_memory_of_the_kernel(node: Callable[[str], tuple[Machine, Path]]) -> None:
    """The kernel places files and processes there (https://docs.nvidia.com/grace-perf-tuning-guide, NUMA nodes)."""
    host, _ = node("gpu.*.mem_used=9e9\ngpu.0.ret.NumaNodeId=3\ngpu.1.numa=10")
    assert gpus_in_use(host) == "memory of gpu0 is in use"
    values = {(one.about, one.quantity): one.value for one in gpu_use(host) or ()}
    assert values == {
        ("gpu0", "processes"): 0,
        ("gpu0", "memory_used"): 9e9,
        ("gpu0", "utilization"): 0,
        ("gpu1", "processes"): 0,
        ("gpu1", "memory_node"): 10,
        ("gpu1", "utilization"): 0,
    }
    host, _ = node("gpu.*.mem_used=9e9\ngpu.0.numa=2\ngpu.1.numa=10")
    assert gpus_in_use(host) is None
