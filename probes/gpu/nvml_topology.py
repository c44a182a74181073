"""The call `nvml_wiring`: identities, affinities and links of NVIDIA GPUs, constant until a reset.

It runs in a child process, rarely: 8 GPUs with 18 NVLinks each take 689 calls (docs/operate/overhead.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from ctypes import c_uint
from functools import partial
from typing import Any

from msgspec.structs import replace

from ...models.facts.gpu import Driver, Gpu, GpuLink, GpuPair
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..calls.threaded_call import ThreadedCall
from ..calls.timeouts import no_answer
from ..parsing.nvml_enums import (
    ENDS,
    GRAPHICS,
    MEMORY,
    P2P,
    PATHS,
    SM,
    VIRTUALIZATION,
    hertz,
    meaning,
    members,
    pci_address,
    pcie_speed,
)
from ..parsing.parsers import word
from .nvml_library import NvmlError
from .nvml_links import link_count, link_states
from .nvml_reader import FieldQuery, NvmlReader
from .nvml_threads import each_gpu, finishes, open_driver, seconds, stall_seconds

_CPU_WORDS, _NODE_WORDS = 128, 16  # words of 64 bits, for Linux's maximum of 8192 CPUs and 1024 NUMA nodes
_NEAR = 0  # NVML_AFFINITY_SCOPE_NODE
_FOR_PAIRS = 0.6  # share of the GPUs' time limit. Pairs are read after GPUs, and the parent waits for twice the limit


_CALLS = (
    FieldQuery("vbios", ("DeviceGetVbiosVersion",), read=word),
    FieldQuery("board_part", ("DeviceGetBoardPartNumber",), read=word),
    FieldQuery("virtualization", ("DeviceGetVirtualizationMode",), read=partial(meaning, VIRTUALIZATION)),
    FieldQuery("pcie_own_max_speed", ("DeviceGetGpuMaxPcieLinkGeneration",), read=pcie_speed),
    FieldQuery("clock_max", ("DeviceGetMaxClockInfo",), (SM,), hertz),
    FieldQuery("memory_clock_max", ("DeviceGetMaxClockInfo",), (MEMORY,), hertz),
    FieldQuery("application_clock_default", ("DeviceGetDefaultApplicationsClock",), (GRAPHICS,), hertz),
    FieldQuery("bar1", ("DeviceGetBAR1MemoryInfo",), read=lambda info: int(info.bar1Total)),
    FieldQuery("cpus", ("DeviceGetCpuAffinity",), (_CPU_WORDS,), lambda words: members(words) or None),
    FieldQuery("numa", ("DeviceGetMemoryAffinity",), (_NODE_WORDS, _NEAR), lambda words: _only(members(words))),
)
# nvmlGpuP2PCapsIndex_t. In nvidia-ml-py NVML_P2P_CAPS_INDEX_READ is the tuple (0,), which ctypes rejects.
_ABILITIES = {"read": 0, "write": 1, "nvlink": 2, "atomics": 3}


def wiring() -> Iterator[Record]:
    """Yield each `Gpu` with the remote ends of its `GpuLink`s, then each `GpuPair`.

    An unusable GPU is a NotChecked here; nvml.py reports the failure.
    """
    limit = seconds()
    until = time.monotonic() + limit
    opened = open_driver(until)
    if not isinstance(opened, tuple):
        if isinstance(opened, Driver):
            reason = opened.failure_reason or Reason.DRIVER
            yield NotChecked(what="GpuPair", subject="node", reason=reason, detail=str(opened.failure))
        else:
            yield replace(opened, what="GpuPair")
        return
    library, driver = opened
    usable: list[NvmlReader] = []
    for reader, failure in each_gpu(library, driver.fields["gpus"], _gpu, until):
        if reader.fields:
            yield Gpu(key=reader.key, **dict(reader.fields))
        yield from reader.rest()
        if failure:
            for what in ("GpuLink.remote", "GpuPair"):
                yield NotChecked(what=what, subject=reader.key, reason=failure.reason, detail=failure.detail)
        else:
            usable.append(reader)
    yield from _pairs(usable, until + _FOR_PAIRS * limit)


def _gpu(reader: NvmlReader) -> None:
    """Read one GPU, without pairs. Raises NvmlError if the GPU is lost."""
    for query in _CALLS:
        reader.take(query)
    reader.attempt("module_id", lambda: reader.fields.update(module_id=_module_id(reader)))
    for link, active in (link_states(reader, link_count(reader)) or {}).items():
        if active:
            _far_end(reader, link)


def _module_id(reader: NvmlReader) -> int:
    """Return the position on the baseboard. Without an explicit buffer, nvidia-ml-py shares one between threads."""
    return int(reader.library.fill("DeviceGetModuleId", reader.handle, c_uint()).value)


def _only(several: tuple[int, ...]) -> int | None:
    return several[0] if len(several) == 1 else None


def _far_end(reader: NvmlReader, link: int) -> None:
    """Read the remote end of an active link. Guests and multi-node NVLink systems hide their switches."""
    end = NvmlReader(reader.library, GpuLink, f"{reader.key}/nvlink{link}", reader.handle)
    end.take(FieldQuery("remote_kind", ("DeviceGetNvLinkRemoteDeviceType",), (link,), ENDS.get))
    end.take(FieldQuery("remote", ("DeviceGetNvLinkRemotePciInfo",), (link,), _address_or_none))
    if any(end.fields.values()):
        reader.links.append(GpuLink(key=end.key, **end.fields))
    reader.lost += end.lost


def _address_or_none(info: Any) -> str | None:
    try:
        return pci_address(info.busId)
    except ValueError:
        return None  # a hidden switch has a placeholder instead of an address


def _pairs(usable: list[NvmlReader], until: float) -> Iterator[Record]:
    """Yield each pair. One thread reads all pairs with the same first GPU."""
    threads: list[tuple[NvmlReader, list[NvmlReader], list[list[Record]], ThreadedCall[None]]] = []
    for place, a in enumerate(usable):
        others, finished_pairs = usable[place + 1 :], list[list[Record]]()
        threads.append((a, others, finished_pairs, ThreadedCall(partial(_read_pairs, a, others, finished_pairs))))
    for a, others, finished_pairs, call in threads:
        if finishes(call, a.library, until):
            call.answer()  # raises bugs of this program
        answers = finished_pairs.copy()
        yield from (record for answer in answers for record in answer)
        for b in others[len(answers) :]:
            yield NotChecked(
                what="GpuPair",
                subject=f"{a.key}-{b.key}",
                reason=Reason.NO_ANSWER,
                detail=no_answer(stall_seconds()),
            )


def _read_pairs(a: NvmlReader, others: Iterable[NvmlReader], finished_pairs: list[list[Record]]) -> None:
    for b in others:
        finished_pairs.append(_pair(a, b))


def _pair(a: NvmlReader, b: NvmlReader) -> list[Record]:
    pair = NvmlReader(a.library, GpuPair, f"{a.key}-{b.key}")
    ends = (a.handle, b.handle)
    try:
        for field, index in _ABILITIES.items():
            pair.take(FieldQuery(field, ("DeviceGetP2PStatus",), (*ends, index), partial(meaning, P2P)))
        pair.take(FieldQuery("path", ("DeviceGetTopologyCommonAncestor",), ends, partial(meaning, PATHS)))
    except NvmlError as gone:
        return [NotChecked(what="GpuPair", subject=pair.key, reason=gone.reason, detail=str(gone))]
    return [GpuPair(key=pair.key, a=a.key, b=b.key, **pair.fields), *pair.lost]
