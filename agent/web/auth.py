"""Whether a request has a name and password that may come in. bcrypt takes long on purpose, so it runs elsewhere."""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import secrets
from base64 import b64decode
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

# Of nobody: whoever guesses names waits as long as whoever knows one.
_NOBODY = b"$2b$10$YoR2G/GrfvsaC.NWnuBP8.SwrQOek4VArXXZpT2/zpge9z0Wv8fba"
_WAITING = 8  # that may wait for an answer; more are turned away
_KNOWN = 64  # passwords that were right and need not be worked out again


class Passwords:
    """The users of a web configuration file, and which of their passwords were right before."""

    def __init__(self, users: Mapping[str, bytes]) -> None:
        """`users`: name and bcrypt hash."""
        self._users = users
        self._salt = secrets.token_bytes(32)
        self._right: dict[bytes, None] = {}
        self._pool = ThreadPoolExecutor(1, "linkgauge-bcrypt") if users else None
        self._waiting = 0

    async def admit(self, header: str) -> bool | None:
        """Whether the Authorization header is right; None: too many ask at once."""
        if self._pool is None:
            return True
        name, password = _parts(header)
        mark = hashlib.blake2b(b"%d %s %s" % (len(name), name, password), key=self._salt).digest()
        if mark in self._right:
            return True
        if self._waiting >= _WAITING:
            return None
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            right = await loop.run_in_executor(self._pool, self._is_right, name.decode("utf-8", "replace"), password)
        finally:
            self._waiting -= 1
        if right:
            self._right = dict.fromkeys([*self._right][1 - _KNOWN :])
            self._right[mark] = None
        return right

    def close(self) -> None:
        """Work out no more of them."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _is_right(self, name: str, password: bytes) -> bool:
        import bcrypt

        hashed = self._users.get(name)
        # bcrypt takes 72 bytes, and no zeros in versions before 5
        same = bcrypt.checkpw(password[:72].replace(b"\0", b""), hashed or _NOBODY)
        return same and hashed is not None and len(password) <= 72 and b"\0" not in password


def _parts(header: str) -> tuple[bytes, bytes]:
    """Name and password of "Basic ..."; empty ones of anything else."""
    scheme, _, coded = header.partition(" ")
    if scheme.lower() != "basic":
        return b"", b""
    try:
        name, _, password = b64decode(coded.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return b"", b""
    return name, password
