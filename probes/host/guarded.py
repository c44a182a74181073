"""A Host that stops reading files that the kernel refuses or complains about. The service reads them in each cycle.

The firmware reserves some NIC functions for itself. A read of their counters fails with EINVAL, and for each read the
driver writes a line with the process number into the kernel's log
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

# Only for counters is EINVAL permanent. For example, net/*/speed gives it while a port is down.
_COUNTER = re.compile(r"/(?:hw_)?counters/[a-z0-9_]+$")
# Folders of links to devices. The caller compares their names and calls `forget` after a change.
SIGNS = ("sys/bus/pci/devices", "sys/class/infiniband", "sys/class/net", "sys/class/nvme")
_KMSG = "/dev/kmsg"
_RECORD = 8192  # bytes; longer records are not read (kernel documentation, ABI/testing/dev-kmsg)
_WHY = "reading it caused a complaint in the kernel's log: the service does not read it until it is restarted"


class Guarded:
    """Passes all reads to `host`, except for files that were refused permanently or caused a complaint.

    A complaint does not name the file. Therefore, after a complaint, this host checks the log after each read for one
    cycle.
    """

    def __init__(self, host: Host, kmsg: str = _KMSG) -> None:
        self.origin: Origin = host.origin
        self._host = host
        self._excluded: dict[str, Unreadable] = {}
        self._places: dict[str, str] = {}  # targets of device links: about five hundred, resolved in each cycle
        self._watching = False
        self._complaint = re.compile(rf"\(pid {os.getpid()}\)")
        self._log = _at_end(kmsg)

    def read(self, path: str) -> str | None:
        if path in self._excluded:
            raise self._excluded[path]
        try:
            text = self._host.read(path)
        except Unreadable as refused:
            if refused.code == errno.EINVAL and _COUNTER.search(path):
                self._excluded[path] = refused
            raise
        finally:
            if self._watching and self._complained():
                self._excluded[path] = Unreadable(path, None, _WHY)
        return text

    def list(self, path: str) -> list[str]:
        return self._host.list(path)

    def resolve(self, path: str) -> str | None:
        place = self._places.get(path) or self._host.resolve(path)
        if place and path.rpartition("/")[0] in SIGNS:
            self._places[path] = place
        return place

    def forget(self) -> None:
        """Forget the targets of device links. Call this after devices have appeared or disappeared."""
        self._places.clear()

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        yield from self._host.call(what, *args, deadline=deadline)

    def now(self) -> float:
        return self._host.now()

    def look(self) -> None:
        """Call this between two cycles: check for complaints in the previous cycle."""
        self._watching = self._complained()

    def close(self) -> None:
        """Close the kernel's log."""
        if self._log is not None:
            os.close(self._log)
        self._log = None

    def _complained(self) -> bool:
        """Whether the kernel has logged a line about this process since the previous call."""
        found = False
        while self._log is not None:
            try:
                record = os.read(self._log, _RECORD)
            except BlockingIOError:
                break
            except OSError:  # EPIPE: records were overwritten before this read; the next record is readable
                continue
            if not record:
                break
            found = found or bool(self._complaint.search(record.decode("utf-8", "replace")))
        return found


def _at_end(kmsg: str) -> int | None:
    """A descriptor at the end of the kernel's log. None: this process may not read it."""
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
