"""Good rates of copies on the node hgx-h100, as rows of its description. Later rows override them.

Rates of single copies are published for 8 H200 and 8 H100 (models/catalog/links.toml). Two GPUs below one uplink each
get half.
"""

from __future__ import annotations

from linkgauge.agent.measuring.session import MeasurementOptions, Session
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.measure.probe import Effort

NODE = "hgx-h100"


def row(source: str, to: str, rate: float, beside: int = 0) -> str:
    """One row: GB/s of copies from `source` to `to`, with at least `beside` concurrent copies."""
    return f'[[measured]]\nsource = "{source}"\nto = "{to}"\nrate = {rate}\nbeside = {beside}\n'


HEALTHY = "".join(
    (
        row("numa*", "gpu*", 55.4),
        row("numa*", "gpu*", 50, 1),
        row("numa*", "gpu*", 27.5, 7),
        row("numa*", "gpu*", 26, 8),
        row("gpu*", "numa*", 55.1),
        row("gpu*", "numa*", 50, 1),
        row("gpu*", "numa*", 27.3, 7),
        row("gpu*", "numa*", 26, 8),
        row("gpu*", "gpu*", 390.0),
        row("gpu*", "gpu*", 385.0, 1),
        row("gpu*", "gpu*", 54.0, 2),
        row("gpu*", "", 2700.0),
    )
)


def measured(recorded: Recorded, effort: Effort = "quick") -> Report:
    """The report with these measurements."""
    return diagnose(recorded, SOURCES, Session(MeasurementOptions(effort=effort), recorded).probes, Site()).report
