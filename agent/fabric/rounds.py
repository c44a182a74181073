"""Running a round: all flows of the round at the same time, each node a sender or a receiver."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from ...models.fabric.fabric_localization import Measured
from ...models.fabric.plan import Plan, Round
from ...models.fabric.wiring import Pair
from ...probes.measure.network.tcp_stream import KEY
from .messages import Done, Incoming, Listening, Outgoing, Rail, Receive, Send
from .peers import LostPeer, Peer


class Run(Struct):
    """The nodes, their rails by the names of the plan, and the results."""

    peers: Mapping[str, Peer]
    rails: Mapping[str, Mapping[str, Rail]]  # node -> rail of the plan -> its own
    plan: Plan
    patience: float  # seconds that a node has for an answer, besides the time of the flows
    measured: list[Measured] = field(default_factory=list)
    failed: dict[Pair, str] = field(default_factory=dict)  # flows without a rate, and why
    left_out: list[str] = field(default_factory=list)  # what else was not measured

    async def run(self, pairs: Round, number: int) -> None:
        """Measure the pairs whose nodes are still there."""
        pairs = tuple(pair for pair in pairs if not (self._lost(pair.sender.node) or self._lost(pair.receiver.node)))
        keys = {pair: os.urandom(KEY) for pair in pairs}
        receivers, senders = defaultdict[str, list[Pair]](list), defaultdict[str, list[Pair]](list)
        for pair in pairs:
            receivers[pair.receiver.node].append(pair)
        ports = await self._listening(receivers, keys)
        for pair in pairs:
            if pair in ports:
                senders[pair.sender.node].append(pair)
        for node, several in senders.items():
            flows = tuple(self._outgoing(pair, ports[pair], keys[pair]) for pair in several)
            self.peers[node].tell(Send(flows, self.plan.seconds, self.plan.flow_bytes))
        nodes = dict.fromkeys([*receivers, *senders])
        done = await asyncio.gather(*(self._done(node) for node in nodes))
        answers = dict(zip(nodes, done, strict=True))
        for pair in pairs:
            self._keep(pair, number, answers, pair in ports)

    def _keep(self, pair: Pair, number: int, answers: Mapping[str, Done | None], listened: bool) -> None:
        """Keep the rate of a flow, or why it has none. The report names lost nodes once."""
        rate = self._rate(pair, answers)
        if rate is not None:
            self.measured.append(Measured(pair, number, rate))
            self.failed.pop(pair, None)
        elif not (self._lost(pair.sender.node) or self._lost(pair.receiver.node)):
            self.failed[pair] = self._failure(pair, answers, listened)

    def _lost(self, node: str) -> bool:
        return self.peers[node].lost is not None

    def _rail(self, node: str, rail: str) -> Rail:
        return self.rails[node][rail]

    async def _listening(
        self, receivers: Mapping[str, Sequence[Pair]], keys: Mapping[Pair, bytes]
    ) -> Mapping[Pair, int]:
        """The TCP port of each flow whose receiver listens."""

        async def ask(node: str, pairs: Sequence[Pair]) -> Mapping[str, int]:
            flows = tuple(Incoming(self._rail(node, pair.receiver.rail).name, keys[pair]) for pair in pairs)
            task = Receive(flows, self.plan.seconds, self.plan.flow_bytes)
            try:
                return (await self.peers[node].ask(task, Listening, self.patience)).ports
            except LostPeer:
                return {}

        answers = await asyncio.gather(*(ask(node, pairs) for node, pairs in receivers.items()))
        return {
            pair: ports[rail.name]
            for (node, pairs), ports in zip(receivers.items(), answers, strict=True)
            for pair in pairs
            if (rail := self._rail(node, pair.receiver.rail)).name in ports
        }

    def _outgoing(self, pair: Pair, port: int, key: bytes) -> Outgoing:
        to = self._rail(pair.receiver.node, pair.receiver.rail)
        return Outgoing(self._rail(pair.sender.node, pair.sender.rail).name, to.address, port, key)

    async def _done(self, node: str) -> Done | None:
        if self._lost(node):
            return None
        try:
            return await self.peers[node].answer(Done, self.plan.seconds + self.patience)
        except LostPeer:
            return None

    def _rate(self, pair: Pair, answers: Mapping[str, Done | None]) -> float | None:
        """The rate that one of its ends measured. None: the flow failed."""
        for end in (pair.receiver, pair.sender):
            done = answers.get(end.node)
            rate = done.rates.get(self._rail(end.node, end.rail).name) if done else None
            if rate is not None and rate > 0:
                return rate
        return None

    def _failure(self, pair: Pair, answers: Mapping[str, Done | None], listened: bool) -> str:
        """Why a flow between two nodes that answered has no rate."""
        for end in (pair.sender, pair.receiver):
            done = answers.get(end.node)
            why = done.failures.get(self._rail(end.node, end.rail).name) if done else None
            if why:
                return f"{end.node}: {why}"
        return "no rate" if listened else "the receiver does not listen"
