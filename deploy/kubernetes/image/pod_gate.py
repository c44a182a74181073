"""Init container: decides whether this pod may run on this node.

Usage: pod_gate.py STATE_FOLDER, with NODE_NAME in the environment. The table [gate] of the site file lists the findings
that close the gate. By default the gate stays open and prints what would close it. Exit code 2: closed; the node is
labelled first, so that gated pods avoid it. After any other error the pod runs, also if the node could not be labelled:
without the label, the pod would fail on this node again and again.
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
from linkgauge.agent.kubernetes.node_condition import camel_case
from linkgauge.models.site.gate import has_room

LABEL, CONDITION = "linkgauge.io/gate-closed", "LinkgaugeClosed"
NODES = "/api/v1/nodes?labelSelector="
_CLOSED = 2
_LONGEST = 63  # characters of a label's value


def decide(seen: GateDecision, cluster: Cluster, node: str, now: datetime) -> tuple[bool, str]:
    """Whether the pod may run, and why. Labels the node if the limit of closed nodes allows it. Raises ApiError."""
    if not seen.closed:
        return True, str(seen)
    gpu_nodes = _nodes(cluster, "nvidia.com/gpu.present=true")
    closed = _nodes(cluster, LABEL)
    if node not in closed and not has_room(node, closed, (), len(gpu_nodes), seen.gate):
        return True, f"open, because {len(closed)} of {len(gpu_nodes)} nodes are closed already; else {seen}"
    close(seen, cluster, node, now)
    return False, str(seen)


def close(seen: GateDecision, cluster: Cluster, node: str, now: datetime) -> None:
    """Set the condition of the node, which has the reason, and the label, which gated pods avoid. Raises ApiError."""
    cause, at = seen.causes[0], now.strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {
        "type": CONDITION,
        "status": "True",
        "reason": camel_case(cause.code),
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


def main() -> None:
    """Print the decision and exit with its code."""
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
