"""Probes and the tools that experts trust, in turns.

    python -m bench.accuracy.tool_agreement [--rounds 9] [--only disk]

host_memory is compared with a copy in the manner of STREAM (stream_copy.c) and with mbw; disk_read with fio at the same
block size and depth; TCP with iperf3 over a wire between two network namespaces. The program reports and skips
comparisons whose tools or permissions are missing. The exit code is 1 if a median of ratios is outside its limits.

Peers run at the same nice level as probes. Both members of a pair are measured in turns, and the median of their ratios
counts. A round of memory is repeated if other programs used the processors. Copies of GPUs are not included, because
they need a GPU and nvbandwidth built on its machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from bench.accuracy.networks.namespaces import PEER, Unavailable, cap, inside, joined
from linkgauge.models.facts.jsonl import decode
from linkgauge.models.facts.records import Observation, Record
from linkgauge.probes.host.live import Live

HERE = Path(__file__).resolve().parent
SIZE, PASSES, THREADS = 64, 8, 4  # MiB per buffer, passes, and maximum number of threads, as in host_memory
FILE, BLOCKS, DEPTH = 2048, "1M", 8  # MiB of the file, block size, and queue depth, as in disk_read
SEVERAL = 4  # readings of a disk per round
MEMORY, DISK, TCP = (0.97, 1.03), (0.90, 1.05), (0.95, 1.05)
NICE = ("nice", "-n", "10")  # the nice level of probes (probes/calls/entrypoint.py)
# numpy requests huge pages if permitted. This makes glibc do the same. Without huge pages a copy is a tenth slower, and
# slower still in a virtual machine.
HUGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
DISTURBED = 0.05  # limit of the processor time that other programs use
TRIES = 12  # attempts per round


class Pair(Struct, frozen=True):
    """A probe and a peer. Both return bytes per second."""

    name: str
    ours: Callable[[], float]
    peers: Callable[[], float]
    allowed: tuple[float, float]
    alone: bool = False  # other programs affect one of them more than the other


Set: TypeAlias = Callable[[], AbstractContextManager[list[Pair]]]


def main() -> int:
    """Print the table. Returns 0 if all ratios are within their limits."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--only", choices=("memory", "disk", "tcp"))
    options.add_argument("--folder", default=tempfile.gettempdir(), help="on the disk that is read")
    arguments = options.parse_args()
    print(f"load {os.getloadavg()[0]:.2f} at the beginning, {os.cpu_count()} CPUs, {arguments.rounds} rounds\n")
    print(
        "| probe and peer | GB/s | its peer's | ratio | from | to | rounds | allowed |\n"
        "|---|---:|---:|---:|---:|---:|---|---|"
    )
    sets: dict[str, Set] = {"memory": memory, "disk": partial(disk, arguments.folder), "tcp": tcp}
    good = True
    for name, pairs in sets.items():
        if arguments.only in (None, name):
            try:
                with pairs() as found:
                    for pair in found:
                        good &= compared(pair, arguments.rounds)
            except Unavailable as why:
                print(f"| {name}: not run, {why} | | | | | | | |")
    print("| copies of GPUs: not run, no GPU | | | | | | | |" if not Path("/dev/nvidiactl").exists() else "")
    print(f"\nload {os.getloadavg()[0]:.2f} at the end")
    return 0 if good else 1


def compared(pair: Pair, rounds: int) -> bool:
    """Print a row: the medians of both and of their ratios. The order changes from round to round."""
    ours, theirs, tries = list[float](), list[float](), 0
    while len(ours) < rounds and tries < TRIES * rounds:
        tries += 1
        before = by_others()
        mine = pair.ours() if tries % 2 else None
        peers = pair.peers()
        mine = pair.ours() if mine is None else mine
        seconds, total = (after - then for after, then in zip(by_others(), before, strict=True))
        if not pair.alone or seconds < DISTURBED * total:
            ours.append(mine)
            theirs.append(peers)
    if not ours:
        print(f"| {pair.name}: not run, other programs are busy | | | | | | | |", flush=True)
        return False
    ratios = sorted(one / other for one, other in zip(ours, theirs, strict=True))
    ratio, (low, high) = statistics.median(ratios), pair.allowed
    good = low <= ratio <= high
    allowed = f"{low:.2f}–{high:.2f}{' MISSED' * (not good)}"
    print(
        f"| {pair.name} | {statistics.median(ours) / 1e9:.3f} | {statistics.median(theirs) / 1e9:.3f} | {ratio:.3f} "
        f"| {ratios[0]:.2f} | {ratios[-1]:.2f} | {len(ours)} of {tries} | {allowed} |",
        flush=True,
    )
    return good


def by_others() -> tuple[float, float]:
    """Seconds of processor time that other programs used so far, and all seconds of processor time."""
    cells = [int(cell) for cell in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    ours = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return (sum(cells) - cells[3] - cells[4]) / tick - ours, sum(cells) / tick


@contextmanager
def memory() -> Iterator[list[Pair]]:
    """On all CPUs that a probe uses, and on one, because mbw has one thread."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Unavailable("needs a C compiler")
    node = "numa0"
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/stream_copy"
        subprocess.run([compiler, "-O3", "-pthread", HERE / "stream_copy.c", "-o", program], check=True)
        every = os.sched_getaffinity(0)
        one = {min(every)}
        count = min(THREADS, len(every))
        beside = [
            (f"{count} threads; as STREAM", every, on(every, stream, program, count)),
            ("1 thread; as STREAM", one, on(one, stream, program, 1)),
            *([("1 thread; mbw", one, on(one, mbw))] if shutil.which("mbw") else []),
        ]
        yield [
            Pair(f"host_memory, {name}", on(cpus, copy, node), peer, MEMORY, alone=True) for name, cpus, peer in beside
        ]


def on(cpus: set[int], measure: Callable[..., float], *args: object) -> Callable[[], float]:
    """The same measurement on these CPUs only. Child processes inherit the limit."""

    def measured() -> float:
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cpus)
        try:
            return measure(*args)
        finally:
            os.sched_setaffinity(0, before)

    return measured


def copy(node: str) -> float:
    """Rate of host_memory."""
    return rate_of(Live().call("host_memory", node, deadline=60))


def stream(program: str, threads: int) -> float:
    """Rate of stream_copy.c."""
    return float(output([program, str(threads), str(SIZE), str(PASSES)], HUGE))


def mbw() -> float:
    """The best rate of mbw over the same number of passes. It counts each byte once, in MiB."""
    text = output(["mbw", "-t0", "-a", "-n", str(PASSES), str(SIZE)], HUGE)
    return max(float(rate) for rate in re.findall(r"Copy: ([0-9.]+) MiB/s", text)) * (1 << 20)


@contextmanager
def disk(folder: str) -> Iterator[list[Pair]]:
    """A file of random bytes that both read from its beginning, without the page cache."""
    if shutil.which("fio") is None:
        raise Unavailable("needs fio")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        file = f"{place}/data"
        with open(file, "wb") as stream:
            for _ in range(FILE):
                stream.write(os.urandom(1 << 20))
            os.fsync(stream.fileno())
        os.utime(file, (0, 0))
        yield [
            Pair(f"disk_read; fio libaio, depth {DEPTH}", mean(partial(read, place)), mean(partial(fio, file)), DISK)
        ]


def mean(measure: Callable[[], float]) -> Callable[[], float]:
    """The mean of several readings: a reading of a quarter of a second on a virtual disk varies a lot."""
    return lambda: statistics.mean(measure() for _ in range(SEVERAL))


def read(folder: str) -> float:
    """Rate of disk_read."""
    return rate_of(Live().call("disk_read", "mount", "quick", folder, deadline=60))


def fio(file: str) -> float:
    """Rate of fio with the duration and block size of disk_read."""
    output_json = json.loads(
        output(
            [
                "fio",
                "--name=read",
                f"--filename={file}",
                "--readonly",
                "--rw=read",
                "--direct=1",
                "--ioengine=libaio",
                f"--iodepth={DEPTH}",
                f"--bs={BLOCKS}",
                "--runtime=250ms",
                "--thread",
                "--invalidate=0",
                "--output-format=json",
            ]
        )
    )
    return float(output_json["jobs"][0]["read"]["bw_bytes"])


@contextmanager
def tcp() -> Iterator[list[Pair]]:
    """TCP with and without rate limits."""
    with joined():
        yield [
            Pair(f"TCP, {rate or 'no cap'}; iperf3", partial(capped, rate, probe), partial(capped, rate, iperf3), TCP)
            for rate in ("200mbit", "1gbit", None)
        ]


def capped(rate: str | None, measure: Callable[[], float]) -> float:
    """A measurement over the wire at this rate."""
    cap(rate)
    return measure()


def probe() -> float:
    """Rate of port_loopback, which calls iperf3 twice."""
    lines = output(
        inside(sys.executable, "-m", "linkgauge.probes.calls.entrypoint", "port_loopback", "tcp", "full", PEER)
    )
    return rate_of(map(decode, lines.splitlines()))


def iperf3() -> float:
    """Rate of iperf3 with an expert's options."""
    output_json = json.loads(output(inside("iperf3", "-c", PEER, "-P", "4", "-t", "2", "--json")))
    return float(output_json["end"]["sum_received"]["bits_per_second"]) / 8


def rate_of(records: Iterator[Record]) -> float:
    """The rate in the records; there must be exactly one."""
    found = list(records)
    rates = [one.value for one in found if isinstance(one, Observation) and one.quantity == "rate"]
    if len(rates) != 1:
        raise Unavailable(f"expected one rate, not {found}")
    return rates[0]


def output(command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """The output of a program."""
    with_ours = {**os.environ, **(env or {})}
    return subprocess.run([*NICE, *command], check=True, capture_output=True, text=True, env=with_ours).stdout


if __name__ == "__main__":
    sys.exit(main())
