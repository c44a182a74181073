"""Check the user name and password of a request. bcrypt is slow by design, so it runs in a thread of its own.

Clients share the thread: each address waits with one check at a time, and the addresses take turns. An address with
too many wrong passwords is refused without a check for some time.
"""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import secrets
import time
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Literal, TypeAlias

from msgspec import Struct, field

Admission: TypeAlias = Literal["right", "wrong", "busy", "refused"]  # refused: too many wrong passwords

# Salt and hash of a dummy password; a cost goes before it: "$2b$10" + _DUMMY.
_DUMMY = "$YoR2G/GrfvsaC.NWnuBP8.SwrQOek4VArXXZpT2/zpge9z0Wv8fba"
_WAITING = 4  # checks of one address that may wait; more are refused
_FAILURES = 10  # wrong passwords of one address within _WITHIN, after which it is refused
_WITHIN = 60.0  # seconds
_ADDRESSES = 1024  # addresses whose failures are remembered
_KNOWN = 64  # cached correct passwords, which skip bcrypt


class _Client(Struct):
    """One address: its turn, and the times of its last wrong passwords."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    failures: deque[float] = field(default_factory=lambda: deque(maxlen=_FAILURES))


class Passwords:
    """The users of a web configuration file, with a cache of passwords that were correct."""

    def __init__(self, users: Mapping[str, bytes], monotonic: Callable[[], float] = time.monotonic) -> None:
        """`users`: name -> bcrypt hash."""
        self._monotonic = monotonic
        self._salt = secrets.token_bytes(32)
        self._right: dict[bytes, tuple[str, bytes]] = {}  # digest of name and password -> name and bcrypt hash
        self._clients: dict[str, _Client] = {}
        self._turn = asyncio.Lock()  # waiters take it in the order of their arrival, at most one of each address
        self._pool = ThreadPoolExecutor(1, "linkgauge-bcrypt")  # starts its thread with the first check
        self.use(users)

    def use(self, users: Mapping[str, bytes]) -> None:
        """Replace the users. A cached password stays if the hash of its user is the same."""
        self._users = users
        self._cost = max((_cost(hashed) for hashed in users.values()), default=0)
        self._right = {key: known for key, known in self._right.items() if users.get(known[0]) == known[1]}

    async def admit(self, header: str, address: str) -> Admission:
        """Whether the Authorization header is correct."""
        if not self._users:
            return "right"
        name, password = _parts(header)
        if not name and not password:
            return "wrong"
        key = hashlib.blake2b(b"%d %s %s" % (len(name), name, password), key=self._salt).digest()
        if key in self._right:
            return "right"
        client = self._client(_network(address))
        if client.waiting >= _WAITING:
            return "busy"
        client.waiting += 1
        try:
            async with client.turn, self._turn:
                return await self._checked(client, name.decode("utf-8", "replace"), password, key)
        finally:
            client.waiting -= 1

    def close(self) -> None:
        """Stop checking passwords."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _checked(self, client: _Client, name: str, password: bytes, key: bytes) -> Admission:
        """Check the password, unless a request that waited before this one decides it."""
        if not self._users or key in self._right:  # a reload may have removed all users
            return "right"
        now = self._monotonic()
        if len(client.failures) == _FAILURES and now - client.failures[0] < _WITHIN:
            return "refused"
        hashed = self._users.get(name)
        loop = asyncio.get_running_loop()
        right = await loop.run_in_executor(self._pool, _is_right, password, hashed, self._cost)
        if right and hashed and self._users.get(name) == hashed:  # the users may have changed meanwhile
            self._right = dict([*self._right.items()][1 - _KNOWN :])
            self._right[key] = name, hashed
            return "right"
        client.failures.append(self._monotonic())
        return "wrong"

    def _client(self, network: str) -> _Client:
        """The client of a network. The table forgets the client that asked first, unless one of its checks waits."""
        client = self._clients.pop(network, None) or _Client()
        self._clients[network] = client
        if len(self._clients) > _ADDRESSES:
            idle = next((one for one, known in self._clients.items() if not known.waiting and known is not client), "")
            self._clients.pop(idle, None)
        return client


def _is_right(password: bytes, hashed: bytes | None, cost: int) -> bool:
    """Whether the password has this hash. A wrong password takes the time of a hash of this cost.

    So the time does not show which users exist. Each step of the cost doubles the time: a hash of cost 8 and dummies
    of cost 8 and 9 take the time of one hash of cost 10.
    """
    import bcrypt

    # bcrypt reads at most 72 bytes, and before version 5 refuses zero bytes
    text = password[:72].replace(b"\0", b"")
    if hashed is None:
        bcrypt.checkpw(text, f"$2b${cost:02}{_DUMMY}".encode())
        return False
    if bcrypt.checkpw(text, hashed) and len(password) <= 72 and b"\0" not in password:
        return True
    for step in range(_cost(hashed), cost):
        bcrypt.checkpw(text, f"$2b${step:02}{_DUMMY}".encode())
    return False


def _cost(hashed: bytes) -> int:
    """The cost in a hash "$2b$10$..."."""
    return int(hashed[4:6])


def _network(address: str) -> str:
    """The address; of IPv6 the 64 bits that a provider gives to one customer (RFC 6177)."""
    try:
        client = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if client.version == 6 and client.ipv4_mapped is None:
        return client.exploded[:19]
    return str(getattr(client, "ipv4_mapped", None) or client)


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
