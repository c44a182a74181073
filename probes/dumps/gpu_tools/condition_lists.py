"""Conditions of a Kubernetes node as YAML: `kubectl get node -o yaml`, parts of it, and the list of a problem detector.

kubernetes/api, NodeCondition: type, status, reason and message, in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_ITEM = re.compile(r"(?P<indent>[ \t]{0,24}- )?[ \t]{0,26}(?P<key>[A-Za-z]{4,20}):[ ]{1,4}(?P<value>\S.{0,400})?$")
_KEYS = ("message", "reason", "status", "type", "lastHeartbeatTime", "lastTransitionTime")
_WHOLE = {"type", "status", "reason"}
_FEWEST = "status: "  # a text of every list


def conditions(text: str) -> Iterator[tuple[Mapping[str, str], int]]:
    """The conditions, each with the number of its first line (from 0)."""
    if _FEWEST not in text or "type: " not in text:
        return
    found: dict[str, str] = {}
    first = 0
    for number, line in enumerate(text.split("\n")):
        item = _ITEM.match(line)
        known = item is not None and item["key"] in _KEYS
        if found and (not known or (item and (item["indent"] or item["key"] in found))):
            if found.keys() >= _WHOLE:
                yield found, first
            found = {}
        if known and item:
            first = first if found else number
            found[item["key"]] = (item["value"] or "").strip().strip("\"'")
    if found.keys() >= _WHOLE:
        yield found, first
