"""Read and change nodes with scontrol. All calls of one run share one deadline.

The module parses the text output, which every version and build has; `--json` is missing in some.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

PREFIX = "linkgauge:"  # of our reasons and notes
_FIELD = re.compile(r"^\s+(State|Reason|Comment|Extra)=(.*?)\s*$", re.MULTILINE)
_STATE = re.compile(r"[^\s]+")
_REASON = re.compile(r"(?P<text>.*?) \[(?P<who>[^\[\]@]*)@(?P<at>[0-9]{1,12})\]")
_OUT = ("DRAIN", "DOWN", "FAIL")  # states in which a node gets no jobs


class ScontrolError(Exception):
    """Slurm did not answer, or refused the call. The message is the reason."""


class Node(Struct, frozen=True, kw_only=True):
    """A node record of the controller."""

    name: str
    state: str  # "IDLE+DRAIN"
    reason: str = ""
    since: float | None = None  # when the reason was set, in seconds since 1970 by the controller's clock
    notes: Mapping[str, str]  # Comment and Extra, if they are set

    @property
    def ours(self) -> bool:
        """Whether linkgauge set the reason."""
        return self.reason.startswith(PREFIX)

    @property
    def out(self) -> bool:
        """Whether the node gets no jobs."""
        return any(word in self.state for word in _OUT)

    @property
    def asking(self) -> bool:
        """Whether a note of the node requests a drain."""
        return any(note.startswith(PREFIX) for note in self.notes.values())

    @property
    def free_note(self) -> str | None:
        """The field for the drain request: Comment or Extra if unused, else None."""
        unused = (key for key in ("Comment", "Extra") if self.notes.get(key, PREFIX).startswith(PREFIX))
        return next(unused, None)


class Slurm(Struct, frozen=True, kw_only=True):
    """A controller. `until`: the deadline of all calls, by the clock `monotonic`."""

    program: str = "scontrol"
    until: float
    monotonic: Callable[[], float] = time.monotonic

    def node(self, name: str) -> Node:
        """Read one node. Raises ScontrolError."""
        return next(parse_nodes(self._run("show", "node", name)), None) or _unknown_node(name)

    def nodes(self) -> list[Node]:
        """Read all nodes, also those of hidden partitions. Raises ScontrolError."""
        return list(parse_nodes(self._run("--all", "show", "nodes")))

    def update(self, name: str, **fields: str) -> None:
        """Change all given fields of a node in one call. Raises ScontrolError."""
        self._run("update", f"NodeName={name}", *(f"{key}={value}" for key, value in fields.items()))

    def _run(self, *words: str) -> str:
        left = self.until - self.monotonic()
        if left <= 0:
            raise ScontrolError("no time left to call Slurm")
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
            raise ScontrolError(f"{self.program} {words[0]}: no answer within {left:.1f} s") from None
        except OSError as error:
            raise ScontrolError(f"{self.program}: {error.strerror}") from None
        if done.returncode:
            output = done.stderr.decode("utf-8", "replace") or done.stdout.decode("utf-8", "replace")
            raise ScontrolError(
                f"{self.program} {' '.join(words[:2])}: {output.strip() or f'exit code {done.returncode}'}"
            )
        return done.stdout.decode("utf-8", "replace")


def parse_nodes(text: str) -> Iterator[Node]:
    """Parse the output of `scontrol show nodes`: one paragraph per node. Other text is skipped."""
    for paragraph in re.split(r"\n\s*\n|^(?=NodeName=)", text, flags=re.MULTILINE):
        name = re.match(r"NodeName=(\S+)", paragraph)
        fields = dict(_FIELD.findall(paragraph))
        state = _STATE.match(fields.get("State", ""))
        if name and state:
            reason_text = fields.get("Reason", "")
            dated = _REASON.fullmatch(reason_text)
            yield Node(
                name=name[1],
                state=state[0],
                reason=dated["text"] if dated else reason_text,
                since=float(dated["at"]) if dated else None,
                notes={key: fields[key] for key in ("Comment", "Extra") if fields.get(key, "(null)") != "(null)"},
            )


def _unknown_node(name: str) -> Node:
    raise ScontrolError(f"Slurm does not know the node {name}: pass its name with --node")
