"""Records as lines of JSON: each record survives encoding and decoding."""

from __future__ import annotations

from typing import get_type_hints

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Node
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, Flow, NotChecked, Observation, Record, Run
from linkgauge.models.facts.registry import KINDS

st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(int, st.integers(-(1 << 62), 1 << 62))
whole = st.integers(-(1 << 62), 1 << 62)
finite = st.floats(allow_nan=False, allow_infinity=False)
flows = st.builds(Flow, st.text(), st.tuples(st.text()), st.none() | st.integers(0, 1 << 60))
evidence = st.builds(Evidence, st.text(), st.text())
mappings = {"cites": st.dictionaries(st.text(), evidence), "distances": st.none() | st.dictionaries(st.text(), whole)}


def fact_of(kind: type[Fact]) -> st.SearchStrategy[Fact]:
    hints = get_type_hints(kind)
    return st.builds(
        kind, **{name: mappings[name] if name in mappings else st.from_type(hint) for name, hint in hints.items()}
    )


facts = st.one_of([fact_of(kind) for kind in KINDS.values()])
observations = st.builds(
    Observation,
    about=st.text() | flows,
    quantity=st.text(),
    unit=st.text(),
    value=finite,
    at=finite,
    busy=st.none() | st.booleans(),
    evidence=evidence,
)
runs = st.builds(Run, name=st.text(), ok=st.booleans(), seconds=finite, bytes=st.integers(0, 1 << 60), at=finite)


def survives(record: Record) -> bool:
    line = encode(record)
    return "\n" not in line and decode(line) == record


@given(st.one_of(facts, observations, runs))
def test_round_trip(record: Record) -> None:
    assert survives(record)


@given(st.from_type(NotChecked))
@example(NotChecked(what="Gpu", subject="node", reason=Reason.DRIVER, path="", detail="failed"))
@example(NotChecked(what="Gpu", subject="node", reason=Reason.DRIVER, path="nvml", detail="nvml: failed"))
def test_round_trip_of_not_checked(record: NotChecked) -> None:
    """A strategy of its own: among all kinds, few of the examples are of this one."""
    assert survives(record)


@given(st.binary() | st.text())
def test_rubbish_is_a_clear_error(line: bytes | str) -> None:
    message = "accepted"
    try:
        decode(line)
    except ValueError as refused:
        message = str(refused)
    assert message
    assert "\n" not in message


def test_an_unknown_kind() -> None:
    with pytest.raises(ValueError, match="no kind of fact is called 'Planet'"):
        decode('["Planet", {}]')


def test_unknown_fields_are_not_written() -> None:
    assert encode(Node(key="x")) == '["Node",{"key":"x"}]'
