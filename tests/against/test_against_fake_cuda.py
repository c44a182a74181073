"""The copy probes on a real library libcuda.so.1, through the real cuda-bindings, each in a child process.

Its rates come out 0 to 2 % below what its file says: each copy has 4 us of latency. A child that loses its processor
between two calls sees a slower copy, so the tests ask for rates that are near, not equal.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from threading import Thread

import pytest

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.source import Source
from linkgauge.models.diagnosis.repetition import SimultaneousFlows
from linkgauge.models.facts.records import Flow, NotChecked, Observation, Record
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.live import Live
from linkgauge.probes.measure.gpu import device_memory, host_copy, peer_copy
from linkgauge.probes.measure.gpu.copy_request import CopyRequest, Run
from linkgauge.probes.measure.gpu.cuda_driver import CudaError
from linkgauge.probes.measure.gpu.cuda_gpus import tool_may_use
from linkgauge.probes.measure.probe import Scope
from linkgauge.probes.synthetic.build import build
from tests.support.gpu.fake_gpus import ADDRESSES, fake_gpus
from tests.support.gpu.nvml_machine import Machine
from tests.support.programs import fake_tools
from tests.support.programs.live_probes import LONGEST
from tests.support.programs.processes import children

pytestmark = pytest.mark.slow

ALONE: tuple[Run, ...] = tuple(run for gpu in ADDRESSES for run in (((("numa0", gpu)),), (((gpu, "numa0")),)))
NODE0 = pytest.mark.skipif(not Path("/sys/devices/system/node/node0").is_dir(), reason="a kernel without NUMA nodes")


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return fake_gpus(tmp_path, monkeypatch)


def fault(conf: Path, *lines: str) -> None:
    with conf.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def call(name: str, *runs: Run, owned: bool = False) -> list[Record]:
    used = {end: ADDRESSES[end] for run in runs for ends in run for end in ends if end in ADDRESSES}
    request = CopyRequest(effort="quick", gpus=used, runs=runs, owned=owned)
    return list(Live().call(name, *request.args, deadline=LONGEST))


def rates(said: list[Record]) -> dict[Flow, float]:
    """In GB/s."""
    seen = (one for one in said if isinstance(one, Observation) and one.quantity == "rate")
    return {one.about: one.value / 1e9 for one in seen if isinstance(one.about, Flow)}


def lost(said: list[Record]) -> list[tuple[str, str]]:
    return [(one.subject, one.why) for one in said if isinstance(one, NotChecked)]


def near(rate: float) -> object:
    return pytest.approx(rate, rel=0.05)


@NODE0
def test_host_copies_and_a_slow_gpu(conf: Path) -> None:
    fault(conf, "gpu.3.h2d=27", "gpu.5.d2h=13")
    said = call("host_copy", *ALONE)
    slow: dict[tuple[str, ...], int] = {("numa0", "gpu3"): 27, ("gpu5", "numa0"): 13}
    assert lost(said) == []
    assert rates(said) == {Flow("copy", ends, 64 << 20): near(slow.get(ends, 55)) for run in ALONE for ends in run}
    (moved,) = (one for one in said if isinstance(one, Observation) and one.quantity == "bytes_moved")
    assert moved.about == "node"
    assert moved.value >= len(ALONE) * 3 * 3 * (64 << 20)  # three copies in each of three tries


@NODE0
def test_latency_and_the_state_of_the_gpu_while_bytes_move(conf: Path) -> None:
    fault(conf, "gpu.0.pstate=2")
    said = call("host_copy", (("numa0", "gpu0"),))
    seen = {one.quantity: one for one in said if isinstance(one, Observation)}
    assert seen["latency"].about == Flow("copy", ("numa0", "gpu0"), 8)
    assert seen["latency"].value == pytest.approx(4e-6, rel=0.1)
    state = seen["performance_state"]
    assert (state.about, state.value, state.busy) == ("gpu0", 2.0, True)
    assert state.evidence.text == "P2, copies of 64 MiB numa0>gpu0"


@NODE0
def test_all_at_once_are_flows_of_their_own(conf: Path) -> None:
    run: Run = (("numa0", "gpu0"), ("gpu0", "numa0"), ("numa0", "gpu1"))
    found = rates(call("host_copy", run))
    assert found == {
        Flow("copy", ends, 64 << 20, beside=tuple(one for one in run if one != ends)): near(55) for ends in run
    }


def test_peers_and_a_slow_pair(conf: Path) -> None:
    fault(conf, "gpu.2.p2p.5=120", "gpu.6.peer.7=0")
    pairs = [*permutations(ADDRESSES, 2)]
    said = call("peer_copy", *(((pair),) for pair in pairs))
    assert lost(said) == []
    assert rates(said) == {
        Flow("copy", pair, 256 << 20, "host" if pair == ("gpu6", "gpu7") else ""): near(
            120 if pair == ("gpu2", "gpu5") else 370
        )
        for pair in pairs
    }


def test_all_to_all_has_room_for_each(conf: Path) -> None:
    """Each GPU receives seven copies at once: each copy has 64 MiB of 512."""
    fault(conf, "gpu.*.p2p=54")  # what is left for each where seven leave a GPU
    run: Run = tuple(permutations(ADDRESSES, 2))
    found = rates(call("peer_copy", run))
    assert {(flow.size, len(flow.beside)) for flow in found} == {(64 << 20, 55)}
    assert {flow.ends for flow in found} == set(run)


def test_memory_counts_what_is_read_and_what_is_written(conf: Path) -> None:
    fault(conf, "gpu.4.d2d=900")
    found = rates(call("device_memory", *(((gpu,),) for gpu in ADDRESSES)))
    assert found == {Flow("copy", (gpu,), 512 << 20): near(1800 if gpu == "gpu4" else 3000) for gpu in ADDRESSES}


@NODE0
def test_a_copy_that_fails_takes_no_other_with_it(conf: Path) -> None:
    fault(conf, "gpu.1.h2d=0")
    said = call("host_copy", (("numa0", "gpu1"),), (("gpu1", "numa0"),), (("numa0", "gpu0"),))
    assert lost(said) == [("numa0-gpu1", "cuMemcpyAsync: CUDA_ERROR_LAUNCH_FAILED")]
    assert [flow.ends for flow in rates(said)] == [("gpu1", "numa0"), ("numa0", "gpu0")]


@NODE0
def test_a_gpu_that_is_lost_takes_no_other_with_it(conf: Path) -> None:
    fault(conf, "gpu.1.lost=1")
    said = call("host_copy", (("numa0", "gpu1"),), (("numa0", "gpu0"),), (("numa0", "gpu0"), ("numa0", "gpu1")))
    assert lost(said) == [("gpu1", "no context: cuDevicePrimaryCtxRetain: CUDA_ERROR_UNKNOWN")]
    assert [flow.ends for flow in rates(said)] == [("numa0", "gpu0")]


def slowly(name: str, *runs: Run) -> Iterator[Record]:
    used = {end: ADDRESSES[end] for run in runs for ends in run for end in ends if end in ADDRESSES}
    yield from Live().call(name, *CopyRequest(effort="full", gpus=used, runs=runs).args, deadline=LONGEST)


def test_a_gpu_that_disappears_while_it_copies(conf: Path) -> None:
    """Earlier measurements stay. Later measurements of this GPU, and only of it, are not checked."""
    runs: list[Run] = [(("gpu0", "gpu1"),), *((("gpu0", "gpu1"),) for _ in range(20)), (("gpu2", "gpu3"),)]
    said: list[Record] = []
    for one in slowly("peer_copy", *runs):
        if not said:
            fault(conf, "gpu.1.lost=1")
        said.append(one)
    assert {why for _, why in lost(said)} == {"cuMemcpyAsync: CUDA_ERROR_UNKNOWN"}
    assert {subject for subject, _ in lost(said)} == {"gpu0-gpu1"}
    assert {flow.ends for flow in rates(said)} == {("gpu0", "gpu1"), ("gpu2", "gpu3")}


def test_who_stops_listening_leaves_no_process(conf: Path) -> None:
    """Ctrl-C, a deadline and `linkgauge hold` do this: they kill the child during a copy."""
    listening = slowly("peer_copy", *((("gpu0", "gpu1"),) for _ in range(500)))
    assert isinstance(next(listening), Observation)
    (child,) = children()
    listening.close()  # type: ignore[attr-defined]
    assert children() == []
    assert not Path(f"/proc/{child}").exists()


def test_no_context_on_a_gpu_of_others(conf: Path) -> None:
    fault(conf, "gpu.0.compute_mode=3", "gpu.1.compute_mode=2", "gpu.2.mig=1")
    runs: list[Run] = [((gpu,),) for gpu in ("gpu0", "gpu1", "gpu2", "gpu3")]
    said = call("device_memory", *runs)
    alone = "no context is created on GPUs of others"
    assert lost(said) == [
        ("gpu0", f"its compute mode is exclusive process: {alone}"),
        ("gpu1", f"its compute mode is prohibited: {alone}"),
        ("gpu2", "it is cut into MIG instances: CUDA shows a process one of them, and links are shared by all"),
    ]
    assert [flow.ends for flow in rates(said)] == [("gpu3",)]
    mine = call("device_memory", *runs, owned=True)
    assert [subject for subject, _ in lost(mine)] == ["gpu1", "gpu2"]
    assert [flow.ends for flow in rates(mine)] == [("gpu0",), ("gpu3",)]


def test_nor_by_the_tools_of_others(conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """External programs create a CUDA context on the GPU that they get."""
    fault(conf, "gpu.0.compute_mode=3")
    what = "print('ran', os.environ['CUDA_DEVICE_ORDER'])"
    log = fake_tools.perftest(tmp_path, monkeypatch, "ib_write_bw", f"import os; {what}", "--use_cuda=<n>")
    words = ("gpu", "full", "mlx5_0/1", "gpu0", ADDRESSES["gpu0"])
    alone = "its compute mode is exclusive process: no context is created on GPUs of others"
    assert lost([*Live().call("port_loopback", *words, deadline=LONGEST)]) == [("gpu0", alone)]
    assert not log.exists()
    list(Live().call("port_loopback", *words, "owned", deadline=LONGEST))
    assert "--use_cuda=0" in log.read_text()
    assert tool_may_use("gpu3", ADDRESSES["gpu3"], owned=False) == "3"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(CudaError, match="CUDA_VISIBLE_DEVICES"):
        tool_may_use("gpu3", ADDRESSES["gpu3"], owned=False)


def test_gpus_that_the_caller_may_not_see(conf: Path) -> None:
    """The test library ignores CUDA_VISIBLE_DEVICES. The test removes a GPU instead of hiding it."""
    fault(conf, "gpus=1")
    (missed,) = (one for one in call("device_memory", (("gpu0",),), (("gpu7",),)) if isinstance(one, NotChecked))
    assert (missed.subject, missed.why) == (
        "gpu7",
        "CUDA does not show it: cuDeviceGetByPCIBusId: CUDA_ERROR_INVALID_DEVICE",
    )


def test_no_gpu_and_no_driver(conf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault(conf, "gpus=0")
    assert lost(call("peer_copy", (("gpu0", "gpu1"),))) == [
        ("node", "the CUDA driver is not usable: cuInit: CUDA_ERROR_NO_DEVICE")
    ]
    fault(conf, "gpus=8", "cuda.init_error=803")
    assert lost(call("peer_copy", (("gpu0", "gpu1"),))) == [
        ("node", "the CUDA driver is not usable: cuInit: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH")
    ]


BOARD = f"""
[cpu]
cores = 1
[[root]]
bus = [{", ".join(str(0x30 + 2 * number) for number in range(8))}]
numa = 0
ports = ["h100"]
[[root]]
bus = [0x20, 0x70]
numa = 0
ports = ["nvswitch3", "nvswitch3"]
"""  # the library's NVLinks end at 21, 22, 71 and 72


@NODE0
def test_from_the_driver_to_the_findings(conf: Path) -> None:
    """All in child processes with the real packages: NVML lists the GPUs, CUDA is measured, sysfs is a file tree."""
    fault(conf, *(f"gpu.{number}.bus_id=0000:{0x31 + 2 * number:02x}:00.0" for number in range(8)))
    fault(conf, "gpu.3.h2d=27", "gpu.3.d2h=27", "gpu.5.p2p.6=120", "gpu.7.d2d=2100")
    report = diagnose(Machine(build(BOARD)), SOURCES, once, Site()).report
    found = [(one.code, one.subject) for one in report.findings if one.code in ("bandwidth-low", "measurement-invalid")]
    assert found == [("bandwidth-low", "0000:37:00.0"), ("bandwidth-low", "gpu5-gpu6"), ("measurement-invalid", "gpu7")]
    assert len(report.levels) == 16 + 8 + 8 + 7
    assert [run.name for run in report.runs if run.bytes] == ["host_copy", "peer_copy", "device_memory"]


def once(report: Report, undecided: frozenset[SimultaneousFlows]) -> list[Source]:
    """The calls for GPUs of the quick level, once each."""
    if report.levels:
        return []
    wanted = Scope(ends=frozenset(device.id for device in report.topology.devices))
    plans = {"host_copy": host_copy.plan, "peer_copy": peer_copy.plan, "device_memory": device_memory.plan}
    return [Source(probe.name, probe) for plan in plans.values() for probe in plan(report, wanted)]


@NODE0
def test_gpus_that_sysfs_does_not_have(conf: Path) -> None:
    """As in a container that masks sysfs: NVML has the address of each numbered GPU."""
    request = CopyRequest(effort="quick", gpus={"gpu1": ""}, runs=((("host", "gpu1"),),))
    fault(conf, "gpu.1.h2d=33")
    assert rates(list(Live().call("host_copy", *request.args, deadline=LONGEST))) == {
        Flow("copy", ("host", "gpu1"), 64 << 20): near(33)
    }


@NODE0
def test_an_unchanged_setting_is_reported_once(conf: Path) -> None:
    """The GPU's state is read in each of its runs."""
    said = call("host_copy", *((("numa0", "gpu0"),) for _ in range(3)))
    assert len([one for one in said if isinstance(one, Observation) and one.quantity == "performance_state"]) == 1


@NODE0
def test_a_copy_that_hangs_takes_no_other_with_it(conf: Path) -> None:
    """A copy of 64 MiB takes 67 s here. The probe gives it up after 5 s and measures the others without it."""
    fault(conf, "gpu.1.h2d=0.001")
    both: Run = (("numa0", "gpu0"), ("numa0", "gpu2"))
    crowd: Run = (("numa0", "gpu0"), ("numa0", "gpu1"), ("numa0", "gpu2"))
    for _ in range(4):  # beside other tests, a copy that does not hang may get no processor for 5 s
        said = call("host_copy", crowd, (("numa0", "gpu1"),), crowd, (("numa0", "gpu0"),))
        if [name for name, _ in lost(said)] == ["numa0-gpu1"] and len(rates(said)) == len(both) + 1:
            break
    (hung,) = lost(said)
    assert hung == ("numa0-gpu1", "3 copies at the same moment: no 3 copies in a row within 5 s")
    assert [(flow.ends, flow.beside) for flow in rates(said)] == [
        (both[0], both[1:]),
        (both[1], both[:1]),
        (both[0], ()),
    ]


@pytest.mark.parametrize(
    ("probe", "runs", "idle", "working", "bytes_factor"),
    [
        ("device_memory", ((("gpu2",),),), "gpu.2.d2d=20", "gpu.2.d2d=1500", 2),
        ("peer_copy", ((("gpu2", "gpu3"),),), "gpu.2.p2p=20", "gpu.2.p2p=370", 1),
    ],
)
def test_a_gpu_in_p8_is_woken(
    conf: Path, probe: str, runs: tuple[Run, ...], idle: str, working: str, bytes_factor: int
) -> None:
    """An idle GPU has a slow memory clock. It needs some tenths of a second of load to leave P8."""
    fault(conf, "gpu.2.pstate=8", idle)

    def wake() -> None:
        until_cuda_is_loaded()
        time.sleep(0.6)
        fault(conf, "gpu.2.pstate=0", working)

    waking = Thread(target=wake)
    waking.start()
    said = call(probe, *runs)
    waking.join()
    (rate,) = rates(said).values()
    assert rate == near(bytes_factor * float(working.partition("=")[2]))


def test_a_gpu_that_stays_in_p8_is_measured_as_it_is(conf: Path) -> None:
    """For example after a power brake. It is awaited once, not before each run."""
    fault(conf, "gpu.*.pstate=8", "gpu.*.d2d=20")
    start = time.monotonic()
    said = call("device_memory", *((("gpu2",),) for _ in range(4)))
    assert rates(said) == {Flow("copy", ("gpu2",), 512 << 20): near(40)}
    assert time.monotonic() - start < 8


def until_cuda_is_loaded() -> None:
    """Wait for a child that has the library open. It copies some milliseconds later."""
    while not any("libcuda.so" in mapped for mapped in map(maps, children())):
        time.sleep(0.01)


def maps(process: int) -> str:
    try:
        return Path(f"/proc/{process}/maps").read_text()
    except OSError:
        return ""
