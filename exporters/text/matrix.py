"""The matrix of GPUs and NICs as text, like `nvidia-smi topo -m`, in blocks of columns that fit a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from ...models.bandwidth.path_matrix import Matrix, Row
from ...models.facts.units import as_gigabytes
from ...models.graph.path_types import DevicePath
from .terminal import cells, hanging, safe

WIDTH = 99
_LEGEND = {
    "X": "itself",
    "SYS": "over PCIe and the interconnect between NUMA nodes",
    "NODE": "over PCIe and the interconnect between host bridges of one NUMA node",
    "PHB": "over PCIe and a host bridge, typically the processor's",
    "PXB": "over several PCIe switches, and no host bridge",
    "PIX": "over one PCIe switch at most",
    "NV#": "over # NVLinks side by side",
}
_RATES = """\
Rates: GB/s in one direction of the narrowest link on the path; links that are down count as 0.
Links between processors are not counted, since their number is not known. "-": not known.
"""
_COPIES = """\
Rates: typical GB/s in one direction of one long copy without other traffic, over links in good
state: 'linkgauge expect GPU0 GPU1' explains a rate. "-": not known.
"""


def as_matrix(matrix: Matrix, rates: bool = False, copies: bool = False) -> str:
    """Path types, or with `rates` GB/s in one direction; then the names of the NICs and the NICs nearest to each GPU.

    `copies`: the rates are those of copies, not of links. Affinity columns are shown with path types only. If the table
    is wider than a terminal, the columns are split into blocks.
    """
    rows = (*matrix.gpus, *matrix.nics)
    if not rows:
        return "no GPU and no RDMA device\n"
    columns = [[row.label, *(_cell(matrix, other, row, rates) for other in rows)] for row in rows]
    gpus, nics = columns[: len(matrix.gpus)], columns[len(matrix.gpus) :]
    places = list(_places(matrix)) if gpus and not rates else []
    heads = ["", *(row.label for row in rows)]
    whole = [*gpus, *nics, *places]
    blocks = list(_blocks(heads, whole))
    if len(blocks) > 1:
        blocks = [*_blocks(heads, [*gpus, *places]), *_blocks(heads, nics)]
    return "\n".join(["".join(f"{line}\n" for line in _lines(heads, block)) for block in blocks if block]) + (
        f"\n{_COPIES if copies else _RATES if rates else _legend(matrix)}{_names(matrix)}{_nearest(matrix)}"
    )


def _cell(matrix: Matrix, row: Row, column: Row, rates: bool) -> str:
    if row is column:
        return " X"
    path = matrix.paths.get((row.label, column.label))
    return _shown(path, rates) if path else "-"


def _shown(path: DevicePath, rates: bool) -> str:
    if not rates:
        return path.type
    return "-" if path.rate is None else as_gigabytes(path.rate).removesuffix(" GB/s")


def _places(matrix: Matrix) -> Iterator[list[str]]:
    """The affinity columns of nvidia-smi. "GPU NUMA ID" is always N/A: no driver that we call reports it."""
    nothing = [""] * len(matrix.nics)
    yield ["CPU Affinity", *(_ranges(row.cpus or ()) or "N/A" for row in matrix.gpus), *nothing]
    yield ["NUMA Affinity", *("N/A" if row.numa is None else str(row.numa) for row in matrix.gpus), *nothing]
    yield ["GPU NUMA ID", *("N/A" for _ in matrix.gpus), *nothing]


def _ranges(cpus: Sequence[int]) -> str:
    """ "0-27,56-83" """
    runs = (list(run) for _, run in groupby(enumerate(cpus), lambda pair: pair[1] - pair[0]))
    ends = ((run[0][1], run[-1][1]) for run in runs)
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def _blocks(heads: Sequence[str], columns: Sequence[list[str]]) -> Iterator[list[list[str]]]:
    """Split the columns into blocks that fit beside the row labels, with at least one column each."""
    block, left = list[list[str]](), 0
    for column in columns:
        width = _width(column) + 2
        if block and width > left:
            yield block
            block = []
        if not block:
            left = WIDTH - _width(heads)
        block.append(column)
        left -= width
    yield block


def _lines(heads: Sequence[str], block: Sequence[list[str]]) -> Iterator[str]:
    columns = [list(heads), *block]
    for line in zip(*columns, strict=True):
        padded = (f"{cell:<{_width(column)}}" for cell, column in zip(line, columns, strict=True))
        yield "  ".join(padded).rstrip()


def _width(column: Sequence[str]) -> int:
    return max(map(cells, column))


def _legend(matrix: Matrix) -> str:
    types = {path.type for path in matrix.paths.values()}
    known = {**_LEGEND, **({"XGMI": "over xGMI"} if "XGMI" in types else {})}
    return "Legend:\n" + "".join(f"  {name:4} = {words}\n" for name, words in known.items())


def _names(matrix: Matrix) -> str:
    lines = "".join(f"  {row.label}: {safe(row.name)}\n" for row in matrix.nics)
    head = "NIC Legend" if all(row.label.startswith("NIC") for row in matrix.nics) else "GPUs and NICs, of unknown kind"
    return f"\n{head}:\n{lines}" if lines else ""


def _nearest(matrix: Matrix) -> str:
    """The nearest NICs of each GPU with their common path type."""
    lines = ""
    for row in matrix.gpus:
        if row.nearest:
            names = ", ".join(safe(name) for name, _ in row.nearest)
            text = f"{names} ({row.nearest[0][1].type})"
            lines += "".join(f"{line}\n" for line in hanging(f"  {row.label}: ", text, WIDTH))
    return f"\nNearest NIC:\n{lines}" if lines else ""
