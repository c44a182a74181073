"""`dcgmi diag`, as text and as JSON (-j): dcgmi/Diag.cpp of https://github.com/NVIDIA/DCGM, versions 2 to 4.

Until version 3, a row names the GPUs of a verdict ("Fail - GPUs: 0, 3"). Since version 4, each GPU has a row ("GPU0:
Fail"). A message continues over rows of 45 characters. Each failed test gives an event in addition to the facts in its
messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from ....models.facts.gpu import Driver, Gpu
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ..core.fields import FactCollector
from ..core.json_values import list_of, object_of
from ..core.part import Part
from . import dcgm_words

NAMES = ("DCGM Diagnostic", "DCGM GPU Diagnostic")  # JSON keys: since version 4, and before
_NAMED = re.compile(r'"name"\s{0,8}:\s{0,8}"([^"\n]{1,80})"')
_PIECE = 45  # characters of a message per row
_SECTION = re.compile(r"[ \t]*[|+][-=]{3}")
_VERDICT = re.compile(r"(Pass|Fail|Warn|Skip)(?: - (?:All|GPUs?: ([0-9, ]{1,400})))?")
_ENTITY = re.compile(r"([A-Za-z]{2,12})([0-9]{1,4}): (Pass|Fail|Warn|Skip)")
_LABEL = re.compile(r"(Warning|Error|Info)(?:: ([A-Za-z]{2,12}[0-9]{1,4}))?")
_DRIVER = ("Driver Version Detected", "driver_version")
_VERSION = re.compile(r"[0-9]{3}(?:\.[0-9]{1,4}){1,3}")
_NODE = "node"
_BAD = frozenset({"Fail", "Warn"})


class _Message(Struct):
    """A message of a test, one piece per row."""

    kind: str  # "Warning", "Error", "Info"
    entity: str
    where: Evidence
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(piece.ljust(_PIECE) for piece in self.pieces).strip()


class _Test(Struct):
    """A test with its verdict for each tested entity."""

    name: str
    where: Evidence
    verdicts: dict[str, str] = field(default_factory=dict)  # by entity; the key "node" means all entities
    messages: list[_Message] = field(default_factory=list)

    @property
    def subject(self) -> str:
        """The failed entity: a single GPU, else the node. Since version 4, messages name their GPU."""
        if _NODE in self.verdicts:
            return _NODE
        failed = [entity for entity, verdict in self.verdicts.items() if verdict in _BAD]
        return failed[0] if len(failed) == 1 else _NODE


def read_text(part: Part, rows: list[tuple[int, str]], found: FactCollector) -> Iterator[Record]:
    """Read the rows of a table with the heading "Diagnostic | Result"."""
    tests: list[_Test] = []
    for number, line in rows:
        name, text = cells(line)
        if name in _DRIVER:
            _driver(text.strip(), part.cite(number, line), found)
        elif (name or text) and not _SECTION.match(line):
            _row(tests, name, text, part.cite(number, line))
    yield from _finished(tests, part, found)


def cells(line: str) -> tuple[str, str]:
    """Both cells of a table row. The right one keeps its leading blanks. Two empty texts if the line is not a row."""
    plain = line.strip()
    if not plain.startswith("|"):
        return "", ""
    name, _, text = plain[1:].partition("|")
    return name.strip(), text.removesuffix("|").removeprefix(" ").rstrip()


def _row(tests: list[_Test], name: str, text: str, where: Evidence) -> None:
    verdict, label, entity = _VERDICT.fullmatch(text.strip()), _LABEL.fullmatch(name), _ENTITY.fullmatch(text.strip())
    if verdict and not label and (name or tests):
        if name:
            tests.append(_Test(name, where))
        tests[-1].verdicts.update(dict.fromkeys(_gpus(verdict[2]), verdict[1]))
    elif label:
        if not tests:  # the row of its test is missing
            tests.append(_Test("without a name", where))
        tests[-1].messages.append(_Message(label[1], (label[2] or "").lower(), where, [text]))
    elif entity and not name and tests:
        tests[-1].verdicts[f"{entity[1]}{int(entity[2])}".lower()] = entity[3]
    elif not name and text and tests and (tests[-1].messages or not _BAD.isdisjoint(tests[-1].verdicts.values())):
        if not tests[-1].messages:  # a message without a label
            tests[-1].messages.append(_Message("Error", "", where))
        tests[-1].messages[-1].pieces.append(text)


def _gpus(numbers: str | None) -> list[str]:
    return [f"gpu{int(number)}" for number in re.findall("[0-9]{1,4}", numbers)] if numbers else [_NODE]


def _driver(version: str, where: Evidence, found: FactCollector) -> None:
    if _VERSION.fullmatch(version):
        found.add(Driver, "nvidia", where, version=version)


def _finished(tests: list[_Test], part: Part, found: FactCollector) -> Iterator[Record]:
    """Add the facts in messages and the failures to `found`. Yields measured rates and NotChecked records."""
    for test in tests:
        by_subject: dict[str, list[_Message]] = {}
        for entity in test.verdicts:
            if entity.startswith("gpu"):
                found.add(Gpu, entity, test.where)
        for one in test.messages:
            if one.kind != "Info":
                dcgm_words.facts(one.text, one.entity or test.subject, one.where, found)
                by_subject.setdefault(one.entity or test.subject, []).append(one)
            elif test.name.lower() == "pcie":
                yield from dcgm_words.rates(one.text, one.entity, one.where, part)
        yield from _failures(test, by_subject, found)


def _failures(test: _Test, by_subject: Mapping[str, list[_Message]], found: FactCollector) -> Iterator[NotChecked]:
    """Add an event for a failed test, one per subject of its messages. Yields a NotChecked for other messages."""
    failed = any(verdict in _BAD for verdict in test.verdicts.values())
    if failed and not by_subject:
        dcgm_words.failed(found, f"DCGM's test {test.name}", test.subject, "no reason given", test.where)
    for subject, messages in by_subject.items():
        text = "; ".join(one.text for one in messages)
        if failed and not all(dcgm_words.SETTING.search(one.text) for one in messages):
            dcgm_words.failed(found, f"DCGM's test {test.name}", subject, text, messages[0].where)
        elif not all(dcgm_words.PERSISTENCE.search(one.text) for one in messages) and (
            failed or "Skip" not in test.verdicts.values()
        ):
            why = f"DCGM's test {test.name} says: {text[:300]}"
            yield NotChecked(
                what="dcgmi diag",
                subject=subject,
                reason=Reason.OTHER,
                path=messages[0].where.source,
                detail=why,
                how="nvidia-smi -q",
            )


def read_json(part: Part, whole: Mapping[str, Any], text: str, first: int, found: FactCollector) -> Iterator[Record]:
    """Read a JSON document `whole` with its text and the number of its first line."""
    lines: dict[str, int] = {}
    for number, named in Part(part.file, 1, text).matches(_NAMED):
        lines.setdefault(named[1], first + number)
    meta = {**whole, **object_of(whole.get("metadata"))}
    version = next((meta[name] for name in _DRIVER if isinstance(meta.get(name), str)), "")
    _driver(version, part.cite(first, f"driver version {version}"), found)
    for one in (*list_of(whole.get("iterations")), whole):
        result = next((object_of(object_of(one).get(name)) for name in NAMES if name in object_of(one)), {})
        if isinstance(error := result.get("runtime_error"), str):
            why = f"DCGM's diagnosis did not run: {error[:300]}"
            yield NotChecked(what="dcgmi diag", subject=_NODE, reason=Reason.OTHER, path=part.where(first), detail=why)
        for category in map(object_of, list_of(result.get("test_categories"))):
            tests = map(object_of, list_of(category.get("tests")))
            yield from _finished([_json_test(part, lines, first, test) for test in tests], part, found)


def _json_test(part: Part, lines: Mapping[str, int], first: int, members: Mapping[str, Any]) -> _Test:
    name = members.get("name")
    name = name if isinstance(name, str) else "without a name"
    test = _Test(name, part.cite(lines.get(name, first), f"name: {name}"))
    for result in (*map(object_of, list_of(members.get("results"))), object_of(members.get("test_summary"))):
        entities = _entities(result)
        test.verdicts.update(dict.fromkeys(entities, str(result.get("status", ""))[:4].capitalize()))
        entity = entities[0] if len(entities) == 1 and entities[0] != _NODE else ""
        for kind, key in (("Warning", "warnings"), ("Info", "info")):
            for text in _texts(result.get(key)):
                where = Evidence(test.where.source, " ".join(text.split())[:300])
                test.messages.append(_Message(kind, entity, where, [text]))
    return test


def _entities(result: Mapping[str, Any]) -> list[str]:
    """The entities of a result: one entity since version 4, GPU numbers before."""
    kind, number = result.get("entity_group"), result.get("entity_id")
    if isinstance(kind, str) and isinstance(number, int):
        return [f"{kind}{number}".lower()]
    gpus = result.get("gpu_ids", result.get("gpu_id"))
    return _gpus(str(gpus)) or [_NODE] if isinstance(gpus, (str, int)) else [_NODE]


def _texts(value: object) -> Iterator[str]:
    """One message, several messages, or several objects with a message."""
    for one in value if isinstance(value, list) else [value]:
        text = one if isinstance(one, str) else object_of(one).get("warning", object_of(one).get("warnings"))
        if isinstance(text, str) and text:
            yield " ".join(text.split())
