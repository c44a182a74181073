"""All PromQL of `linkgauge fleet`. A query returns the series of some instances, so that no answer is too large."""

from __future__ import annotations

import re
from collections.abc import Sequence

NODES = 'linkgauge_node_info{node!=""}'
# Targets without an answer in each job that has a node, and in the job of the shipped rules (deploy/prometheus).
SILENT = 'up == 0 and on (job) (linkgauge_node_info or up{job="linkgauge"})'

# Rates of flows; the others are traffic of jobs over links.
_FLOWS = 'kind!~"pcie|port|nvlink|xgmi|c2c|memory|interconnect"'
_DEVICES = 'class=~"gpu|nic|nvme|nvswitch|port|netdev|storage|package|numa"'

VERDICTS = "linkgauge_verdict{%s} == 1"
CYCLES = "linkgauge_cycle_timestamp_seconds{%s}"
DEVICES = f"linkgauge_device_info{{%s,{_DEVICES}}}"
TRAINED = 'linkgauge_link_trained_bytes_per_second{%s,kind=~"pcie|port"}'
NVLINKS = 'linkgauge_nvlink_links{%s,state="active"}'
RATES = f"linkgauge_link_observed_bytes_per_second{{%s,{_FLOWS}}}"
FINDINGS = "linkgauge_finding_severity{%s} >= 2"
MESSAGES = "linkgauge_finding_message{%s}"
COSTS = "linkgauge_finding_cost{%s}"
DRAINS = "linkgauge_gate_would_drain{%s}"
IMPACTS = "max by (instance) (linkgauge_impact_slowdown_ratio{%s})"
UNCHECKED = "linkgauge_not_checked{%s}"
UNCORROBORATED = 'linkgauge_corroborated{%s,by="none"} > 0'


def of_instances(query: str, instances: Sequence[str]) -> str:
    """The query for these instances."""
    return query % f'instance=~"{"|".join(map(_literal, instances))}"'


def _literal(name: str) -> str:
    """A name in a regular expression of RE2, in a quoted string of PromQL."""
    pattern = re.sub(r"([.*+?^${}()|\[\]\\])", r"\\\1", name)
    return pattern.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
