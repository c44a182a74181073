"""The command line as users run it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# The same call as in the console script.
COMMAND = (
    sys.executable,
    "-c",
    "import sys; from linkgauge.agent.cli.main import main; sys.argv[0] = 'linkgauge'; main()",
)
PATHS = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
Completed = subprocess.CompletedProcess[str]


def linkgauge(*arguments: str, cwd: Path | None = None, **options: Any) -> Completed:
    environment = {**PATHS, **options.pop("env", {})}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    done = subprocess.run([*COMMAND, *arguments], cwd=cwd, env=environment, text=True, timeout=60, **options)
    assert "Traceback" not in (done.stderr or "")
    return done
