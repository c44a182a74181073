"""A scontrol of many nodes that stores each field of a node in a file and logs every call."""

from __future__ import annotations

import os
from pathlib import Path

_SCONTROL = """#!/bin/sh
# Fields are files; "show" prints what scontrol of Slurm 22.05 prints, shortened. One call at a time, as slurmctld.
exec 9> {folder}/lock
flock 9
cd {folder}/nodes || exit 1
echo "$*" >> {folder}/calls
show() {{
  [ -d "$1" ] || {{ echo "Node $1 not found"; exit 1; }}
  read -r state < "$1/State"
  printf 'NodeName=%s Arch=x86_64 CoresPerSocket=1 \\n   State=%s ThreadsPerCore=1 TmpDisk=0\\n' "$1" "$state"
  for field in Reason Comment Extra; do
    [ -s "$1/$field" ] && {{ read -r text < "$1/$field"; printf '   %s=%s\\n' "$field" "$text"; }}
  done
  echo
}}
case "$1 $2" in
"show node") show "$3" ;;
"--all show") for node in *; do show "$node"; done ;;
update*)
  shift
  name=${{1#NodeName=}}
  shift
  for pair; do
    key=${{pair%%=*}} value=${{pair#*=}}
    case "$key $value" in
    "State DRAIN") value=IDLE+DRAIN ;;
    "State RESUME") value=IDLE; : > "$name/Reason" ;;
    Reason*) value="$value [root@$(date +%s)]" ;;
    esac
    printf '%s\\n' "$value" > "$name/$key"
    [ "$value" ] || : > "$name/$key"
  done
  ;;
*) exit 1 ;;
esac
"""


class Cluster:
    """The nodes of a scontrol script in the folder."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        """All nodes are idle."""
        self.folder, self.program = folder, folder / "scontrol"
        for name in names:
            (folder / "nodes" / name).mkdir(parents=True)
            self.put(name, State="IDLE")
        self.program.write_text(_SCONTROL.format(folder=folder))
        os.chmod(self.program, 0o755)

    def put(self, name: str, **fields: str) -> None:
        for field, text in fields.items():
            (self.folder / "nodes" / name / field).write_text(f"{text}\n" if text else "")

    def get(self, name: str, field: str) -> str:
        path = self.folder / "nodes" / name / field
        return path.read_text().strip() if path.exists() else ""

    @property
    def drained(self) -> list[str]:
        return sorted(
            path.name for path in (self.folder / "nodes").iterdir() if "DRAIN" in self.get(path.name, "State")
        )

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []
