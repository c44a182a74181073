"""Sample outputs of tools, and the records of the readers for them, as JSON that people compare line by line.

tests/probes/dumps/samples/<group>/<reader>/ has three kinds of files:

- `<name>.txt` (or .json, .xml, .csv): one output of a tool.
- `<name>.texts`: several short outputs. Each begins after a line `=== name ===`.
- `<name>.changes.json`: outputs that differ from one sample in a few places, as
  `{"of": file, "changes": {name: [[old, new], ...]}}`. Each pair replaces every `old` with `new`.

The file `<name>.expected.json` has the result: all records of an output in their order, or the records that a change
removes and adds. "line" and "lines" are the numbers of the cited lines. If the cited text differs from the line, the
text follows the number. tests/probes/dumps/test_samples.py compares and writes these files. The findings of a new
sample are not compared. To compare them, add `"findings": []` to the result and write the file again.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from tests.support.paths import TESTS

SAMPLES = TESTS / "probes/dumps/samples"
EXPECTED, CHANGES, TEXTS = ".expected.json", ".changes.json", ".texts"
AT = 1795230000.0  # seconds since 1970 at which the samples are read
WIDTH = 120  # characters of a line of an expected file
_TITLE = re.compile(r"^=== (.+) ===\n", re.MULTILINE)
_LINE = re.compile(r"(?P<file>.*):(?P<number>\d+)")


@dataclass(frozen=True)
class Output:
    """A text of a sample file. `name` is the file name that the readers get."""

    name: str
    text: str
    base: str | None = None  # the original text, if this one is a changed text


def sample_files() -> list[Path]:
    """All sample files, without the expected files."""
    return sorted(path for path in SAMPLES.rglob("*") if path.is_file() and not path.name.endswith(EXPECTED))


def expected_file(sample: Path) -> Path:
    """The expected file of a sample."""
    return sample.with_name(sample.stem + EXPECTED)


def reader_of(sample: Path) -> str:
    """The reader of a sample's folder. The readers dcgm and nccl also read `dcgmi diag` and NCCL's log."""
    folder = sample.relative_to(SAMPLES).parts[1]
    return {"dcgm_diag": "dcgm", "nccl_log": "nccl"}.get(folder, folder)


def text_of(path: Path) -> str:
    """The text of a file. Its line ends stay as they are."""
    return path.read_bytes().decode()


def outputs(sample: Path) -> list[Output]:
    """The outputs in a sample file."""
    text = text_of(sample)
    if sample.name.endswith(CHANGES):
        return list(_changed(sample, json.loads(text)))
    if sample.suffix == TEXTS:
        _, *found = _TITLE.split(text)
        return [Output(name, one.removesuffix("\n")) for name, one in zip(found[::2], found[1::2], strict=True)]
    return [Output("/".join(sample.relative_to(SAMPLES).parts[2:]), text)]


def _changed(sample: Path, content: Any) -> Iterator[Output]:
    base = text_of(sample.with_name(content["of"]))
    for name, pairs in content["changes"].items():
        text = base
        for old, new in pairs:
            assert old in text, f"{sample.name}: {name}: the sample has no {old!r}"
            text = text.replace(old, new)
        yield Output(name, text, base)


def result(sample: Path) -> dict[str, Any]:
    """The result of the readers for a sample file. The present expected file determines whether it includes
    findings.
    """
    path = expected_file(sample)
    before = json.loads(text_of(path)) if path.is_file() else {}
    if sample.suffix != TEXTS and not sample.name.endswith(CHANGES):
        (output,) = outputs(sample)
        return _result(output, "findings" in before)
    return {one.name: _result(one, "findings" in before.get(one.name, {})) for one in outputs(sample)}


def _result(output: Output, with_findings: bool) -> dict[str, Any]:
    records = list(read_text(output.name, output.text, AT))
    found: dict[str, Any] = {"records": [rendered(one, output.text) for one in records]}
    if output.base is not None:
        base = [rendered(one, output.base) for one in read_text(output.name, output.base, AT)]
        found = {"removes": _without_lines(base, found["records"]), "adds": _without_lines(found["records"], base)}
    if with_findings:
        report = evaluate(assemble(records, Site(), AT, origin="dumps"))
        found["findings"] = [[one.code, one.severity, one.subject] for one in report.findings]
    return found


def _without_lines(some: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The records of `some` that `others` does not have as often, without the cited lines."""
    left = Counter(json.dumps(_bare(one)) for one in others)
    only: list[Any] = []
    for one in map(_bare, some):
        key = json.dumps(one)
        left[key] -= 1
        if left[key] < 0:
            only.append(one)
    return only


def _bare(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in ("lines", "line")}


def rendered(one: Record, text: str) -> dict[str, Any]:
    """A record as JSON: its kind, its fields that are set, and the number of the cited line."""
    kind, fields = json.loads(encode(one))
    if isinstance(one, NotChecked):
        texts = {"what": one.what, "subject": one.subject, "reason": one.reason.value, "why": one.why, "how": one.how}
        return {"record": kind, **{name: value for name, value in texts.items() if value is not None}}
    lines = text.split("\n")
    if evidence := fields.pop("evidence", None):
        fields["line"] = _cited(evidence, lines)
    if isinstance(about := fields.get("about"), dict):
        fields["about"] = {name: _short(value) for name, value in about.items() if value not in (None, "", [])}
    if fields.get("at") == AT:
        del fields["at"]
    cites = defaultdict(list)
    for name, cite in fields.pop("cites", {}).items():
        cites[_cited(cite, lines)].append(name)
    return {
        "record": kind,
        **fields,
        **({"lines": {at: " ".join(names) for at, names in cites.items()}} if cites else {}),
    }


def _cited(cite: dict[str, str], lines: Sequence[str]) -> str:
    """The number of the cited line, followed by the cited text if the text differs from the line."""
    place = _LINE.fullmatch(cite["source"])
    number = place["number"] if place else cite["source"]
    whole = lines[int(number) - 1].strip()[:300] if place and 0 < int(number) <= len(lines) else None
    return number if cite["text"] == whole else f"{number}: {cite['text']}"


def _short(value: Any) -> Any:
    """Ranks 0 to N as one word."""
    ranks = isinstance(value, list) and len(value) > 2 and value == [f"rank{number}" for number in range(len(value))]
    return f"rank0...{value[-1]}" if ranks else value


def as_json(value: Any, depth: int = 0) -> str:
    """JSON with one record per line. Records that are longer than a line are broken between their members."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or (len(flat) + depth < WIDTH and not _holds_records(value)):
        return flat
    if isinstance(value, dict):
        members = [f"{json.dumps(name, ensure_ascii=False)}: {as_json(one, depth + 1)}" for name, one in value.items()]
    else:
        members = [as_json(one, depth + 1) for one in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    filled = _filled(members, depth + 1) if "record" in value or not _holds_records(value) else members
    inside = (",\n" + " " * (depth + 1)).join(filled)
    return f"{opening}\n{' ' * (depth + 1)}{inside}\n{' ' * depth}{closing}"


def _holds_records(value: Any) -> bool:
    """Whether it is a result, or a list of records."""
    if isinstance(value, dict):
        return bool({"records", "adds"} & value.keys()) or any(map(_holds_records, value.values()))
    return isinstance(value, list) and any(isinstance(one, dict) and "record" in one for one in value)


def _filled(members: Sequence[str], depth: int) -> list[str]:
    """Lines with as many members as fit."""
    rows: list[str] = []
    for one in members:
        if rows and "\n" not in rows[-1] + one and len(rows[-1]) + len(one) + depth + 3 <= WIDTH:
            rows[-1] += f", {one}"
        else:
            rows.append(one)
    return rows
