"""The plan of a measurement between nodes: rounds in which each node has one partner, and their time and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from ..graph.path_types import natural
from .wiring import Pair, Port, Wiring

Round: TypeAlias = tuple[Pair, ...]  # flows that run at the same time, in one direction
PAUSE = 0.5  # seconds that a round takes besides its flows: to start and end the processes of all nodes
_CONFIRMING = 0.25  # of the budget, for rounds that confirm causes


class Plan(Struct, frozen=True):
    """Rounds, the seconds of each, and the most bytes of a flow."""

    rounds: tuple[Round, ...]
    every: int  # number of rounds in which each node meets each other one, in both directions
    seconds: float  # of a flow
    flow_bytes: float  # most

    @property
    def total_seconds(self) -> float:
        """Of all rounds."""
        return len(self.rounds) * (self.seconds + PAUSE)

    @property
    def flows(self) -> int:
        """Number of flows in all rounds."""
        return sum(map(len, self.rounds))

    @property
    def total_bytes(self) -> float:
        """At most, of all rounds."""
        return self.flows * self.flow_bytes


def circle(nodes: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Rounds in which each node meets each other node once (circle method). With an odd number, one node rests."""
    seats: list[str | None] = [*nodes, *([None] if len(nodes) % 2 else [])]
    found = []
    for _ in range(len(seats) - 1):
        half = len(seats) // 2
        facing = zip(seats[:half], reversed(seats[half:]), strict=True)
        found.append([(a, b) for a, b in facing if a is not None and b is not None])
        seats = [seats[0], seats[-1], *seats[1:-1]]
    return found


def packed(pairs: Iterable[Pair]) -> tuple[Round, ...]:
    """Few rounds with these flows, in which each node has one flow at most."""
    rounds: list[dict[str, Pair]] = []  # by both nodes
    for pair in pairs:
        ends = {pair.sender.node: pair, pair.receiver.node: pair}
        free = next((one for one in rounds if not one.keys() & ends.keys()), None)
        if free is None:
            rounds.append(free := {})
        free |= ends
    return tuple(tuple(dict.fromkeys(one.values())) for one in rounds)


def plan(
    ports: Mapping[str, Sequence[str]],
    wiring: Wiring,
    seconds: float,
    most_seconds: float,
    most_bytes: float,
    speeds: Mapping[Port, float] | None = None,
) -> Plan:
    """The rounds for nodes with these rails (node -> rails), within a budget of seconds and bytes.

    A round and its reverse follow each other. A budget too small for all rounds keeps some that are evenly spaced, so
    that each node has several partners. A quarter of the budget remains for rounds that confirm causes.
    `speeds`: nominal bytes per second of ports.
    """
    nodes = sorted(ports, key=lambda node: (wiring.leaves.get(node, ""), natural(node)))
    meetings = circle(nodes) if len(nodes) > 1 else []
    share = 1 - _CONFIRMING
    fitting = int(share * most_seconds / (2 * (seconds + PAUSE)))
    count = min(len(meetings), fitting)
    chosen = [meetings[number * len(meetings) // count] for number in range(count)]
    rounds = []
    for meeting in chosen:
        there = tuple(Pair(Port(a, rail), Port(b, rail)) for a, b in meeting for rail in ports[a] if rail in ports[b])
        rounds += [there, tuple(Pair(pair.receiver, pair.sender) for pair in there)]
    rounds = [one for one in rounds if one]
    flows = sum(map(len, rounds))
    fastest = max((speeds or {}).values(), default=0.0)
    allowed = share * most_bytes / flows if flows else 0.0
    return Plan(tuple(rounds), 2 * len(meetings), seconds, min(allowed, fastest * seconds) if fastest else allowed)
