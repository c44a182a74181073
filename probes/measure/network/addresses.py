"""Network devices of this machine and their addresses."""

from __future__ import annotations

import fcntl
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

_SIOCGIFADDR = 0x8915  # include/uapi/linux/sockios.h: netdevice(7)


def interface_of(address: str) -> str | None:
    """Return the network device with this local address; None for a secondary address."""
    for _, name in socket.if_nameindex():
        if address and address in addresses_of(name):
            return name
    return None


def addresses_of(name: str) -> list[str]:
    """Return the first IPv4 address of a device and its IPv6 addresses; empty if it has none."""
    return [one for one in (_ipv4_address(name), *_ipv6_addresses(name)) if one]


def _ipv4_address(name: str) -> str:
    """Return the first IPv4 address of a device; empty if it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle, suppress(OSError):
        answer = fcntl.ioctl(handle, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        return socket.inet_ntoa(answer[20:24])
    return ""


def _ipv6_addresses(name: str) -> Iterator[str]:
    """Yield the IPv6 addresses of a device."""
    with suppress(OSError), open("/proc/self/net/if_inet6") as file:
        for line in file:
            digits, *_, device = line.split()
            if device == name:
                yield socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
