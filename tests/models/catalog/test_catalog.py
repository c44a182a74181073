"""The packaged catalog: complete, with the codes of the contract, and equal to the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from linkgauge.exporters.commands.explain import explain, listing
from linkgauge.models.catalog import codes, machines
from linkgauge.models.diagnosis.remedies import in_words

ROOT = Path(__file__).parents[3]
CONTRACT = ROOT.parent / "shared" / "FINDINGS.md"


@pytest.mark.skipif(not CONTRACT.is_file(), reason="the contract is not beside this repository")
def test_the_codes_and_severities_are_those_of_the_contract() -> None:
    """A code may have lower severities after those of the contract, for roles and doubts."""
    table = CONTRACT.read_text(encoding="utf-8").partition("## Codes")[2]
    rows = re.findall(r"^\| ([a-z0-9-]+) \| .* \| ([a-z /]+) \|$", table, re.MULTILINE)
    agreed = {code: tuple(severity.split(" / ")) for code, severity in rows if code != "code"}
    assert agreed == {name: codes()[name].severity[: len(severity)] for name, severity in agreed.items()}


@pytest.mark.parametrize("name", codes())
def test_every_code_says_what_somebody_needs_at_night(name: str) -> None:
    code = codes()[name]
    assert re.fullmatch(r"[A-Z].*\.", code.says)
    assert code.severity
    assert code.confirm
    assert all(line and line.isprintable() for line in code.confirm)
    assert code.fix
    assert all(re.fullmatch(r"(?!.*\.\.)[A-Z/].*\.", step.do) for step in code.fix), code.fix
    assert code.source
    assert not code.source.endswith(".")


def test_what_is_vital_is_always_critical() -> None:
    assert {code.severity for code in codes().values() if code.vital} == {("critical",)}


def test_machine_types_have_names_of_their_own() -> None:
    names = [machine.name for machine in machines()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", codes())
def test_a_code_is_explained_whole(name: str) -> None:
    told = " ".join(explain(name).split())
    code = codes()[name]
    for part in (name, code.says, *code.confirm, *map(in_words, code.fix), code.source):
        assert " ".join(part.split()) in told


def test_the_listing_names_every_code_once_and_fits() -> None:
    lines = listing().splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(codes())
    assert max(len(line) for line in lines) <= 80
