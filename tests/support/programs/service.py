"""A real `linkgauge serve` over a file tree. Tests wait for its messages to systemd, never for a time."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Timer
from typing import IO

from tests.support.programs.command_line import COMMAND

LONGEST = 60.0  # limit in seconds for a message on a slow machine
SERVE = (*COMMAND, "serve")
_numbers = count()


class Service:
    """The process and its output."""

    def __init__(self, process: subprocess.Popen[str], messages: socket.socket, log: IO[str]) -> None:
        self.process, self._messages, self._log = process, messages, log
        self.lines: list[str] = []
        self.address = ("", 0)

    def until(self, word: str) -> str:
        """The next message to systemd that contains the word."""
        while True:
            if word in (message := self._messages.recv(1 << 12).decode()):
                return message

    def line(self, pattern: str) -> str:
        """The next line of the log that matches."""
        for line in self._log:
            self.lines.append(line.rstrip("\n"))
            if re.search(pattern, line):
                return self.lines[-1]
        raise EOFError(f"no line fits {pattern!r}: {self.lines}")

    def end(self, number: int = signal.SIGTERM) -> int:
        """The exit code after the signal. `lines` has the rest of the log."""
        self.process.send_signal(number)
        code = self.process.wait(LONGEST)
        self.lines += self._log.read().splitlines()
        return code


@contextmanager
def service(
    *options: str,
    env: Mapping[str, str] | None = None,
    program: tuple[str, ...] = SERVE,
    longest: float = LONGEST,
) -> Iterator[Service]:
    """A service that is ready for requests. It ends after `longest` seconds."""
    address = f"@linkgauge-test-{os.getpid()}-{next(_numbers)}"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    variables = {**os.environ, "PYTHONPATH": path, "NOTIFY_SOCKET": address, **(env or {})}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
        messages.bind(f"\0{address[1:]}")
        messages.settimeout(LONGEST)
        command = (*program, "--listen", "127.0.0.1:0", *options)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables) as process:
            assert process.stderr
            late = Timer(longest, process.kill)  # a waiting reader then gets the end of the log
            late.start()
            try:
                one = Service(process, messages, process.stderr)
                port = one.line("serving http://").rpartition(":")[2].partition("/")[0]
                one.address = ("127.0.0.1", int(port))
                yield one
            finally:
                late.cancel()
                process.kill()
                late.join()


def options(folder: Path, config: str = "") -> tuple[str, ...]:
    """Command line options with the configuration and state in the folder."""
    (folder / "linkgauge.toml").write_text(config)
    return "--config", str(folder / "linkgauge.toml"), "--state-dir", str(folder / "state")
