"""The traffic of all links as one line of JSON, for `linkgauge top --json`."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import msgspec

from ...models.facts.gpu import Gpu
from ...models.traffic.selection import Choice, selected
from ...models.traffic.view import Traffic, View


def as_json(view: View, choice: Choice) -> str:
    """One line, linkgauge.top/1, with the chosen links. Rates in bytes per second, clocks in hertz; null: not known."""
    whole = {
        "schema": "linkgauge.top/1",
        "node": view.node,
        "at": None if view.at is None else _utc(view.at),
        "note": view.note,
        "links": [_link(one) for one in selected(view.links, choice)],
        "gpus": [_gpu(subject, gpu) for subject, gpu in sorted(view.gpus.items())],
    }
    return msgspec.json.encode(whole).decode() + "\n"


def _utc(at: float) -> str:
    """The time with milliseconds: readings follow each other in less than a second."""
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _link(one: Traffic) -> dict[str, Any]:
    carrier = one.carrier
    return {
        "subject": carrier.subject,
        "name": carrier.name,
        "kind": carrier.kind,
        "product": carrier.product,
        "received": one.received,
        "sent": one.sent,
        "rated": carrier.rated,
        "trained": carrier.trained,
        "expected_received": carrier.expected_in,
        "expected_sent": carrier.expected_out,
        "used": one.used,
        "links": carrier.links,
        "down": carrier.down,
        "errors": one.risen,
        "rising": one.rising,
        "state": one.state,
    }


def _gpu(subject: str, gpu: Gpu) -> dict[str, Any]:
    return {
        "subject": subject,
        "name": gpu.key,
        "clock": gpu.clock,
        "clock_max": gpu.clock_max,
        "memory_clock": gpu.memory_clock,
        "power": gpu.power,
        "power_limit": gpu.power_limit,
        "temperature": gpu.temperature,
        "limited_by": gpu.clock_reasons,
        "failure": gpu.failure,
    }
