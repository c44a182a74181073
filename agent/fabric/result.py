"""The report of a run, from its nodes, its rates and its causes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from ...models.fabric.fabric_localization import Cause
from ...models.fabric.report import FabricReport, Member, Rate
from ...models.fabric.wiring import Port, Wiring
from ...models.facts.units import as_utc
from ...models.report import Report
from .peers import Peer
from .rounds import Run


class Limits(Struct, frozen=True):
    """Which nodes were expected, and how long the coordinator waited for them."""

    expected: tuple[str, ...]
    count: int
    wait: float


def report_of(
    limits: Limits,
    peers: Mapping[str, Peer],
    run: Run,
    wiring: Wiring,
    causes: tuple[Cause, ...],
    seconds: float,
) -> FabricReport:
    """The report."""
    absent = [name for name in limits.expected if name not in peers]
    members = [_member(peer, run, wiring) for _, peer in sorted(peers.items())]
    members += [Member(node=name, lost=f"it did not join within {limits.wait:g} s") for name in absent]
    return FabricReport(
        taken_at=as_utc(time.time()),
        seconds=round(seconds, 3),
        planned_seconds=run.plan.total_seconds,
        planned_bytes=run.plan.total_bytes,
        rounds=len(run.plan.rounds),
        rounds_of_all_pairs=run.plan.every,
        members=tuple(members),
        rates=tuple(
            Rate(one.pair.sender.node, one.pair.receiver.node, one.pair.sender.rail, one.round, one.rate)
            for one in run.measured
        ),
        causes=causes,
        places=_places_of(causes, run, wiring),
        not_measured=tuple(dict.fromkeys(_not_measured(limits, len(peers), run))),
    )


def _not_measured(limits: Limits, joined: int, run: Run) -> Iterator[str]:
    yield from (f"{pair.name}: {why}" for pair, why in run.failed.items())
    yield from run.left_out
    if not limits.expected and joined < limits.count:
        yield f"{limits.count - joined} of {limits.count} nodes did not join within {limits.wait:g} s"


def _places_of(causes: tuple[Cause, ...], run: Run, wiring: Wiring) -> Mapping[str, str]:
    """The switch and the port of the subjects of causes; of a leaf the switches above it."""
    subjects = {name for cause in causes for name in cause.names}
    ports = (Port(node, rail) for node, rails in run.rails.items() for rail in rails)
    places = {port.name: place for port in ports if port.name in subjects and (place := wiring.place(port))}
    return {**places, **{name: f"below {wiring.above[name]}" for name in subjects if name in wiring.above}}


def _member(peer: Peer, run: Run, wiring: Wiring) -> Member:
    report = _node_report(peer)
    first = next((one for one in report.findings if one.severity != "info"), None) if report else None
    return Member(
        node=peer.node,
        verdict=report.verdict if report else None,
        first_finding=f"{first.code} {first.subject}" if first else None,
        places=tuple(_places(peer.node, run, wiring)),
        lost=peer.lost,
    )


def _places(node: str, run: Run, wiring: Wiring) -> Iterator[str]:
    for rail, own in run.rails.get(node, {}).items():
        if place := wiring.place(Port(node, rail)):
            yield f"{own.name}: {place}"


def _node_report(peer: Peer) -> Report | None:
    """The report of a node. None: it has none, or one that this version cannot read."""
    if peer.prepared is None:
        return None
    try:
        raw = msgspec.json.decode(peer.prepared.report)
        return msgspec.convert({**raw, "not_checked": []}, Report)
    except (msgspec.DecodeError, TypeError, ValueError):
        return None
