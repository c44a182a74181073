"""What network ports and their partners can do, by ioctl (include/uapi/linux/ethtool.h). Runs in a child (calls.py)."""

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
_SETTINGS = struct.Struct("=II7xb32x")  # struct ethtool_link_settings: command, speed, words of each bit map
_REQUEST = struct.Struct("16sP16x")  # struct ifreq, or longer
_NOTHING = (errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL)  # no such question to this driver, or the device has gone

# Mbit/s -> its ETHTOOL_LINK_MODE_*_BIT. The bits that are missing are no speeds: connectors, pause, FEC.
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
    """The fastest mode that each port supports and that its partner advertises; nothing where a driver has none."""
    try:
        # Asking for a name that is not here makes the kernel load a module of that name.
        here = {name for _, name in socket.if_nameindex()}
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
            if name in here:
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
    """The fastest of a bit map of link modes; None where it has no speed.

    Raises ValueError for bits that are newer than the table: they may be faster than all others.
    """
    if modes >> _KNOWN + 1:
        raise ValueError(f"link mode {modes.bit_length() - 1} is newer than this program")
    speeds = [speed for speed, mask in _MASKS.items() if modes & mask]
    return from_megabits(max(speeds)) if speeds else None


def bit_maps(answer: bytes) -> tuple[int, int]:
    """The modes that the port supports and those that its partner advertises, from a struct ethtool_link_settings."""
    _, _, words = _SETTINGS.unpack_from(answer)
    maps = struct.unpack_from(f"={3 * words}I", answer, _SETTINGS.size)
    supported, partner = maps[:words], maps[2 * words :]  # between them: what the port advertises
    return _joined(supported), _joined(partner)


def _joined(words: tuple[int, ...]) -> int:
    return sum(word << 32 * place for place, word in enumerate(words))


def _port(handle: socket.socket, name: str) -> Iterator[Record]:
    question = f"ETHTOOL_GLINKSETTINGS {name}"
    try:
        supported, partner = bit_maps(_settings(handle, name))
        able, across = fastest(supported), fastest(partner)
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
        if able or across:
            cites = {
                "max_speed": Evidence(question, f"supported {supported:#x}"),
                "partner_speed": Evidence(question, f"link partner {partner:#x}"),
            }
            yield Net(key=name, cites=cites, max_speed=able, partner_speed=across)


def _settings(handle: socket.socket, name: str) -> bytes:
    """The kernel's answer. It says first, as a negative number, how many words its bit maps have."""
    words = 0
    for _ in range(2):
        buffer = array("B", _SETTINGS.pack(_GLINKSETTINGS, 0, words) + bytes(3 * 4 * words))
        fcntl.ioctl(handle, _SIOCETHTOOL, _REQUEST.pack(os.fsencode(name), buffer.buffer_info()[0]))
        answered = _SETTINGS.unpack_from(buffer)[2]
        if answered > 0:
            return buffer.tobytes()
        words = -answered
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
