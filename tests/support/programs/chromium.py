"""Debian's chromium without a screen, driven over a pipe with the Chrome DevTools Protocol."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium")
_SECONDS = 60.0  # for the answer to one command
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Tab:
    """One page of the browser. Keeps the addresses that it requests and the messages of its console."""

    def __init__(self, commands: int, events: int) -> None:
        """`commands` and `events`: the pipe to the browser, and the one from it."""
        self.requests: list[str] = []
        self.messages: list[str] = []
        self._commands, self._events = commands, events
        self._number, self._session, self._received = 0, "", b""
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, file: Path) -> None:
        """Load a file, and forget the requests and messages of the one before."""
        self.requests, self.messages, self._loaded = [], [], False
        self.call("Page.navigate", url=file.as_uri())
        while not self._loaded:
            self._next()

    def shape(self, width: int, scheme: str) -> None:
        """The width of the window in pixels, and the colours that the user prefers: "light" or "dark"."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def _next(self) -> dict[str, Any]:
        """The next message of the browser. Events are recorded."""
        until = time.monotonic() + _SECONDS
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._events], [], [], max(0.0, until - time.monotonic()))
            assert ready, "chromium gave no answer in time"
            piece = os.read(self._events, 1 << 16)
            assert piece, "chromium ended"
            self._received += piece
        text, _, self._received = self._received.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._record(message.get("method", ""), message.get("params", {}))
        return message

    def _record(self, event: str, params: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        if event == "Log.entryAdded":
            self.messages.append(params["entry"]["text"])
        if event in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            self.messages.append(json.dumps(params))
        if event == "Page.loadEventFired":
            self._loaded = True


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """A browser with one page. `profile`: an empty folder for its files."""
    assert CHROMIUM
    to_browser, commands = os.pipe()
    events, from_browser = os.pipe()
    # The protocol uses the file descriptors 3 and 4. The shell opens them, because Python can only pass numbers on.
    line = 'exec "$0" "$@" 3<&"$FROM" 4>&"$TO"'
    process = subprocess.Popen(
        ["bash", "-c", line, CHROMIUM, *_OPTIONS, f"--user-data-dir={profile}"],
        env={**os.environ, "FROM": str(to_browser), "TO": str(from_browser)},
        pass_fds=(to_browser, from_browser),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        yield Tab(commands, events)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(commands)
        os.close(events)
