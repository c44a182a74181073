"""The place of this process among the nodes, from the variables that srun and mpirun set."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

PORT = 18510  # TCP port of the coordinator; perftest uses 18515 and above
_LAUNCHERS = (  # srun(1); mpirun(1) of Open MPI
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
)


class Launch(Struct, frozen=True):
    """A process of a parallel program."""

    rank: int
    size: int
    first: str | None = None  # node of rank 0
    owner: str | None = None  # "slurm:4711"
    node: str | None = None  # the name of this node


def launch_of(variables: Mapping[str, str]) -> Launch | None:
    """The launch of this process. None: neither srun nor mpirun started it."""
    for rank, size in _LAUNCHERS:
        if variables.get(rank, "").isdecimal() and variables.get(size, "").isdecimal():
            nodes = variables.get("SLURM_STEP_NODELIST") or variables.get("SLURM_NODELIST") or ""
            job = variables.get("SLURM_JOB_ID")
            return Launch(
                int(variables[rank]),
                int(variables[size]),
                first_node(nodes) or None,
                f"slurm:{job}" if job else None,
                variables.get("SLURMD_NODENAME"),
            )
    return None


def first_node(nodes: str) -> str:
    """The first name of a Slurm node list: "gpu03" of "gpu[03-08,11],login1"."""
    start = re.match(r"(?:[^,\[]|\[[^\]]*\])*", nodes)
    return re.sub(r"\[([^\],-]*)[^\]]*\]", r"\1", start[0] if start else "")


def address_of(text: str) -> tuple[str, int]:
    """ "head", "head:18510", "[2001:db8::1]:18510" as host and port. Raises ValueError."""
    found = re.fullmatch(r"\[([0-9A-Fa-f:.]+)\](?::([0-9]{1,5}))?|([^:\[\]]+)(?::([0-9]{1,5}))?", text)
    if not found:
        raise ValueError(f"{text!r}: write HOST or HOST:PORT, an IPv6 address in brackets")
    return found[1] or found[3], int(found[2] or found[4] or PORT)
