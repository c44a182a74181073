"""Variables of the collective library in the environment of this process and in NCCL's file for all jobs.

An environment contains secrets: only variables of models/catalog/settings.toml are read and recorded. NCCL takes a
value from /etc/nccl.conf if the environment has none (NCCL src/misc/param.cc).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...models.catalog.settings import settings
from ...models.facts.machine import Setting
from ...models.facts.records import Evidence
from ..host.host import Host, Unreadable

ENVIRON = "proc/self/environ"
_FILES = (ENVIRON, "etc/nccl.conf")
_ASSIGNED = re.compile(r"([A-Z][A-Z0-9_]{0,60})=([!-~][ -~]{0,99})")


def read_variables(host: Host) -> Iterator[Setting]:
    """A setting for each known variable. A file that this process may not read counts as absent."""
    found: dict[str, Setting] = {}
    for path in _FILES:
        try:
            text = host.read(path) or ""
        except Unreadable:
            continue
        for name, value in _known(text):
            evidence = Evidence(path, f"{name}={value}")
            found.setdefault(name, Setting(key=name, value=value, cites={"value": evidence}))
    yield from found.values()


def known_variables(text: str) -> str:
    """Only the variables that settings need."""
    return "\0".join(f"{name}={value}" for name, value in _known(text))


def _known(text: str) -> Iterator[tuple[str, str]]:
    for line in re.split("[\0\n]", text):
        assigned = _ASSIGNED.fullmatch(line.strip())
        row = settings().get(assigned[1]) if assigned else None
        if assigned and row and row.read == "variable":
            yield assigned[1], assigned[2].strip()
