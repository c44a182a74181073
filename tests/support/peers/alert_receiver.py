"""A real Alertmanager with the shipped example configuration, and the webhook that it calls."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Thread
from typing import Any, NamedTuple

from tests.support.peers.prometheus_server import LONGEST, free_port

CONFIG = Path(__file__).parents[3] / "deploy" / "prometheus" / "alertmanager.yml"


class Alert(NamedTuple):
    """An alert with its receiver and status (firing or resolved)."""

    receiver: str
    status: str
    labels: Mapping[str, str]
    summary: str = ""


class Webhook:
    """The received alerts in order."""

    def __init__(self) -> None:
        self.received: list[Alert] = []
        self._came = Condition()

    def take(self, message: Mapping[str, Any]) -> None:
        with self._came:
            for alert in message["alerts"]:
                summary = alert["annotations"].get("summary", "")
                self.received.append(Alert(message["receiver"], alert["status"], alert["labels"], summary))
            self._came.notify_all()

    def wait(self, alert: str, status: str, **labels: str) -> Alert:
        """The first alert that matches; waits until it arrives."""
        wanted = {"alertname": alert, **labels}.items()

        def found() -> Alert | None:
            return next((one for one in self.received if one.status == status and wanted <= one.labels.items()), None)

        with self._came:
            if not self._came.wait_for(lambda: found() is not None, LONGEST):
                raise TimeoutError(f"no {alert} that is {status} after {LONGEST:g} s: {self.received}")
            one = found()
            assert one
            return one


@contextmanager
def webhook() -> Iterator[tuple[int, Webhook]]:
    """A webhook: its port, and the received alerts."""
    hook = Webhook()

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.take(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1], hook
        finally:
            server.shutdown()
            thread.join()


class Alertmanager(NamedTuple):
    """A running server, and the alerts that it sent."""

    port: int
    hook: Webhook

    def inhibited(self) -> list[str]:
        """The names of inhibited alerts."""
        at = f"http://127.0.0.1:{self.port}/api/v2/alerts?active=false&silenced=false&inhibited=true"
        with urllib.request.urlopen(at, timeout=LONGEST) as answer:
            return [alert["labels"]["alertname"] for alert in json.load(answer) if alert["status"]["inhibitedBy"]]

    def post(self, alert: str, **labels: str) -> None:
        """Send an alert from another source."""
        body = json.dumps([{"labels": {"alertname": alert, **labels}}]).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/v2/alerts", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=LONGEST):
            pass


@contextmanager
def alertmanager(folder: Path) -> Iterator[Alertmanager]:
    """A server with the example's routes and inhibitions. It waits one second where the example waits longer."""
    with webhook() as (hook_port, hook):
        text = re.sub(r"(group_wait|group_interval): \w+", r"\1: 1s", CONFIG.read_text())
        text = re.sub(r"https://\w+\.example/", f"http://127.0.0.1:{hook_port}/", text)
        (folder / "alertmanager.yml").write_text(text)
        port = free_port()
        command = [
            "prometheus-alertmanager",
            f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
            "--log.level=error",
        ]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                _wait(f"http://127.0.0.1:{port}/-/ready")
                yield Alertmanager(port, hook)
            finally:
                server.kill()


def _wait(url: str) -> None:
    """Wait until the server answers."""
    end = time.monotonic() + LONGEST
    while True:
        try:
            with urllib.request.urlopen(url, timeout=LONGEST):
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
