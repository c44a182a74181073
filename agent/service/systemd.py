"""What the service exchanges with systemd: sd_notify(3) and sd_listen_fds(3). Without systemd it does nothing."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

_FIRST = 3  # descriptor of the first socket: SD_LISTEN_FDS_START of sd-daemon.h


def notify(message: str) -> None:
    """Send READY=1, RELOADING=1, STOPPING=1, WATCHDOG=1 or STATUS=... to $NOTIFY_SOCKET."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sending:
        sending.setblocking(False)  # a reader that does not read must not block the service
        sending.connect(f"\0{address[1:]}" if address[0] == "@" else address)
        sending.sendall(message.encode())


def sockets_of_systemd() -> list[socket.socket]:
    """The listening sockets that systemd opened for this process. Its children do not get them."""
    process, count = os.environ.pop("LISTEN_PID", ""), os.environ.pop("LISTEN_FDS", "")
    if process != str(os.getpid()) or not (count.isascii() and count.isdecimal()):
        return []
    sockets = [socket.socket(fileno=_FIRST + number) for number in range(int(count))]
    for one in sockets:
        one.set_inheritable(False)
        one.setblocking(False)
    return sockets
