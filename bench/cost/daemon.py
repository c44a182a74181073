"""What the service costs a node, beside node_exporter: both read the same tree of eight H100, in one run.

    python -m bench.cost.daemon [--cycles 40]

Needs Debian's prometheus-node-exporter. The service runs in a process of its own, as with `--root`; NVIDIA's driver is
one that answers at once. Cycles follow each other without the 15 s between them: an hour has 240.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import mean, quantiles

import psutil

from bench.cost.served import FUNCTIONS, TESTS, Served, tree
from linkgauge.agent.web.server import serving

SCRAPES, CLIENTS, WARM = 1000, (1, 10, 50), 5
COLLECTORS = ("infiniband", "netclass", "nvme", "mdadm", "diskstats", "cpu", "pcidevice")  # the last where it has it
PORT = 19100
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"


def serve(root: str, state: str) -> None:
    """The measured process: cycles as many as each line of standard input says, and their costs as a line of JSON."""
    served = Served(Path(root), Path(state))
    with serving("127.0.0.1:0", served.pages) as server:
        print(server.address[1], flush=True)
        for line in sys.stdin:
            served.bursts.clear()
            served.host.asked.clear()
            before = of_children()
            took = [served.cycle() for _ in range(int(line))]
            told = {
                "cycle": mean(took),
                "children": (of_children() - before) / len(took),
                "burst": max(served.bursts),
                **served.host.asked,
            }
            print(json.dumps(told), flush=True)
    served.host.workers.close()


def of_children() -> float:
    """Seconds of a processor that children have taken."""
    return sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children())


@contextmanager
def linkgauge(root: Path, state: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The measured process, and its port."""
    command = [sys.executable, __file__, "--serve", str(root), str(state)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process, int(process.stdout.readline())
        assert process.stdin
        process.stdin.close()


def cycles(process: subprocess.Popen[str], number: int) -> dict[str, float]:
    """What so many cost."""
    assert process.stdin
    assert process.stdout
    print(number, file=process.stdin, flush=True)
    told: dict[str, float] = json.loads(process.stdout.readline())
    return told


@contextmanager
def node_exporter(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The peer, which answers."""
    program = shutil.which("prometheus-node-exporter") or sys.exit("install prometheus-node-exporter")
    known = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    wanted = [f"--collector.{name}" for name in COLLECTORS if f"--collector.{name} " in known.stdout + known.stderr]
    command = [
        program,
        f"--path.sysfs={root}/sys",
        "--collector.disable-defaults",
        *wanted,
        f"--web.listen-address=127.0.0.1:{PORT}",
        "--web.max-requests=0",
        "--log.level=error",
    ]
    with subprocess.Popen(command) as process:
        try:
            while not _listens():
                time.sleep(0.05)
            yield process
        finally:
            process.terminate()


def _listens() -> bool:
    try:
        return scrape(PORT) > 0
    except OSError:
        return False


def scrape(port: int) -> float:
    """Seconds until the whole page is there, over a connection of its own.

    Without a library for HTTP: its time is that of the client, of which there are many in one interpreter.
    """
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(REQUEST)
        answer = b"".join(iter(lambda: connection.recv(1 << 18), b""))
    if not answer.startswith(b"HTTP/1.1 200 "):
        raise OSError(answer.partition(b"\r\n")[0].decode())
    return time.perf_counter() - began


def scraped(name: str, pid: int, port: int) -> None:
    """Scrape, and print what it took."""
    process = psutil.Process(pid)
    for clients in CLIENTS:
        before = sum(process.cpu_times()[:2])
        with ThreadPoolExecutor(clients) as pool:
            times = sorted(pool.map(lambda _: scrape(port), range(SCRAPES)))
        cpu = sum(process.cpu_times()[:2]) - before
        cuts = quantiles(times, n=100)
        print(
            f"{name:14} {clients:3} clients: {cpu:6.2f} s of a processor for {SCRAPES} scrapes, "
            f"p50 {cuts[49] * 1e3:6.1f} ms, p99 {cuts[98] * 1e3:6.1f} ms"
        )
    print(f"{name:14} {process.memory_info().rss / 1e6:.1f} MB", end="")
    print("".join(f", child {one.memory_info().rss / 1e6:.1f} MB" for one in process.children()))


def cost(process: subprocess.Popen[str], number: int) -> None:
    """Measure cycles, and print."""
    first = cycles(process, 1)
    cycles(process, WARM)
    told = cycles(process, number)
    print(f"first cycle: {first['cycle'] * 1e3:.0f} ms, longest burst {first['burst'] * 1e3:.0f} ms")
    print(
        f"a cycle: {told['cycle'] * 1e3:.1f} ms, its children {told['children'] * 1e3:.1f} ms, longest burst "
        f"{told['burst'] * 1e3:.1f} ms, {told['reads'] / number:.0f} reads, "
        f"{told['NVML calls'] / number:.0f} NVML calls"
    )
    both = told["cycle"] + told["children"]
    print(f"of a core, every 15 s: {both / 15:.2%} ({told['cycle'] / 15:.2%} without the children)")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=40)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(*given.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        for functions in reversed(FUNCTIONS):
            print(f"{functions} PCI functions")
            root = tree(Path(folder) / f"{functions}", functions)
            with linkgauge(root, Path(folder) / "state") as (process, port):
                cost(process, given.cycles)
                if functions == FUNCTIONS[0]:
                    scraped("linkgauge", process.pid, port)
        command = [sys.executable, str(Path(__file__).with_name("driver.py")), "--share", str(root / "driver.toml")]
        environment = {**os.environ, "PYTHONPATH": str(TESTS)}
        stub = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        print(f"of the children's time the driver's stub takes {float(stub):.0%}")
        with node_exporter(root) as exporter:
            scraped("node_exporter", exporter.pid, PORT)


if __name__ == "__main__":
    main()
