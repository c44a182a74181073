"""The readers of topology files. The content decides which one reads a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...models.fabric.wiring import Wiring
from . import ec2_topology, ibnetdiscover, slurm_topology

Reader: TypeAlias = tuple[Callable[[str], bool], Callable[[str], Wiring]]
READERS: Sequence[Reader] = (
    (slurm_topology.is_conf, slurm_topology.read_conf),
    (ec2_topology.is_ec2, ec2_topology.read),
    (ibnetdiscover.is_ibnetdiscover, ibnetdiscover.read),
    (slurm_topology.is_yaml, slurm_topology.read_yaml),
)


def reader_of(text: str) -> Callable[[str], Wiring] | None:
    """The reader of a text; it raises ValueError. None: the text is of no known kind."""
    return next((reader for recognises, reader in READERS if recognises(text)), None)


def read(text: str) -> Wiring:
    """The leaf of each node or port that the text names. Raises ValueError."""
    reader = reader_of(text)
    if reader is None:
        raise ValueError("neither topology.conf, topology.yaml, ibnetdiscover nor EC2 instance topology")
    wiring = reader(text)
    if not wiring.leaves:
        raise ValueError("names no node below a switch")
    return wiring
