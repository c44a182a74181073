"""Cost of `linkgauge fleet --prometheus`: python -m bench.cost.fleet_prometheus [NODES]

A real Prometheus scrapes so many generated nodes (500). The output has the series, the memory of Prometheus, and the
time of all queries and of the command. The second line has them for 10,000 nodes, in proportion to the nodes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import psutil

from linkgauge.agent.fleet.prometheus import Access, Client
from linkgauge.agent.fleet.series import rows
from linkgauge.exporters.metrics.prometheus import page
from linkgauge.exporters.metrics.sample import CycleInfo
from tests.support.fleet.reports import reports
from tests.support.peers.prometheus_server import running

NODES, WHOLE = 500, 10_000
_SCRAPE = 60  # seconds


@contextmanager
def exporters(pages: Mapping[str, bytes]) -> Iterator[int]:
    """The port of a server with the page of each node at its path."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(pages[self.path])

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def configuration(paths: Mapping[str, bytes], port: int) -> str:
    """The configuration of Prometheus, as JSON."""
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"instance": path[1:], "__metrics_path__": path}} for path in paths
    ]
    jobs = [{"job_name": "linkgauge", "static_configs": targets}]
    return json.dumps({"global": {"scrape_interval": f"{_SCRAPE}s"}, "scrape_configs": jobs})


def memory(port: int) -> int:
    """Resident bytes of the process that listens on the port."""
    for process in psutil.process_iter(["name", "cmdline"]):
        if process.info["name"] == "prometheus" and any(f":{port}" in word for word in process.info["cmdline"]):
            size: int = process.memory_info().rss
            return size
    return 0


def main(count: int) -> int:
    """Print the figures of these nodes, and those of ten thousand."""
    pages = {
        f"/{one.node}": page(one, CycleInfo(ended=time.time(), seconds=0.1), {"cluster": "x"})
        for one, _ in reports(count)
    }
    with TemporaryDirectory() as folder, exporters(pages) as port:
        config = Path(folder, "prometheus.yml")
        config.write_text(configuration(pages, port))
        with running(config, Path(folder, "data")) as server:
            server.wait(f"count(linkgauge_cycle_duration_seconds) == {count}")
            series = next(iter(server.ask('count({__name__!=""})').values()))
            url = f"http://127.0.0.1:{server.port}"
            start = time.perf_counter()
            read = sum(1 for _ in rows(Client(Access(url=url)).ask))
            queries = time.perf_counter() - start
            start = time.perf_counter()
            command = [sys.executable, "-m", "linkgauge", "fleet", "--prometheus", url, "-o", "/dev/null"]
            subprocess.run(command, check=True)
            whole, size = time.perf_counter() - start, memory(server.port)
    print(f"{'nodes':>7} {'series':>9} {'rows':>9} {'Prometheus MB':>14} {'queries s':>10} {'command s':>10}")
    for nodes in (count, WHOLE):
        values = (one * nodes / count for one in (series, read, size / 1e6, queries, whole))
        one, other, third, fourth, fifth = values
        print(f"{nodes:>7} {one:>9.0f} {other:>9.0f} {third:>14.0f} {fourth:>10.1f} {fifth:>10.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else NODES))
