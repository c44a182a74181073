"""Frames on the wire: length, message authentication code, payload.

Both ends know a secret token. Each end sends a random number, and both derive one key for each direction from the
token and the two numbers (HMAC-SHA-256, RFC 2104). A frame with a wrong code, or out of order, ends the connection. The
frames are not encrypted.
"""

from __future__ import annotations

import hashlib
import hmac
import struct

NONCE, MAC = 32, 32  # bytes
HEADER = struct.Struct("!I32s")  # length of the payload, and its code
FIRST, MOST = 4096, 8 << 20  # bytes of the first payload of a peer, and of each further one; a report has 100 kB


class Untrusted(Exception):
    """The peer does not know the token, or sent too much."""


class Seal:
    """Codes of the frames in one direction of a connection."""

    def __init__(self, token: bytes, direction: bytes, coordinator: bytes, node: bytes) -> None:
        self._key = hmac.digest(token, direction + coordinator + node, hashlib.sha256)
        self._count = 0

    def sealed(self, payload: bytes) -> bytes:
        """The frame of a payload."""
        return HEADER.pack(len(payload), self._code(payload)) + payload

    def check(self, code: bytes, payload: bytes) -> None:
        """Accept the next payload. Raises Untrusted."""
        if not hmac.compare_digest(code, self._code(payload)):
            raise Untrusted("the other end has another token, or the connection was changed")

    def length(self, header: bytes) -> tuple[int, bytes]:
        """The length of the next payload and its code. Raises Untrusted if it is too long."""
        length, code = HEADER.unpack(header)
        if length > (MOST if self._count else FIRST):
            raise Untrusted(f"a message of {length} bytes is too long")
        return length, code

    def _code(self, payload: bytes) -> bytes:
        self._count += 1
        return hmac.digest(self._key, struct.pack("!Q", self._count) + payload, hashlib.sha256)


def seals(token: bytes, coordinator: bytes, node: bytes) -> tuple[Seal, Seal]:
    """The seals of a connection: from the coordinator, and from the node."""
    return Seal(token, b"coordinator", coordinator, node), Seal(token, b"node", coordinator, node)
