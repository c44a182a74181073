"""Collectives in this process: a stand-in for nccl4py, whose functions it has by name and arguments, on fake GPUs.

Neither NCCL nor a GPU is here. The stand-in copies within one GPU, at the speed that the file of the testbed sets.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Flow, NotChecked, Observation, Record
from linkgauge.probes.host.live import Live
from tests.support.gpu.fake_gpus import ADDRESSES, fake_gpus
from tests.support.programs.live_probes import LONGEST

NCCL4PY = """
import os
from cuda.bindings import driver

class NCCLError(Exception):
    pass

def get_version():
    return 22703

def comm_init_all(ndev, devlist):
    assert ndev == len(devlist) == 2
    return [f"rank{device}" for device in devlist]

def group_start():
    pass

def group_end():
    pass

def all_reduce(sendbuff, recvbuff, count, datatype, op, comm, stream):
    assert (datatype, op, comm[:4]) == (7, 0, "rank")
    with open(os.environ["NCCL_DEBUG_FILE"], "a") as log:
        log.write(f"node1:1:1 [0] NCCL INFO AllReduce: {4 * count} Bytes -> Algo NVLS proto SIMPLE channel{{0..1}}\\n")
    _move(recvbuff, sendbuff, 4 * count, stream)

def allto_all(sendbuff, recvbuff, count, datatype, comm, stream):
    assert (datatype, comm[:4]) == (7, "rank")
    _move(recvbuff, sendbuff, 2 * 4 * count, stream)

def comm_abort(comm):
    pass

def _move(target, source, size, stream):
    (code,) = driver.cuMemcpyAsync(target, source, size, stream)
    if code.value:
        raise NCCLError(f"unhandled cuda error: {code.name}")
"""


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "packages/nccl/bindings"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder.parent / "__init__.py").touch()
    (folder / "nccl.py").write_text(NCCL4PY)
    monkeypatch.syspath_prepend(folder.parents[1])
    file = fake_gpus(tmp_path, monkeypatch, "gpu.1.d2d=300\n")
    monkeypatch.setenv("PATH", "/nowhere")  # no nccl-tests
    return file


def call(op: str) -> list[Record]:
    gpus = (f"{name}={ADDRESSES[name]}" for name in ("gpu0", "gpu1"))
    return list(Live().call("collective", op, *gpus, deadline=LONGEST))


@pytest.mark.parametrize(
    ("op", "named", "factor"), [("all_reduce", "all_reduce-nvls", 1.0), ("alltoall", "alltoall", 0.5)]
)
def test_the_slowest_gpu_ends_it(conf: Path, op: str, named: str, factor: float) -> None:
    """Of two ranks an AllReduce moves its array once over each link, an AllToAll half of it."""
    rates = [pytest.approx(300e9 * factor, rel=0.1)] * 2
    for _ in range(5):  # other tests may take the processor of the stub, which sleeps for the time of a message
        said = [one for one in call(op) if isinstance(one, Observation) and one.quantity == "bus_bandwidth"]
        if [one.value for one in said] == rates:
            break
    assert [one.about for one in said] == [Flow(named, ("gpu0", "gpu1"), size) for size in (64 << 20, 256 << 20)]
    assert [one.value for one in said] == rates
    assert {one.evidence.source for one in said} == {"NCCL 2.27.3"}


def test_an_error_of_the_library_is_a_sentence(conf: Path) -> None:
    with conf.open("a") as file:
        file.write("gpu.0.d2d=0\n")
    assert call("alltoall") == [
        NotChecked(
            what="collective",
            subject="node",
            reason=Reason.OTHER,
            detail="alltoall: NCCL: allto_all: unhandled cuda error: CUDA_ERROR_LAUNCH_FAILED",
        )
    ]


def test_gpus_of_others_are_left_alone(conf: Path) -> None:
    with conf.open("a") as file:
        file.write("gpu.1.compute_mode=3\n")
    (said,) = call("all_reduce")
    assert isinstance(said, NotChecked)
    why = "all_reduce: gpu1: its compute mode is exclusive process: no context is created on GPUs of others"
    assert said.why == why
