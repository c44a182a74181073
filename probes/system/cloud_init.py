"""What cloud-init wrote down about the machine type when the machine was started: no network is asked for it.

The file is there for everybody, and much in it is nobody's business (names, addresses, keys): one value is taken out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

INSTANCE_DATA = "run/cloud-init/instance-data.json"
# Below "ds" stands what the cloud's service said, in its own words (cloud-init, cloudinit/sources/DataSource*.py).
_KEYS = (
    ("ds", "meta_data", "instance_type"),  # EC2, and OpenStack's copy of it
    ("ds", "meta_data", "instance-type"),
    ("ds", "meta_data", "imds", "compute", "vmSize"),  # Azure
    ("ds", "shape"),  # Oracle
)
_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def instance_type(text: str) -> str | None:
    """ "Standard_ND96isr_H100_v5"; None where the cloud does not say: Google's does not"""
    return next((found for _, found in _found(text)), None)


def instance_type_alone(text: str) -> str:
    """A file that holds the type of the instance and no more; of one that is no JSON nothing."""
    try:
        for keys, found in _found(text):
            kept: Any = found
            for key in reversed(keys):
                kept = {key: kept}
            return msgspec.json.encode(kept).decode()
    except ValueError:
        return ""
    return "{}"


def _found(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Where a type stands, and which it is."""
    try:
        everything = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError("is not JSON") from None
    for keys in _KEYS:
        value = everything
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and _TYPE.fullmatch(value):
            yield keys, value
