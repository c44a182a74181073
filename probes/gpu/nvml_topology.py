"""What NVIDIA's driver says of GPUs that lasts until a reset: what they are, where, and how they are joined.

Runs in a child (calls.py), once in a while: 689 calls for 8 GPUs with 18 NVLinks each (docs/operate/overhead.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from ctypes import c_uint
from dataclasses import replace
from functools import partial
from typing import Any

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
from .nvml_library import Refused
from .nvml_links import link_count, link_states
from .nvml_threads import Asking, Row, each_gpu, opened, seconds, stall, waited

_CPU_WORDS, _NODE_WORDS = 128, 16  # of 64 bits: as many CPUs (8192) and NUMA nodes (1024) as Linux can have
_NEAR = 0  # NVML_AFFINITY_SCOPE_NODE
_FOR_PAIRS = 0.6  # of the time that GPUs have: pairs come after them, and the parent waits for twice as long


_CALLS = (
    Row("vbios", ("DeviceGetVbiosVersion",), read=word),
    Row("board_part", ("DeviceGetBoardPartNumber",), read=word),
    Row("virtualization", ("DeviceGetVirtualizationMode",), read=partial(meaning, VIRTUALIZATION)),
    Row("pcie_own_max_speed", ("DeviceGetGpuMaxPcieLinkGeneration",), read=pcie_speed),
    Row("clock_max", ("DeviceGetMaxClockInfo",), (SM,), hertz),
    Row("memory_clock_max", ("DeviceGetMaxClockInfo",), (MEMORY,), hertz),
    Row("application_clock_default", ("DeviceGetDefaultApplicationsClock",), (GRAPHICS,), hertz),
    Row("bar1", ("DeviceGetBAR1MemoryInfo",), read=lambda said: int(said.bar1Total)),
    Row("cpus", ("DeviceGetCpuAffinity",), (_CPU_WORDS,), lambda words: members(words) or None),
    Row("numa", ("DeviceGetMemoryAffinity",), (_NODE_WORDS, _NEAR), lambda words: _only(members(words))),
)
# nvmlGpuP2PCapsIndex_t. NVML_P2P_CAPS_INDEX_READ of nvidia-ml-py is the tuple (0,), which ctypes does not take.
_ABILITIES = {"read": 0, "write": 1, "nvlink": 2, "atomics": 3}


def wiring() -> Iterator[Record]:
    """Of each GPU `Gpu` and the other ends of its `GpuLink`s, then each `GpuPair`.

    A GPU that cannot be asked is not called broken here: nvml.py says so.
    """
    limit = seconds()
    until = time.monotonic() + limit
    ready = opened(until)
    if not isinstance(ready, tuple):
        if isinstance(ready, Driver):
            reason = ready.failure_reason or Reason.DRIVER
            yield NotChecked(what="GpuPair", subject="node", reason=reason, detail=str(ready.failure))
        else:
            yield replace(ready, what="GpuPair")
        return
    library, driver = ready
    usable: list[Asking] = []
    for asking, failure in each_gpu(library, driver.fields["gpus"], _gpu, until):
        if asking.fields:
            yield Gpu(key=asking.key, **dict(asking.fields))
        yield from asking.rest()
        if failure:
            for what in ("GpuLink.remote", "GpuPair"):
                yield NotChecked(what=what, subject=asking.key, reason=failure.reason, detail=failure.detail)
        else:
            usable.append(asking)
    yield from _pairs(usable, until + _FOR_PAIRS * limit)


def _gpu(asking: Asking) -> None:
    """Everything of one GPU alone. Raises Refused where it is gone."""
    for row in _CALLS:
        asking.take(row)
    asking.attempt("module_id", lambda: asking.fields.update(module_id=_module_id(asking)))
    for link, active in (link_states(asking, link_count(asking)) or {}).items():
        if active:
            _far_end(asking, link)


def _module_id(asking: Asking) -> int:
    """Its place on the baseboard. Without a number to fill, nvidia-ml-py has all threads fill one and the same."""
    return int(asking.library.fill("DeviceGetModuleId", asking.handle, c_uint()).value)


def _only(several: tuple[int, ...]) -> int | None:
    return several[0] if len(several) == 1 else None


def _far_end(asking: Asking, link: int) -> None:
    """What an active link leads to. A guest and a multi-node NVLink system do not show their switches."""
    end = Asking(asking.library, GpuLink, f"{asking.key}/nvlink{link}", asking.handle)
    end.take(Row("remote_kind", ("DeviceGetNvLinkRemoteDeviceType",), (link,), ENDS.get))
    end.take(Row("remote", ("DeviceGetNvLinkRemotePciInfo",), (link,), _shown_address))
    if any(end.fields.values()):
        asking.links.append(GpuLink(key=end.key, **end.fields))
    asking.lost += end.lost


def _shown_address(info: Any) -> str | None:
    try:
        return pci_address(info.busId)
    except ValueError:
        return None  # what stands there for a switch that is not shown is no address


def _pairs(usable: list[Asking], until: float) -> Iterator[Record]:
    """Each pair; those of one first GPU in a thread."""
    rows: list[tuple[Asking, list[Asking], list[list[Record]], ThreadedCall[None]]] = []
    for place, a in enumerate(usable):
        others, done = usable[place + 1 :], list[list[Record]]()
        rows.append((a, others, done, ThreadedCall(partial(_row, a, others, done))))
    for a, others, done, question in rows:
        if waited(question, a.library, until):
            question.answer()  # raises what is our own fault
        answers = done.copy()
        yield from (said for answer in answers for said in answer)
        for b in others[len(answers) :]:
            yield NotChecked(
                what="GpuPair",
                subject=f"{a.key}-{b.key}",
                reason=Reason.NO_ANSWER,
                detail=no_answer(stall()),
            )


def _row(a: Asking, others: Iterable[Asking], done: list[list[Record]]) -> None:
    for b in others:
        done.append(_pair(a, b))


def _pair(a: Asking, b: Asking) -> list[Record]:
    pair = Asking(a.library, GpuPair, f"{a.key}-{b.key}")
    ends = (a.handle, b.handle)
    try:
        for field, index in _ABILITIES.items():
            pair.take(Row(field, ("DeviceGetP2PStatus",), (*ends, index), partial(meaning, P2P)))
        pair.take(Row("path", ("DeviceGetTopologyCommonAncestor",), ends, partial(meaning, PATHS)))
    except Refused as gone:
        return [NotChecked(what="GpuPair", subject=pair.key, reason=gone.reason, detail=str(gone))]
    return [GpuPair(key=pair.key, a=a.key, b=b.key, **pair.fields), *pair.lost]
