"""ip(8) and rdma(8) of iproute2 with -j: network devices with their counters, RDMA devices and ports.

https://git.kernel.org/pub/scm/network/iproute2/iproute2.git, ip/ipaddress.c, rdma/link.c, rdma/dev.c. The facts are the
same as those of net_tools.py and rdma_tools.py from text output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....models.facts.machine import Net, Port, Rdma
from ....models.facts.records import Evidence, NotChecked, Observation, Record
from ..core.fields import FactCollector
from ..core.json_pieces import beginning_is_missing, pieces
from ..core.json_values import documents, list_of, object_of
from ..core.part import Part
from .net_tools import TYPES, flags
from .rdma_tools import physical_state, port_state

ANY_LINE = r"^[ \t]*(?:\{[ \t]*)?\"(?:ifname|ifindex|physical_state)\"[ ]?:"
BEGIN = r"^[ \t]*\[\s{0,20}(?:\{[ ]?\},\s{0,20}){0,9}\{\s{0,20}\"ifindex\"[ ]?:"
_LIST = re.compile(r"\[")
_MOST_PORTS = 256


def read(part: Part) -> Iterator[Record]:
    """The facts of each device. A truncated text gives none."""
    fields = FactCollector()
    counted: list[Observation] = []
    for one, line in _objects(part):
        if isinstance(one, NotChecked):
            yield one
        else:
            name = one.get("ifname")
            if isinstance(name, str) and 0 < len(name) < 65 and name.isprintable():
                where = Evidence(part.where(line), name)
                if "mtu" in one:
                    counted += _net(fields, one, name, where, part.at)
                else:
                    _rdma(fields, one, name, where)
    yield from fields.records()
    yield from counted


def _objects(part: Part) -> Iterator[tuple[dict[str, Any] | NotChecked, int]]:
    """The object of each device, with its line. If the JSON is incomplete, those that are still clear."""
    end = 0
    for document in documents(part, _LIST):
        if isinstance(document, NotChecked):
            yield document, 0
            yield from pieces(part, end)
        else:
            end = document.end
            yield from ((object_of(one), document.line) for one in list_of(document.value))
    if not end and not _LIST.search(part.text):
        yield beginning_is_missing(part), 0
        yield from pieces(part, 0)


def _net(fields: FactCollector, one: Mapping[str, Any], name: str, where: Evidence, at: float) -> Iterator[Observation]:
    known = [flag for flag in list_of(one.get("flags")) if isinstance(flag, str)]
    mtu = one.get("mtu")
    kind = TYPES.get(str(one.get("link_type")))
    flag_fields = flags(fields, name, known, where) if known else {}
    fields.add(Net, name, where, **flag_fields, mtu=mtu if isinstance(mtu, int) else None, link_type=kind)
    counters = object_of(one.get("stats64")) or object_of(one.get("stats"))
    for direction in ("rx", "tx"):
        for what, unit in (("bytes", "bytes"), ("errors", "count")):
            value = object_of(counters.get(direction)).get(what)
            if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64:
                cite = Evidence(where.source, f"{name} {direction} {what} {value}")
                yield Observation(
                    about=name, quantity=f"{direction}_{what}", unit=unit, value=float(value), at=at, evidence=cite
                )


def _rdma(fields: FactCollector, one: Mapping[str, Any], name: str, where: Evidence) -> None:
    firmware, port = one.get("fw"), one.get("port")
    fields.add(Rdma, name, where, firmware=firmware if isinstance(firmware, str) and firmware.isprintable() else None)
    if not isinstance(port, int) or not 0 < port < _MOST_PORTS:
        return
    key = f"{name}/{port}"
    texts = {
        field: value for field in ("physical_state", "netdev", "state") if isinstance(value := one.get(field), str)
    }
    lid = one.get("lid")
    fields.add(
        Port,
        key,
        where,
        device=name,
        netdev=texts.get("netdev"),
        lid=lid if isinstance(lid, int) and lid > 0 else None,
    )
    if "physical_state" in texts:
        fields.take(Port, key, where, "physical_state", texts["physical_state"], physical_state)
    if "state" in texts:
        fields.take(Port, key, where, "state", texts["state"], port_state)
