"""The coordinator: it gathers the nodes, plans, measures in rounds, and finds what the slow pairs have in common."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from ...exporters.text.vocabulary import counted
from ...models.fabric.confirmation import MOST, confirmed, next_flows, undecided
from ...models.fabric.fabric_localization import Cause, Measured, localize, usual_rates
from ...models.fabric.plan import PAUSE, Plan, Round, packed, plan
from ...models.fabric.report import FabricReport
from ...models.fabric.wiring import Port, Wiring, merged, named, of_rails
from .messages import End, Prepare, Prepared, Rail
from .node import PREPARING
from .peers import LostPeer, Peer, gathered
from .result import Limits, report_of
from .rounds import Run

_NAMED = 4  # flows named in one line of the report


class Options(Struct, frozen=True, kw_only=True):
    """A run of the coordinator."""

    host: str | None  # address to listen on; None: all
    port: int
    token: bytes
    expected: tuple[str, ...]  # names of the nodes; (): any `count` nodes
    count: int
    wait: float  # seconds for all nodes to join
    patience: float  # seconds that a node has for an answer
    seconds: float  # of a flow
    budget_seconds: float
    budget_bytes: float
    wiring: Wiring  # from topology files, by any name of a node
    only_plan: bool = False


class Result(Struct, frozen=True):
    """The report of the fabric, and the JSON reports of the nodes."""

    fabric: FabricReport
    reports: Mapping[str, bytes]


async def coordinate(options: Options, show: Callable[[Plan, int], None]) -> Result:
    """Run the measurement. `show` gets the plan and the number of nodes before any byte moves. Raises OSError."""
    began = time.monotonic()
    peers = await gathered(options.host, options.port, options.token, options.expected, options.count, options.wait)
    try:
        await asyncio.gather(*(_prepare(peer) for peer in peers.values()))
        ready = {name: peer for name, peer in peers.items() if peer.lost is None and peer.prepared}
        rails = _rails({name: peer.prepared.rails for name, peer in sorted(ready.items()) if peer.prepared})
        wiring = _wiring(options, ready, rails)
        made = _plan(options, rails, wiring)
        show(made, len(ready))
        run = Run(ready, rails, made, options.patience)
        causes: tuple[Cause, ...] = ()
        if not options.only_plan:
            causes = await _measure(run, wiring, time.monotonic() + options.budget_seconds)
        limits = Limits(options.expected, options.count, options.wait)
        fabric = report_of(limits, peers, run, wiring, causes, time.monotonic() - began)
        return Result(fabric, {name: peer.prepared.report for name, peer in peers.items() if peer.prepared})
    finally:
        await asyncio.gather(*(peer.end() for peer in peers.values()))


async def _prepare(peer: Peer) -> None:
    """Ask the node for its report. A busy node takes no further part."""
    try:
        peer.prepared = await peer.ask(Prepare(), Prepared, PREPARING + 5)
    except LostPeer:
        return
    if peer.prepared.busy:
        peer.tell(End())
        peer.lost = f"not measured: {peer.prepared.busy}"


def _rails(found: Mapping[str, Sequence[Rail]]) -> Mapping[str, Mapping[str, Rail]]:
    """The rails by their names in the plan. If each node has one rail, its name does not matter."""
    if all(len(rails) == 1 for rails in found.values()):
        return {node: {"": rails[0]} for node, rails in found.items()}
    return {node: {one.name: one for one in rails} for node, rails in found.items()}


def _wiring(options: Options, ready: Mapping[str, Peer], rails: Mapping[str, Mapping[str, Rail]]) -> Wiring:
    """The leaves from topology files, then from what the ports hear of their switches (LLDP)."""
    lldp = Wiring(
        {f"{node}/{one.name}": one.switch for node, own in rails.items() for one in own.values() if one.switch},
        {f"{node}/{one.name}": one.socket for node, own in rails.items() for one in own.values() if one.socket},
    )
    aliases = {name: peer.prepared.aliases for name, peer in ready.items() if peer.prepared}
    names = {node: {rail: one.name for rail, one in own.items()} for node, own in rails.items()}
    return of_rails(merged([named(options.wiring, aliases), lldp]), names)


def _plan(options: Options, rails: Mapping[str, Mapping[str, Rail]], wiring: Wiring) -> Plan:
    speeds = {
        Port(node, name): one.rate for node, several in rails.items() for name, one in several.items() if one.rate
    }
    names = {node: tuple(several) for node, several in rails.items()}
    return plan(names, wiring, options.seconds, options.budget_seconds, options.budget_bytes, speeds)


async def _measure(run: Run, wiring: Wiring, until: float) -> tuple[Cause, ...]:
    """All rounds within the time, failed flows again, and the confirmation of causes."""
    rounds = run.plan.rounds
    if left_out := await _run_all(run, list(enumerate(rounds)), until):
        run.left_out.append(f"{left_out} rounds: no time was left; allow more with --budget")
    failed = packed(run.failed) if len(run.failed) < len(run.measured) else ()  # a busy node misses a few flows
    await _run_all(run, list(enumerate(failed, len(rounds))), until)
    first = list(run.measured)
    causes = localize(first, wiring)
    run.left_out += [
        f"losses of less than {one.tolerance:.0%}{f' on {rail}' if rail else ''}: the rates scatter too much; "
        "measure idle nodes"
        for rail, one in usual_rates(first).items()
        if not one.steady
    ]
    number, last = len(rounds) + len(failed), len(rounds) + len(failed) + MOST
    again: list[Measured] = []
    while flows := [*next_flows(causes, again, first)][: last - number]:
        left_out = await _run_all(run, [(number + one, (pair,)) for one, pair in enumerate(flows)], until)
        number += len(flows)
        before, again = again, run.measured[len(first) :]
        if left_out or len(again) == len(before):
            break
    if unsure := undecided(causes, again, first):
        names = ", ".join(pair.name for pair in unsure[:_NAMED]) + ", ..." * (len(unsure) > _NAMED)
        run.left_out.append(f"{counted(len(unsure), 'slow flow')} could not be measured again alone: {names}")
    return confirmed(causes, again, first)


async def _run_all(run: Run, rounds: Sequence[tuple[int, Round]], until: float) -> int:
    """Run the rounds one after the other. Returns the number of those that no time was left for."""
    for done, (number, pairs) in enumerate(rounds):
        if time.monotonic() + run.plan.seconds + PAUSE > until:
            return len(rounds) - done
        await run.run(pairs, number)
    return 0
