"""Wrong passwords from one address delay no other address, and their duration does not show which users exist."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import pytest

from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.web.auth import Admission, Passwords
from linkgauge.agent.web.config import read_config
from tests.support.programs.web_clients import Clock, get, server_of

bcrypt = pytest.importorskip("bcrypt", reason="the extra [web] is not installed")
BAD, GOOD = "192.0.2.1", "192.0.2.2"


def hashed(password: str, cost: int = 4) -> bytes:
    return bytes(bcrypt.hashpw(password.encode(), bcrypt.gensalt(cost)))


def basic(password: str, name: str = "prom") -> str:
    return "Basic " + b64encode(f"{name}:{password}".encode()).decode()


def admitted(passwords: Passwords, *requests: tuple[str, str]) -> list[Admission]:
    """The answers to requests, pairs of header and address, that arrive at the same time."""

    async def ask() -> Sequence[Admission]:
        return await asyncio.gather(*(passwords.admit(*one) for one in requests))

    return list(asyncio.run(ask()))


def test_one_address_waits_behind_one_check_of_another() -> None:
    """Sixteen clients of one address send wrong passwords. A client of another address comes last."""
    passwords, order = Passwords({"prom": hashed("right", 8)}), []

    async def ask(password: str, address: str) -> None:
        order.append((address, await passwords.admit(basic(password), address)))

    async def flood() -> None:
        await asyncio.gather(*(ask(f"wrong{number}", BAD) for number in range(16)), ask("right", GOOD))

    asyncio.run(flood())
    assert order[:12] == [(BAD, "busy")] * 12
    # One check of the first address was running; the second address is next.
    assert order[12:] == [(BAD, "wrong"), (GOOD, "right"), (BAD, "wrong"), (BAD, "wrong"), (BAD, "wrong")]


def test_an_address_with_ten_wrong_passwords_is_refused_for_a_minute() -> None:
    clock = Clock()
    passwords = Passwords({"prom": hashed("right")}, clock)
    assert [admitted(passwords, (basic(f"wrong{number}"), BAD))[0] for number in range(12)] == [
        *["wrong"] * 10,
        *["refused"] * 2,
    ]
    assert admitted(passwords, (basic("right"), BAD), (basic("right"), GOOD)) == ["refused", "right"]
    clock.now = 60.0
    assert admitted(passwords, (basic("right"), BAD)) == ["right"]


def test_a_verified_password_of_a_flooding_address_is_right() -> None:
    passwords = Passwords({"prom": hashed("right")})
    assert admitted(passwords, (basic("right"), BAD)) == ["right"]
    for number in range(12):
        admitted(passwords, (basic(f"wrong{number}"), BAD))
    assert admitted(passwords, (basic("right"), BAD)) == ["right"]


def test_the_addresses_of_one_ipv6_network_are_one_client() -> None:
    passwords = Passwords({"prom": hashed("right")})
    for number in range(10):
        admitted(passwords, (basic(f"wrong{number}"), f"2001:db8::{number:x}"))
    assert admitted(passwords, (basic("right"), "2001:db8::ff"), (basic("right"), "2001:db8:0:1::1")) == [
        "refused",
        "right",
    ]


def test_failures_of_many_addresses_take_no_memory_without_limit() -> None:
    passwords = Passwords({"prom": hashed("right")})
    requests = [(basic("wrong"), f"10.0.{number >> 8}.{number & 255}") for number in range(1100)]

    async def ask() -> None:
        for header, address in requests:
            await passwords.admit(header, address)

    asyncio.run(ask())
    assert len(passwords._clients) == 1024


def test_verified_passwords_survive_a_reload_with_the_same_hash() -> None:
    """The cached password needs no check: the address is refused, and only the cache admits it."""
    users = {"prom": hashed("right"), "other": hashed("other")}
    passwords = Passwords(users)
    assert admitted(passwords, (basic("right"), BAD), (basic("other", "other"), BAD)) == ["right", "right"]
    for number in range(10):
        admitted(passwords, (basic(f"wrong{number}"), BAD))
    passwords.use({"prom": users["prom"], "other": hashed("other")})
    assert admitted(passwords, (basic("right"), BAD), (basic("other", "other"), BAD)) == ["right", "refused"]
    passwords.use({"other": users["other"]})
    assert admitted(passwords, (basic("right"), BAD)) == ["refused"]


def test_wrong_passwords_of_all_users_and_of_unknown_users_take_equal_time() -> None:
    """The file has hashes of cost 4 and 9, whose times differ by the factor 32."""
    users = {"quick": hashed("a", 4), "slow": hashed("b", 9)}
    times = {}
    for name in ("quick", "slow", "nobody"):
        passwords, taken = Passwords(users), []
        for number in range(7):
            before = time.perf_counter()
            assert admitted(passwords, (basic(f"wrong{number}", name), BAD)) == ["wrong"]
            taken.append(time.perf_counter() - before)
        times[name] = median(taken)
    assert max(times.values()) < 3 * min(times.values())


def test_a_request_without_a_password_needs_no_check() -> None:
    """Browsers send their first request without one. It is no failure."""
    passwords = Passwords({"prom": hashed("right")})
    assert admitted(passwords, *[("", BAD)] * 30) == ["wrong"] * 30
    assert admitted(passwords, (basic("right"), BAD)) == ["right"]


@pytest.mark.parametrize("header", ["User-Agent", "X-Forwarded-For", "X-Real-Ip", "Forwarded"])
def test_the_status_of_a_refused_address(tmp_path: Path, header: str) -> None:
    """A header that names another address in each request makes no other client."""
    path = tmp_path / "web.yml"
    path.write_text(f"basic_auth_users: {{prom: {hashed('right').decode()}}}\n")
    with server_of(config=str(path)) as server:
        headers = [{"Authorization": basic(f"wrong{n}"), header: f"192.0.2.{n}"} for n in range(11)]
        got = [get(server, headers=one) for one in headers]
    assert [one.status for one in got] == [401] * 10 + [429]
    assert got[-1].headers["retry-after"] == "60"


@pytest.mark.parametrize("wrong", ["$2b$03$", "$2b$18$", "$2b$xx$", "$2b$99$"])
def test_hashes_that_bcrypt_cannot_check_are_refused_at_the_start(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "web.yml"
    path.write_text(f"basic_auth_users: {{prom: '{wrong}{hashed('a').decode()[7:]}'}}\n")
    with pytest.raises(BadInput, match="not a bcrypt hash of cost 4 to 17"):
        read_config(str(path))
