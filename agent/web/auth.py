"""Check the user name and password of a request. bcrypt is slow by design, so it runs in a thread of its own."""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import secrets
from base64 import b64decode
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

# Dummy hash, so that unknown user names take as long as known ones.
_DUMMY_HASH = b"$2b$10$YoR2G/GrfvsaC.NWnuBP8.SwrQOek4VArXXZpT2/zpge9z0Wv8fba"
_WAITING = 8  # requests that may wait for bcrypt; more are refused
_KNOWN = 64  # cached correct passwords, which skip bcrypt


class Passwords:
    """The users of a web configuration file, with a cache of passwords that were correct."""

    def __init__(self, users: Mapping[str, bytes]) -> None:
        """`users`: name -> bcrypt hash."""
        self._users = users
        self._salt = secrets.token_bytes(32)
        self._right: dict[bytes, None] = {}
        self._pool = ThreadPoolExecutor(1, "linkgauge-bcrypt") if users else None
        self._waiting = 0

    async def admit(self, header: str) -> bool | None:
        """Whether the Authorization header is correct; None if too many requests wait."""
        if self._pool is None:
            return True
        name, password = _parts(header)
        key = hashlib.blake2b(b"%d %s %s" % (len(name), name, password), key=self._salt).digest()
        if key in self._right:
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
            self._right[key] = None
        return right

    def close(self) -> None:
        """Stop checking passwords."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _is_right(self, name: str, password: bytes) -> bool:
        import bcrypt

        hashed = self._users.get(name)
        # bcrypt reads at most 72 bytes, and before version 5 refuses zero bytes
        same = bcrypt.checkpw(password[:72].replace(b"\0", b""), hashed or _DUMMY_HASH)
        return same and hashed is not None and len(password) <= 72 and b"\0" not in password


def _parts(header: str) -> tuple[bytes, bytes]:
    """Name and password of a "Basic ..." header; empty for any other header."""
    scheme, _, coded = header.partition(" ")
    if scheme.lower() != "basic":
        return b"", b""
    try:
        name, _, password = b64decode(coded.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        return b"", b""
    return name, password
