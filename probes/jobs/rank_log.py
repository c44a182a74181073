"""The GPU and the NIC of each process of a job, from NCCL's log (NCCL_DEBUG=INFO).

NVIDIA/nccl prints them in src/init.cc and src/transport/net.cc. A NIC in brackets belongs to another rank, which sends
for this one (PXN).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from ...models.jobs.placement import Row

MARK = " NCCL INFO "
_PROCESS = re.compile(r"(?<![\w.-])([\w.-]{1,253}):(\d{1,9}):\d{1,9} \[\d{1,4}\] NCCL INFO (.{0,400})")
_INIT = re.compile(
    r"\brank (\d{1,9}) nranks (\d{1,9}) cudaDev (\d{1,4})(?: nvmlDev (\d{1,4}))?.* Init (?:COMPLETE|START)"
)
_SEND = re.compile(r"\[send\] via NET/\w{1,40}/(\d{1,4})(?!\d|\()")


def read_ranks(lines: Iterable[str]) -> tuple[Row, ...]:
    """A row for each process with one GPU. Its rank is that of its largest communicator."""
    ranks, gpus = dict[tuple[str, str], tuple[int, int]](), defaultdict[tuple[str, str], set[int]](set)
    nics = defaultdict[tuple[str, str], Counter[int]](Counter)
    for line in lines:
        found = _PROCESS.search(line) if MARK in line else None
        if found is None:
            continue
        process, text = (found[1], found[2]), found[3]
        if init := _INIT.search(text):
            ranks[process] = max(ranks.get(process, (0, 0)), (int(init[2]), int(init[1])))
            gpus[process].add(int(init[4] or init[3]))
        elif send := _SEND.search(text):
            nics[process][int(send[1])] += 1
    return tuple(
        Row(ranks[one][1], one[0], min(gpus[one]), _most_used(nics[one]), process=f"pid {one[1]}")
        for one in ranks
        if len(gpus[one]) == 1
    )


def _most_used(nics: Counter[int]) -> int | None:
    """None: the log does not have the NICs, or several are used alike."""
    best = nics.most_common(2)
    return best[0][0] if best and all(count < best[0][1] for _, count in best[1:]) else None
