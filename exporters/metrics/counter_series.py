"""Series of what links count: traffic, errors, and how many NVLinks are up."""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.counters import ERRORS, TRAFFIC
from ...models.facts.units import from_utc
from ...models.graph.topology import FORWARDS
from ...models.report import Report, Seen
from .device_info import subject_of
from .link_series import bundles
from .sample import Round, Sample

_HANG_GUARD = FORWARDS | {"display", "storage", "pci"}  # no traffic of jobs begins or ends there


def counters(report: Report, round: Round | None, detail: str) -> Iterator[Sample]:
    """What was counted, by the device that the kernel or the driver counts at.

    Without detail no single NVLinks; and of ports inside the machine, and of what jobs do not use, those alone that
    have counted something.
    """
    # A device has several names, and a series has one subject: the last value counts, whichever name it came under.
    last = {(subject_of(report.topology, one.about), one.quantity): one for one in report.observations}
    counted = {subject for (subject, _), one in last.items() if one.value}
    for (subject, _), one in last.items():
        if one.quantity not in TRAFFIC and one.quantity not in ERRORS:
            continue
        if not detail and subject not in counted and report.topology.kind(subject) in _HANG_GUARD:
            continue
        if round is None or not round.is_over(from_utc(one.at), round.counts_last):
            yield from _sample(subject, one, detail)


def _sample(subject: str, one: Seen, detail: str) -> Iterator[Sample]:
    direction = TRAFFIC.get(one.quantity)
    if direction:
        labels = {"subject": subject, "direction": direction}
        yield Sample("linkgauge_link_traffic_bytes_total", labels, one.value)
    elif detail or "/nvlink" not in subject:
        yield Sample("linkgauge_link_errors_total", {"subject": subject, "kind": one.quantity}, one.value)


def nvlinks(report: Report) -> Iterator[Sample]:
    """How many NVLinks of each GPU are up; links of which nobody says are in neither number."""
    for (gpu, kind), links in bundles(report.topology).items():
        if kind == "nvlink":
            active = sum(link.trained is not None and link.trained > 0 for link in links)
            inactive = sum(link.trained == 0 for link in links)
            yield Sample("linkgauge_nvlink_links", {"subject": gpu, "state": "active"}, active)
            yield Sample("linkgauge_nvlink_links", {"subject": gpu, "state": "inactive"}, inactive)
