"""Whether `linkgauge fabric` names the slow part of a simulated fabric: the share of drawn faults with the right cause.

    python -m bench.accuracy.networks.fabrics [SEEDS]

Nodes on leaves, each leaf with an uplink to one spine. The flows of a round share all parts max-min fairly, and each
measured rate has a normal error of 2 %. "Disturbed" means that other load slows 5 % of the flows by a drawn share.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from msgspec import Struct

from linkgauge.models.fabric.confirmation import MOST, confirmed, next_flows
from linkgauge.models.fabric.fabric_localization import Cause, Direction, Measured, Part, localize
from linkgauge.models.fabric.plan import Round, plan
from linkgauge.models.fabric.wiring import Pair, Wiring
from linkgauge.models.facts.records import Flow
from linkgauge.models.graph.fair_share import fill
from linkgauge.models.graph.topology import Hop

RATE = 50e9  # of a healthy port
ERROR = 0.02
DISTURBED = 0.05  # share of flows that other load slows
KINDS = ("none", "one port", "two ports", "one uplink")
LOSSES = (0.25, 0.7)  # of the rate of a slow port
UPLINK = (0.25, 0.7)  # rate of a slow uplink, as a share of one port


class Fabric(Struct, frozen=True):
    """Nodes below leaves, and the rates of its slow parts."""

    leaves: Sequence[Sequence[str]]
    slow: Mapping[Part, float]

    @property
    def wiring(self) -> Wiring:
        """The leaf of each node."""
        return Wiring({node: f"leaf{number}" for number, nodes in enumerate(self.leaves) for node in nodes})

    def capacity(self, part: Part) -> float:
        """Bytes per second of a part in its direction. Healthy uplinks carry the flows of all nodes of a leaf."""
        whole = RATE * (len(self.leaves[0]) if part.kind == "uplink" else 1)
        return self.slow.get(part, whole)


def two_leaves(nodes: int, slow: Mapping[Part, float] | None = None) -> Fabric:
    """A fabric with half of the nodes below each leaf."""
    names = [f"node{number}" for number in range(nodes)]
    return Fabric((names[: nodes // 2], names[nodes // 2 :]), slow or {})


def measured(
    fabric: Fabric, rounds: Sequence[Round], chance: Random, first: int = 0, disturbed: float = 0.0
) -> Iterator[Measured]:
    """The rates of all flows of the rounds. `disturbed`: share of flows that other load slows."""
    for number, pairs in enumerate(rounds, first):
        paths = {Flow("send", (pair.sender.name, pair.receiver.name)): _path(fabric, pair) for pair in pairs}
        capacity = {hop: rate for path in paths.values() for hop, rate in path.items()}
        shares = fill({flow: ((tuple(path),),) for flow, path in paths.items()}, capacity.__getitem__)
        for pair, flow in zip(pairs, paths, strict=True):
            loss = chance.uniform(*LOSSES) if disturbed and chance.random() < disturbed else 0.0
            yield Measured(pair, number, shares[flow].rate * chance.gauss(1, ERROR) * (1 - loss))


def _path(fabric: Fabric, pair: Pair) -> Mapping[Hop, float]:
    parts = [Part("port", pair.sender.name, "send"), Part("port", pair.receiver.name, "receive")]
    if crossed := fabric.wiring.crossed(pair):
        parts += [Part("uplink", crossed[0], "send"), Part("uplink", crossed[1], "receive")]
    return {Hop(f"{one.kind} {one.name}", one.direction, ()): fabric.capacity(one) for one in parts}


def drawn(kind: str, nodes: int, chance: Random) -> tuple[Fabric, set[tuple[str, str]]]:
    """A fabric with a fault of this kind, and the kinds and names of the causes to be found."""
    if kind == "none":
        return two_leaves(nodes), set()
    if kind == "one uplink":
        slow = {Part("uplink", "leaf0", way): RATE * chance.uniform(*UPLINK) for way in _directions(chance)}
        return two_leaves(nodes, slow), {("uplink", "leaf0-leaf1")}
    names = chance.sample([f"node{number}" for number in range(nodes)], 1 if kind == "one port" else 2)
    slow = {
        Part("port", name, way): RATE * (1 - chance.uniform(*LOSSES)) for name in names for way in _directions(chance)
    }
    return two_leaves(nodes, slow), {("port", name) for name in names}


def _directions(chance: Random) -> tuple[Direction, ...]:
    several: Sequence[tuple[Direction, ...]] = (("send",), ("receive",), ("send", "receive"))
    return chance.choice(several)


def found(fabric: Fabric, seed: int, disturbed: float = 0.0) -> tuple[Cause, ...]:
    """The causes that the full measurement finds and confirms."""
    chance, wiring = Random(seed), fabric.wiring
    ports = {node: ("",) for nodes in fabric.leaves for node in nodes}
    rounds = plan(ports, wiring, 1.0, 600.0, 1e15).rounds
    first = list(measured(fabric, rounds, chance, 0, disturbed))
    causes = localize(first, wiring)
    again = list[Measured]()
    while flows := [*next_flows(causes, again, first)][: MOST - len(again)]:
        again += measured(fabric, [(pair,) for pair in flows], chance, len(rounds) + len(again), disturbed)
    return confirmed(causes, again, first)


def right(kind: str, nodes: int, seeds: int, disturbed: float) -> int:
    """In how many seeds the causes are those of the drawn fabric, and no others."""
    drawings = [(seed, *drawn(kind, nodes, Random(seed))) for seed in range(seeds)]
    return sum(
        {(one.kind, one.name) for one in found(fabric, seed, disturbed)} == wanted for seed, fabric, wanted in drawings
    )


def main(seeds: int) -> None:
    """Print the share of right results for each kind of fault and number of nodes."""
    for disturbed in (0.0, DISTURBED):
        print("disturbed" if disturbed else "undisturbed")
        for nodes in (8, 16):
            for kind in KINDS:
                print(f"{nodes:3} nodes  {kind:<11}  {right(kind, nodes, seeds, disturbed)}/{seeds}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
