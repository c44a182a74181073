"""The terminal as a screen: keys one by one, whole frames, and the old state of the terminal afterwards."""

from __future__ import annotations

import codecs
import os
import termios
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

# DEC private modes: the alternate screen (1049), the cursor (25), and wrapping of long lines (7), in xterm's
# "Control Sequences".
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J", "\x1b[?7h\x1b[?25h\x1b[?1049l"
_CHARACTERS_OF_SIGNALS, _NO_KEY = 6, b"\0"  # termios(3): c_cc, _POSIX_VDISABLE
_KEYS = {
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"\x1b[H": "home",
    b"\x1b[1~": "home",
    b"\x1b": "escape",
}
_CHARACTERS = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\b": "backspace"}


class Screen:
    """A terminal, from `enter` to `leave`. `read` and `write` are its descriptors."""

    def __init__(self, read: int = 0, write: int = 1) -> None:
        self._read, self._write = read, write
        self._before = termios.tcgetattr(read)
        self._shown: list[str] = []
        self._size = (0, 0)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines. A new size clears the screen."""
        size = os.get_terminal_size(self._write)
        if (size.columns, size.lines) != self._size:
            self._size, self._shown = (size.columns, size.lines), []
            self._put("\x1b[2J")
        return self._size

    def enter(self) -> None:
        """Show the alternate screen, and let the terminal pass on each key. Ctrl-C still sends a signal.

        Ctrl-Z does not: it would stop the parent process (agent/cli/entry.py), and the shell would take the terminal
        before this process restores it.
        """
        tty.setcbreak(self._read, termios.TCSADRAIN)
        settings = termios.tcgetattr(self._read)
        settings[_CHARACTERS_OF_SIGNALS][termios.VSUSP] = _NO_KEY
        termios.tcsetattr(self._read, termios.TCSADRAIN, settings)
        self._shown = []
        self._put(_ENTER)

    def leave(self) -> None:
        """Restore the terminal."""
        with suppress(OSError, termios.error):  # the terminal may have gone
            self._put(_LEAVE)
            termios.tcsetattr(self._read, termios.TCSADRAIN, self._before)

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines, and write only those that have changed."""
        changed = [  # cleared first: after a line of full width the cursor is on its last character
            f"\x1b[{number};1H\x1b[K{line}"
            for number, line in enumerate(lines, 1)
            if number > len(self._shown) or self._shown[number - 1] != line
        ]
        self._put("".join(changed))
        self._shown = list(lines)

    def pressed(self) -> list[str]:
        """The keys that were pressed since. Raises EOFError if the terminal has gone."""
        read = os.read(self._read, 1024)
        if not read:
            raise EOFError
        if read in _KEYS:
            return [_KEYS[read]]
        if read.startswith(b"\x1b"):  # another key, or several at once
            return [name for code, name in _KEYS.items() if len(code) > 1 for _ in range(read.count(code))]
        return [_CHARACTERS.get(one, one) for one in self._decoder.decode(read)]

    def _put(self, text: str) -> None:
        left = text.encode("utf-8", "replace")
        while left:
            left = left[os.write(self._write, left) :]


@contextmanager
def shown(screen: Screen) -> Iterator[None]:
    """The screen during the block."""
    screen.enter()
    try:
        yield
    finally:
        screen.leave()
