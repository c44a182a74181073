"""The messages to systemd. A systemd that does not listen delays nothing."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from linkgauge.agent.service.systemd import notify


@pytest.mark.parametrize("name", ["{}/notify", "@linkgauge-test-{}"])
def test_systemd_receives_the_messages(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Abstract names belong to the whole machine, on which another run of the tests may have a folder of the same name.
    address = name.format(tmp_path if name[0] == "{" else f"{tmp_path.name}-{os.getpid()}")
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(f"\0{address[1:]}" if address[0] == "@" else address)
        notify("READY=1\nSTATUS=ok, 0 findings")
        assert listening.recv(1000) == b"READY=1\nSTATUS=ok, 0 findings"
        for _ in range(10_000):  # more than it may wait for to be read
            notify("WATCHDOG=1")


@pytest.mark.parametrize("address", ["", "relative", "/nowhere/notify", "@nobody", "@", "/dev/null"])
def test_unusable_addresses_are_ignored(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify("READY=1")
