"""Estimates of training steps and published runs, and the duration of planning: python -m bench.accuracy.plan

The table has the estimate of models/training/step_time.py for runs with published layout and utilization. Four numbers
are fitted. Below are the durations of a sweep and of a plan, in this process and from the command line. The exit code
is 1 if they are above the limits.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

from linkgauge.models.catalog import machines
from linkgauge.models.catalog.networks import networks
from linkgauge.models.site.schema import Network
from linkgauge.models.training.cluster import Cluster, cluster_of
from linkgauge.models.training.memory import USABLE
from linkgauge.models.training.parallelism import Job, Layout, check
from linkgauge.models.training.planner import other, plan_of, sweep
from linkgauge.models.training.step_time import step_of

T = TypeVar("T")
MEDIAN, LAYOUTS, SWEEP, PLAN = 0.10, 15_000, 1.0, 0.3  # seconds of a processor
META = "The Llama 3 Herd of Models, table 4; its interleaving is not published: 7 of at most 7 is assumed"
NVIDIA = "Korthikanti and others, Reducing Activation Recomputation, tables 3 and 5, and 6.3"


class Run(Struct, frozen=True):
    """A published training run. `share`: the model's own FLOP divided by those of the data sheet."""

    name: str
    machine: str
    nodes: int
    job: Job
    layout: Layout
    published: float
    source: str
    nics: tuple[int, float] | None = None


def gpt(name: str, layers: int, width: int, heads: int, parameters: float) -> Network:
    """A GPT as in NVIDIA's papers."""
    return Network(
        name=name,
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=heads,
        head=width // heads,
        feed_forward=4 * width,
        gated=False,
        vocabulary=51200,
        tied=True,
        sequence=2048,
        parameters=parameters,
        source=NVIDIA,
    )


def runs() -> list[Run]:
    """Runs with published layout and batch, and rings over known NICs."""
    llama = Job(networks()["llama3-405b"], 2048 * 8192, 8192)
    bloom = Job(networks()["bloom-176b"], 2048 * 2048, 2048)
    small, large = gpt("GPT 22B", 48, 6144, 64, 22e9), gpt("GPT 175B", 96, 12288, 96, 175e9)
    huge, trillion = gpt("GPT 530B", 105, 20480, 128, 530e9), gpt("GPT 1T", 128, 25600, 160, 1e12)
    a100 = "nvidia-dgx-a100"
    again = Layout(8, 35, 8, zero=0, interleave=3, recompute=True)
    return [
        Run("LLaMA-3 405B", "nvidia-dgx-h100", 1024, llama, Layout(8, 16, 64, interleave=7), 0.43, META),
        Run("LLaMA-3 405B", "nvidia-dgx-h100", 2048, llama, Layout(8, 16, 128, interleave=7), 0.41, META),
        Run("GPT 22B", a100, 1, Job(small, 4 * 2048, 2048), Layout(8, micro=4), 0.415, NVIDIA),
        Run("GPT 175B", a100, 8, Job(large, 64 * 2048, 2048), Layout(8, 8, interleave=3), 0.514, NVIDIA),
        Run("GPT 530B", a100, 35, Job(huge, 280 * 2048, 2048), Layout(8, 35, interleave=3), 0.560, NVIDIA),
        Run("GPT 530B", a100, 280, Job(huge, 2240 * 2048, 2048), Layout(8, 35, 8, zero=0, interleave=3), 0.542, NVIDIA),
        Run("GPT 530B, recomputed", a100, 280, Job(huge, 2240 * 2048, 2048), again, 0.421, NVIDIA),
        Run("GPT 1T", a100, 64, Job(trillion, 512 * 2048, 2048), Layout(8, 64), 0.563, NVIDIA),
        Run(
            "BLOOM-176B",
            a100,
            48,
            bloom,
            Layout(4, 12, 8, micro=2, recompute=True),
            150 * 3 / 4 / 312,
            "its guide: 150 TFLOP/s, which count the forward pass twice; 4 Omni-Path of 100 Gb/s",
            (4, 12.5e9),
        ),
    ]


def main(arguments: Sequence[str]) -> int:
    """Print the table, and the durations unless --runs is given. Returns the exit code."""
    near = _print_runs()
    quick = "--runs" in arguments or _print_times()
    return 0 if near and quick else 1


def cluster(machine: str, nodes: int, nics: tuple[int, float] | None = None) -> Cluster:
    """A cluster of equal machines."""
    return cluster_of(next(one for one in machines() if one.name == machine), nodes, nics=nics)


def _print_runs() -> bool:
    print("| run | GPUs | layout | published | estimated | off | fastest to slowest | memory |")
    print("|---|---|---|---:|---:|---:|---:|---:|")
    errors = []
    for run in runs():
        where = cluster(run.machine, run.nodes, run.nics)
        check(run.job, run.layout, where.gpus)
        step = step_of(run.job, run.layout, where)
        errors.append(step.utilisation / run.published - 1)
        spread = f"{step.fastest:.3g} to {step.slowest:.3g} s"
        memory = f"{step.memory.total / 1e9:.0f} of {USABLE * where.memory / 1e9:.0f} GB"
        print(
            f"| {run.name} | {where.gpus} x {where.gpu.name} | {run.layout} | {run.published:.1%} | "
            f"{step.utilisation:.1%} | {errors[-1]:+.0%} | {spread} | {memory} |"
        )
    middle = statistics.median(map(abs, errors))
    good = middle <= MEDIAN
    print(
        f"\n- {'' if good else 'NOT MET: '}median absolute error {middle:.1%} of {len(errors)} runs (at most "
        f"{MEDIAN:.0%}); fitted are four numbers, in models/training/stage_compute.py and step_time.py"
    )
    return good


def _print_times() -> bool:
    job = Job(networks()["gpt-oss-120b"], 9216 * 4096, 4096)
    many = cluster("nvidia-dgx-h100", 1152)
    found, took = _timed(lambda: sweep(job, many))
    hundred = cluster("nvidia-dgx-h100", 12_500)
    batch = Job(networks()["llama3-70b"], 100_000 * 8192, 8192)

    def whole() -> object:
        plan = plan_of(batch, Layout(8, 4, 3125), hundred)
        return other(batch, hundred, plan.step)

    _, planned = _timed(whole)
    line = [sys.executable, "-c", "from linkgauge.agent.cli.main import main; main()"]
    asked = ["plan", "llama3-70b,tp=8,pp=4,dp=3125,seq=8192,tokens=25000M", "--machine", "nvidia-dgx-h100"]
    command = _command([*line, *asked, "--nodes", "12500"])
    start = _command([*line, "--version"])
    checks = [
        (
            f"sweep of {found.tried} layouts, {many.gpus} GPUs: {took:.2f} s (at most {SWEEP:g} s for each {LAYOUTS})",
            took <= SWEEP * found.tried / LAYOUTS and found.tried >= LAYOUTS,
        ),
        (f"plan for {hundred.gpus} GPUs, with a better layout: {planned:.3f} s (at most {PLAN:g} s)", planned <= PLAN),
    ]
    print()
    for text, good in checks:
        print(f"- {'' if good else 'NOT MET: '}{text}")
    print(
        f"- the same from the command line, with all that is imported and read: {command:.2f} s ({start:.2f} s are "
        "the start of --version)"
    )
    return all(good for _, good in checks)


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    began = time.process_time()
    return call(), time.process_time() - began


def _command(line: list[str]) -> float:
    """Seconds of the fastest of three runs."""

    def once() -> float:
        began = time.perf_counter()
        subprocess.run(line, check=True, capture_output=True)
        return time.perf_counter() - began

    return min(once() for _ in range(3))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
