"""A report as metrics over OTLP: the same names, labels and values as for Prometheus.

A collector that exports them to Prometheus adds missing units and "_total" to names, so counters are sent without
"_total": https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

from ... import __version__
from ...models.facts.units import from_utc
from ...models.report import Report
from .catalog import METRICS, Metric
from .hardware import METRICS as HW_METRICS
from .hardware import by_metric
from .sample import CycleInfo, Sample
from .series import samples

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import export

Conventions: TypeAlias = Literal["linkgauge", "hw"]

_UNITS = {"bytes": "By", "bytes_per_second": "By/s", "seconds": "s", "ratio": "1"}  # unit in our names -> UCUM
_SECONDS = 10


def send(
    url: str,
    report: Report,
    cycle: CycleInfo | None = None,
    labels: Mapping[str, str] | None = None,
    detail: str = "",
    since: float | None = None,
    conventions: Conventions = "linkgauge",
) -> None:
    """Send the report to the collector at the full `url` (http://collector:4318/v1/metrics). Raises OSError.

    `since`: start of the counters in seconds since 1970. `conventions`: "hw" adds the metrics of hardware.py. The other
    arguments as in `prometheus.families`.
    """
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    now = _moment(report, cycle)
    metrics = list(_metrics(samples(report, cycle, labels or {}, detail), now, since))
    if conventions == "hw":
        metrics += _hardware(report, cycle, now, since)
    resource = Resource(dict(_resource(report, labels or {})))
    scope = ScopeMetrics(InstrumentationScope("linkgauge", __version__), metrics, "")
    exporter = OTLPMetricExporter(endpoint=url, timeout=_SECONDS)
    with _listening() as last_message:
        done = exporter.export(MetricsData([ResourceMetrics(resource, [scope], "")]))
    exporter.shutdown()
    if done is not MetricExportResult.SUCCESS:
        raise OSError(last_message.text or "no answer")


class _LastMessage(logging.Handler):
    """Keeps the last log message of the library: the exporter reports the reason of a failure only there."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


@contextmanager
def _listening() -> Iterator[_LastMessage]:
    log, last_message = logging.getLogger("opentelemetry"), _LastMessage()
    passed_on = log.propagate
    log.addHandler(last_message)
    log.propagate = False  # do not log the reason a second time
    try:
        yield last_message
    finally:
        log.removeHandler(last_message)
        log.propagate = passed_on


def _moment(report: Report, cycle: CycleInfo | None) -> float:
    return cycle.ended if cycle else from_utc(report.taken_at) if report.taken_at else 0.0


def _metrics(metrics: Iterator[Sample], now: float, since: float | None) -> Iterator[export.Metric]:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, NumberDataPoint, Sum
    from opentelemetry.sdk.metrics.export import Metric as OtlpMetric

    points: dict[str, list[NumberDataPoint]] = defaultdict(list)
    for one in metrics:
        labels = {name: value for name, value in one.labels.items() if value}
        start, end = int((now if since is None else since) * 1e9), int(now * 1e9)
        points[one.metric].append(NumberDataPoint(labels, start, end, float(one.value)))
    for name, several in points.items():
        metric = METRICS[name]
        bare, unit = name.removesuffix("_total"), _unit(metric)
        if metric.kind == "counter":
            total = Sum(several, AggregationTemporality.CUMULATIVE, is_monotonic=True)
            yield OtlpMetric(bare, metric.text, unit, total)
        else:
            yield OtlpMetric(bare, metric.text, unit, Gauge(several))


def _resource(report: Report, labels: Mapping[str, str]) -> Mapping[str, str]:
    """The attributes of the resource, as OpenTelemetry's conventions name them, and the labels of the site file."""
    names = {
        "service.name": "linkgauge",
        "service.version": __version__,
        "host.name": report.node or "",
        "k8s.node.name": os.environ.get("NODE_NAME", ""),
    }
    return {name: value for name, value in {**labels, **names}.items() if value}


def _hardware(report: Report, cycle: CycleInfo | None, now: float, since: float | None) -> Iterator[export.Metric]:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, NumberDataPoint, Sum
    from opentelemetry.sdk.metrics.export import Metric as OtlpMetric

    start, end = int((now if since is None else since) * 1e9), int(now * 1e9)
    for name, several in by_metric(report, cycle).items():
        metric = HW_METRICS[name]
        points = [NumberDataPoint(dict(one.attributes), start, end, one.value) for one in several]
        total = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=metric.monotonic)
        yield OtlpMetric(name, metric.text, metric.unit, total)


def _unit(metric: Metric) -> str:
    return _UNITS.get(metric.unit, "1" if metric.kind == "info" else "")
