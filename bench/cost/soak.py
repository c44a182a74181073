"""Whether the service grows with time: an hour of cycles without pauses, then cycles in real time.

    python -m bench.cost.soak [--minutes 10]

Each cycle is followed by one scrape. The output is the memory, descriptors and threads after every thirtieth cycle, and
the growth of memory after warm-up. The service keeps an hour of counts, so the first half is warm-up.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.cost.served import Served, tree
from linkgauge.agent.web.server import Server, serving

HOUR, EVERY, MOST = 240, 30, 1e6  # cycles of 15 s; cycles between two rows; bytes


def row(name: str) -> tuple[int, int, int]:
    """Print memory in bytes, descriptors and threads, and return them."""
    process = psutil.Process()
    now = process.memory_info().rss, process.num_fds(), process.num_threads()
    print(f"{name:24} {now[0] / 1e6:7.2f} MB {now[1]:4} descriptors {now[2]:3} threads", flush=True)
    return now


def cycle(served: Served, server: Server) -> None:
    """One cycle and one scrape."""
    served.cycle()
    connection = http.client.HTTPConnection(*server.address, timeout=60)
    connection.request("GET", "/metrics")
    assert connection.getresponse().read()
    connection.close()


def main() -> None:
    """Run and print. Exits with 1 if something grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--hours", type=int, default=1, help="of cycles without waiting")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        served = Served(tree(Path(folder) / "root"), Path(folder) / "state")
        with serving("127.0.0.1:0", served.pages) as server:
            for number in range(HOUR * arguments.hours):
                cycle(served, server)
                if number % EVERY == EVERY - 1:
                    rows.append(row(f"{number + 1} cycles"))
            warm = rows[len(rows) // 2]
            end = time.monotonic() + 60 * arguments.minutes
            while (left := end - time.monotonic()) > 0:
                begun = time.monotonic()
                cycle(served, server)
                time.sleep(max(0.0, min(left, begun + served.daemon.every - time.monotonic())))
                served.ahead -= served.daemon.every  # real time has passed
            last = row(f"and {arguments.minutes:g} minutes")
        served.host.workers.close()
    grown = last[0] - warm[0]
    print(f"grown since it was warm: {grown / 1e6:.2f} MB, of 1 MB")
    # A difference of one descriptor can be a connection that has just ended.
    sys.exit(grown > MOST or last[1] > warm[1] + 1 or last[2] != warm[2])


if __name__ == "__main__":
    main()
