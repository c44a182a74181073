"""What the service sends to other systems after each cycle, as the table [push] of the configuration says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from importlib.util import find_spec

from ...exporters.metrics.sample import Round
from ...models.report import Report
from ...models.site.schema import Site
from ..inputs.site_file import BadInput
from .background_sender import BackgroundSender, TryAgain
from .config import Config, Otlp, Push

_AT_END = 5.0  # seconds to tell Kubernetes that the service stops
Publish = Callable[[Report, Site, Round], None]


def publishers(config: Config, folder: str, stack: ExitStack) -> tuple[Publish, ...]:
    """The functions that take the report of each cycle and return at once. `stack` ends them. Raises BadInput."""
    found, push = list[Publish](), config.push
    if config.otlp.url:
        found.append(_otlp(config.otlp, config.detail, stack))
    if push.nvsentinel:
        found.append(_nvsentinel(push, folder, stack))
    if push.kubernetes:
        found.append(_kubernetes(push, stack))
    return tuple(found)


def _otlp(otlp: Otlp, detail: str, stack: ExitStack) -> Publish:
    if find_spec("opentelemetry") is None:
        raise BadInput("[otlp] url needs OpenTelemetry: pip install 'linkgauge[otlp]'")
    from ...exporters.metrics.otlp import send

    since = time.time()

    def export(value: tuple[Report, Round, Mapping[str, str]]) -> None:
        report, round, labels = value
        try:
            send(otlp.url or "", report, round, labels, detail, since, otlp.conventions)
        except OSError as why:
            raise TryAgain(str(why)) from None

    sender = BackgroundSender[tuple[Report, Round, Mapping[str, str]]]("otlp", export)
    stack.callback(sender.close)
    return lambda report, site, round: sender.offer((report, round, site.labels))


def _nvsentinel(push: Push, folder: str, stack: ExitStack) -> Publish:
    from ...exporters.events.health_events import health_events
    from .health_events import Faults, HealthEvents

    receiver = HealthEvents(push.nvsentinel or "", folder)
    sender = BackgroundSender[Faults]("nvsentinel", receiver.send)
    stack.callback(sender.close)
    stack.callback(receiver.close)  # first: it ends a call that hangs

    def publish(report: Report, site: Site, round: Round) -> None:
        if node := node_name(push, report):
            sender.offer(Faults(node, report.taken_at, health_events(report, site.gate)))

    return publish


def _kubernetes(push: Push, stack: ExitStack) -> Publish:
    """The node condition, and rules for devices with a fault if the configuration names an effect.

    When the service stops, the condition becomes Unknown, and the rules stay: a device keeps its fault.
    """
    from ..kubernetes import device_taints
    from ..kubernetes.cluster_api import Refused, here
    from ..kubernetes.node_condition import NodeCondition, condition_of

    condition = NodeCondition()
    tainted: list[Mapping[str, str]] = []  # the faults of the last rules
    named: list[str] = []  # the node, once it is known

    def send(node: str, report: Report | None) -> None:
        try:
            due = condition.update(here(), node, condition_of(report))
            if report is None:
                return
            faults = device_taints.faulty_devices(report)
            if push.device_taints and (due or tainted != [faults]):
                device_taints.update(here(), node, faults, push.device_taints)
                tainted[:] = [faults]
        except Refused as why:
            raise TryAgain(str(why)) from None

    sender = BackgroundSender[tuple[str, Report | None]]("kubernetes", lambda value: send(*value))
    stack.callback(lambda: sender.close(_AT_END, (named[0], None) if named else None))

    def publish(report: Report, site: Site, round: Round) -> None:
        if node := node_name(push, report):
            named[:] = [node]
            sender.offer((node, report))

    return publish


def node_name(push: Push, report: Report) -> str | None:
    """The name of the node in Kubernetes: of the configuration, of the pod (NODE_NAME), or its host name."""
    return push.node or os.environ.get("NODE_NAME") or report.node
