"""A real Prometheus that scrapes our pages and pages in the format of other exporters."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

LONGEST = 120.0  # limit in seconds for an answer on a slow machine


class Prometheus:
    """A running server and its query results."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._at = f"http://127.0.0.1:{port}/api/v1/query"

    def ask(self, query: str) -> dict[str, float]:
        """Values by labels in alphabetical order, without the metric name."""
        with urllib.request.urlopen(
            f"{self._at}?{urllib.parse.urlencode({'query': query})}", timeout=LONGEST
        ) as answer:
            series: list[Any] = json.load(answer)["data"]["result"]
        return {labels(one["metric"]): float(one["value"][1]) for one in series}

    def wait(self, query: str) -> dict[str, float]:
        """The result, once it is not empty."""
        return self._until(query, empty=False)

    def wait_for_nothing(self, query: str) -> None:
        """Wait until the result has no series."""
        self._until(query, empty=True)

    def _until(self, query: str, empty: bool) -> dict[str, float]:
        end = time.monotonic() + LONGEST
        while time.monotonic() < end:
            try:
                if bool(found := self.ask(query)) != empty:
                    return found
            except OSError:
                pass  # still starting
            time.sleep(0.2)
        raise TimeoutError(f"{query}: {'something' if empty else 'nothing'} is there after {LONGEST:g} s")


def labels(metric: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(metric.items()) if name not in ("__name__", "instance"))


@contextmanager
def prometheus(folder: Path, targets: Mapping[str, int]) -> Iterator[Prometheus]:
    """A server that scrapes the port of each job once per second. All have the instance "hgx"."""
    jobs = [
        {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": {"instance": "hgx"}}]}
        for name, port in targets.items()
    ]
    config = folder / "prometheus.yml"
    config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": jobs}))  # JSON is valid YAML
    with running(config, folder / "data") as server:
        yield server


@contextmanager
def running(config: Path, data: Path) -> Iterator[Prometheus]:
    """A server with this configuration and data folder."""
    port = free_port()
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            yield Prometheus(port)
        finally:
            server.kill()


@contextmanager
def text_server(text: str, host: str = "127.0.0.1", kind: str = "text/plain; version=0.0.4") -> Iterator[int]:
    """The port of a server that returns the text for every request. `kind` is its content type."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with ThreadingHTTPServer((host, 0), Answer) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def free_port() -> int:
    """A port without a listener at this moment."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
