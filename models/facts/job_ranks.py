"""Ranks of a job about which NCCL's RAS subsystem reports something. It gives no cause and no bandwidth."""

from __future__ import annotations

from typing import Literal, TypeAlias

from .records import Fact

# dead, unresponsive: the process of the rank does not answer. absent: it answers and is not in the communicator.
RankState: TypeAlias = Literal["dead", "unresponsive", "absent", "failed", "aborted", "starting", "finalizing", "late"]


class Rank(Fact, frozen=True, kw_only=True):
    """A rank that differs from the others. The key is the communicator and the rank: "a9b4c2d1e0f38765/37", with the
    operation if it is late.
    """

    number: int | None = None
    state: RankState | None = None
    error: str | None = None  # of a rank that failed: "System error"
    host: str | None = None  # IP address of the process; None: RAS does not know the process
    pid: int | None = None
    gpu: int | None = None  # NVML number on its host
    here: bool | None = None  # whether the host is this machine
    operation: str | None = None  # of a late rank: "AllReduce"
    launched: int | None = None  # number of these operations that the late rank has launched
    majority: int | None = None  # and that most ranks have launched
    unchanged: float | None = None  # seconds between two queries in which `launched` did not grow
