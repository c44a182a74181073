"""DeviceTaintRules (resource.k8s.io/v1, stable in 1.37) for devices with a certain fault.

The names of a device in a driver and its pool are in the ResourceSlices of the node, joined by the standard attribute
resource.kubernetes.io/pciBusID.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

from ...models.report import SEVERITIES, Finding, Report
from .cluster_api import Cluster

Effect: TypeAlias = Literal["None", "NoSchedule", "NoExecute"]
Rules: TypeAlias = Mapping[str, Mapping[str, Any]]

API = "/apis/resource.k8s.io/v1"
_RULES, _SLICES = f"{API}/devicetaintrules", f"{API}/resourceslices"
_KEY = "linkgauge.io/fault"
_BUS_ID = "resource.kubernetes.io/pciBusID"


def faulty_devices(report: Report) -> Mapping[str, str]:
    """PCI address of each device with a certain fault -> the code of its most severe finding."""
    faults: dict[str, str] = {}
    for one in sorted(report.findings, key=lambda one: SEVERITIES.index(one.severity)):
        if _counts(one) and (device := report.topology.find(one.subject.partition("/")[0])):
            faults.setdefault(device.id, one.code)
    return faults


def _counts(finding: Finding) -> bool:
    return finding.silenced is None and finding.severity != "info" and finding.confidence == "certain"


def rules_of(node: str, faults: Mapping[str, str], slices: Iterable[Mapping[str, Any]], effect: Effect) -> Rules:
    """The rules by name: one for each faulty device that a driver publishes."""
    return {
        rule["metadata"]["name"]: rule
        for one in slices
        for device, code in _published(one, faults)
        for rule in [_rule(node, one["spec"], device, code, effect)]
    }


def _published(one: Mapping[str, Any], faults: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The names of the faulty devices in a ResourceSlice, with the code of their finding."""
    for device in one["spec"].get("devices") or ():
        address = device.get("attributes", {}).get(_BUS_ID, {}).get("string", "").lower()
        if address in faults:
            yield device["name"], faults[address]


def _rule(node: str, spec: Mapping[str, Any], device: str, code: str, effect: Effect) -> dict[str, Any]:
    selector = {"driver": spec["driver"], "pool": spec["pool"]["name"], "device": device}
    digest = hashlib.sha256("/".join(selector.values()).encode()).hexdigest()[:16]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": f"linkgauge-{digest}", "labels": _labels(node)},
        "spec": {"deviceSelector": selector, "taint": {"key": _KEY, "value": code[:63], "effect": effect}},
    }


def _labels(node: str) -> dict[str, str]:
    """The labels of the rules of this node. A label has at most 63 characters."""
    return {"app.kubernetes.io/managed-by": "linkgauge", "linkgauge.io/node": node[:63].rstrip("-.")}


def update(cluster: Cluster, node: str, faults: Mapping[str, str], effect: Effect) -> None:
    """Create the missing rules of this node, and delete those of devices without a fault. Raises ApiError."""
    selector = quote(",".join(f"{name}={value}" for name, value in _labels(node).items()))
    present = {one["metadata"]["name"]: one for one in _items(cluster, f"{_RULES}?labelSelector={selector}")}
    slices = _items(cluster, f"{_SLICES}?fieldSelector={quote(f'spec.nodeName={node}')}") if faults else []
    wanted = rules_of(node, faults, slices, effect)
    for name, rule in present.items():
        if name not in wanted or _taint(rule) != _taint(wanted[name]):
            cluster.ask("DELETE", f"{_RULES}/{quote(name)}")
    for name, rule in wanted.items():
        if name not in present or _taint(rule) != _taint(present[name]):
            cluster.ask("POST", _RULES, rule)


def _items(cluster: Cluster, path: str) -> list[Mapping[str, Any]]:
    return list(cluster.ask("GET", path).get("items") or ())


def _taint(rule: Mapping[str, Any]) -> tuple[str, ...]:
    taint = rule["spec"]["taint"]
    return taint["key"], taint.get("value", ""), taint["effect"]
