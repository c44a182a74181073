"""Notifications to systemd: sd_notify(3). Without systemd they do nothing."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(message: str) -> None:
    """Send READY=1, RELOADING=1, STOPPING=1, WATCHDOG=1 or STATUS=... to $NOTIFY_SOCKET."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.setblocking(False)  # a reader that does not read must not block the service
        sending.connect(f"\0{address[1:]}" if address[0] == "@" else address)
        sending.sendall(message.encode())
