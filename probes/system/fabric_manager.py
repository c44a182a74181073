"""The call `fabric_manager`: the version that NVIDIA's fabric manager prints. It runs in a child: it may hang."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from ...models.facts.machine import Service
from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import Evidence, NotChecked, Record
from ..calls.timeouts import no_answer
from ..parsing.parsers import shown
from .services import BINARY, DEADLINE, FABRIC_MANAGER

_VERSION = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,5}){1,3}")


def version(program: str = f"/{BINARY}") -> Iterator[Record]:
    """Yield the `Service` with the version of "Fabric Manager version is : 570.124.06"."""
    try:
        done = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE - 1,
        )
    except (OSError, subprocess.SubprocessError) as error:
        yield NotChecked(
            what="Service.version",
            subject=FABRIC_MANAGER,
            reason=reason_of(error.errno) if isinstance(error, OSError) else Reason.NO_ANSWER,
            path=f"{program} --version",
            detail=str(error.strerror) if isinstance(error, OSError) else no_answer(DEADLINE - 1),
        )
        return
    found = _VERSION.search(done.stdout)
    if found:
        line = next(line for line in done.stdout.splitlines() if found[0] in line)
        yield Service(key=FABRIC_MANAGER, version=found[0], cites={"version": Evidence(program, line[:200])})
    else:
        yield NotChecked(
            what="Service.version",
            subject=FABRIC_MANAGER,
            reason=Reason.UNREADABLE,
            path=f"{program} --version",
            detail=f"{shown(done.stdout or done.stderr)} names no version",
        )
