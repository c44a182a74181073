"""A report as metrics over OTLP: the same names, labels and values as for Prometheus.

A collector that hands them on to Prometheus adds unit and "_total" to names where they are missing, so counters go
without "_total": https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ... import __version__
from ...models.facts.units import from_utc
from ...models.report import Report
from .catalog import METRICS, Metric
from .sample import Round, Sample
from .series import samples

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import export

_UNITS = {"bytes": "By", "bytes_per_second": "By/s", "seconds": "s", "ratio": "1"}  # UCUM, as OpenTelemetry has them
_SECONDS = 10


def send(
    url: str,
    report: Report,
    round: Round | None = None,
    labels: Mapping[str, str] | None = None,
    detail: str = "",
    since: float | None = None,
) -> None:
    """Send it to the collector at `url`, whole (http://collector:4318/v1/metrics). Raises OSError with the reason.

    `since`: when counting began, in seconds since 1970. The rest as in `families` for Prometheus.
    """
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    names = {"service.name": "linkgauge", "service.version": __version__, "host.name": report.node or ""}
    resource = Resource({name: value for name, value in {**(labels or {}), **names}.items() if value})
    told = list(_metrics(samples(report, round, labels or {}, detail), _moment(report, round), since))
    scope = ScopeMetrics(InstrumentationScope("linkgauge", __version__), told, "")
    exporter = OTLPMetricExporter(endpoint=url, timeout=_SECONDS)
    with _listening() as kept:
        done = exporter.export(MetricsData([ResourceMetrics(resource, [scope], "")]))
    exporter.shutdown()
    if done is not MetricExportResult.SUCCESS:
        raise OSError(kept.text or "no answer")


class _Last(logging.Handler):
    """The last that the library had to say: its exporter tells nothing else of why it failed."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


@contextmanager
def _listening() -> Iterator[_Last]:
    log, kept = logging.getLogger("opentelemetry"), _Last()
    passed_on = log.propagate
    log.addHandler(kept)
    log.propagate = False  # what is told as the reason is not told twice
    try:
        yield kept
    finally:
        log.removeHandler(kept)
        log.propagate = passed_on


def _moment(report: Report, round: Round | None) -> float:
    return round.ended if round else from_utc(report.taken_at) if report.taken_at else 0.0


def _metrics(told: Iterator[Sample], now: float, since: float | None) -> Iterator[export.Metric]:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, NumberDataPoint, Sum
    from opentelemetry.sdk.metrics.export import Metric as Told

    points: dict[str, list[NumberDataPoint]] = defaultdict(list)
    for one in told:
        labels = {name: value for name, value in one.labels.items() if value}
        start, end = int((now if since is None else since) * 1e9), int(now * 1e9)
        points[one.metric].append(NumberDataPoint(labels, start, end, float(one.value)))
    for name, several in points.items():
        metric = METRICS[name]
        bare, unit = name.removesuffix("_total"), _unit(metric)
        if metric.kind == "counter":
            total = Sum(several, AggregationTemporality.CUMULATIVE, is_monotonic=True)
            yield Told(bare, metric.text, unit, total)
        else:
            yield Told(bare, metric.text, unit, Gauge(several))


def _unit(metric: Metric) -> str:
    return _UNITS.get(metric.unit, "1" if metric.kind == "info" else "")
