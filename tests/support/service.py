"""A real `linkgauge serve` over a tree of files, told apart by what it tells systemd: no test waits for a time."""

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

LONGEST = 60.0  # seconds until something must have come, on however slow a machine
SERVE = (sys.executable, "-m", "linkgauge", "serve")
_numbers = count()


class Service:
    """The process, and what it says."""

    def __init__(self, process: subprocess.Popen[str], told: socket.socket, log: IO[str]) -> None:
        self.process, self._told, self._log = process, told, log
        self.lines: list[str] = []
        self.address = ("", 0)

    def until(self, word: str) -> str:
        """The next message to systemd that has the word."""
        while True:
            if word in (message := self._told.recv(1 << 12).decode()):
                return message

    def line(self, pattern: str) -> str:
        """The next line of the log that fits."""
        for line in self._log:
            self.lines.append(line.rstrip("\n"))
            if re.search(pattern, line):
                return self.lines[-1]
        raise EOFError(f"no line fits {pattern!r}: {self.lines}")

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code after the signal; what was left of the log is in `lines`."""
        self.process.send_signal(number)
        code = self.process.wait(LONGEST)
        self.lines += self._log.read().splitlines()
        return code


@contextmanager
def service(*options: str, env: Mapping[str, str] | None = None, program: tuple[str, ...] = SERVE) -> Iterator[Service]:
    """It has begun to listen."""
    address = f"@linkgauge-test-{os.getpid()}-{next(_numbers)}"
    path = os.pathsep.join(entry for entry in sys.path if entry)
    variables = {**os.environ, "PYTHONPATH": path, "NOTIFY_SOCKET": address, **(env or {})}
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(f"\0{address[1:]}")
        told.settimeout(LONGEST)
        command = (*program, "--listen", "127.0.0.1:0", *options)
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=variables) as process:
            assert process.stderr
            late = Timer(LONGEST, process.kill)  # whoever waits for a line reads the end of the log then
            late.start()
            try:
                one = Service(process, told, process.stderr)
                port = one.line("serving http://").rpartition(":")[2].partition("/")[0]
                one.address = ("127.0.0.1", int(port))
                yield one
            finally:
                late.cancel()
                process.kill()
                late.join()


def options(folder: Path, config: str = "") -> tuple[str, ...]:
    """Its files are in the folder: a configuration, and its state."""
    (folder / "linkgauge.toml").write_text(config)
    return "--config", str(folder / "linkgauge.toml"), "--state-dir", str(folder / "state")
