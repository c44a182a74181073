"""`linkgauge capture`: a node as text, this one or one that was made up."""

from __future__ import annotations

from ..probes.capture import Recording
from ..probes.recorded import dump
from ..probes.scrub import scrub
from .inputs import BadInput, live, read_text
from .pipeline import ask


def record_node(root: str) -> str:
    """Everything that the readers see, without what identifies the machine or its owner. Raises BadInput."""
    given = live(root)
    host = Recording(given.host)
    for reader in given.readers:
        ask(reader, host)
    return dump(scrub(host.recorded()))


def build_node(path: str) -> str:
    """The capture of a node that a TOML file describes. Raises BadInput."""
    from ..probes.synthetic import build  # its tables of devices are for this alone

    try:
        return dump(build(read_text(path, "--synthetic")))
    except ValueError as wrong:
        raise BadInput(f"--synthetic {path}: {wrong}") from None
