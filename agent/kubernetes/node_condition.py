"""The node condition LinkgaugeHealthy: True for the verdict ok, False for degraded and failed, else Unknown."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from ...models.diagnosis.headlines import headline
from ...models.diagnosis.verdict import why_unknown
from ...models.facts.units import as_utc
from ...models.report import SEVERITIES, Report, Verdict
from .cluster_api import STRATEGIC, Cluster

TYPE = "LinkgaugeHealthy"
_STATUS: Mapping[Verdict, str] = {"ok": "True", "degraded": "False", "failed": "False", "unknown": "Unknown"}
_HEARTBEAT = 300.0  # seconds between two updates of an unchanged condition, as of the kubelet's own conditions
_LONGEST = 1000  # characters of a message


class Condition(msgspec.Struct, frozen=True):
    """The parts that a change of the node changes."""

    status: str  # "True", "False" or "Unknown"
    reason: str  # one word: "PcieLinkNarrow"
    message: str


STOPPED = Condition("Unknown", "ServiceStopped", "linkgauge serve has stopped, or no longer sets this")


def condition_of(report: Report | None) -> Condition:
    """The condition for a report; None: the service stops. The reason is the code of the most severe finding."""
    if report is None:
        return STOPPED
    if report.verdict == "ok":
        return Condition("True", "LinksWork", "linkgauge found no fault")
    faults = [one for one in report.findings if one.silenced is None and one.severity != "info"]
    if report.verdict == "unknown" or not faults:
        return Condition(_STATUS[report.verdict], "NotJudged", why_unknown(report)[0][:_LONGEST])
    worst = min(faults, key=lambda one: SEVERITIES.index(one.severity))
    more = f" (+{len(faults) - 1})" if len(faults) > 1 else ""
    text = f"{report.verdict}: {headline(worst)}{more}"
    return Condition(_STATUS[report.verdict], camel_case(worst.code), text[:_LONGEST])


def camel_case(code: str) -> str:
    """A finding code as the reason of a condition, which has no hyphens: "PcieLinkNarrow"."""
    return "".join(part.capitalize() for part in code.split("-"))


class NodeCondition:
    """Updates the condition of one node, if it changed or is older than the heartbeat."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._sent: tuple[str, Condition] | None = None  # node and condition
        self._sent_at = 0.0

    def update(self, cluster: Cluster, node: str, condition: Condition) -> bool:
        """Set the condition of the node. Returns whether that was due. Raises ApiError."""
        now = self._now()
        if self._sent == (node, condition) and now - self._sent_at < _HEARTBEAT:
            return False
        path, at = f"/api/v1/nodes/{quote(node)}", as_utc(now)
        shown: dict[str, Any] = {"type": TYPE, **msgspec.structs.asdict(condition), "lastHeartbeatTime": at}
        if _status(cluster.ask("GET", path)) != condition.status:
            shown["lastTransitionTime"] = at
        cluster.ask("PATCH", f"{path}/status", {"status": {"conditions": [shown]}}, STRATEGIC)
        self._sent, self._sent_at = (node, condition), now
        return True


def _status(node: Mapping[str, Any]) -> str | None:
    """The status of the condition that the node has now."""
    conditions = node.get("status", {}).get("conditions") or ()
    return next((one.get("status") for one in conditions if one.get("type") == TYPE), None)
