"""A machine of which files are left out that it does not like to be read, by a service that asks again and again.

Some functions of NICs are kept for the firmware: reading their counters is refused with EINVAL, and the driver writes a
line into the kernel's log for each of them, with the number of the process that asked
(https://github.com/leptonai/gpud/issues/1164, https://github.com/prometheus/node_exporter/issues/3434).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator

from ...models.facts.records import Record
from ...models.report import Origin
from .host import Host, Unreadable

_COUNTER = re.compile(r"/(?:hw_)?counters/[a-z0-9_]+$")  # elsewhere EINVAL passes: net/*/speed of a port that is down
# Folders of links to devices. Who looks whether their names are the same calls `forget` where they are not.
SIGNS = ("sys/bus/pci/devices", "sys/class/infiniband", "sys/class/net", "sys/class/nvme")
_KMSG = "/dev/kmsg"
_RECORD = 8192  # bytes; longer ones are not read (kernel documentation, ABI/testing/dev-kmsg)
_WHY = "the kernel's log complained when it was read: it is left out until the service is started again"


class Guarded:
    """A Host that passes everything on but what was refused for good, or complained of.

    Which file a complaint is about is not in it: after one, the log is looked at behind each read for one cycle.
    """

    def __init__(self, host: Host, kmsg: str = _KMSG) -> None:
        self.origin: Origin = host.origin
        self._host = host
        self._left: dict[str, Unreadable] = {}
        self._places: dict[str, str] = {}  # where those of devices lead: five hundred, asked for again and again
        self._watching = False
        self._complaint = re.compile(rf"\(pid {os.getpid()}\)")
        self._log = _at_end(kmsg)

    def read(self, path: str) -> str | None:
        if path in self._left:
            raise self._left[path]
        try:
            text = self._host.read(path)
        except Unreadable as refused:
            if refused.code == errno.EINVAL and _COUNTER.search(path):
                self._left[path] = refused
            raise
        finally:
            if self._watching and self._complained():
                self._left[path] = Unreadable(path, None, _WHY)
        return text

    def list(self, path: str) -> list[str]:
        return self._host.list(path)

    def resolve(self, path: str) -> str | None:
        place = self._places.get(path) or self._host.resolve(path)
        if place and path.rpartition("/")[0] in SIGNS:
            self._places[path] = place
        return place

    def forget(self) -> None:
        """Devices may have come or gone: links need no longer lead where they led."""
        self._places.clear()

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        yield from self._host.call(what, *args, deadline=deadline)

    def now(self) -> float:
        return self._host.now()

    def look(self) -> None:
        """Between two cycles: was there a complaint in the one before?"""
        self._watching = self._complained()

    def close(self) -> None:
        """Read no more of the kernel's log."""
        if self._log is not None:
            os.close(self._log)
        self._log = None

    def _complained(self) -> bool:
        """Whether the kernel has logged something about this process since this was asked last."""
        found = False
        while self._log is not None:
            try:
                record = os.read(self._log, _RECORD)
            except BlockingIOError:
                break
            except OSError:  # EPIPE: records were overwritten before they were read; the next one can be
                continue
            if not record:
                break
            found = found or bool(self._complaint.search(record.decode("utf-8", "replace")))
        return found


def _at_end(kmsg: str) -> int | None:
    """The kernel's log from now on; None where this process may not read it."""
    try:
        log = os.open(kmsg, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        os.lseek(log, 0, os.SEEK_END)
    except OSError:
        os.close(log)
        return None
    return log
