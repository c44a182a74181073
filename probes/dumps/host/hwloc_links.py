"""NVLinks in an lstopo XML: the matrix NVLinkBandwidth of GPUs and NVSwitches.

hwloc adds up the active links of each pair in both directions, in MB/s: 20000 for a link of NVLink 1, 25000 of NVLink
2, 50000 of NVLink 3 and 4 (topology-nvml.c). So the number of links needs the generation, which the product determines.
hwloc knows no later generation. The matrix is symmetric.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ....models.catalog.gpus import products
from ....models.facts.gpu import GpuLink
from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked, Record
from ..core.part import Part

_MATRIX = re.compile(r"<distances2(?:hetero)?\b[^<>]*\bname=\"NVLinkBandwidth\"[^<>]*>(.*?)</distances2", re.DOTALL)
_NUMBERS = re.compile(r"<(indexes|u64values)\b[^<>]*>([^<]*)")
_PER_LINK = {1: 20_000, 2: 25_000, 3: 50_000, 4: 50_000}
_MOST = 512  # devices
Device = tuple[str, str, str]  # kind: "gpu" or "switch", key, PCI address


def links(part: Part, devices: Mapping[str, Device], generation: int | None) -> Iterator[Record]:
    """The NVLinks of each GPU. `devices`: by the index in the matrix. A matrix that is incomplete is a gap."""
    found = _MATRIX.search(part.text)
    if not found:
        return
    line = part.text.count("\n", 0, found.start())
    counts = _counts(found[1], devices, _PER_LINK.get(generation or 0))
    if counts is None:
        why = "the matrix NVLinkBandwidth is incomplete, or the NVLink generation of its GPUs is not known"
        yield NotChecked(what="GpuLink", subject="node", reason=Reason.INCOMPLETE, path=part.where(line), detail=why)
        return
    cite = part.cite(line, part.text.split("\n")[line])
    for name, row in counts.items():
        kind, gpu, _ = devices[name]
        ends = [devices[other] for other, count in row.items() if other != name for _ in range(count)]
        for number, (remote_kind, _, address) in enumerate(ends if kind == "gpu" else ()):
            yield GpuLink(
                key=f"{gpu}/nvlink{number}",
                gpu=gpu,
                kind="nvlink",
                remote=address,
                remote_kind=remote_kind,
                version=generation,
                cites={"remote": cite},
            )


def _counts(matrix: str, devices: Mapping[str, Device], per_link: int | None) -> dict[str, dict[str, int]] | None:
    """The number of links from each device to each other one, by their indexes. None: the matrix is not complete."""
    texts: dict[str, list[str]] = {"indexes": [], "u64values": []}
    for name, text in _NUMBERS.findall(matrix):
        texts[name] += text.split()
    names = [text.rpartition(":")[2] for text in texts["indexes"]]
    values = [int(text) if text.isdecimal() and len(text) < 10 else -1 for text in texts["u64values"]]
    size = len(names)
    if not per_link or not 0 < size <= _MOST or len(values) != size**2 or not all(name in devices for name in names):
        return None
    symmetric = all(
        values[row * size + column] == values[column * size + row] for row in range(size) for column in range(row)
    )
    if not symmetric or any(value % per_link for value in values):
        return None
    counts = [value // per_link for value in values]
    return {name: dict(zip(names, counts[row * size :], strict=False)) for row, name in enumerate(names)}


def generation_of(numbers: set[tuple[int | None, int | None]]) -> int | None:
    """The NVLink generation of GPUs with these vendor and device numbers. None: not known, or several."""
    ids = {f"{vendor or 0:04x}:{device or 0:04x}" for vendor, device in numbers}
    found = {
        product.link_version
        for product in products()
        if ids.intersection(product.ids) and product.link_kind == "nvlink"
    }
    return found.pop() if len(found) == 1 else None
