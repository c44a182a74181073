"""Scrapes with the right password while other clients send wrong ones.

    python -m bench.cost.flood_passwords [--seconds 60] [--threads 16] [--cost 10] [--same-address]

The server, the clients with wrong passwords, and the scraper are three processes. The clients use the address
127.0.0.2; with --same-address they use that of the scraper. The first scrape comes after the flood began, so its
password is not verified before. Exits with 1 if a scrape failed, or if the 99th percentile of the durations is above
200 ms, the memory above 150 MB, or the log above 1 MB.
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections import Counter
from pathlib import Path
from statistics import quantiles

import bcrypt

SERVER = "tests.support.programs.web_process"
GOOD, BAD = "127.0.0.1", "127.0.0.2"
EVERY = 0.1  # seconds between two scrapes
MOST_SECONDS, MOST_MEMORY, MOST_LOG = 0.2, 150e6, 1e6  # seconds, bytes, bytes


def status(port: int, password: str, address: str) -> int:
    """The status of one request for /metrics from this address, on a new connection."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(address, 0))
    basic = b64encode(f"prom:{password}".encode()).decode()
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Basic {basic}"})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def flood(port: int, threads: int, address: str) -> None:
    """Send wrong passwords from many threads until standard input ends. Print the number of each status."""
    counts: Counter[str] = Counter()
    ended = threading.Event()

    def send(number: int) -> None:
        sent = 0
        while not ended.is_set():
            sent += 1
            try:
                counts[str(status(port, f"wrong-{number}-{sent}", address))] += 1
            except OSError as error:
                counts[type(error).__name__] += 1

    senders = [threading.Thread(target=send, args=(number,)) for number in range(threads)]
    for sender in senders:
        sender.start()
    print("begun", flush=True)
    sys.stdin.read()
    ended.set()
    for sender in senders:
        sender.join()
    print(", ".join(f"{count} x {what}" for what, count in sorted(counts.items())))


def scrapes(port: int, seconds: float) -> tuple[list[float], int]:
    """The durations of the scrapes in seconds, and how many failed."""
    durations, failed = [], 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        failed += status(port, "right", GOOD) != 200
        durations.append(time.monotonic() - began)
        time.sleep(EVERY)
    return durations, failed


def started(*command: str, log: int = subprocess.DEVNULL) -> subprocess.Popen[str]:
    """A Python program with pipes for its input and output."""
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-m", *command], stdin=pipe, stdout=pipe, stderr=log, text=True)


def measure(arguments: argparse.Namespace, folder: Path) -> bool:
    """Run the flood and print the result. Returns whether every limit holds."""
    config, log = folder / "web.yml", folder / "log"
    hashed = bcrypt.hashpw(b"right", bcrypt.gensalt(arguments.cost)).decode()
    config.write_text(f"basic_auth_users: {{prom: '{hashed}'}}\n")
    address = GOOD if arguments.same_address else BAD
    with log.open("w") as errors, started(SERVER, str(config), log=errors.fileno()) as server:
        assert server.stdin
        assert server.stdout
        port = int(server.stdout.readline())
        own = (__spec__.name, "--flood", str(port), address, "--threads", str(arguments.threads))
        if arguments.same_address:
            status(port, "right", GOOD)  # verified before the flood
        with started(*own) as clients:
            assert clients.stdout
            clients.stdout.readline()
            durations, failed = scrapes(port, arguments.seconds)
            sent, _ = clients.communicate("")
        server.stdin.close()
        memory = int(server.stdout.readline())
    p99 = quantiles(durations, n=100)[98]
    print(f"wrong passwords: {sent.strip()}")
    print(f"{len(durations)} scrapes, {failed} failed; first {durations[0] * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms")
    print(f"longest {max(durations) * 1e3:.0f} ms; memory {memory / 1e6:.0f} MB; log {os.stat(log).st_size} bytes")
    return not failed and p99 < MOST_SECONDS and memory < MOST_MEMORY and os.stat(log).st_size < MOST_LOG


def main() -> int:
    """Measure, or with --flood be the process of the clients with wrong passwords."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--cost", type=int, default=10, help="of the bcrypt hash")
    parser.add_argument("--same-address", action="store_true")
    parser.add_argument("--flood", nargs=2, metavar=("PORT", "ADDRESS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.flood:
        flood(int(arguments.flood[0]), arguments.threads, arguments.flood[1])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return 0 if measure(arguments, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
