"""Bus bandwidth of operations as the NCCL Inspector defines it (inspector.cc, inspectorComputeOpBw).

The Inspector's message size of an all_gather and of a reduce_scatter is the part of one rank, not the whole array.
"""

from __future__ import annotations

from ..bandwidth.collectives import bus_factor

_PARTS = ("all_gather", "reduce_scatter", "alltoall")
_ONCE = ("send", "recv")


def array_size(op: str, n_ranks: int, size: float) -> float:
    """Bytes of the whole array for a message of `size` bytes, as nccl-tests count it (of an alltoall one rank's)."""
    return size * n_ranks if op in _PARTS else size


def bus_rate(op: str, n_ranks: int, size: float, seconds: float) -> float:
    """Bytes per second of bus bandwidth."""
    return _bus_bytes(op, n_ranks, size) / seconds


def seconds_at(op: str, n_ranks: int, size: float, rate: float) -> float:
    """The time of an operation with this bus bandwidth in bytes per second."""
    return _bus_bytes(op, n_ranks, size) / rate


def _bus_bytes(op: str, n_ranks: int, size: float) -> float:
    factor = 1.0 if op in _ONCE else bus_factor(op, n_ranks)
    return array_size(op, n_ranks, size) * factor
