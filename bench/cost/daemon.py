"""Cost of the service on a node, compared with node_exporter. Both read the same tree of a machine with eight H100, in
one run.

    python -m bench.cost.daemon [--cycles 40]

Needs Debian's prometheus-node-exporter. The service runs in a process of its own, as with `--root`. A stub replaces
NVIDIA's driver and answers immediately. Cycles follow each other without the pause of 15 s; an hour has 240 cycles.
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
# the last one only if node_exporter has it
COLLECTORS = ("infiniband", "netclass", "nvme", "mdadm", "diskstats", "cpu", "pcidevice")
PORT = 19100
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"


def serve(root: str, state: str) -> None:
    """The measured process.

    It reads numbers of cycles from standard input and prints their cost as one JSON line each.
    """
    served = Served(Path(root), Path(state))
    with serving("127.0.0.1:0", served.pages) as server:
        print(server.address[1], flush=True)
        for line in sys.stdin:
            served.bursts.clear()
            served.host.counts.clear()
            before = of_children()
            took = [served.cycle() for _ in range(int(line))]
            costs = {
                "cycle": mean(took),
                "children": (of_children() - before) / len(took),
                "burst": max(served.bursts),
                **served.host.counts,
            }
            print(json.dumps(costs), flush=True)
    served.host.workers.close()


def of_children() -> float:
    """Processor time of the child processes, in seconds."""
    return sum(sum(child.cpu_times()[:2]) for child in psutil.Process().children())


@contextmanager
def linkgauge(root: Path, state: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The measured process, and its port."""
    command = [sys.executable, "-m", "bench.cost.daemon", "--serve", str(root), str(state)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield process, int(process.stdout.readline())
        assert process.stdin
        process.stdin.close()


def cycles(process: subprocess.Popen[str], number: int) -> dict[str, float]:
    """Run this number of cycles and return their cost."""
    assert process.stdin
    assert process.stdout
    print(number, file=process.stdin, flush=True)
    costs: dict[str, float] = json.loads(process.stdout.readline())
    return costs


@contextmanager
def node_exporter(root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run node_exporter; it is ready when the block begins."""
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
    """Seconds until the whole page is received over a new connection.

    Uses a plain socket: an HTTP library would add the time of many clients in one interpreter.
    """
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(REQUEST)
        answer = b"".join(iter(lambda: connection.recv(1 << 18), b""))
    if not answer.startswith(b"HTTP/1.1 200 "):
        raise OSError(answer.partition(b"\r\n")[0].decode())
    return time.perf_counter() - began


def scraped(name: str, pid: int, port: int) -> None:
    """Scrape, and print the processor time and the latencies."""
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
    """Measure cycles, and print their cost."""
    first = cycles(process, 1)
    cycles(process, WARM)
    costs = cycles(process, number)
    print(f"first cycle: {first['cycle'] * 1e3:.0f} ms, longest burst {first['burst'] * 1e3:.0f} ms")
    print(
        f"a cycle: {costs['cycle'] * 1e3:.1f} ms, its children {costs['children'] * 1e3:.1f} ms, longest burst "
        f"{costs['burst'] * 1e3:.1f} ms, {costs['reads'] / number:.0f} reads, "
        f"{costs['NVML calls'] / number:.0f} NVML calls"
    )
    both = costs["cycle"] + costs["children"]
    print(f"of a core, every 15 s: {both / 15:.2%} ({costs['cycle'] / 15:.2%} without the children)")


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=40)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(*arguments.serve)
        return
    with tempfile.TemporaryDirectory() as folder:
        for functions in reversed(FUNCTIONS):
            print(f"{functions} PCI functions")
            root = tree(Path(folder) / f"{functions}", functions)
            with linkgauge(root, Path(folder) / "state") as (process, port):
                cost(process, arguments.cycles)
                if functions == FUNCTIONS[0]:
                    scraped("linkgauge", process.pid, port)
        command = [sys.executable, str(Path(__file__).with_name("driver.py")), "--share", str(root / "driver.toml")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), *sys.path))}
        stub = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        print(f"of the children's time the driver's stub takes {float(stub):.0%}")
        with node_exporter(root) as exporter:
            scraped("node_exporter", exporter.pid, PORT)


if __name__ == "__main__":
    main()
