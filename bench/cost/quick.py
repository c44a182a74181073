"""Cost of `linkgauge diagnose --level quick` on this machine: python -m bench.cost.quick [--level full] [--runs 5]

Wall time, processor time of the run with its children, memory of the largest process, and bytes moved. The exit code is
1 if a run at level quick takes longer than ten seconds. The program skips the measurement on a busy machine and reports
that.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LONGEST = {"quick": 10.0, "full": 150.0}  # seconds


def run(level: str) -> tuple[float, float, float, float, str]:
    """Wall seconds, processor seconds, MB of the largest process, GB moved, and the reason if nothing was measured."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "linkgauge", "diagnose", "--level", level, "--format", "json"]
        began = time.perf_counter()
        with subprocess.Popen([*command, "--output", str(report)]) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - began
        content = json.loads(report.read_text())
    moved = sum(one["bytes"] for one in content["runs"])
    gaps = [gap["why"] for gap in content["not_checked"] if gap["why"].startswith("not measured: ")]
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, moved / 1e9, "; ".join(gaps)


def main(level: str, runs: int) -> int:
    """Print a line per run. Returns the exit code."""
    print(f"{level:12} {'wall s':>8} {'CPU s':>8} {'MB':>8} {'GB moved':>9}")
    walls = []
    for _ in range(runs):
        wall, cpu, memory, moved, why = run(level)
        walls.append(wall)
        print(f"{'':12} {wall:8.2f} {cpu:8.2f} {memory:8.0f} {moved:9.2f}  {why}")
    late = statistics.median(walls) > LONGEST[level]
    print(f"at most {LONGEST[level]:g} s: {'MISSED' if late else 'kept'}")
    return int(late)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--level", choices=list(LONGEST), default="quick")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    sys.exit(main(arguments.level, arguments.runs))
