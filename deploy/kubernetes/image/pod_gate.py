"""Init container: may this pod run on this node? Where not, the node is marked first, so that it does not come back.

pod_gate.py STATE-FOLDER, with NODE_NAME in the environment. What closes a gate stands in the site file, in the table
[gate]; as it ships it closes nothing, and this says what it would close for. Exit code 2: closed. Whatever else goes
wrong, the pod runs: also where the node could not be marked, since the pod would fail here again and again.
"""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from linkgauge.agent.gate import decision
from linkgauge.agent.gate.decision import GateDecision
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.kubernetes.cluster_api import MERGE, STRATEGIC, ApiError, Cluster, here
from linkgauge.models.site.gate import has_room

LABEL, CONDITION = "linkgauge/closed", "LinkgaugeClosed"
NODES = "/api/v1/nodes?labelSelector="
_CLOSED = 2
_LONGEST = 63  # characters of a label's value


def decide(seen: GateDecision, cluster: Cluster, node: str, now: datetime) -> tuple[bool, str]:
    """Whether the pod may run, and why. A node is marked only while few are. Raises ApiError."""
    if not seen.closed:
        return True, str(seen)
    everybody = _nodes(cluster, "nvidia.com/gpu.present=true")
    marked = _nodes(cluster, LABEL)
    if node not in marked and not has_room(node, marked, (), len(everybody), seen.gate):
        return True, f"open, because {len(marked)} of {len(everybody)} nodes are closed already; else {seen}"
    mark(seen, cluster, node, now)
    return False, str(seen)


def mark(seen: GateDecision, cluster: Cluster, node: str, now: datetime) -> None:
    """The label keeps gated pods away (they ask for nodes without it), the condition says why. Raises ApiError."""
    cause, at = seen.causes[0], now.strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": CONDITION,
        "status": "True",
        "reason": _camel(cause.code),
        "message": f"{cause}: {cause.text}",
        "lastHeartbeatTime": at,
        "lastTransitionTime": at,
    }
    path = f"/api/v1/nodes/{quote(node)}"
    cluster.ask("PATCH", f"{path}/status", {"status": {"conditions": [condition]}}, STRATEGIC)
    cluster.ask("PATCH", path, {"metadata": {"labels": {LABEL: cause.code[:_LONGEST]}}}, MERGE)


def _nodes(cluster: Cluster, selector: str) -> list[str]:
    answer: Any = cluster.ask("GET", f"{NODES}{quote(selector)}")
    return [one["metadata"]["name"] for one in answer["items"]]


def _camel(code: str) -> str:
    """A reason has no hyphens."""
    return "".join(part.capitalize() for part in code.split("-"))


def main() -> None:
    """Say it, and leave with the exit code."""
    try:
        seen = decision.decide(None, sys.argv[1])
        allowed, why = True, str(seen)
        if seen.closed:
            allowed, why = decide(seen, here(), os.environ["NODE_NAME"], datetime.now(timezone.utc))
    except (ApiError, BadInput, KeyError, IndexError) as wrong:
        allowed, why = True, f"open, because the gate does not work: {type(wrong).__name__}: {wrong}"
    print(why)
    sys.exit(0 if allowed else _CLOSED)


if __name__ == "__main__":
    main()
