"""`dcgmi`: diag, health, topo, nvlink, discovery, stats: https://github.com/NVIDIA/DCGM, dcgmi/*.cpp.

GPU numbers are those of DCGM. All outputs except lists also exist as JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ....models.facts.records import NotChecked, Record
from ..core.fields import FactCollector
from ..core.json_values import documents, object_of
from ..core.part import Part
from . import dcgm_diag, dcgm_lists, dcgm_policy, dcgm_trees

_Rows = list[tuple[int, str]]
_Reader = Callable[[Part, _Rows, FactCollector], Iterable[Record]]
_TREES = "NVLINK Error Counts|Topology Information|Health Monitor Report"
_BODY = "CPU Core Affinity|GPU|Overall Health|NvSwitch|CPU|ConnectX|Link [0-9]{1,2}|Error Detail"
# Rows of tables whose headings are missing: a section or a test of a diagnosis, the verdict of the health watch.
_TESTS = (
    "Denylist|Blacklist|NVML Library|CUDA Main Library|CUDA Toolkit Libraries?|Permissions and OS(?: Blocks)?"
    "|Persistence Mode|Environment Variables|Page Retirement(?:/Row Remap)?|Graphics Processes|Inforom"
    "|Fabric Manager|PCIe|GPU Memory|Diagnostic|SM Stress|Targeted (?:Stress|Power)|Memory Bandwidth|Memtest"
    "|Pulse Test|EUD(?: Test)?|NVBandwidth|NCCL Tests?|Context Create|CPU EUD"
)
_VERDICT = r"(?:Pass|Fail|Skip|Warn)(?: - [^|\n]{1,60})?[ \t]*\|"
_ROWS = (
    r"[|+]-{3,8}  (?:Metadata|Deployment|Integration|Hardware|Stress)  -{3,12}[+]"
    rf"|\|[ ]{{1,3}}(?i:{_TESTS})[ ]{{1,40}}\|[ ]{{1,3}}{_VERDICT}"
    r"|\|[ ]{1,3}(?:Warning|Error)(?:: GPU[0-9]{1,3})?[ ]{1,40}\|[ ]{1,3}(?:GPU [0-9]|Error using CUDA|Detected )"
)
_OLD_HEALTH = r"\|[ ]{1,3}[\w -]{1,40}\|[ ]{1,3}Overall Health:"
_HEALTH = r"\|[ ]{1,3}Overall Health[ ]{1,60}\|"
_STATS = r"\|[ ]{1,3}(?:Double Bit ECC Errors|PCIe Replay Warnings|Critical XID Errors|Due to - Power \(%\))[ ]{1,40}\|"
_STATES = (
    r"(?:(?:gpuId|physicalId) [0-9]{1,4}:[ \t]*\n\s{0,20}[UDX_](?: [UDX_])|[UDX_](?: [UDX_]){5,255}[ \t]*(?:\n|\Z))"
)
_POLICY = r"[^\n]{0,200}has violated policy manager values"
_DIAG = r'DCGM (?:GPU )?Diagnostic"|iterations"\s{0,8}:\s{0,40}\[\s{0,80}\{\s{0,80}"DCGM '
_OBJECT = rf'\{{\s{{0,40}}"(?:{_DIAG}|body"\s{{0,8}}:\s{{0,40}}\{{\s{{0,80}}"(?:{_BODY})")'
BEGIN = (
    rf"^[ \t]*(?:\|[ ]{{1,2}}(?:NvLink Link Status|{_TREES})[ \t]{{1,80}}\|"
    r"|\|[ ]Diagnostic[ \t]{1,40}\|[ ]Result[ \t]{1,60}\|"
    r"|\|[ ](?:GPU ID|GPU ID: [0-9]{1,3}|Group of [0-9]{1,3} GPUs)[ \t]{1,30}\|[ ]Device Information[ \t]"
    rf"|{_ROWS}|{_OLD_HEALTH}|{_HEALTH}|{_STATES}|{_STATS}|{_POLICY}|\|[ ]GPU ID: [0-9]{{1,3}}[ ]{{20,80}}\|[ \t]*$"
    rf"|[0-9]{{1,3}} GPUs? found(?:[ ]\(|\.)|Successfully ran diagnostic for group|{_OBJECT})"
)
_JSON = re.compile(rf"^[ \t]*{_OBJECT}", re.MULTILINE)
_HEADS: dict[str, _Reader] = {
    "NvLink Link Status": dcgm_lists.read_states,
    "Diagnostic": dcgm_diag.read_text,
    **dict.fromkeys(_TREES.split("|"), dcgm_trees.read_text),
}
# The reader for rows whose heading is missing.
_HEADLESS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (re.compile(_OLD_HEALTH), dcgm_lists.read_old_health),
    (re.compile(_HEALTH), dcgm_trees.read_text),
    (re.compile(_STATES), dcgm_lists.read_states),
    (re.compile(rf"{_STATS}|\|[ ]GPU ID: [0-9]{{1,3}}[ ]{{20,80}}\|$", re.MULTILINE), dcgm_lists.read_stats),
    (re.compile(_POLICY), dcgm_policy.read_text),
    (re.compile(_ROWS), dcgm_diag.read_text),
)


def read(part: Part) -> Iterator[Record]:
    """The GPUs, their links and pairs, counters of links, rates of tests, and failures."""
    found = FactCollector()
    records: list[Record] = []
    inside: list[tuple[int, int]] = []  # first and last line of each JSON document
    for one in documents(part, _JSON):
        if isinstance(one, NotChecked):
            records.append(one)
            continue
        first, text, whole = one.line, part.text[one.begin : one.end], object_of(one.value)
        inside.append((first, first + text.count("\n")))
        if "body" in whole:
            records += dcgm_trees.read_json(part, whole, text, first, found)
        else:
            records += dcgm_diag.read_json(part, whole, text, first, found)
    records += _tables(part, inside, found)
    yield from found.records()
    yield from records


def _tables(part: Part, inside: list[tuple[int, int]], found: FactCollector) -> Iterator[Record]:
    rows: _Rows = []
    reader: _Reader | None = None
    left = iter([*inside, (-1, -1)])
    first, last = next(left)
    lines = [*part.lines()]
    for (number, line), (_, following) in zip(lines, [*lines[1:], (-1, "")], strict=True):
        if number == first:
            yield from reader(part, rows, found) if reader else ()
            reader, rows = None, []
        if first <= number <= last:
            first, last = next(left) if number == last else (first, last)
            continue
        if begun := _head(line) or (None if reader else _headless(line, following)):
            yield from reader(part, rows, found) if reader else ()
            reader, rows = begun, []
        rows.append((number, line))
    yield from reader(part, rows, found) if reader else ()


def _headless(line: str, following: str) -> _Reader | None:
    """The reader for a row that is no heading and has none above."""
    both = f"{line}\n{following}".strip()
    return next((reader for form, reader in _HEADLESS if form.match(both)), None)


def _head(line: str) -> _Reader | None:
    """The reader for the table with this heading, or None."""
    name, text = dcgm_diag.cells(line)
    if text.startswith("Device Information") and name.startswith(("GPU ID", "Group of")):
        return dcgm_lists.read_devices
    return _HEADS.get(name) if name != "Diagnostic" or text == "Result" else None
