"""`linkgauge capture`: this node, or a synthetic one, as text."""

from __future__ import annotations

import sys

from ...models.site.schema import Site
from ...probes.capture.anonymize import scrub
from ...probes.capture.recorder import Recording
from ...probes.host.recorded import dump
from ...probes.measure.probe import Effort
from ..inputs.resolve import live
from ..inputs.site_file import BadInput, read_text
from ..measuring.session import MeasurementOptions
from ..pipeline.diagnose import diagnose
from .output.progress import show_progress


def record_node(root: str, effort: Effort = "passive") -> str:
    """Everything that the sources read and the probes measure, with all identifiers removed. Raises BadInput."""
    target = live(root)
    host = Recording(target.host)
    session = target.session(MeasurementOptions(effort=effort))
    with show_progress(target.readers, session.probes) as (readers, probes):
        diagnose(host, readers, probes, Site())
    if session.stopped:
        print(f"Warning: nothing more was measured: {session.stopped}", file=sys.stderr)
    return dump(scrub(host.recorded()))


def build_node(path: str) -> str:
    """The capture of a node that a TOML file describes. Raises BadInput."""
    from ...probes.synthetic.build import build  # slow to import, and only needed here

    try:
        return dump(build(read_text(path, "--synthetic")))
    except ValueError as wrong:
        raise BadInput(f"--synthetic {path}: {wrong}") from None
