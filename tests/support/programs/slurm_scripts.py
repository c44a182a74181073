"""The scripts of deploy/slurm with test versions of linkgauge, logger and Slurm."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "deploy" / "slurm"
_SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"


class Scripts:
    """A folder of programs that come first on PATH. Each call adds a line to `calls`."""

    def __init__(self, folder: Path) -> None:
        """Install a logger that stores its messages, and Slurm commands that fail."""
        self.folder, self.bin = folder, folder / "bin"
        self.bin.mkdir(parents=True)
        self.program("logger", f"cat >> {folder}/log")
        for command in ("scontrol", "sinfo", "squeue", "scancel", "srun", "sacct"):
            self.program(command, f'echo "{command} $*" >> {folder}/calls; exit 1')

    def program(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def linkgauge(self, **options: str) -> None:
        """Install the real linkgauge. `options` are added to each command that accepts them."""
        added = {"gate": ("site", "state_dir"), "window": ("state_dir",)}
        cases = "\n".join(
            f'{command}) shift; set -- {command} "$@" '
            + " ".join(f"--{name.replace('_', '-')} {shlex.quote(options[name])}" for name in names if name in options)
            + ";;"
            for command, names in added.items()
        )
        main = f"{shlex.quote(sys.executable)} -m linkgauge"
        self.program(
            "linkgauge", f'echo "linkgauge $*" >> {self.folder}/calls\ncase "$1" in\n{cases}\nesac\n{main} "$@"'
        )

    def run(self, script: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [FOLDER / script],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=self.environment(environment),
        )

    def environment(self, further: dict[str, str]) -> dict[str, str]:
        path = f"{self.bin}:{_SYSTEM}"
        locks = os.environ.get("LINKGAUGE_LOCK_DIR", str(self.folder))
        return {"PATH": path, "LINKGAUGE_PATH": path, "LINKGAUGE_LOCK_DIR": locks, **further}

    @property
    def calls(self) -> list[str]:
        return self._lines("calls")

    @property
    def log(self) -> list[str]:
        return self._lines("log")

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []
