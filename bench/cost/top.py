"""Cost of `linkgauge top` on a node with eight H100: python -m bench.cost.top [--seconds 30] [--interval 1]

The live view runs on a terminal of 120 columns and 60 lines. The node is a tree of files, as for bench/cost/daemon.py,
whose traffic counters rise between two readings; a stub replaces NVIDIA's driver and answers immediately. The figures
are processor time of the process and of its children, after its start.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

from bench.cost.daemon import of_children
from bench.cost.served import TESTS, Machine, tree
from linkgauge.agent.top.live import show
from linkgauge.agent.top.sampling import LocalFeed
from linkgauge.models.site.schema import Site
from linkgauge.models.traffic.selection import Choice

LINES, COLUMNS = 60, 120
WARM = 5.0  # seconds
_COUNTERS = ("port_rcv_data", "port_xmit_data", "rx_bytes", "tx_bytes")
_STEP = 1_000_000_000


def view(root: Path, results: Path, interval: float) -> None:
    """Show the live view until SIGTERM, and write its cost."""
    host = Machine(root)
    Thread(target=_warm, args=(results,), daemon=True).start()
    show(LocalFeed(host, interval, Site()), Choice(), colour=True)
    began, own, children = json.loads(results.read_text())
    seconds = time.monotonic() - began
    cost = {
        "own": (time.process_time() - own) / seconds,
        "children": (of_children() - children) / seconds,
        "reads": host.counts["reads"],
        "calls": host.counts["NVML calls"],
    }
    results.write_text(json.dumps(cost))
    host.workers.close()


def _warm(results: Path) -> None:
    time.sleep(WARM)
    results.write_text(json.dumps([time.monotonic(), time.process_time(), of_children()]))


def counters(root: Path) -> Iterator[Path]:
    """The files of counters of bytes."""
    for name in _COUNTERS:
        yield from (root / "sys/devices").rglob(name)


def measured(root: Path, seconds: float, interval: float) -> tuple[dict[str, float], int]:
    """The cost of the view, and the bytes that it wrote to the terminal."""
    results, files = root / "results.json", list(counters(root))
    child, terminal = pty.fork()
    if not child:
        view(root, results, interval)
        os._exit(0)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    written: list[int] = []
    reader = Thread(target=_drain, args=(terminal, written), daemon=True)
    reader.start()
    until, total = time.monotonic() + WARM + seconds, 0
    while time.monotonic() < until:
        total += _STEP
        for path in files:
            path.write_text(f"{total}\n")
        time.sleep(interval)
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
    reader.join(5.0)
    found: dict[str, float] = json.loads(results.read_text())
    return found, sum(written)


def _drain(terminal: int, written: list[int]) -> None:
    try:
        while part := os.read(terminal, 1 << 16):
            written.append(len(part))
    except OSError:
        pass  # the other end was closed


def of_stub(root: Path) -> float:
    """The share of the driver's stub in the time of the children."""
    command = [sys.executable, str(Path(__file__).with_name("driver.py")), "--share", str(root / "driver.toml")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), *sys.path))}
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--interval", type=float, default=1.0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = tree(Path(folder) / "root")
        cost, size = measured(root, arguments.seconds, arguments.interval)
        share = of_stub(root)
    both = cost["own"] + cost["children"]
    print(f"{both:.2%} of a core at {arguments.interval:g} s: {cost['own']:.2%}, its children {cost['children']:.2%}")
    rounds = (WARM + arguments.seconds) / arguments.interval
    print(f"of the children's time the driver's stub takes {share:.0%}")
    print(f"{cost['reads'] / rounds:.0f} file reads and {cost['calls'] / rounds:.0f} NVML calls per interval")
    print(f"{size / rounds / 1000:.1f} kB per interval to the terminal")


if __name__ == "__main__":
    main()
