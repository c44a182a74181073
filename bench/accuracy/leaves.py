"""Nodes on two leaf switches: network namespaces on two bridges, with links whose rates tc limits. Needs root.

    python -m bench.accuracy.leaves [SEEDS [NODES]]   # linkgauge fabric under mpirun, for each kind of fault

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
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from bench.accuracy.fabrics import KINDS, drawn
from linkgauge.models.fabric.localization import Part
from linkgauge.models.fabric.wiring import Wiring

RATE = 60.0  # Mbit/s: little for a processor, so that its load does not decide
_SWITCH = f"lgf{os.getpid()}s"
_TOKEN = "0123456789abcdef0123456789abcdef"


class Unavailable(Exception):
    """The reason why the namespaces are not available."""


def namespace(number: int) -> str:
    """The namespace of a node."""
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
            shutil.rmtree(_locks(name), ignore_errors=True)


def _node(number: int, leaf: int, slow: Mapping[Part, float]) -> None:
    name, port = namespace(number), f"p{number}"
    _locks(name).mkdir(exist_ok=True)
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


def _locks(name: str) -> Path:
    """The folder of locks of a node: one machine is several nodes, which measure at the same time."""
    return Path(tempfile.gettempdir()) / name


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def command(number: int, nodes: int, *options: str) -> list[str]:
    """A node of the measurement in its namespace. Rank 0 prints the report as JSON."""
    rank = {"SLURM_PROCID": number, "SLURM_STEP_NUM_TASKS": nodes, "LINKGAUGE_FABRIC_TOKEN": _TOKEN}
    variables = [f"{key}={value}" for key, value in {**rank, "LINKGAUGE_LOCK_DIR": _locks(namespace(number))}.items()]
    inside = ["ip", "netns", "exec", namespace(number), "env", *variables]
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
    return [
        subprocess.Popen(command(number, nodes, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for number in range(nodes)
    ]


def under_mpirun(nodes: int, *options: str) -> Any:
    """The report of a run that mpirun starts."""
    script = " ".join(["exec", *command(0, nodes, *options)])
    for variable in ("SLURM_PROCID=0 ", f"SLURM_STEP_NUM_TASKS={nodes} "):
        script = script.replace(variable, "")
    inside = script.replace(f"{namespace(0)} env", f"lgf{os.getpid()}n$OMPI_COMM_WORLD_RANK env")
    inside = inside.replace("--name node0", "--name node$OMPI_COMM_WORLD_RANK")
    inside = inside.replace(f"/{namespace(0)} ", f"/lgf{os.getpid()}n$OMPI_COMM_WORLD_RANK ")
    launch = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", str(nodes), "sh", "-c", inside]
    done = subprocess.run(launch, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"no report: {done.stdout[-2000:]} {done.stderr[-2000:]}") from None


def subjects(report: Any) -> set[tuple[str, str]]:
    """Kind and name of each cause."""
    return {(one["kind"], "-".join(one["names"])) for one in report["causes"]}


def shares(kind: str, nodes: int, seed: int) -> tuple[Mapping[Part, float], set[tuple[str, str]]]:
    """A drawn fault as shares of RATE, and the causes to be found."""
    from bench.accuracy import fabrics

    fabric, wanted = drawn(kind, nodes, Random(seed))
    return {part: rate / fabrics.RATE for part, rate in fabric.slow.items()}, wanted


def main(seeds: int, sizes: Sequence[int]) -> None:
    """Print the share of right results for each kind of fault and number of nodes."""
    with tempfile.TemporaryDirectory() as folder:
        for nodes in sizes:
            path = str(topology(Path(folder), nodes))
            for kind in KINDS:
                right, began = 0, time.monotonic()
                for seed in range(seeds):
                    slow, wanted = shares(kind, nodes, seed)
                    with leaves(nodes, slow):
                        found = subjects(under_mpirun(nodes, "--seconds", "0.3", "--topology", path))
                    right += found == wanted
                    if found != wanted:
                        print(f"    seed {seed}: {sorted(found)} in place of {sorted(wanted)}")
                print(f"{nodes:3} nodes  {kind:<11}  {right}/{seeds}  {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, [int(one) for one in sys.argv[2:]] or [8, 16])
