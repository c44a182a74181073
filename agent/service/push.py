"""What the service sends to other systems after each cycle, as the table [push] of the configuration says."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack

from ...models.report import Report
from ...models.site.schema import Site
from .background_sender import BackgroundSender
from .config import Push

Publish = Callable[[Report, Site], None]


def publishers(push: Push, folder: str, stack: ExitStack) -> tuple[Publish, ...]:
    """The functions that take the report of each cycle and return at once. `stack` ends them. Raises BadInput."""
    return (_nvsentinel(push, folder, stack),) if push.nvsentinel else ()


def _nvsentinel(push: Push, folder: str, stack: ExitStack) -> Publish:
    from ...exporters.events.health_events import health_events
    from .health_events import Faults, HealthEvents

    receiver = HealthEvents(push.nvsentinel or "", folder)
    sender = BackgroundSender[Faults]("nvsentinel", receiver.send)
    stack.callback(sender.close)
    stack.callback(receiver.close)  # first: it ends a call that hangs

    def publish(report: Report, site: Site) -> None:
        if node := node_name(push, report):
            sender.offer(Faults(node, report.taken_at, health_events(report, site.gate)))

    return publish


def node_name(push: Push, report: Report) -> str | None:
    """The name of the node in Kubernetes: of the configuration, of the pod (NODE_NAME), or its host name."""
    return push.node or os.environ.get("NODE_NAME") or report.node
