"""Nodes on two leaf switches: network namespaces on two bridges, with links whose rates tc limits. Needs root.

    python -m bench.accuracy.networks.leaves mpirun|srun [SEEDS [NODES ...]]  # for each kind of fault

Each namespace is a node with the device eth0. All ports have the rate RATE in both directions, and the uplink between
the bridges has enough for all of them, except for the parts that are slow.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import Any

from bench.accuracy.networks.fabrics import KINDS, drawn
from bench.accuracy.networks.fabrics import RATE as HEALTHY
from linkgauge.models.fabric.fabric_localization import Part
from linkgauge.models.fabric.wiring import Wiring

RATE = 60.0  # Mbit/s: little for a processor, so that its load does not decide
_SWITCH = f"lgf{os.getpid()}s"
_TOKEN = "0123456789abcdef0123456789abcdef"


class Unavailable(Exception):
    """The reason why the namespaces are not available."""


def namespace(number: int | str) -> str:
    """The namespace of a node. The number may be a variable of a shell."""
    return f"lgf{os.getpid()}n{number}"


def address(number: int) -> str:
    """The address of a node."""
    return f"10.77.0.{number + 1}"


def wiring(nodes: int) -> Wiring:
    """The leaf of each node."""
    return Wiring({f"node{number}": f"leaf{2 * number // nodes}" for number in range(nodes)})


@contextmanager
def leaves(nodes: int, slow: Mapping[Part, float]) -> Iterator[None]:
    """The namespaces. `slow`: part -> its share of RATE. Raises Unavailable."""
    if os.geteuid() or not all(map(shutil.which, ("ip", "tc"))):
        raise Unavailable("needs root and iproute2")
    try:
        if refused := subprocess.run(["ip", "netns", "add", _SWITCH], capture_output=True, text=True).stderr:
            raise Unavailable(f"no network namespaces: {refused.strip()}")
        for leaf in ("leaf0", "leaf1"):
            _run("ip", "-n", _SWITCH, "link", "add", leaf, "type", "bridge")
            _run("ip", "-n", _SWITCH, "link", "set", leaf, "up")
        _run("ip", "-n", _SWITCH, "link", "add", "up0", "type", "veth", "peer", "name", "up1")
        for number, (way, back) in enumerate((("send", "receive"), ("receive", "send"))):
            shares = [slow.get(Part("uplink", "leaf0", way)), slow.get(Part("uplink", "leaf1", back))]  # type: ignore[arg-type]
            _attach(f"up{number}", f"leaf{number}", min([one for one in shares if one] or [float(nodes)]))
        for number in range(nodes):
            _node(number, 2 * number // nodes, slow)
        yield
    finally:
        for name in (_SWITCH, *map(namespace, range(nodes))):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
            shutil.rmtree(locks(name), ignore_errors=True)


def _node(number: int, leaf: int, slow: Mapping[Part, float]) -> None:
    name, port = namespace(number), f"p{number}"
    locks(name).mkdir(exist_ok=True)
    _run("ip", "netns", "add", name)
    _run("ip", "link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", port, "netns", _SWITCH)
    _run("ip", "-n", name, "addr", "add", f"{address(number)}/24", "dev", "eth0")
    for device in ("lo", "eth0"):
        _run("ip", "-n", name, "link", "set", device, "up")
    _limit(name, "eth0", slow.get(Part("port", f"node{number}", "send"), 1.0))
    _attach(port, f"leaf{leaf}", slow.get(Part("port", f"node{number}", "receive"), 1.0))


def _attach(device: str, leaf: str, share: float) -> None:
    _run("ip", "-n", _SWITCH, "link", "set", device, "master", leaf, "up")
    _limit(_SWITCH, device, share)


def _limit(where: str, device: str, share: float) -> None:
    limit = ("rate", f"{share * RATE:.3f}mbit", "burst", "32kb", "latency", "30ms")
    _run("tc", "-n", where, "qdisc", "replace", "dev", device, "root", "tbf", *limit)


def locks(name: str) -> Path:
    """The folder of locks of a node: one machine is several nodes, which measure at the same time."""
    return Path(tempfile.gettempdir()) / name


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def command(number: int | str, variables: Mapping[str, object], options: Sequence[str]) -> list[str]:
    """A node of the measurement in its namespace. Rank 0 prints the report as JSON."""
    added = {"LINKGAUGE_FABRIC_TOKEN": _TOKEN, "LINKGAUGE_LOCK_DIR": locks(namespace(number)), **variables}
    inside = ["ip", "netns", "exec", namespace(number), "env", *(f"{key}={value}" for key, value in added.items())]
    words = ["--at", address(0), "--name", f"node{number}", "--force", "--format", "json", *options]
    return [*inside, sys.executable, "-m", "linkgauge", "fabric", *words]


def topology(folder: Path, nodes: int) -> Path:
    """Slurm's topology.conf of the two leaves."""
    leaf = wiring(nodes).leaves
    lines = [
        f"SwitchName={name} Nodes={','.join(node for node, its in leaf.items() if its == name)}"
        for name in ("leaf0", "leaf1")
    ]
    path = folder / "topology.conf"
    path.write_text("\n".join([*lines, "SwitchName=spine Switches=leaf[0-1]", ""]))
    return path


def started(nodes: int, *options: str) -> list[subprocess.Popen[str]]:
    """All nodes, without a launcher."""
    ranks = [{"SLURM_PROCID": number, "SLURM_STEP_NUM_TASKS": nodes} for number in range(nodes)]
    return [
        subprocess.Popen(command(number, rank, options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number, rank in enumerate(ranks)
    ]


def launched(launcher: Sequence[str], variable: str, options: Sequence[str]) -> Any:
    """The report of a run of mpirun or srun, which set the rank as this variable."""
    script = " ".join(["exec", *command(f"${variable}", {}, options)])
    done = subprocess.run([*launcher, "sh", "-c", script], capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"no report: {done.stdout[-2000:]} {done.stderr[-2000:]}") from None


@contextmanager
def slurm(folder: Path) -> Iterator[None]:
    """A Slurm on this machine, whose commands this process uses."""
    from tests.support.programs import slurm_here

    scripts = folder / "scripts"
    scripts.mkdir()
    for name in ("health_check", "prolog", "epilog", "task_prolog"):
        (scripts / name).write_text("#!/bin/sh\n")
        (scripts / name).chmod(0o755)
    with slurm_here.slurm(folder / "slurm", scripts) as here:
        os.environ.update(here.environment)
        yield


def subjects(report: Any) -> set[tuple[str, str]]:
    """Kind and name of each cause that is a fault."""
    return {(one["kind"], "-".join(one["names"])) for one in report["causes"] if not one["shared"]}


def shares(kind: str, nodes: int, seed: int) -> tuple[Mapping[Part, float], set[tuple[str, str]]]:
    """A drawn fault as shares of RATE, and the causes to be found."""
    fabric, wanted = drawn(kind, nodes, Random(seed))
    return {part: rate / HEALTHY for part, rate in fabric.slow.items()}, wanted


def main(launcher: str, seeds: int, sizes: Sequence[int], folder: Path) -> None:
    """Print the share of right results for each kind of fault and number of nodes."""
    for nodes in sizes:
        options = ("--seconds", "0.3", "--topology", str(topology(folder, nodes)))
        count = ("-n", str(nodes))
        launch, variable = {
            "mpirun": (("mpirun", "--allow-run-as-root", "--oversubscribe", *count), "OMPI_COMM_WORLD_RANK"),
            "srun": (("srun", "--immediate=60", "--overcommit", *count), "SLURM_PROCID"),
        }[launcher]
        for kind in KINDS:
            right, began = 0, time.monotonic()
            for seed in range(seeds):
                slow, wanted = shares(kind, nodes, seed)
                with leaves(nodes, slow):
                    found = subjects(launched(launch, variable, options))
                right += found == wanted
                if found != wanted:
                    print(f"    seed {seed}: {sorted(found)} in place of {sorted(wanted)}", flush=True)
            print(f"{nodes:3} nodes  {kind:<11}  {right}/{seeds}  {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    _, how, *numbers = sys.argv
    with tempfile.TemporaryDirectory() as name, slurm(Path(name)) if how == "srun" else nullcontext():
        main(how, int((numbers or ["20"])[0]), [int(one) for one in numbers[1:]] or [8, 16], Path(name))
