"""A real Slurm on this machine: munged, slurmctld, and a slurmd for each node, in a folder of the test."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory, gettempdir

NEEDED = ("munged", "slurmctld", "slurmd", "scontrol", "srun")
_NODE = "NodeName=node{number} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1"
_PATIENCE = 300.0  # seconds; only ends a hang
_LINES = 30  # of each log in the message of a failure
_ENDED = re.compile(r"JobState=(?!PENDING|CONFIGURING|RUNNING|SUSPENDED)\w+")
_CONF = """\
ClusterName=linkgauge
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={sockets}/munge.sock
StateSaveLocation={folder}/save
SlurmdSpoolDir={sockets}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerParameters=sched_min_interval=0
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
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_PATIENCE, env=self.environment
            )
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"{late}\n{self.logs()}") from None
        return done.stdout + done.stderr

    def node(self, name: str = "node0") -> str:
        return self.ask("scontrol", "show", "node", name)

    def until(self, holds: Callable[[str], bool], name: str = "node0") -> str:
        """The description of the node as soon as it meets the condition."""
        return self._until(holds, "scontrol", "show", "node", name)

    def job(self, *words: str) -> str:
        """Submit a batch job, and return its description after its end.

        `sbatch --wait` would ask for its state after 2, 6, 12, 20, 30, 42... seconds.
        """
        number = self.ask("sbatch", "--parsable", *words).strip()
        assert number.isdecimal(), number
        return self._until(lambda told: _ENDED.search(told) is not None, "scontrol", "show", "job", number)

    def _until(self, holds: Callable[[str], bool], *command: str) -> str:
        end = time.monotonic() + _PATIENCE
        while not holds(told := self.ask(*command)):
            assert time.monotonic() < end, f"{told}\n{self.ask('scontrol', 'show', 'step')}\n{self.logs()}"
            time.sleep(0.2)
        return told

    def logs(self) -> str:
        """The last lines of the logs and outputs of all daemons."""
        paths = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        texts = ((path.name, path.read_text(errors="replace").splitlines()[-_LINES:]) for path in paths)
        return "\n".join(line for name, lines in texts if lines for line in (f"--- {name}", *lines))


@contextmanager
def alone() -> Iterator[None]:
    """Only one of the clusters of Slurm, and of the tests that need a machine without slurmd, runs at a time."""
    with Path(gettempdir(), "linkgauge-tests-slurmd.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def slurm(folder: Path, scripts: Path, nodes: int = 1) -> Iterator[SlurmHere]:
    """The cluster for the duration of the block. `scripts` contains the programs that it calls.

    The path of a socket has at most 107 bytes (unix(7)), and folders of pytest-xdist are longer. slurmd then starts no
    job, and the controller holds it.
    """
    folder.mkdir()
    (folder / "key").write_bytes(os.urandom(1024))
    os.chmod(folder / "key", 0o600)
    first, *others = _free_ports(1 + nodes)
    lines = "\n".join(_NODE.format(number=number, port=port) for number, port in enumerate(others))
    here = SlurmHere(folder)
    with alone(), TemporaryDirectory(prefix="slurm", dir="/tmp") as sockets, ExitStack() as stack:
        text = _CONF.format(folder=folder, sockets=sockets, scripts=scripts, port=first, nodes=lines)
        (folder / "slurm.conf").write_text(text)
        files = {"key-file": folder / "key", "socket": Path(sockets, "munge.sock")}
        files |= {name: folder / f"munge.{name.partition('-')[0]}" for name in ("pid-file", "log-file", "seed-file")}
        for command in (
            ["munged", "-F", "--force", *(f"--{option}={path}" for option, path in files.items())],
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
