"""The picture of `linkgauge topology --format svg`."""

from __future__ import annotations

from collections.abc import Sequence

from ....exporters.drawing.path import Path, path_of
from ....exporters.drawing.svg import as_svg
from ....models.bandwidth.endpoint_names import resolve_ends
from ....models.inventory.snapshot import Snapshot
from ....models.report import Report
from ...inputs.site_file import BadInput
from ...measuring.session import NOTHING
from ...pipeline.source import Source
from .reports import examined, warn_unread_dumps


def picture_of(
    root: str,
    source: Sequence[str],
    site: str | None,
    with_tools: bool,
    ends: tuple[str, str] | None,
    more: Sequence[Source] = (),
) -> str:
    """The topology with the findings as SVG, without a measurement. `more`: further sources. Raises BadInput."""
    snapshot, report, _ = examined(root, source, site, NOTHING, "host", with_tools, further=more)
    warn_unread_dumps(snapshot)
    return as_svg(report, _path(snapshot, report, ends) if ends else None)


def _path(snapshot: Snapshot, report: Report, ends: tuple[str, str]) -> Path:
    """The path between two devices, given by any of their names. Raises BadInput."""
    try:
        named = [resolve_ends(snapshot, end) for end in ends]
    except LookupError as wrong:
        raise BadInput(f"--path {' '.join(ends)}: {wrong.args[0]}") from None
    if several := next((one for one in named if len(one) > 1), None):
        raise BadInput(f"--path {' '.join(ends)}: name one of {', '.join(several)}")
    path = path_of(report, named[0][0], named[1][0])
    if path is None:
        raise BadInput(f"--path {' '.join(ends)}: no links connect them; 'linkgauge topology' shows all links")
    return path
