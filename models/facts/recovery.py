"""The recovery actions that NVIDIA's driver requests for a GPU (nvml.h, nvmlDeviceGpuRecoveryAction_t)."""

from __future__ import annotations

import re
from collections.abc import Mapping

_ACTIONS: Mapping[int, str] = {
    0: "none",
    1: "GPU reset",
    2: "node reboot",
    3: "drain P2P",
    4: "drain and reset",
    6: "bus reset",
    7: "system reboot",
}
_IMEX, _BUS = "recover IMEX domain", "bus reset"
# Release 580 has GPU_RESET_BUS as 5 (nvidia-ml-py 13.580.65 to 13.580.126). Release 595 added RECOVER_IMEX_DOMAIN as 5,
# and release 615 added BUS_RESET as 6 and SYSTEM_REBOOT as 7 (NVML change log; nvidia-ml-py 13.610.43 and 13.615.71).
_FIVE, _IMEX_SINCE = 5, 595
# The driver keeps these for the whole node and reports them for each of its GPUs.
OF_NODE = frozenset(("node reboot", "system reboot", _IMEX))
# "Xid 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)": the words in parentheses.
_WORDS = (
    ("imex", _IMEX),
    ("drain and reset", "drain and reset"),
    ("drain p2p", "drain P2P"),
    ("bus", _BUS),
    ("system reboot", "system reboot"),
    ("node reboot", "node reboot"),
    ("gpu reset", "GPU reset"),
)
_LOGGED = re.compile(r" to 0x[0-9a-fA-F]{1,2} \(([^()]{1,60})\)")


def recovery_action(number: int, release: int | None) -> str | None:
    """The action with this number in this driver release; None if there is none. An unknown release is a new one."""
    if number == _FIVE:
        return _BUS if release is not None and release < _IMEX_SINCE else _IMEX
    return _ACTIONS.get(number)


def logged_action(text: str | None, number: int | None, release: int | None) -> str | None:
    """The action that a log line of Xid 154 requests: by its words, else by its number."""
    found = _LOGGED.search(text or "")
    words = found[1].lower() if found else ""
    by_words = next((action for word, action in _WORDS if word in words), None)
    return by_words or (None if number is None else recovery_action(number, release))


def release_of(version: str | None) -> int | None:
    """The release of a driver version: 580 of "580.95.05"."""
    found = re.match(r"[0-9]{3,4}(?=\.)", version or "")
    return int(found[0]) if found else None
