"""What the service sends to other systems after each cycle, as the table [push] of the configuration says."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from typing import NamedTuple, TypeAlias

from ...exporters.metrics.sample import CycleInfo
from ...models.report import Report
from ...models.site.schema import Site
from ..inputs.site_file import BadInput
from .background_sender import BackgroundSender, TryAgain
from .config import Config, Otlp, Push

_AT_END = 5.0  # seconds to tell Kubernetes that the service stops
Publish: TypeAlias = Callable[[Report, Site, CycleInfo], None]
_Made: TypeAlias = tuple[Publish, Callable[[], None]]  # publish, close


class Publisher(NamedTuple):
    """Sends the report of each cycle. `settings` are the parts of the configuration that it was made from."""

    settings: tuple[object, ...]
    publish: Publish  # returns at once
    close: Callable[[], None]


def publishers(config: Config, folder: str, running: Iterable[Publisher] = ()) -> tuple[Publisher, ...]:
    """The publishers of a configuration. One of `running` whose settings did not change continues; the others are
    closed. Raises BadInput, and then closes none of them.
    """
    known = {one.settings: one for one in running}
    wanted = _wanted(config, folder)
    with ExitStack() as undone:
        for settings in wanted.keys() - known.keys():
            known[settings] = Publisher(settings, *wanted[settings]())
            undone.callback(known[settings].close)
        undone.pop_all()
    close_all(one for one in known.values() if one.settings not in wanted)
    return tuple(known[settings] for settings in wanted)


def close_all(several: Iterable[Publisher]) -> None:
    """End these publishers."""
    for one in several:
        one.close()


def _wanted(config: Config, folder: str) -> Mapping[tuple[object, ...], Callable[[], _Made]]:
    """What makes each publisher, by its settings."""
    wanted: dict[tuple[object, ...], Callable[[], _Made]] = {}
    push, otlp = config.push, config.otlp
    if otlp.url:
        wanted[otlp, config.detail] = lambda: _otlp(otlp, config.detail)
    if push.nvsentinel:
        wanted["nvsentinel", push.nvsentinel, push.node] = lambda: _nvsentinel(push, folder)
    if push.kubernetes:
        wanted["kubernetes", push.device_taints, push.node] = lambda: _kubernetes(push)
    return wanted


def _otlp(otlp: Otlp, detail: str) -> _Made:
    if find_spec("opentelemetry") is None:
        raise BadInput("[otlp] url needs OpenTelemetry: pip install 'linkgauge[otlp]'")
    from ...exporters.metrics.otlp import send

    since = time.time()

    def export(value: tuple[Report, CycleInfo, Mapping[str, str]]) -> None:
        report, cycle, labels = value
        try:
            send(otlp.url or "", report, cycle, labels, detail, since, otlp.conventions)
        except OSError as why:
            raise TryAgain(str(why)) from None

    sender = BackgroundSender[tuple[Report, CycleInfo, Mapping[str, str]]]("otlp", export)
    return lambda report, site, cycle: sender.offer((report, cycle, site.labels)), sender.close


def _nvsentinel(push: Push, folder: str) -> _Made:
    from ...exporters.events.health_events import health_events
    from .health_events import Faults, HealthEvents

    receiver = HealthEvents(push.nvsentinel or "", folder)
    sender = BackgroundSender[Faults]("nvsentinel", receiver.send)

    def close() -> None:
        receiver.close()  # first: it ends a call that hangs
        sender.close()

    def publish(report: Report, site: Site, cycle: CycleInfo) -> None:
        if node := node_name(push, report):
            sender.offer(Faults(node, report.taken_at, health_events(report, site.gate)))

    return publish, close


def _kubernetes(push: Push) -> _Made:
    """The node condition, and rules for devices with a fault if the configuration names an effect.

    When the service stops, the condition becomes Unknown, and the rules stay: a device keeps its fault.
    """
    from ..kubernetes import device_taints
    from ..kubernetes.cluster_api import ApiError, here
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
        except ApiError as why:
            raise TryAgain(str(why)) from None

    sender = BackgroundSender[tuple[str, Report | None]]("kubernetes", lambda value: send(*value))

    def publish(report: Report, site: Site, cycle: CycleInfo) -> None:
        if node := node_name(push, report):
            named[:] = [node]
            sender.offer((node, report))

    return publish, lambda: sender.close(_AT_END, (named[0], None) if named else None)


def node_name(push: Push, report: Report) -> str | None:
    """The name of the node in Kubernetes: of the configuration, of the pod (NODE_NAME), or its host name."""
    return push.node or os.environ.get("NODE_NAME") or report.node
