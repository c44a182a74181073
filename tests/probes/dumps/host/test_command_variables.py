"""Variables on the command line of nccl-tests, above the rates that they cause."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

ROWS = (
    (1048576, 262144, 411.52, 2.55, 4.46),
    (1073741824, 268435456, 402114.0, 2.67, 4.67),
)
TOPOLOGY = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV18\t0-55\nGPU1\tNV18\t X \t0-55\n\n"
RDMA = "mlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ib1 (Up)\n\n"
P2P = ("NCCL_P2P_DISABLE=1", "NCCL_P2P_LEVEL=LOC", "NCCL_PROTO=LL", 'NCCL_P2P_DISABLE="1"')
NETWORK = ("NCCL_IB_DISABLE=1", "NCCL_NET=Socket")
COMMANDS = (
    "{v} ./build/all_reduce_perf -b 1M -e 1G -f 2 -g 8",
    "$ {v} ./build/all_reduce_perf -b 1M -e 1G -f 2 -g 8",
    "user@n1:~/nccl-tests$ NCCL_DEBUG=WARN {v} build/all_reduce_perf -b 1M -g 8",
    "mpirun -np 8 -x LD_LIBRARY_PATH -x {v} /opt/nccl-tests/build/all_reduce_perf_mpi -b 1M -g 1",
    "docker run --rm --gpus all -e {v} tests ./all_reduce_perf --minbytes 1M -g 8",
    "srun -N2 --export=ALL,{v} ./all_reduce_perf -b 1M -g 8",
    "mpirun -np 8 \\\n  -x {v} \\\n  -x LD_LIBRARY_PATH \\\n  ./all_reduce_perf -b 1M \\\n  -g 1",
)


def table() -> str:
    rows = "".join(
        f"{size:12d} {count:13d}     float     sum      -1 {time:8.2f} {algorithm:7.2f} {bus:7.2f}      0"
        f" {time:8.2f} {algorithm:7.2f} {bus:7.2f}      0\n"
        for size, count, time, algorithm, bus in ROWS
    )
    return (
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw"
        f" #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n{rows}"
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 4.5\n"
    )


def run(command: str, variable: str) -> str:
    return f"{command.format(v=variable)}\n\n{table()}\n"


def findings(text: str) -> list[str]:
    return [code for code, severity, _ in found_in(text) if severity != "info" and code == "nccl-env"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("variable", P2P)
def test_gpus(variable: str, command: str) -> None:
    text = TOPOLOGY + run(command, variable)
    assert findings(text) == ["nccl-env"]
    assert report_of(text).verdict in ("failed", "degraded")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("variable", NETWORK)
def test_networks(variable: str, command: str) -> None:
    assert findings(RDMA + run(command, variable)) == ["nccl-env"]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("variable", ["NCCL_P2P_DISABLE=0", "NCCL_PROTO=Simple", "NCCL_IB_DISABLE=0", "A=B"])
def test_variables_that_disable_nothing(variable: str, command: str) -> None:
    assert findings(TOPOLOGY + RDMA + run(command, variable)) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_comparison_of_two_runs(command: str) -> None:
    with_, without = run(command, "NCCL_P2P_DISABLE=1"), run(command, "A=B")
    for text in (TOPOLOGY + with_ + without, TOPOLOGY + without + with_):
        assert findings(text) == []
    assert findings(TOPOLOGY + with_ + with_) == ["nccl-env"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_without_results(command: str) -> None:
    assert findings(TOPOLOGY + command.format(v="NCCL_P2P_DISABLE=1") + "\n") == []
    other = run(command, "A=B")
    assert findings(TOPOLOGY + other + command.format(v="NCCL_P2P_DISABLE=1") + "\n") == []


def test_the_command_and_its_results_in_two_blocks() -> None:
    row = "1073741824     268435456     float     sum      -1  1121937    0.96    1.44      0\n"
    run = "```\n{}./build/all_reduce_perf -b 1G -e 1G -g 4\n```\n\nThe results:\n```\n{}```\n"
    off = run.format("NCCL_P2P_DISABLE=1 ", row)
    assert ("nccl-env", "critical", "node") in found_in(off)
    assert found_in(off + run.format("", row)) == []  # a run without the variable too
