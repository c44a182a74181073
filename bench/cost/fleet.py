"""Time, memory and accuracy of `linkgauge fleet` with generated reports: python -m bench.cost.fleet [COUNT]...

One node in a hundred is broken, half of them by a fault that its own report does not have. The exit code is 1 if 10,000
reports take more than 30 s or 2 GB, or if precision or recall of the nodes to drain is below 0.99.
"""

from __future__ import annotations

import csv
import io
import os
import resource
import subprocess
import sys
import time
from tempfile import TemporaryDirectory

import psutil

from tests.support.fleet.reports import write

COUNTS = (1000, 3000, 10000)
SECONDS, BYTES, SHARE = 30.0, 2e9, 0.99
_POLL = 0.05  # seconds between two looks at the memory


def memory(process: psutil.Process) -> int:
    """Resident bytes of the process and its children."""
    total = 0
    for one in (process, *process.children(recursive=True)):
        try:
            total += one.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def processor() -> float:
    """Seconds of all processors that ended children have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(folder: str) -> tuple[float, float, int, str]:
    """Seconds, seconds of processors, the highest memory in bytes, and the table of nodes."""
    table = os.path.join(folder, "nodes.csv")
    start, before = time.perf_counter(), processor()
    command = [sys.executable, "-m", "linkgauge", "fleet", folder, "--format", "csv", "-o", table]
    most = 0
    with subprocess.Popen(command) as child:
        process = psutil.Process(child.pid)
        while child.poll() is None:
            try:
                most = max(most, memory(process))
            except psutil.NoSuchProcess:
                break
            time.sleep(_POLL)
    taken, used = time.perf_counter() - start, processor() - before
    with open(table) as file:
        return taken, used, most, file.read()


def accuracy(table: str, broken: frozenset[str]) -> tuple[float, float]:
    """Precision and recall of the nodes to drain."""
    drained = {row["node"] for row in csv.DictReader(io.StringIO(table)) if row["drain"] == "1"}
    right = len(drained & broken)
    return right / len(drained) if drained else 0.0, right / len(broken)


def main(counts: tuple[int, ...]) -> int:
    """Print one line for each number of reports."""
    failed = False
    print(f"{'reports':>8} {'seconds':>8} {'processor s':>12} {'MB':>6} {'precision':>10} {'recall':>7}")
    for count in counts:
        with TemporaryDirectory() as folder:
            broken = write(folder, count)
            taken, used, most, table = run(folder)
        precision, recall = accuracy(table, broken)
        print(f"{count:>8} {taken:>8.1f} {used:>12.1f} {most / 1e6:>6.0f} {precision:>10.3f} {recall:>7.3f}")
        failed = failed or taken > SECONDS or most > BYTES or min(precision, recall) < SHARE
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(tuple(map(int, sys.argv[1:])) or COUNTS))
