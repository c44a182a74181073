"""JSON reports of `linkgauge fabric` as an input."""

from __future__ import annotations

import msgspec

from ...models.fabric.report import SCHEMA, FabricReport
from ...models.facts.units import from_utc
from ...probes.calls.bounded_read import bounded_read
from .site_file import BadInput

_MOST = 256 << 20  # bytes


def read_fabric(path: str, option: str) -> FabricReport:
    """The report in a file. Raises BadInput."""
    try:
        report = msgspec.json.decode(bounded_read(path, _MOST), type=FabricReport)
        from_utc(report.taken_at)
        return report
    except OSError as error:
        raise BadInput(f"{option} {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as wrong:
        raise BadInput(f"{option} {path}: not a {SCHEMA} report: {wrong}") from None
