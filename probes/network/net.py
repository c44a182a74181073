"""Network devices from sysfs (kernel documentation, ABI/testing/sysfs-class-net and -net-statistics)."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from ...models.facts.machine import Net
from ...models.facts.records import Record
from ...models.facts.units import BytesPerSecond, from_megabits
from ..host.host import Host, Unreadable
from ..parsing.parsers import count, decimal, flag, hexadecimal, word
from ..sysfs.class_devices import devices, is_virtual, pci_function
from ..sysfs.counter_files import read_counters
from ..sysfs.fact_reader import FactReader

DEVICES = "sys/class/net"
_UP = 0x1  # IFF_UP, include/uapi/linux/if.h
_ETHERNET = 1
_TYPES = {_ETHERNET: "ethernet", 32: "infiniband", 772: "loopback"}  # ARPHRD numbers, include/uapi/linux/if_arp.h
# SPEED_UNKNOWN is all ones, which drivers print in 16 and 32 bits, signed and unsigned; 0 is a port without a link.
_NO_SPEED = (-1, 0, 0xFFFF, 0xFFFFFFFF)
# Only counters of errors that bad cables and ports cause, and of bytes.
_COUNTERS = (
    "carrier_changes",
    "statistics/rx_errors",
    "statistics/tx_errors",
    "statistics/rx_crc_errors",
    "statistics/rx_bytes",
    "statistics/tx_bytes",
)
_IN_BYTES = {"rx_bytes": 1, "tx_bytes": 1}


def read_net(host: Host) -> Iterator[Record]:
    """Yield a `Net` for every network device, also virtual ones, and the counters of hardware devices."""
    for name, folder in (yield from devices(host, DEVICES, "Net")):
        yield from _device(host, name, folder)


def read_link_modes(host: Host) -> Iterator[Record]:
    """Yield the fastest modes of Ethernet ports and their partners. A child process reads them (ethtool.py)."""
    found = yield from devices(host, DEVICES, "Net.max_speed")
    names = [name for name, folder in found if not is_virtual(folder) and _is_ethernet(host, folder)]
    if names:
        yield from host.call("ethtool", *names, deadline=5.0)


def _device(host: Host, name: str, folder: str) -> Iterator[Record]:
    reading = FactReader(host, Net, name, folder)
    reading.take("link_type", "type", _link_type, required=True)
    enabled = reading.take("enabled", "flags", _is_up, required=True)
    if {"link_type", "enabled"} <= reading.absent:
        return  # not a device: the plain file bonding_masters
    virtual = is_virtual(folder)
    if enabled is not False:  # the kernel returns EINVAL for these while the device is down
        reading.take("speed", "speed", _speed, required=not virtual, means=errno.EINVAL)
        reading.take("duplex", "duplex", _duplex, means=errno.EINVAL)
        reading.take("carrier", "carrier", flag, means=errno.EINVAL)
    reading.take("mtu", "mtu", count)
    reading.take("port", "dev_port", count)
    reading.take("port_name", "phys_port_name", word, means=errno.EOPNOTSUPP)
    reading.set(
        address=pci_function(folder),
        driver=None if virtual else reading.target("driver", "device/driver"),
    )
    yield from reading.records()
    if not virtual:
        yield from read_counters(host, "Net.counters", name, folder, _COUNTERS, _IN_BYTES)


def _is_ethernet(host: Host, folder: str) -> bool:
    try:
        return host.read(f"{folder}/type") == str(_ETHERNET)
    except Unreadable:
        return False  # read_net reports it


def _link_type(text: str) -> str:
    return _TYPES.get(count(text), text)


def _is_up(text: str) -> bool:
    return bool(hexadecimal(text) & _UP)


def _speed(text: str) -> BytesPerSecond | None:
    """Parse a speed. Tools that save sysfs write an empty file for EINVAL, that is for a driver without speeds."""
    return None if not text or decimal(text) in _NO_SPEED else from_megabits(count(text))


def _duplex(text: str) -> str | None:
    return None if text == "unknown" else word(text)
