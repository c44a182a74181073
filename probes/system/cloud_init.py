"""The machine type that cloud-init recorded at boot. No network request is necessary.

All users can read the file. It also contains private data (names, addresses, keys), so only one value is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

INSTANCE_DATA = "run/cloud-init/instance-data.json"
# "ds" contains the unchanged metadata of the cloud's service (cloud-init, cloudinit/sources/DataSource*.py).
_KEYS = (
    ("ds", "meta_data", "instance_type"),  # EC2, and OpenStack's copy of it
    ("ds", "meta_data", "instance-type"),
    ("ds", "meta_data", "imds", "compute", "vmSize"),  # Azure
    ("ds", "shape"),  # Oracle
)
_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def instance_type(text: str) -> str | None:
    """Return the machine type, "Standard_ND96isr_H100_v5"; None if the metadata has none, for example at Google."""
    return next((found for _, found in _found(text)), None)


def instance_type_alone(text: str) -> str:
    """Return the file reduced to the instance type; an empty text if it is not JSON."""
    try:
        for keys, found in _found(text):
            reduced: Any = found
            for key in reversed(keys):
                reduced = {key: reduced}
            return msgspec.json.encode(reduced).decode()
    except ValueError:
        return ""
    return "{}"


def _found(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the keys and the value of each instance type. Raises ValueError if the text is not JSON."""
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
