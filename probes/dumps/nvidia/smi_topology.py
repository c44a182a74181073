"""`nvidia-smi topo -m` and `topo -p2p`: paths between GPUs and to NICs, and peer access between GPUs.

A path over NVLink hides the PCIe path. If more NVLinks lead to peers than a GPU has, all its links lead to switches,
and each pair uses all of them. "NV18" is then the number of active links. On a board without switches, links may lead
to hidden GPUs. The reader does not store the affinities of NICs, because sysfs and lspci have them. It stores the paths
to NICs for the matrix of a machine whose PCI tree is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ....models.facts.gpu import Gpu, GpuPair
from ....models.facts.network_paths import NicPath
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ...parsing.nvml_enums import P2P, PATHS
from ...parsing.parsers import cpu_list, shown
from ..core.part import Part
from ..core.path_matrix import (
    NVLINKS,
    ROW,
    KnownRow,
    Row,
    affinities,
    are_cells,
    certain_cells,
    column_names,
    implied_columns,
    one_row,
    row_of,
)

_PROMPT = r"(?:[$#%+>][ ]|\[[^\]\n]{1,80}\][$#%][ ]|[\w.-]{1,40}@[^\n$#%]{1,60}[$#%][ ])?(?:sudo )?"
_COMMAND = r"nvidia-smi(?:[ ]\S+)?[ ]topo[ ](?:-p2p|--p2pstatus)[ =]?"
_COLUMN = r"(?:GPU|NIC|mlx[45]_(?:bond_)?)[0-9]{1,3}"
# The heading of a matrix: a column follows its first GPU, where a row has X or a path. A program that copies the output
# can remove leading blanks (collect_env of PyTorch and vLLM).
_HEADING = (
    rf"(?:[ \t]+GPU[0-9]{{1,3}}[ \t]*$|[ \t]*GPU[0-9]{{1,3}}[ \t]*(?:(?:{_COLUMN})+|CPU Affinity)(?![\w.-])"
    r"(?![ \t]+[0-9]))"
)
BEGIN = (
    rf"^[ \t]*{_PROMPT}{_COMMAND}[a-z]"  # only the command names the ability in a -p2p matrix
    rf"|^{_HEADING}|^{ROW}"
)
_P2P_COMMAND = re.compile(rf"{_COMMAND}([a-z]+)")
_P2P_FILE = re.compile(r"p2p[-_. ]?(read|write|nvlink|atomics?|[rwna])(?![a-z])", re.IGNORECASE)
_ABILITIES = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics"}
_HEAD = re.compile(_HEADING)
_BEGIN_OF_ROW = re.compile(ROW)
_NIC_ROW = re.compile(r"(?:NIC|mlx[45]_(?:bond_)?)[0-9]{1,3}")
_NAMED = re.compile(r"\s*(NIC[0-9]{1,3}): ([A-Za-z][\w.-]{0,40})\s*")
_GPU = re.compile(r"GPU[0-9]{1,3}")
_NIC = re.compile(r"NIC[0-9]{1,3}|[a-z][a-z0-9_]{2,40}")  # a name of an RDMA device has no capital letters
_MOST_LINKS = (18, 36)  # per GPU: until Blackwell, and NVML_NVLINK_MAX_LINKS
_FEWEST = 2  # GPUs with NVLinks to switches that must exist before a GPU without any counts as having lost its links
_MOST_COLUMNS = 128  # GPUs and NICs; limits the number of pairs, which is its square
_SOC = "SOC"  # the name of SYS in drivers before 384
_ALLOWED = {"OK": P2P[0], "CNS": P2P[1], "GNS": P2P[2], "TNS": P2P[3], "DR": P2P[4], "NS": P2P[5], "U": P2P[6]}
_REFUSED = {"CNS", "GNS", "TNS"}  # of reading and writing; a matrix of NVLinks has NS, one of atomics also DR
_NO_COLUMNS = "the cells of the GPUs themselves are missing, or not at their places"
_AFFINITIES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")


class _Matrix(Struct, frozen=True):
    """The columns (GPUs and NICs), the number of affinity columns after them, and the rows by GPU.

    `unheaded`: the columns are those that the rows imply, and this is known of them.
    """

    columns: Sequence[str]
    affinities: int
    ability: str | None
    unheaded: str = ""
    rows: dict[str, KnownRow] = field(default_factory=dict)
    nics: dict[str, KnownRow] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of the NICs: "NIC0" -> "mlx5_0"


def read(part: Part) -> Iterator[Record]:
    """For each matrix, a `Gpu` per row with its CPUs and NUMA node, and each `GpuPair`."""
    matrices: list[_Matrix] = []
    ability, end = _by_name(part.file), part.text.rstrip().count("\n")
    for number, line in part.lines():
        if command := _P2P_COMMAND.search(line):
            ability = _ABILITIES.get(command[1][0])  # "r"; wrappers use "rw" and others
        if _HEAD.match(line):
            before, found, _ = line.partition(_AFFINITIES[0])
            columns = column_names(before)[:_MOST_COLUMNS]
            matrices.append(_Matrix(columns, sum(name in line for name in _AFFINITIES) if found else 0, ability))
            continue
        words = row_of(line)
        if not matrices and _BEGIN_OF_ROW.match(line):
            matrices.append(_unheaded(part, ability))
        if matrices and words.words and (_GPU.fullmatch(words.name) or _NIC_ROW.fullmatch(words.name)):
            rows = matrices[-1].rows if words.name.startswith("GPU") else matrices[-1].nics
            row = _row(matrices[-1], words, number == end, line, part.cite(number, line))
            rows[words.name] = one_row(rows.get(words.name), row)
        elif matrices and (named := _NAMED.fullmatch(line)):
            matrices[-1].names[named[1]] = named[2]
    for matrix in map(_with_ability, matrices):
        for name, row in matrix.rows.items():
            yield from _gpu(matrix, name, row)
        yield from _pairs(matrix)
        yield from _to_nics(matrix)
        yield from _damaged(part, matrix, part.where(end))
    if matrices:
        yield from _end(part, matrices[-1])


def _with_ability(matrix: _Matrix) -> _Matrix:
    """The matrix; without its command, words about refused access show that it is of reading or of writing."""
    words = {cell for row in matrix.rows.values() for cell in row.cells.values()}
    whole = not matrix.unheaded and all(row.cells for row in matrix.rows.values())
    is_read = whole and matrix.ability is None and words & _REFUSED and "DR" not in words
    return replace(matrix, ability="read") if is_read else matrix


def _damaged(part: Part, matrix: _Matrix, end: str) -> Iterator[NotChecked]:
    """A NotChecked for columns whose names are damaged, for a missing heading, and for rows without some cells.

    `end` is the last line of the text, for which _end has its own gap.
    """
    names = [column for column in matrix.columns if not _GPU.fullmatch(column) and not _NIC.fullmatch(column)]
    if names:
        why = f"{', '.join(map(shown, names[:4]))} in the heading of nvidia-smi topo is no GPU and no NIC"
        yield NotChecked(what="NicPath", subject="node", reason=Reason.UNREADABLE, path=part.file, detail=why)
    every = {**matrix.rows, **matrix.nics}
    if matrix.unheaded:
        path = next((row.where.source for row in every.values()), part.file)
        yield _unread("nvidia-smi topo -m", path, f"rows without the heading: {matrix.unheaded}")
        return
    for name, row in every.items():
        cut = len(row.cells) < len(matrix.columns) and row.where.source == end
        if not row.whole and not cut:
            yield _unread("GpuPair.path", row.where.source, f"the row of {name} has a missing or damaged cell")


def _unread(what: str, path: str, why: str) -> NotChecked:
    how = "copy the whole output, with its first line: nvidia-smi topo -m"
    return NotChecked(what=what, subject="node", reason=Reason.INCOMPLETE, path=path, detail=why, how=how)


def _end(part: Part, matrix: _Matrix) -> Iterator[NotChecked]:
    """A NotChecked if the text ends within the last matrix: a row is short, or GPUs of columns have no row."""
    whole = part.text.rstrip()
    number, last = whole.count("\n"), whole[whole.rfind("\n") + 1 :]
    row = row_of(last)
    begun = _GPU.fullmatch(row.name) is not None
    rows = sum(bool(_GPU.fullmatch(column)) for column in matrix.columns)
    if begun and len(row.words) < len(matrix.columns):
        yield part.cut(number, f"within the row of {row.name}")
    elif (begun or _HEAD.match(last)) and len(matrix.rows) < rows:
        yield part.cut(number, f"after the rows of {len(matrix.rows)} of {rows} GPUs")


def _by_name(file: str) -> str | None:
    """The ability in a file name such as "topo_p2p_r.txt"."""
    found = _P2P_FILE.search(file)
    return _ABILITIES[found[1][0].lower()] if found else None


def _unheaded(part: Part, ability: str | None) -> _Matrix:
    """The matrix of rows without a heading: their own cells show which columns are whose."""
    lines = [line for _, line in part.lines()]
    above = lines[: next((number for number, line in enumerate(lines) if _HEAD.match(line)), len(lines))]
    columns, whole = implied_columns([row_of(line) for line in above], sum(map(bool, map(_NAMED.fullmatch, above))))
    why = "those of other columns are not known" if columns and not whole else "a row can be missing"
    known = f"the columns of {columns[0]} to {columns[-1]} are known by their places, {why}" if columns else _NO_COLUMNS
    return _Matrix(columns, len(_AFFINITIES), ability, known)


def _row(matrix: _Matrix, row: Row, last: bool, line: str, where: Evidence) -> KnownRow:
    """A row. Without tabs, an empty affinity is invisible, so affinities count only if all of them are present."""
    known = certain_cells(matrix.columns, row, last, not matrix.unheaded)
    whole = len(known) == len(matrix.columns)
    if not whole or not _GPU.fullmatch(row.name):
        return KnownRow(known, (), whole, where)
    columns, named = (row.cells, 0) if matrix.unheaded else (len(matrix.columns), matrix.affinities)
    others = affinities(line, row, columns, named)
    present = others is not None and ("\t" in line or len(others) == matrix.affinities)
    return KnownRow(known, others or () if present else (), others is not None and are_cells(known.values()), where)


def _gpu(matrix: _Matrix, name: str, row: KnownRow) -> Iterator[Record]:
    """The GPU with its CPUs, its NUMA node and its active NVLinks. "N/A" and several nodes give no node."""
    gpu, where = name.lower(), row.where
    text, node = (*row.affinities, "", "")[:2]
    known: dict[str, Any] = {"nvlinks": _up(matrix, name)}
    try:
        known["cpus"] = (cpu_list(text) if text[:1].isdecimal() else ()) or None
    except ValueError as wrong:
        yield NotChecked(what="Gpu.cpus", subject=gpu, reason=Reason.UNREADABLE, path=where.source, detail=str(wrong))
    known["numa"] = int(node) if re.fullmatch("[0-9]{1,4}", node) else None
    fields = {field: value for field, value in known.items() if value is not None}
    yield Gpu(key=gpu, cites=dict.fromkeys(fields, where), **fields)


def _up(matrix: _Matrix, name: str) -> int | None:
    """The number of active NVLinks of a GPU whose links lead to switches.

    0 if it has none but the links of others do.
    """
    peers = [column for column in matrix.columns if _GPU.fullmatch(column)]
    whole = {gpu: row for gpu, row in matrix.rows.items() if row.cells.keys() >= set(peers)}
    switched = {gpu for gpu, row in whole.items() if _switched(row)}
    if name in switched:
        return max(whole[name].links)
    joined = name not in whole or bool(whole[name].links)
    return None if joined or len(switched) < _FEWEST else 0


def _switched(row: KnownRow) -> bool:
    links = row.links
    return bool(links) and sum(links) > next((most for most in _MOST_LINKS if max(links) <= most), sum(links))


def _pairs(matrix: _Matrix) -> Iterator[Record]:
    """The cells above the diagonal, or below it if those are missing or damaged."""
    gpus = [column for column in matrix.columns if _GPU.fullmatch(column)]
    for place, a in enumerate(gpus):
        for b in gpus[place + 1 :]:
            cells = [
                (row, cell)
                for row, column in ((a, b), (b, a))
                if row in matrix.rows and (cell := matrix.rows[row].cells.get(column))
            ]
            if len(cells) == 2 and any(_is_odd(matrix.rows[row], cell, gpus) for row, cell in cells):
                (_, one), (_, other) = cells
                if one != other and all(NVLINKS.fullmatch(cell) or cell in PATHS.values() for cell in (one, other)):
                    yield _contradicted(matrix, a, b, one, other)
                    continue
            for row, cell in sorted(cells, key=lambda one: not are_cells(one[1:]))[:1]:
                yield from _pair(matrix, f"{a}-{b}".lower(), cell, matrix.rows[row].where)


def _is_odd(row: KnownRow, cell: str, gpus: Sequence[str]) -> bool:
    """Whether a cell is no usual one of its row. A GPU with an inactive link to a switch has it in its whole row."""
    return any(row.cells.get(gpu) not in (cell, "X", None) for gpu in gpus)


def _contradicted(matrix: _Matrix, a: str, b: str, one: str, other: str) -> NotChecked:
    why = f"row {a} says {one} for {b}, and row {b} says {other} for {a}"
    return NotChecked(
        what="GpuPair.path",
        subject=f"{a}-{b}".lower(),
        reason=Reason.CONTRADICTED,
        path=matrix.rows[a].where.source,
        detail=why,
        how="nvidia-smi topo -m",
    )


def _to_nics(matrix: _Matrix) -> Iterator[Record]:
    """The paths from GPUs and NICs to NICs."""
    nics = [column for column in matrix.columns if _NIC.fullmatch(column)]
    for a, row in (*matrix.rows.items(), *matrix.nics.items()):
        for b in nics[nics.index(a) + 1 if a in nics else 0 :]:
            path = "SYS" if row.cells.get(b) == _SOC else row.cells.get(b)
            if path in PATHS.values():
                name = matrix.names.get(b) or (None if b.startswith("NIC") else b)
                ends = {"a": a.lower(), "b": b.lower()}
                yield NicPath(key="-".join(ends.values()), **ends, name=name, path=path, cites={"path": row.where})


def _pair(matrix: _Matrix, key: str, cell: str, where: Evidence) -> Iterator[Record]:
    a, _, b = key.partition("-")
    path = "SYS" if cell == _SOC else cell
    if path in PATHS.values():
        yield GpuPair(key=key, a=a, b=b, path=path, cites={"path": where})
    elif cell in _ALLOWED and matrix.ability:
        pair = GpuPair(key=key, a=a, b=b, cites={matrix.ability: where})
        yield replace(pair, **{matrix.ability: _ALLOWED[cell]})
    elif cell in _ALLOWED:
        why = "the output does not name the ability of the matrix"
        how = "keep the command with its output: nvidia-smi topo -p2p r"
        yield NotChecked(
            what="GpuPair.read", subject=key, reason=Reason.UNREADABLE, path=where.source, detail=why, how=how
        )
    elif links := NVLINKS.fullmatch(cell):
        yield GpuPair(key=key, a=a, b=b, nvlinks=int(links[1]), cites={"nvlinks": where})
    else:
        yield NotChecked(
            what="GpuPair.path",
            subject=key,
            reason=Reason.UNREADABLE,
            path=where.source,
            detail=f"{shown(cell)} is no path",
        )
