"""The result of an NCCL run, and the algorithms that NCCL chose, from its log.

Until 2.22 NCCL writes "33554432 Bytes -> Algo 1 proto 2 time 170.4", since then "AllReduce: 33554432 Bytes -> Algo RING
proto SIMPLE channel{Lo..Hi}={0..23}" (NVIDIA/nccl, src/enqueue.cc).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

LOG: Mapping[str, str] = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "TUNING"}
TIMES = 20  # repetitions for each size
_CHOSEN = re.compile(r"NCCL INFO (?:AllReduce: )?(\d{1,15}) Bytes -> Algo (\w{1,20}) proto (\w{1,20})")
# NCCL_ALGO_..., in the order of their numbers (src/include/nccl_common.h); NCCL_PROTO_...
_ALGORITHMS = ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT")
_PROTOCOLS = ("LL", "LL128", "SIMPLE")


class NcclRun(Struct, frozen=True):
    """Bus bandwidth in bytes per second by the size of the message, and the address of each rank's GPU."""

    source: str  # the command or the library
    rates: Mapping[int, float]
    gpus: Sequence[str | None]
    log: str


def algorithms(log: str) -> Mapping[int, str]:
    """Return the last algorithm and protocol ("RING SIMPLE") of AllReduce, by message size in bytes."""
    return {
        int(found[1]): f"{_word(found[2], _ALGORITHMS)} {_word(found[3], _PROTOCOLS)}"
        for found in _CHOSEN.finditer(log)
    }


def _word(text: str, words: Sequence[str]) -> str:
    """Return the name for a number, else the text in upper case, because some releases write lower case."""
    return words[int(text)] if text.isdecimal() and int(text) < len(words) else text.upper()
