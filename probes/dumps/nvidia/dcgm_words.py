"""Converts DCGM's messages to the facts of other sources: dcgmlib/dcgm_errors.h of https://github.com/NVIDIA/DCGM. DCGM
numbers GPUs as NVML does unless it leaves some out.

The PCIe test copies 40 MB from and to pinned memory, one GPU at a time (nvvs/plugin_src/pcie). The reader skips its
bidirectional rate, which is the sum of both directions. On machines with several NUMA nodes, DCGM 4 reports the two
directions swapped: it exchanges them when it reads the output of its helper (ProcessChildOutput).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from ....models.facts.gpu import Gpu, GpuLink
from ....models.facts.machine import Event, NcclFailure
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation
from ....models.facts.units import from_gigabytes
from ...kernel_log.messages import KIND, Found, catalog, find_messages
from ...parsing.nvml_enums import pcie_speed
from ...parsing.parsers import pcie_width
from ..core.fields import FactCollector
from ..core.part import Part

_RATE = re.compile(r"(?:GPU ([0-9]{1,3}) )?(GPU to Host|Host to GPU) bandwidth:\s+([0-9]{1,7}\.[0-9]{2}) GB/s")
_DOWN = re.compile(r"GPU ([0-9]{1,3})'s NvLink link ([0-9]{1,2}) is currently down")
_XID = re.compile(
    r"Detected XID (?P<value>[0-9]{1,4}) for GPU (?P<gpu>[0-9]{1,3})|uncontained error \(XID (?P<own>95)\)"
)

_CUDA = re.compile(r"[Ee]rror using CUDA API .{0,400}?'\s?(?P<error>[^']{5,120}?)'")  # the text of cudaGetErrorString()
# messages whose facts are complete
PERSISTENCE = re.compile(r"Persistence mode for GPU [0-9]{1,3} is (?:currently )?disabled")
SETTING = re.compile(rf"{PERSISTENCE.pattern}|(?s:'.{{0,20}}unsupported *display *driver */ *cuda)")


def _yes(_: str) -> bool:
    return True


def _no(_: str) -> bool:
    return False


def _speed(text: str) -> float | None:
    return pcie_speed(int(text))


# The field, the parser of its value, and the message. "gpu" is the number of the GPU.
_FIELDS: tuple[tuple[str, Callable[[str], Any], re.Pattern[str]], ...] = tuple(
    (name, read, re.compile(text.replace("#", "[0-9]{1,9}").replace("GPU @", "GPU (?P<gpu>[0-9]{1,3})")))
    for name, read, text in (
        ("pcie_width", pcie_width, r"GPU @ is running at PCI link width (?P<value>#)X?"),
        ("pcie_speed", _speed, r"GPU @ is running at PCI link generation (?P<value>#)"),
        ("nvlinks", int, r"(?<!- )Only (?P<value>#) NvLinks are up out of the expected #"),
        ("persistence", _no, r"Persistence mode for GPU @ is (?:currently )?disabled"),
        ("ecc_uncorrected", int, r"Detected (?P<value>#) volatile double-bit ECC error\(s\) in GPU @"),
        ("ecc_corrected", int, r"single-bit ECC error\(s\) detected in GPU @ Volatile SBEs: (?P<value>#)"),
        ("remap_pending", _yes, r"A pending retired page has been detected in GPU @"),
        ("remap_pending", _yes, r"GPU @ had memory errors and row remappings are pending"),
        ("remap_failed", _yes, r"GPU @ had uncorrectable memory errors and row remapping failed"),
        ("remapped_uncorrectable", int, r"GPU @ had uncorrectable memory errors and (?P<value>#) rows were remapped"),
    )
)


def facts(text: str, entity: str, where: Evidence, found: FactCollector) -> None:
    """Add the facts in a message about GPUs and links to `found`.

    `entity` is the subject if the message names no GPU.
    """
    for name, read, pattern in _FIELDS:
        for match in pattern.finditer(text):
            known = match.groupdict()
            gpu = f"gpu{int(known['gpu'])}" if known.get("gpu") else entity
            if gpu.startswith("gpu"):
                found.take(Gpu, gpu, where, name, known.get("value") or "", read)
    for match in _DOWN.finditer(text):
        gpu = f"gpu{int(match[1])}"
        found.add(Gpu, gpu, where)
        found.add(GpuLink, f"{gpu}/nvlink{int(match[2])}", where, gpu=gpu, kind="nvlink", active=False)
    for one in _messages(text):
        if text[one.start : one.end] not in where.text:  # rows of a table break the message
            found.add(Event, f"{KIND} {one.subject} {one.name}", where, kind=KIND, name=one.name, subject=one.subject)
            found.add(Event, f"{KIND} {one.subject} {one.name}", where, text=text[one.start :][:300], count=1)
    for match in _XID.finditer(text):
        code = int(match["value"] or match["own"])
        gpu = f"gpu{int(match['gpu'])}" if match["gpu"] else entity
        found.add(Event, f"xid {gpu} {code}", where, kind="xid", code=code, subject=gpu, text=text[:300])
    if cuda := _CUDA.search(" ".join(text.split())):
        found.add(NcclFailure, "CUDA", where, error=cuda["error"], text=text[:300])


def _messages(text: str) -> Iterator[Found]:
    """The messages in the text. Those whose sentence gives a field of a GPU say nothing more."""
    yield from find_messages(text, catalog("cuda", "gpu_tests"))
    stated = [pattern for name, _, pattern in _FIELDS if name != "persistence"]  # nothing is expected of this field
    fields = [found.start() for pattern in stated for found in pattern.finditer(text)]
    for one in find_messages(text, catalog("dcgm")):
        if not any(one.start <= start < one.end for start in fields):
            yield one


def rates(text: str, entity: str, where: Evidence, part: Part) -> Iterator[Observation]:
    """The rates of the PCIe test from and to host memory."""
    for match in _RATE.finditer(text):
        gpu = f"gpu{int(match[1])}" if match[1] else entity
        ends = (gpu, "host") if match[2] == "GPU to Host" else ("host", gpu)
        if float(match[3]) and gpu.startswith("gpu"):
            yield part.rate(Flow("copy", ends), from_gigabytes(float(match[3])), where)


def failed(found: FactCollector, test: str, subject: str, text: str, where: Evidence) -> None:
    """Add an event for a failed test of DCGM."""
    key = f"test failed, {test}, {subject}"
    found.add(Event, key, where, kind="test failed", name=test, subject=subject, text=text[:300])


def unhealthy(
    system: str, entity: str, verdict: str, text: str, where: Evidence, found: FactCollector
) -> Iterator[NotChecked]:
    """A system that DCGM's health watch calls unhealthy: the facts in the text, and an event or a NotChecked."""
    facts(text, entity, where, found)
    name, text = f"DCGM's health watch, {system},", text or "no reason given"
    if verdict == "Failure":
        failed(found, name, entity, text, where)
    else:
        yield NotChecked(
            what="dcgmi health",
            subject=entity,
            reason=Reason.OTHER,
            path=where.source,
            detail=f"{name} says {verdict.lower()}: {text[:300]}",
            how="dmesg; nvidia-smi -q; dcgmi diag -r 2",
        )
