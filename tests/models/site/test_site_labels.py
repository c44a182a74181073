"""Labels of the site file: names that Prometheus accepts, and the messages about others."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tomli_w import dumps

from linkgauge.models.site.schema import read_site


def test_labels_are_read() -> None:
    assert read_site('[labels]\nrack = "r7"\n_rail = ""\n').labels == {"rack": "r7", "_rail": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"a-b" = "x"', "labels: 'a-b': names are letters, digits and underscores, and begin with no digit"),
        ('__name__ = "x"', "labels: '__name__': names are letters, digits and underscores, and begin with no digit"),
        ('1st = "x"', "labels: '1st': names are letters, digits and underscores, and begin with no digit"),
        ('profile = "x"', "labels: profile: linkgauge_node_info has a label of this name already"),
        ("rack = 7", "labels: rack: expected str, got int"),
    ],
)
def test_others_are_refused(text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        read_site(f"[labels]\n{text}\n")


@given(st.text())
def test_prometheus_takes_what_is_taken(name: str) -> None:
    from prometheus_client.core import InfoMetricFamily

    try:
        labels = read_site(dumps({"labels": {name: "x"}})).labels
    except ValueError:
        return
    assert InfoMetricFamily("a", "b", labels=list(labels)).documentation == "b"
    assert re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name, re.ASCII)
