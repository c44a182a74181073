"""What scontrol says of nodes, and what it is told: every call has what is left of one deadline.

Read as lines for people, which every version and build has; `--json` is there only in some.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

PREFIX = "linkgauge:"  # of our reasons
_FIELD = re.compile(r"^\s+(State|Reason|Comment|Extra)=(.*?)\s*$", re.MULTILINE)
_STATE = re.compile(r"[^\s]+")
_REASON = re.compile(r"(?P<text>.*?) \[(?P<who>[^\[\]@]*)@(?P<at>[0-9]{1,12})\]")
_OUT = ("DRAIN", "DOWN", "FAIL")  # states in which no job comes


class Refused(Exception):
    """Slurm did not answer, or would not. The message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node as the controller has it."""

    name: str
    state: str  # "IDLE+DRAIN"
    reason: str = ""
    since: float | None = None  # when the reason was given, in seconds since 1970 by the controller's clock
    notes: Mapping[str, str]  # its Comment and its Extra, where they are there

    @property
    def ours(self) -> bool:
        """Whether we gave the reason."""
        return self.reason.startswith(PREFIX)

    @property
    def out(self) -> bool:
        """Whether it takes no jobs."""
        return any(word in self.state for word in _OUT)

    @property
    def asking(self) -> bool:
        """Whether it has written down that it wants to be drained."""
        return any(note.startswith(PREFIX) for note in self.notes.values())

    @property
    def free_note(self) -> str | None:
        """Where it may write that down: what nobody else uses."""
        unused = (key for key in ("Comment", "Extra") if self.notes.get(key, PREFIX).startswith(PREFIX))
        return next(unused, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slurm:
    """A controller. `until`: when, by the clock `monotonic`, all calls must have ended."""

    program: str = "scontrol"
    until: float
    monotonic: Callable[[], float] = time.monotonic

    def node(self, name: str) -> Node:
        """One node. Raises Refused."""
        return next(parsed(self._asked("show", "node", name)), None) or _none(name)

    def nodes(self) -> list[Node]:
        """All nodes, those of hidden partitions too. Raises Refused."""
        return list(parsed(self._asked("--all", "show", "nodes")))

    def update(self, name: str, **fields: str) -> None:
        """Change the fields of a node, at once all or none. Raises Refused."""
        self._asked("update", f"NodeName={name}", *(f"{key}={value}" for key, value in fields.items()))

    def _asked(self, *words: str) -> str:
        left = self.until - self.monotonic()
        if left <= 0:
            raise Refused("no time left to ask Slurm")
        environment = {**os.environ, "SLURM_TIME_FORMAT": "%s", "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run(
                [self.program, *words],
                capture_output=True,
                timeout=left,
                check=False,
                env=environment,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise Refused(f"{self.program} {words[0]}: no answer within {left:.1f} s") from None
        except OSError as error:
            raise Refused(f"{self.program}: {error.strerror}") from None
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace") or done.stdout.decode("utf-8", "replace")
            raise Refused(f"{self.program} {' '.join(words[:2])}: {said.strip() or f'exit code {done.returncode}'}")
        return done.stdout.decode("utf-8", "replace")


def parsed(text: str) -> Iterator[Node]:
    """The nodes of what `scontrol show nodes` prints: a paragraph each. What is none is passed over."""
    for paragraph in re.split(r"\n\s*\n|^(?=NodeName=)", text, flags=re.MULTILINE):
        name = re.match(r"NodeName=(\S+)", paragraph)
        fields = dict(_FIELD.findall(paragraph))
        state = _STATE.match(fields.get("State", ""))
        if name and state:
            given = fields.get("Reason", "")
            dated = _REASON.fullmatch(given)
            yield Node(
                name=name[1],
                state=state[0],
                reason=dated["text"] if dated else given,
                since=float(dated["at"]) if dated else None,
                notes={key: fields[key] for key in ("Comment", "Extra") if fields.get(key, "(null)") != "(null)"},
            )


def _none(name: str) -> Node:
    raise Refused(f"Slurm knows no node {name}: give its name with --node")
