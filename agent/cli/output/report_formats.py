"""The formats of a report."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ....exporters.text.report import Amount
    from ....models.report import Report

# Format: "module:function" in linkgauge.exporters, a function from Report to str. Only the format in use is imported.
REPORT_FORMATS: Mapping[str, str] = {
    "json": "formats.json:as_json",
    "html": "html.report_page:as_html",
}


def rendered(report: Report, form: str, colour: bool, amount: Amount = "usual") -> str:
    """The report in this format. "text" has colours and an amount."""
    if form == "text":
        from ....exporters.text.report import as_text

        return as_text(report, colour, amount)
    module, _, function = REPORT_FORMATS[form].partition(":")
    text: str = getattr(import_module(f"linkgauge.exporters.{module}"), function)(report)
    return text
