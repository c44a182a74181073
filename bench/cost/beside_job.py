"""What a job loses to linkgauge on the GPU of this machine: python -m bench.cost.beside_job [--turns 5] [--seconds 8]

The job multiplies matrices (8192 x 8192, bf16) and copies 128 MiB to the GPU after each 40 products. Its products per
second are counted in turns: alone, beside `linkgauge diagnose --passive` in an endless loop, and beside `linkgauge
serve` with a cycle of one second. Both read far more often than in use. Needs PyTorch.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SIZE, BETWEEN, COPIED = 8192, 40, 1 << 27


def job() -> Any:
    """A function: products per second within some seconds."""
    import torch  # 2 s

    matrix = torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16)
    host = torch.empty(COPIED, dtype=torch.uint8, pin_memory=True)
    gpu = torch.empty(COPIED, dtype=torch.uint8, device="cuda")

    def rate(seconds: float) -> float:
        done, start = 0, time.monotonic()
        while time.monotonic() - start < seconds:
            for _ in range(BETWEEN):
                matrix @ matrix
            gpu.copy_(host, non_blocking=True)
            torch.cuda.synchronize()
            done += BETWEEN
        return done / (time.monotonic() - start)

    return rate


@contextmanager
def beside(command: str) -> Iterator[None]:
    """A shell command in a process group of its own, until the block ends."""
    process = subprocess.Popen(["sh", "-c", command], start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        time.sleep(2)  # until the command has started and reads the GPU
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def main() -> None:
    """Print the ratios for both loads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    rate = job()
    rate(options.seconds)  # clocks and temperature settle
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder, "linkgauge.toml")
        configuration.write_text('cycle = "1s"\ncycle_busy = "1s"\n')
        serve = f"serve --listen 127.0.0.1:0 --config {configuration} --state-dir {folder}"
        program = f"{sys.executable} -m linkgauge"
        loads = {
            "diagnose --passive": f"while true; do {program} diagnose --passive; done",
            "serve, cycle 1 s": f"exec {program} {serve}",
        }
        ratios: dict[str, list[float]] = {name: [] for name in loads}
        for _ in range(options.turns):
            for name, command in loads.items():
                alone = rate(options.seconds)
                with beside(command):
                    ratios[name].append(rate(options.seconds) / alone)
    for name, found in ratios.items():
        print(f"{name:20} products per second beside/alone: median {statistics.median(found):.4f}, {sorted(found)}")


if __name__ == "__main__":
    main()
