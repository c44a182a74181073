"""The cost of archives: python -m bench.cost.archives

The processor seconds to read the tree of some described nodes from a folder, from a tar file and from a compressed one,
and the peak memory of a child that gets a bomb. The exit code is 1 if the archives together take more than 1.5 times as
long as the folders, or if a bomb is not refused or takes more than 400 MB.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from linkgauge.agent.inputs.resolve import from_paths
from tests.support.nodes.described import NAMES, node
from tests.support.nodes.trees import write

MOST_TIMES, MOST_MEMORY = 1.5, 400e6
RUNS = 3
TREE = ("sys", "proc", "etc", "dev", "run", "usr", "var", "lib")
BOMBS = ("gz", "bz2", "tar.gz")
ZEROS = 1 << 30


def seconds(read: Callable[[], object]) -> float:
    """The shortest of some runs, in processor seconds."""
    took = []
    for _ in range(RUNS):
        start = time.process_time()
        read()
        took.append(time.process_time() - start)
    return min(took)


def of_node(name: str, folder: Path) -> dict[str, float]:
    """The seconds for the folder and the archives of a node."""
    recorded = node(name)
    write(folder / "n1", {path: entry for path, entry in recorded.entries.items() if path.split("/")[0] in TREE})
    with tarfile.open(folder / "n1.tar", "w") as archive:
        archive.add(folder / "n1", "n1")
    with tarfile.open(folder / "n1.tar.gz", "w:gz", format=tarfile.GNU_FORMAT) as archive:
        archive.add(folder / "n1", "n1")
    return {one: seconds(partial(from_paths, [str(folder / one)])) for one in ("n1", "n1.tar", "n1.tar.gz")}


def bomb(kind: str, folder: Path) -> tuple[int, float]:
    """The exit code of `diagnose` for a bomb, and its peak memory in bytes."""
    path, zeros = folder / f"bomb.{kind}", folder / "zeros"
    zeros.touch()
    os.truncate(zeros, ZEROS)
    unpacked = ["tar", "-C", str(folder), "-cf", "-", "zeros"] if kind == "tar.gz" else ["cat", str(zeros)]
    pack = ["bzip2" if kind == "bz2" else "gzip", "-1"]
    with path.open("wb") as packed, subprocess.Popen(unpacked, stdout=subprocess.PIPE) as source:
        subprocess.run(pack, stdin=source.stdout, stdout=packed, check=True)
    child = subprocess.Popen(
        [sys.executable, "-m", "linkgauge", "diagnose", "--from", str(path)], stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(child.pid, 0)
    return os.waitstatus_to_exitcode(status), used.ru_maxrss * 1024.0


def main() -> int:
    """Print the tables. Returns the exit code."""
    sums = dict.fromkeys(("n1", "n1.tar", "n1.tar.gz"), 0.0)
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            for kind, took in of_node(name, Path(folder)).items():
                sums[kind] += took
    print(f"{len(NAMES)} nodes: " + ", ".join(f"{kind} {took:.2f} s" for kind, took in sums.items()))
    failed = max(sums.values()) > MOST_TIMES * sums["n1"]
    with tempfile.TemporaryDirectory() as folder:
        for kind in BOMBS:
            code, memory = bomb(kind, Path(folder))
            print(f"bomb.{kind}: exit code {code}, {memory / 1e6:.0f} MB")
            failed |= code == 0 or memory > MOST_MEMORY
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
