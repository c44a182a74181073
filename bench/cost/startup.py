"""Run time and memory of linkgauge, compared with lstopo, its nearest peer. Both run on one machine in one run.

    python -m bench.cost.startup

Each command runs ten times, in turns, after one run to fill the page cache. The output is the median, fastest and
slowest wall time, the peak of resident memory, and the ratios to lstopo. lstopo does not evaluate anything. It shows
the cost of reading a machine.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from linkgauge.probes.host.entries import Link
from linkgauge.probes.host.recorded import parse
from linkgauge.probes.parsing.parsers import cpu_list

RUNS = 10
NODE = Path(__file__).parents[2] / "tests/nodes/hgx-h100.toml"
PATH = os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)))
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, include/uapi/linux/prctl.h


@dataclass
class Program:
    """A command, its limits in seconds and megabytes, and the measured values."""

    name: str
    command: tuple[str, ...]
    most: tuple[float, float] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Run once, as the child of a shell that leaves it to this process.

        A direct child would start with this process's peak of memory.
        """
        silent = [(os.POSIX_SPAWN_OPEN, out, os.devnull, os.O_WRONLY, 0) for out in (1, 2)]
        environment = {**os.environ, "PATH": PATH, **self.environment}
        start = time.perf_counter()
        shell = os.posix_spawn("/bin/sh", ["sh", "-c", '"$@" &', "sh", *self.command], environment, file_actions=silent)
        for child, status, used in (os.wait4(-1, 0), os.wait4(-1, 0)):
            if child != shell:
                self.seconds.append(time.perf_counter() - start)
                self.megabytes.append(used.ru_maxrss * 1024 / 1e6)
                if os.waitstatus_to_exitcode(status) not in (0, 1, 2, 3):  # the exit codes of diagnose
                    raise ChildProcessError(f"{' '.join(self.command)} is not installed, or fails")


def programs(folder: Path) -> Iterator[Program]:
    """The programs. The first one is the peer."""
    linkgauge = shutil.which("linkgauge", path=PATH) or "linkgauge"
    capture, tree = str(folder / "node.capture"), folder / "tree"
    yield Program("lstopo", ("lstopo", "--of", "console"))
    yield Program("linkgauge --help", (linkgauge, "--help"), (0.15, 60))
    yield Program("linkgauge diagnose --passive", (linkgauge, "diagnose", "--passive"), (0.5, 60))
    subprocess.run([linkgauge, "capture", "--synthetic", NODE, capture], check=True)
    write(Path(capture).read_text(), tree)
    yield Program("lstopo, 8-GPU node", ("lstopo", "--of", "console"), None, {"HWLOC_FSROOT": str(tree)})
    yield Program("linkgauge diagnose --from, the same", (linkgauge, "diagnose", "--from", capture), (0.5, 60))


def write(capture: str, root: Path) -> None:
    """Write the files and links of a capture to a disk, with the CPU masks that lstopo reads.

    A capture has no configuration space, so lstopo shows each bus separately.
    """
    for path, entry in parse(capture).entries.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(entry, str):
            place.write_text(f"{entry}\n")
        elif isinstance(entry, Link) and entry.target and isinstance(entry.target, str):
            up = os.path.relpath(root, place.parent) if entry.target.startswith("/") else ""
            place.symlink_to(up + entry.target)
        if isinstance(entry, str) and path.endswith(("cpus_list", "siblings_list", "cpulist")):
            mask = f"{sum(1 << cpu for cpu in cpu_list(entry)):064x}"
            name = place.name.replace("cpulist", "cpumap").removesuffix("_list")
            place.with_name(name).write_text(",".join(mask[i : i + 8] for i in range(0, 64, 8)) + "\n")


def row(program: Program, peer: Program) -> str:
    """A line of the table."""
    wall, peak = median(program.seconds), max(program.megabytes)
    text = f"{program.name:36} {wall:.3f} s ({min(program.seconds):.3f} to {max(program.seconds):.3f})  {peak:5.1f} MB"
    text += f"  {wall / median(peer.seconds):4.1f} x  {peak / max(peer.megabytes):4.1f} x"
    if program.most:
        within_limits = wall <= program.most[0] and peak <= program.most[1]
        text += f"  {program.most[0]} s and {program.most[1]} MB: {'kept' if within_limits else 'MISSED'}"
    return text


def main() -> None:
    """Measure, and print the table."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)  # orphaned processes become children of this process
    with tempfile.TemporaryDirectory() as folder:
        able = list(programs(Path(folder)))
        try:
            for program in able * (1 + RUNS):
                program.run()
        except ChildProcessError as error:
            sys.exit(str(error))
    print(f"{f'median of {RUNS}':36} wall (fastest to slowest)     memory  times the first  target")
    for program in able:
        program.seconds = program.seconds[-RUNS:]
        print(row(program, able[0]))


if __name__ == "__main__":
    main()
