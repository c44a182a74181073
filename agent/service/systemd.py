"""What systemd is told of a service that it has started: sd_notify(3). Without systemd, nothing."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(message: str) -> None:
    """Say READY=1, RELOADING=1, STOPPING=1, WATCHDOG=1, STATUS=... to who listens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.setblocking(False)  # who does not read what it is told must not hold up what it has started
        sending.connect(f"\0{address[1:]}" if address[0] == "@" else address)
        sending.sendall(message.encode())
