"""Duration of reading dumps: python -m bench.cost.readers

Mixed logs of 1, 10 and 60 MB in the formats of tools go through `diagnose --from`. For comparison, the same run
measures the time to read the lines only (grep -c). The exit code is 1 if 60 MB take more than 5 s or 300 MB of memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MOST_SECONDS, MOST_BYTES = 5.0, 300e6
MAIN = "from linkgauge.agent.cli.main import main; main()"


def lines(number: int) -> str:
    """About 1 kB with lines of several tools."""
    bus = f"{number % 200 + 16:02x}"
    return (
        "\n".join(
            (
                f"[{number}.123456] NVRM: GPU at PCI:0000:{bus}:00: GPU-00000000-0000-0000-0000-000000000000",
                f"[{number}.223456] nvidia 0000:{bus}:00.0: enabling device (0140 -> 0142)",
                f"[{number}.323456] mlx5_core 0000:{bus}:00.0: Port module event: module {number % 4}, Cable plugged",
                f"node{number % 9}:{number}:{number + 1} [{number % 8}] NCCL INFO Channel {number % 24:02d}/0 : "
                f"{number % 8}[{number % 8}] -> {(number + 1) % 8}[{(number + 1) % 8}] via P2P/CUMEM",
                f"node{number % 9}:{number}:{number + 1} [{number % 8}] NCCL INFO Connected all rings",
                f"{1 << number % 30:12} {1 << number % 28:12} float sum -1 {number % 900 + 1}.1 {number % 90}.11 1.2",
                "step 100: loss 2.3141, 412.1 tokens/s/GPU, something that no reader knows",
                f"Nov 21 03:04:{number % 60:02d} node{number % 9} systemd[1]: Started Session {number} of User root.",
            )
        )
        + "\n"
    )


def write(path: Path, size: int) -> None:
    """A file of about this number of bytes."""
    with path.open("w", encoding="utf-8") as file:
        number = written = 0
        while written < size:
            number += 1
            written += file.write(lines(number))


def seconds(command: list[str]) -> tuple[float, float]:
    """Wall seconds, and the peak memory of any child so far in bytes."""
    start = time.perf_counter()
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024.0


def main() -> int:
    """Print the table. Returns the exit code."""
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        print("size      diagnose --from   a MB      memory   grep -c")
        for size in (1, 10, 60):
            path = Path(folder) / f"{size}.log"
            write(path, size * 10**6)
            grep, _ = seconds(["grep", "-c", "NCCL", str(path)])
            wall, memory = seconds([sys.executable, "-c", MAIN, "diagnose", "--from", str(path)])
            print(f"{size:3} MB {wall:14.2f} s {wall / size * 1e3:8.0f} ms {memory / 1e6:8.0f} MB {grep:8.3f} s")
            missed |= size == 60 and (wall > MOST_SECONDS or memory > MOST_BYTES)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
