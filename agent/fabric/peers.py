"""The nodes as the coordinator sees them: their connections, and the reason if one is lost."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection
from contextlib import suppress
from typing import TypeVar

import msgspec

from .messages import FROM_NODE, End, FromNode, Join, Prepared, Stopped, ToNode
from .seal import HEADER, NONCE, Seal, Untrusted, seals

M = TypeVar("M")
_HANDSHAKE = 5.0  # seconds for a new connection to prove that it knows the token
_TO_END = 1.0  # seconds to send the last message
_MOST_PENDING = 64  # connections that did not prove it yet


class LostPeer(Exception):
    """A node ended, hangs or stopped. The message is the reason."""


class Peer:
    """A node that knows the token."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, outgoing: Seal, incoming: Seal, node: str
    ) -> None:
        self._reader, self._writer, self._outgoing, self._incoming = reader, writer, outgoing, incoming
        self.node = node
        self.lost: str | None = None
        self.prepared: Prepared | None = None

    async def ask(self, message: ToNode, answer: type[M], seconds: float) -> M:
        """Send a message and return the answer. Raises LostPeer."""
        self.tell(message)
        return await self.answer(answer, seconds)

    def tell(self, message: ToNode) -> None:
        """Send a message without waiting for an answer."""
        self._writer.write(self._outgoing.sealed(msgspec.json.encode(message)))

    async def answer(self, kind: type[M], seconds: float) -> M:
        """The next message, which must be of this kind. Raises LostPeer, and never talks to the node again."""
        try:
            found = await asyncio.wait_for(_message(self._reader, self._incoming), seconds)
        except (TimeoutError, asyncio.TimeoutError):
            raise self._lose(f"no answer within {seconds:g} s") from None
        except (OSError, EOFError):
            raise self._lose("it ended") from None
        except (Untrusted, msgspec.DecodeError) as wrong:
            raise self._lose(str(wrong)) from None
        if isinstance(found, kind):
            return found
        why = found.why if isinstance(found, Stopped) else f"an unexpected message: {type(found).__name__}"
        raise self._lose(why)

    def _lose(self, why: str) -> LostPeer:
        self.lost = why
        self.tell(End())
        self.close()
        return LostPeer(why)

    def close(self) -> None:
        """End the connection. The node then kills its children."""
        self._writer.close()

    async def end(self) -> None:
        """Tell the node that the run is over, and close."""
        if self.lost is None:
            self.tell(End())
        self.close()
        with suppress(OSError, TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(self._writer.wait_closed(), _TO_END)


async def _message(reader: asyncio.StreamReader, incoming: Seal) -> FromNode:
    length, code = incoming.length(await reader.readexactly(HEADER.size))
    payload = await reader.readexactly(length)
    incoming.check(code, payload)
    return FROM_NODE.decode(payload)


class _Gathering:
    """The nodes that joined so far, and the connections that did not prove yet that they know the token."""

    def __init__(self, token: bytes, expected: Collection[str], count: int) -> None:
        self._token, self._expected, self._count = token, expected, count
        self.peers: dict[str, Peer] = {}
        self.pending: set[asyncio.Task[None]] = set()
        self.complete = asyncio.Event()

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self.pending) >= _MOST_PENDING:
            writer.close()
            return
        self.pending.add(task)
        peer = None
        try:
            peer = await asyncio.wait_for(_authenticated(reader, writer, self._token), _HANDSHAKE)
        except (OSError, EOFError, Untrusted, ValueError, TimeoutError, asyncio.TimeoutError):
            return
        finally:
            self.pending.discard(task)
            if peer is None:
                writer.close()
        if peer.node in self.peers or self.complete.is_set() or (self._expected and peer.node not in self._expected):
            peer.close()
            return
        self.peers[peer.node] = peer
        if len(self.peers) == self._count:
            self.complete.set()


async def gathered(
    host: str | None, port: int, token: bytes, expected: Collection[str], count: int, seconds: float
) -> dict[str, Peer]:
    """The nodes that join within so many seconds, by name. It listens until all are there. Raises OSError.

    `expected`: their names; none: any `count` nodes. A connection without the token is closed without an answer.
    """
    gathering = _Gathering(token, expected, count)
    server = await asyncio.start_server(gathering.join, host, port)
    try:
        await asyncio.wait_for(gathering.complete.wait(), seconds)
    except (TimeoutError, asyncio.TimeoutError):
        gathering.complete.set()
    finally:
        server.close()
        for task in [*gathering.pending]:
            task.cancel()
        await asyncio.gather(*gathering.pending, return_exceptions=True)
    return gathering.peers


async def _authenticated(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: bytes) -> Peer:
    """The peer after its first message. Raises OSError, EOFError, Untrusted and ValueError."""
    nonce = os.urandom(NONCE)
    writer.write(nonce)
    outgoing, incoming = seals(token, nonce, await reader.readexactly(NONCE))
    first = await _message(reader, incoming)
    if not isinstance(first, Join):
        raise Untrusted("the first message is no join")
    return Peer(reader, writer, outgoing, incoming, first.node)
