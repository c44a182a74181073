"""Frames between the coordinator and the nodes: only who knows the token is heard, and no message is too long."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.fabric.connection import Coordinator, Lost
from linkgauge.agent.fabric.messages import Join
from linkgauge.agent.fabric.peers import Peer, gathered
from linkgauge.agent.fabric.seal import FIRST, HEADER, Seal, Untrusted

TOKEN = b"0123456789abcdef"


def pair(token: bytes = TOKEN) -> tuple[Seal, Seal]:
    return Seal(TOKEN, b"node", b"a", b"b"), Seal(token, b"node", b"a", b"b")


def opened(seal: Seal, frame: bytes) -> bytes:
    length, code = seal.length(frame[: HEADER.size])
    payload = frame[HEADER.size :][:length]
    seal.check(code, payload)
    return payload


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_payloads_arrive_in_order(payloads: list[bytes]) -> None:
    sender, receiver = pair()
    assert [opened(receiver, sender.sealed(payload)) for payload in payloads] == payloads


@given(st.binary(min_size=1, max_size=50), st.data())
def test_a_changed_a_repeated_and_a_foreign_frame_are_refused(payload: bytes, data: st.DataObject) -> None:
    sender, receiver = pair()
    frame = sender.sealed(payload)
    place = data.draw(st.integers(4, len(frame) - 1))
    changed = frame[:place] + bytes([frame[place] ^ 1]) + frame[place + 1 :]
    with pytest.raises(Untrusted):
        opened(pair()[1], changed)
    with pytest.raises(Untrusted):
        opened(pair(b"another token 12")[1], frame)
    assert opened(receiver, frame) == payload
    with pytest.raises(Untrusted):
        opened(receiver, frame)


def test_the_first_message_of_a_peer_is_short() -> None:
    with pytest.raises(Untrusted):
        pair()[1].length(struct.pack("!I32s", FIRST + 1, b""))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def strangers(port: int) -> list[socket.socket]:
    """Connections without the token: one that talks, one with noise, one that says nothing."""
    talking = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    talking[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
    talking[1].sendall(os.urandom(200))
    return talking


def node(port: int, token: bytes) -> str:
    """What a node with this token gets: the kind of the first message, or "lost"."""
    with socket.create_connection(("127.0.0.1", port)) as stream:
        coordinator = Coordinator(stream, token)
        coordinator.send(Join("node1", "1"))
        try:
            return type(coordinator.receive(20.0)).__name__
        except Lost:
            return "lost"


async def gathered_among_strangers(port: int) -> tuple[dict[str, Peer], list[str]]:
    gathering = asyncio.create_task(gathered("127.0.0.1", port, TOKEN, (), 1, 30.0))
    loop = asyncio.get_running_loop()
    while True:
        with suppress(ConnectionRefusedError):
            talking = await loop.run_in_executor(None, strangers, port)
            break
        await asyncio.sleep(0.01)
    wrong = await loop.run_in_executor(None, node, port, b"a wrong token 123")
    right = loop.run_in_executor(None, node, port, TOKEN)
    peers = await gathering
    for peer in peers.values():
        await peer.end()
    for one in talking:
        one.close()
    return peers, [wrong, await right]


def test_only_nodes_with_the_token_are_gathered_and_nothing_listens_afterwards() -> None:
    port = free_port()
    peers, answers = asyncio.run(gathered_among_strangers(port))
    assert [*peers] == ["node1"]
    assert answers == ["lost", "End"]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port)).close()


def test_a_node_refuses_a_coordinator_without_the_token() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(os.urandom(32) + Seal(b"x" * 16, b"coordinator", b"a", b"b").sealed(b'{"type":"end"}'))
        coordinator = Coordinator(ours, TOKEN)
        with pytest.raises(Lost, match="another token"):
            coordinator.receive(5.0)
