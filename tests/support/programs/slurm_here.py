"""A real Slurm on this machine: munged, slurmctld, and a slurmd for each node, in a folder of the test."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socket import socket

NEEDED = ("munged", "slurmctld", "slurmd", "scontrol", "srun")
_NODE = "NodeName=node{number} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1"
_PATIENCE = 300.0  # only ends a hang: eight nodes take 45 s on two quiet cores, and twice that beside other tests
_CONF = """\
ClusterName=linkgauge
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/save
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
HealthCheckInterval=3
PrologFlags=Alloc
HealthCheckProgram={scripts}/health_check
Prolog={scripts}/prolog
Epilog={scripts}/epilog
TaskProlog={scripts}/task_prolog
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""


def missing() -> str | None:
    """The reason why Slurm cannot run here, or None."""
    absent = [name for name in NEEDED if not shutil.which(name)]
    if absent:
        return f"not installed: {', '.join(absent)}"
    return None if os.geteuid() == 0 else "slurmd and the state of its node need root"


class SlurmHere:
    """The cluster. Its methods use Slurm's commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf")}

    def ask(self, *command: str) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_PATIENCE, env=self.environment
        )
        return done.stdout + done.stderr

    def node(self, name: str = "node0") -> str:
        return self.ask("scontrol", "show", "node", name)

    def until(self, holds: Callable[[str], bool], name: str = "node0") -> str:
        """The description of the node as soon as it meets the condition."""
        end = time.monotonic() + _PATIENCE
        while not holds(description := self.node(name)):
            log = self.folder / "slurmctld.log"
            assert time.monotonic() < end, (
                f"{description}\n{log.read_text() if log.exists() else 'slurmctld has not begun'}"
            )
            time.sleep(0.2)
        return description


@contextmanager
def slurm(folder: Path, scripts: Path, nodes: int = 1) -> Iterator[SlurmHere]:
    """The cluster for the duration of the block. `scripts` contains the programs that it calls."""
    folder.mkdir()
    (folder / "key").write_bytes(os.urandom(1024))
    os.chmod(folder / "key", 0o600)
    first, *others = _free_ports(1 + nodes)
    lines = "\n".join(_NODE.format(number=number, port=port) for number, port in enumerate(others))
    (folder / "slurm.conf").write_text(_CONF.format(folder=folder, scripts=scripts, port=first, nodes=lines))
    here = SlurmHere(folder)
    files = {"key-file": "key", "socket": "munge.sock", "pid-file": "munge.pid", "log-file": "munge.log"}
    munge = [f"--{option}={folder / name}" for option, name in {**files, "seed-file": "munge.seed"}.items()]
    with ExitStack() as stack:
        for command in (
            ["munged", "-F", "--force", *munge],
            ["slurmctld", "-D", "-c"],
            *(["slurmd", "-D", "-N", f"node{number}"] for number in range(nodes)),
        ):
            stack.enter_context(_running(command, here.environment, folder))
        for number in range(nodes):
            here.until(lambda description: "State=IDLE" in description, f"node{number}")
        yield here


@contextmanager
def _running(command: list[str], environment: dict[str, str], folder: Path) -> Iterator[None]:
    with (
        open(folder / f"{command[0]}{command[-1] if '-N' in command else ''}.out", "wb") as out,
        subprocess.Popen(command, stdout=out, stderr=out, env=environment) as process,
    ):
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
