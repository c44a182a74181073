"""Series of counters: traffic, errors, and the number of active NVLinks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ...models.facts.counters import ERRORS, TRAFFIC
from ...models.facts.units import from_utc
from ...models.graph.topology import FORWARDS
from ...models.report import Report, ReportedObservation
from .device_info import subject_of
from .link_series import bundles
from .sample import CycleInfo, Sample

_NVLINK = "/nvlink"  # in the subject of a single link: "gpu3/nvlink7"
_WORST = 16  # NVLinks with series of one kind of errors, which limits the size of the page
_NO_TRAFFIC = FORWARDS | {"display", "storage", "pci"}  # kinds at which no job traffic starts or ends


def counters(report: Report, cycle: CycleInfo | None, detail: str) -> Iterator[Sample]:
    """The counters of each device.

    Without detail, of single NVLinks only those with most errors have series. Internal ports and devices that jobs do
    not use then have series only if one of their counters is not zero.
    """
    # A device can have several names, but a series has one subject: the last value is used.
    last = {(subject_of(report.topology, one.about), one.quantity): one for one in report.observations}
    counted = {subject for (subject, _), one in last.items() if one.value}
    of_links: dict[str, list[tuple[str, ReportedObservation]]] = defaultdict(list)  # by quantity
    for (subject, _), one in last.items():
        if one.quantity not in TRAFFIC and one.quantity not in ERRORS:
            continue
        if not detail and subject not in counted and report.topology.kind(subject) in _NO_TRAFFIC:
            continue
        if cycle is not None and cycle.is_stale(from_utc(one.at), cycle.count_lifetime):
            continue
        if one.quantity in ERRORS and _NVLINK in subject:
            of_links[one.quantity].append((subject, one))
        else:
            yield from _sample(subject, one)
    for several in of_links.values():
        yield from _errors_of_links(report, several, detail)


def _sample(subject: str, one: ReportedObservation) -> Iterator[Sample]:
    direction = TRAFFIC.get(one.quantity)
    if direction:
        labels = {"subject": subject, "direction": direction}
        yield Sample("linkgauge_link_traffic_bytes_total", labels, one.value)
    else:
        yield Sample("linkgauge_link_errors_total", {"subject": subject, "link": "", "kind": one.quantity}, one.value)


def _errors_of_links(report: Report, several: list[tuple[str, ReportedObservation]], detail: str) -> Iterator[Sample]:
    """The errors of single NVLinks of one kind; without detail of those with most errors."""
    worst = sorted(several, key=lambda pair: -pair[1].value)[:_WORST]
    for about, one in several if detail else [pair for pair in worst if pair[1].value]:
        gpu, _, number = about.partition(_NVLINK)
        labels = {"subject": subject_of(report.topology, gpu), "link": number, "kind": one.quantity}
        yield Sample("linkgauge_link_errors_total", labels, one.value)


def nvlinks(report: Report) -> Iterator[Sample]:
    """The number of active and inactive NVLinks of each GPU. Links of unknown state count as neither."""
    for (gpu, kind), links in bundles(report.topology).items():
        if kind == "nvlink":
            active = sum(link.trained is not None and link.trained > 0 for link in links)
            inactive = sum(link.trained == 0 for link in links)
            yield Sample("linkgauge_nvlink_links", {"subject": gpu, "state": "active"}, active)
            yield Sample("linkgauge_nvlink_links", {"subject": gpu, "state": "inactive"}, inactive)
