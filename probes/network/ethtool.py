"""The call `ethtool`: link modes of network ports and their partners, by ioctl (include/uapi/linux/ethtool.h).

It runs in a child process.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from array import array
from collections.abc import Iterator, Mapping

from ...models.facts.machine import Net
from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import Evidence, NotChecked, Record
from ...models.facts.units import BytesPerSecond, from_megabits

_SIOCETHTOOL = 0x8946
_GLINKSETTINGS = 0x4C
_SETTINGS = struct.Struct("=II7xb32x")  # struct ethtool_link_settings: command, speed, words in each bit map
_REQUEST = struct.Struct("16sP16x")  # struct ifreq, or longer
# The driver does not support the command, or the device is gone.
_NOTHING = (errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL)

# ETHTOOL_LINK_MODE_*_BIT numbers by Mbit/s. The missing bits are not speeds: connectors, pause, FEC.
MODES: Mapping[int, tuple[int, ...]] = {
    10: (0, 1, 92, *range(99, 103)),
    100: (2, 3, 67, 90, 91),
    1_000: (4, 5, 17, 41, 68),
    2_500: (15, 47),
    5_000: (48,),
    10_000: (12, *range(18, 21), *range(42, 47)),
    20_000: (21, 22),
    25_000: (*range(31, 34), 125),
    40_000: (*range(23, 27),),
    50_000: (34, 35, 40, *range(52, 57)),
    56_000: (*range(27, 31),),
    100_000: (*range(36, 40), *range(57, 62), *range(75, 80)),
    200_000: (*range(62, 67), *range(80, 85), *range(103, 109)),
    400_000: (*range(69, 74), *range(85, 90), *range(109, 115)),
    800_000: (*range(93, 99), *range(115, 121)),
    1_600_000: (*range(121, 125),),
}
_MASKS = {speed: sum(1 << bit for bit in bits) for speed, bits in MODES.items()}
_KNOWN = max(bit for bits in MODES.values() for bit in bits)


def link_modes(*names: str) -> Iterator[Record]:
    """Yield the fastest supported and the fastest partner-advertised speed of each port; nothing without link modes."""
    try:
        # A request for a missing name makes the kernel load a module of that name.
        present = {name for _, name in socket.if_nameindex()}
        handle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    except OSError as error:
        yield NotChecked(
            what="Net.max_speed",
            subject="node",
            reason=reason_of(error.errno),
            path="sockets",
            detail=str(error.strerror),
        )
        return
    with handle:
        for name in names:
            if name in present:
                yield from _port(handle, name)
            else:
                how = "run in the network namespace of the host"
                yield NotChecked(
                    what="Net.max_speed",
                    subject=name,
                    reason=Reason.OTHER_CONTEXT,
                    detail="not in this network namespace",
                    how=how,
                )


def fastest(modes: int) -> BytesPerSecond | None:
    """Return the fastest speed of a bit map of link modes; None if it contains no speed.

    Raises ValueError for bits beyond the table, because they may be faster than all others.
    """
    if modes >> _KNOWN + 1:
        raise ValueError(f"link mode {modes.bit_length() - 1} is newer than this program")
    speeds = [speed for speed, mask in _MASKS.items() if modes & mask]
    return from_megabits(max(speeds)) if speeds else None


def bit_maps(answer: bytes) -> tuple[int, int]:
    """Return the bit maps of supported and partner-advertised modes of a struct ethtool_link_settings."""
    _, _, words = _SETTINGS.unpack_from(answer)
    maps = struct.unpack_from(f"={3 * words}I", answer, _SETTINGS.size)
    supported, partner = maps[:words], maps[2 * words :]  # the map between them has the modes that the port advertises
    return _joined(supported), _joined(partner)


def _joined(words: tuple[int, ...]) -> int:
    return sum(word << 32 * place for place, word in enumerate(words))


def _port(handle: socket.socket, name: str) -> Iterator[Record]:
    question = f"ETHTOOL_GLINKSETTINGS {name}"
    try:
        supported, partner = bit_maps(_settings(handle, name))
        supported_speed, partner_speed = fastest(supported), fastest(partner)
    except OSError as error:
        if error.errno not in _NOTHING:
            how = "run as root" if error.errno in (errno.EPERM, errno.EACCES) else None
            yield NotChecked(
                what="Net.max_speed",
                subject=name,
                reason=reason_of(error.errno),
                path=question,
                detail=str(error.strerror),
                how=how,
            )
    except ValueError as wrong:
        yield NotChecked(what="Net.max_speed", subject=name, reason=Reason.UNREADABLE, path=question, detail=str(wrong))
    else:
        if supported_speed or partner_speed:
            cites = {
                "max_speed": Evidence(question, f"supported {supported:#x}"),
                "partner_speed": Evidence(question, f"link partner {partner:#x}"),
            }
            yield Net(key=name, cites=cites, max_speed=supported_speed, partner_speed=partner_speed)


def _settings(handle: socket.socket, name: str) -> bytes:
    """Return the kernel's answer. The kernel first returns the number of words of its bit maps as a negative number."""
    words = 0
    for _ in range(2):
        buffer = array("B", _SETTINGS.pack(_GLINKSETTINGS, 0, words) + bytes(3 * 4 * words))
        fcntl.ioctl(handle, _SIOCETHTOOL, _REQUEST.pack(os.fsencode(name), buffer.buffer_info()[0]))
        size = _SETTINGS.unpack_from(buffer)[2]
        if size > 0:
            return buffer.tobytes()
        words = -size
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
