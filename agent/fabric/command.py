"""The parts that `linkgauge fabric` can play: coordinator, node, or both on rank 0 of srun and mpirun."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence

from msgspec import Struct

from ... import __version__
from ...models.fabric.plan import Plan
from ...models.fabric.wiring import Wiring, merged
from ...models.facts.units import as_bytes
from ...probes.fabric.read import read
from ..inputs.site_file import BadInput, read_text
from ..measuring.budget import Budget
from . import children
from .connection import Lost, connected
from .coordinator import Options, Result, coordinate
from .launch import PORT, Launch, address_of, launch_of
from .node import take_part
from .preparation import NodeOptions

_MOST_NAMES = 100_000
_TO_END = 2.0  # seconds that the node of rank 0 has to end after the run


class Wanted(Struct, frozen=True, kw_only=True):
    """The options of the command."""

    token: bytes
    budget: Budget
    hosts: str | None
    join: str | None
    at: str | None
    name: str | None
    rail: tuple[str, ...]
    topology: tuple[str, ...]
    seconds: float
    wait: float
    patience: float
    owner: str | None
    force: bool
    only_plan: bool


def run(wanted: Wanted) -> Result | None:
    """Play the part. None: this process was a node, which prints nothing. Raises BadInput."""
    if wanted.hosts and wanted.join:
        raise BadInput("--hosts and --join exclude each other: one coordinates, the other is a node")
    try:
        if wanted.join:
            _node(wanted, *_address(wanted.join, "--join"), None)
            return None
        if wanted.hosts:
            names = hosts_of(wanted.hosts)
            return _coordinator(wanted, names, len(names))
        launch = launch_of(os.environ)
        if launch is None:
            raise BadInput("--hosts a,b,c coordinates nodes, --join HOST is a node; or start it with srun or mpirun")
        return _launched(wanted, launch)
    except Lost as lost:
        raise BadInput(str(lost)) from None


def hosts_of(text: str) -> tuple[str, ...]:
    """The names in "a,b,c", or in a file with one name per line. Raises BadInput."""
    if os.path.exists(text):
        lines = (line.partition("#")[0].split() for line in read_text(text, "--hosts").splitlines())
        names = [words[0] for words in lines if words]
    else:
        names = [name.strip() for name in text.split(",") if name.strip()]
    if len(set(names)) < 2:
        raise BadInput(f"--hosts {text}: at least two nodes are required, in a file or as a,b,c")
    return tuple(dict.fromkeys(names[:_MOST_NAMES]))


def _launched(wanted: Wanted, launch: Launch) -> Result | None:
    """A rank of srun or mpirun. Rank 0 coordinates, and its child is a node."""
    where = wanted.at or launch.first
    if where is None:
        raise BadInput("--at HOST: name the node of rank 0, because mpirun does not tell it")
    host, port = _address(where, "--at")
    if launch.size < 2:
        raise BadInput("at least two nodes are required: start one process on each")
    if launch.rank:
        _node(wanted, host, port, launch)
        return None
    child = children.begin(_node, wanted, host if wanted.at else "localhost", port, launch)
    try:
        return _coordinator(wanted, (), launch.size)
    finally:
        child.process.join(_TO_END)
        child.end()


def _node(wanted: Wanted, host: str, port: int, launch: Launch | None) -> None:
    """Be a node until the end of the run. Raises Lost."""
    options = NodeOptions(
        rails=wanted.rail, force=wanted.force, owner=wanted.owner or (launch.owner if launch else None)
    )
    coordinator = connected(host, port, wanted.token, wanted.wait)
    take_part(coordinator, wanted.name or (launch.node if launch else None), options, __version__)


def _coordinator(wanted: Wanted, names: Sequence[str], count: int) -> Result:
    host, port = _address(wanted.at, "--at") if wanted.at else (None, PORT)
    options = Options(
        host=host,
        port=port,
        token=wanted.token,
        expected=tuple(names),
        count=count,
        wait=wanted.wait,
        patience=wanted.patience,
        seconds=wanted.seconds,
        budget_seconds=wanted.budget.seconds,
        budget_bytes=wanted.budget.bytes,
        wiring=_wiring(wanted.topology),
        only_plan=wanted.only_plan,
    )
    try:
        return asyncio.run(coordinate(options, _show))
    except OSError as error:
        raise BadInput(f"cannot listen at {host or 'all addresses'} port {port}: {error.strerror or error}") from None


def _wiring(paths: Sequence[str]) -> Wiring:
    """What the topology files say. Raises BadInput."""
    found = []
    for path in paths:
        try:
            found.append(read(read_text(path, "--topology")))
        except ValueError as wrong:
            raise BadInput(f"--topology {path}: {wrong}") from None
    return merged(found)


def _show(plan: Plan, nodes: int) -> None:
    """Print the plan on standard error."""
    part = "" if len(plan.rounds) == plan.every else f" of {plan.every}, because of --budget"
    text = (
        f"plan: {nodes} nodes, {len(plan.rounds)} rounds{part}, {plan.flows} flows of {plan.seconds:g} s: "
        f"{plan.total_seconds:.0f} s, at most {as_bytes(plan.total_bytes)}"
    )
    print(text, file=sys.stderr, flush=True)


def _address(text: str, option: str) -> tuple[str, int]:
    try:
        return address_of(text)
    except ValueError as wrong:
        raise BadInput(f"{option} {wrong}") from None
