"""Each format of a report names a function that exists."""

from __future__ import annotations

import pytest

from linkgauge.agent.cli.output.report_formats import REPORT_FORMATS, rendered
from tests.support.nodes.described import node, report_of

BEGIN = {"text": "OK  desk", "json": "{", "html": "<!DOCTYPE html>"}


@pytest.mark.parametrize("form", ["text", *REPORT_FORMATS])
def test_each_format(form: str) -> None:
    assert rendered(report_of(node("desktop")), form, colour=False).startswith(BEGIN[form])
