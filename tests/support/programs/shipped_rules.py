"""A real Prometheus with the rules of deploy/prometheus, and a fleet of nodes that it scrapes."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.support.peers.alert_receiver import Alertmanager
from tests.support.peers.prometheus_server import Prometheus, running

FOLDER = Path(__file__).parents[3] / "deploy" / "prometheus"


def briefly(rules: str) -> str:
    """The rules with ten seconds instead of minutes, and one second for the fleet. Days stay days."""
    return re.sub(r"for: \d+m", "for: 10s", re.sub("for: 2m", "for: 1s", rules))


def seconds_for_minutes(rules: str) -> str:
    """The rules sixty times as fast, so that their times keep their order."""
    return re.sub(r"for: (\d+)m", r"for: \1s", rules)


@contextmanager
def shipped(
    folder: Path,
    tls: Path,
    config: str,
    manager: Alertmanager,
    targets: str,
    changed: Mapping[str, str],
    pace: Callable[[str], str] = briefly,
) -> Iterator[Prometheus]:
    """A Prometheus with a copy of the shipped rules and an example configuration.

    `targets` is what the file of targets has; `changed`, what else is different in the configuration.
    """
    copy = folder / "prometheus"
    shutil.copytree(FOLDER, copy)
    shutil.copytree(tls, copy / "tls")
    (copy / "targets" / "nodes.yml").write_text(targets)
    (copy / "alerts.yml").write_text(pace((copy / "alerts.yml").read_text()))
    (copy / "rules.yml").write_text((copy / "rules.yml").read_text().replace("interval: 2m", "interval: 1s"))
    text = re.sub(r"(scrape_interval|evaluation_interval): \w+", r"\1: 1s", (copy / config).read_text())
    for old, new in {"127.0.0.1:9093": f"127.0.0.1:{manager.port}", **changed}.items():
        assert old in text
        text = text.replace(old, new)
    (copy / config).write_text(text)
    with running(copy / config, folder / "data") as server:
        yield server


def targets_of(addresses: list[str]) -> str:
    """As a file of targets, and as an inventory answers."""
    return json.dumps([{"targets": addresses}])


@contextmanager
def fleet(pages: Mapping[str, str | None]) -> Iterator[list[str]]:
    """The addresses of nodes that answer with the text that `pages` has for their host; None: with an error."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = pages[self.headers["Host"].partition(":")[0]]
            self.send_response(503 if text is None else 200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with ThreadingHTTPServer(("", 0), Answer) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield [f"{host}:{server.server_address[1]}" for host in pages]
        finally:
            server.shutdown()
            thread.join()
