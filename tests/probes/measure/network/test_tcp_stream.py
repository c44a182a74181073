"""TCP between two ends of this machine: rates, keys, limits."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.probes.measure.network.tcp_stream import KEY, Failed, listen, rate_of, receive, send

HERE = "127.0.0.1"


def beside(function: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_bytes_arrive_and_have_a_rate_and_strangers_are_ignored() -> None:
    key = os.urandom(KEY)
    with listen(HERE) as server:
        port = server.getsockname()[1]
        stranger = socket.create_connection((HERE, port))
        stranger.sendall(bytes(KEY))
        sender = beside(lambda: send(HERE, port, HERE, key, 0.3, 1e12))
        assert receive(server, key, 0.3, 20.0) > 1e6
        sender.join()
        assert stranger.recv(1) == b""
        stranger.close()


def test_the_limit_of_bytes_ends_a_flow() -> None:
    key = os.urandom(KEY)
    sent: list[float] = []
    with listen(HERE) as server:
        port = server.getsockname()[1]
        sender = beside(lambda: sent.append(send(HERE, port, HERE, key, 20.0, 64e6)))
        assert receive(server, key, 20.0, 20.0) > 0
        sender.join()
    assert sent == [64e6]


def test_a_sender_that_does_not_come_is_a_failure() -> None:
    with listen(HERE) as server, pytest.raises(Failed, match="did not connect"):
        receive(server, bytes(KEY), 1.0, 0.01)


@given(st.floats(1.0, 1e9), st.integers(1, 10**9), st.integers(6, 50), st.integers(0, 20))
def test_a_steady_flow_has_its_rate_also_if_it_ends_early(began: float, step: int, count: int, silent: int) -> None:
    """A sample each 0.125 s, and no byte in the last ones."""
    began = float(int(began))
    samples = [(began + n / 8, step * min(n, count)) for n in range(count + silent + 1)]
    assert rate_of(samples) == step * 8


@pytest.mark.parametrize("samples", [[(1.0, 5)], [(1.0, 5), (2.0, 5)], [(1.0, 0), (1.0, 9)]])
def test_without_bytes_there_is_no_rate(samples: list[tuple[float, int]]) -> None:
    with pytest.raises(Failed):
        rate_of(samples)
