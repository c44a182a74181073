"""Counters of sysfs with one file each. They count from the load of the driver."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping

from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, NotChecked, Observation, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import count

# drivers/infiniband/core/sysfs.c returns this text for a device without counters. Newer kernels return an error.
_NOT_COUNTED = "N/A (no PMA)"
_NOT_COUNTED_CODES = (errno.ENOSYS, errno.EOPNOTSUPP)


def read_counters(
    host: Host, what: str, about: str, folder: str, names: Iterable[str], in_bytes: Mapping[str, int]
) -> Iterator[Record]:
    """An Observation for each file of `names` in `folder`, and one NotChecked of `what` for all unreadable files.

    The quantity is the last part of the path. `in_bytes`: bytes per count, by quantity.
    """
    refused: list[tuple[Reason, str, str, str | None]] = []
    for name in names:
        path = f"{folder}/{name}"
        try:
            text = host.read(path)
            if text is None or text == _NOT_COUNTED:
                continue
            number = count(text)
        except Unreadable as refusal:
            if refusal.code not in _NOT_COUNTED_CODES:
                refused.append((refusal.reason, path, refusal.why, refusal.how))
            continue
        except ValueError as wrong:
            refused.append((Reason.UNREADABLE, path, str(wrong), None))
            continue
        quantity = name.rpartition("/")[2]
        yield Observation(
            about=about,
            quantity=quantity,
            unit="bytes" if quantity in in_bytes else "count",
            value=float(number * in_bytes.get(quantity, 1)),
            at=host.now(),
            evidence=Evidence(path, text),
        )
    if refused:
        reason, path, why, how = refused[0]
        others = len(refused) - 1
        more = f"; {others} more counter{'s are' if others > 1 else ' is'} unreadable" if others else ""
        yield NotChecked(what=what, subject=about, reason=reason, path=path, detail=f"{why}{more}", how=how)
