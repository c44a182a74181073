"""A program on a terminal, and what the terminal shows."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

from tests.support.programs.command_line import PATHS

_PART = re.compile(r"\x1b\[2J|\x1b\[(?P<row>\d+);1H\x1b\[K(?P<line>[^\x1b]*)")


class Terminal:
    """The terminal of a program that writes whole lines, each at its row."""

    def __init__(self, pid: int, descriptor: int) -> None:
        self.pid = pid
        self.written = ""
        self._descriptor = descriptor
        self.before = self.settings
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def settings(self) -> list[Any]:
        """The settings of the terminal, as termios has them."""
        return termios.tcgetattr(self._descriptor)

    @property
    def shown(self) -> Mapping[int, str]:
        """The lines that are shown now, by row."""
        rows: dict[int, str] = {}
        for part in _PART.finditer(self.written):
            if part["row"] is None:
                rows.clear()
            else:
                rows[int(part["row"])] = part["line"]
        return rows

    @property
    def text(self) -> str:
        """The lines that are shown now."""
        return "\n".join(line for _, line in sorted(self.shown.items()))

    def press(self, keys: str) -> None:
        """Type these keys."""
        os.write(self._descriptor, keys.encode())

    def resize(self, lines: int, columns: int) -> None:
        """Give the terminal this size."""
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def ended(self) -> int:
        """Wait until the program ends. Its exit code, negative for a signal."""
        _, status = os.waitpid(self.pid, 0)
        self._reader.join(60)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> None:
        with suppress(OSError):  # the program has closed the other end
            while part := os.read(self._descriptor, 1 << 16):
                self.written += part.decode("utf-8", "replace")


@contextmanager
def on_a_terminal(*arguments: str, lines: int = 40, columns: int = 120, **variables: str) -> Iterator[Terminal]:
    """`python -m linkgauge` on a terminal, without colours unless the variables say so."""
    known = {name: value for name, value in PATHS.items() if name not in ("COLUMNS", "LINES")}
    pid, descriptor = pty.fork()
    if not pid:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        environment = {**known, "TERM": "xterm", "NO_COLOR": "1", **variables}
        os.execve(sys.executable, [sys.executable, "-m", "linkgauge", *arguments], environment)
    terminal = Terminal(pid, descriptor)
    try:
        yield terminal
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
        os.close(descriptor)
