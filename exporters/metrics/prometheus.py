"""A report for Prometheus: families of metrics, the page of a scrape, and a push to a Pushgateway."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ...models.report import Report
from .catalog import METRICS
from .sample import CycleInfo, Sample
from .series import samples

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family
    from prometheus_client.registry import CollectorRegistry

_SECONDS = 10.0  # deadline of a push
TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def families(
    report: Report, cycle: CycleInfo | None = None, labels: Mapping[str, str] | None = None, detail: str = ""
) -> Iterator[Family]:
    """The families of a report, in the order of METRICS; families without samples are left out.

    `labels`: labels of the site file, only for linkgauge_node_info. `detail`: "links" shows each link and flow.
    """
    from prometheus_client.core import Metric as Family

    found: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples(report, cycle, labels or {}, detail):
        found[sample.metric].append(sample)
    for name, metric in METRICS.items():
        if name in found:
            bare = name.removesuffix("_total" if metric.kind == "counter" else "_info")
            family = Family(bare, metric.text, metric.kind, metric.unit)
            for one in found[name]:
                family.add_sample(name, {label: value for label, value in one.labels.items() if value}, one.value)
            yield family


def page(
    report: Report,
    cycle: CycleInfo | None = None,
    labels: Mapping[str, str] | None = None,
    detail: str = "",
    openmetrics: bool = False,
) -> bytes:
    """The page of a scrape, in the text format of Prometheus or as OpenMetrics."""
    from prometheus_client import generate_latest
    from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics

    registry = _registry(report, cycle, labels, detail)
    if openmetrics:
        content: bytes = generate_openmetrics(registry)  # type: ignore[no-untyped-call]
        return content
    return generate_latest(registry)


def push(url: str, report: Report, labels: Mapping[str, str] | None = None) -> None:
    """Replace the metrics of this node at a Pushgateway. Raises OSError with the reason."""
    from urllib.error import HTTPError

    from prometheus_client import push_to_gateway

    registry = _registry(report, None, labels, "")
    try:
        push_to_gateway(url, "linkgauge", registry, {"instance": report.node or "unknown"}, _SECONDS)
    except HTTPError as refused:
        refused.close()  # it has the connection
        raise


def _registry(
    report: Report, cycle: CycleInfo | None, labels: Mapping[str, str] | None, detail: str
) -> CollectorRegistry:
    from prometheus_client.registry import Collector, CollectorRegistry

    class Once(Collector):
        def collect(self) -> Iterator[Family]:
            return families(report, cycle, labels, detail)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return registry
