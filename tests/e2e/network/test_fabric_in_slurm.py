"""deploy/slurm/fabric.sbatch in a real Slurm: a slurmd for each network namespace, a reservation, and a slow port."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import pytest

from bench.accuracy.networks.leaves import Unavailable, address, leaves, locks, namespace, topology
from linkgauge.agent.state import status_file
from linkgauge.models.fabric.fabric_localization import Part
from linkgauge.models.site.schema import Site
from tests.support.nodes.described import node, report_of
from tests.support.programs import slurm_here
from tests.support.programs.slurm_scripts import FOLDER

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NODES = 4
SLOW = "node2"
SITE = '[gate]\nenforce = true\ncodes = ["node-slow"]\ndisable_file = "{folder}/disabled"\n'
# What each node runs as linkgauge: in its namespace, with a state folder and locks of its own.
PROGRAM = """\
#!/bin/sh
export PYTHONPATH={path} LINKGAUGE_LOCK_DIR={locks}
command=$1; shift
case $command in
fabric) exec ip netns exec {namespace} {python} -m linkgauge fabric --at {first} --name "$SLURMD_NODENAME" \
  --seconds 0.3 --force "$@" ;;
gate) exec {python} -m linkgauge gate --site {folder}/site.toml --state-dir {folder}/"$SLURMD_NODENAME" "$@" ;;
esac
"""


def installed(folder: Path) -> Path:
    """The program of all nodes, empty scripts for Slurm, and the state of a service that finds nothing on each node."""
    scripts = folder / "bin"
    scripts.mkdir()
    for name in ("health_check", "prolog", "epilog", "task_prolog"):
        (scripts / name).write_text("#!/bin/sh\n")
    number = "${SLURMD_NODENAME#node}"
    text = PROGRAM.format(
        path=shlex.quote(":".join(sys.path)),
        python=shlex.quote(sys.executable),
        namespace=namespace(number),
        locks=locks(namespace(number)),
        first=address(0),
        folder=folder,
    )
    (scripts / "linkgauge").write_text(text)
    for path in scripts.iterdir():
        path.chmod(0o755)
    (folder / "site.toml").write_text(SITE.format(folder=folder))
    for one in range(NODES):
        (folder / f"node{one}").mkdir()
        status_file.write(str(folder / f"node{one}"), report_of(node("hgx-h100"), Site()), time.time(), 15.0, {})
    return scripts


def test_the_node_with_a_slow_port_is_drained(tmp_path: Path) -> None:
    if why := slurm_here.missing():
        pytest.skip(why)
    slow = {Part("port", SLOW, "send"): 0.4, Part("port", SLOW, "receive"): 0.4}
    try:
        with leaves(NODES, slow), slurm_here.slurm(tmp_path / "slurm", installed(tmp_path), NODES) as slurm:
            slurm.environment["PATH"] = f"{tmp_path / 'bin'}:{slurm.environment['PATH']}"
            slurm.environment["SLURM_CONF_DIR"] = str(topology(tmp_path, NODES).parent)
            reserve = "reservationname=test starttime=now duration=10 users=root nodes=ALL"
            slurm.ask("scontrol", "create", *reserve.split())
            output = tmp_path / "job.out"
            job = slurm.job(
                "--reservation=test", f"--nodes={NODES}", f"--output={output}", f"--chdir={tmp_path}",
                str(FOLDER / "fabric.sbatch"), str(tmp_path / "fabric.json"),
            )  # fmt: skip
            states = {f"node{number}": slurm.node(f"node{number}") for number in range(NODES)}
            drained = {name for name, text in states.items() if "DRAIN" in text}
            assert drained == {SLOW}, f"{job}\n{output.read_text() if output.exists() else ''}\n{slurm.logs()}"
            assert f"Reason=linkgauge: node-slow {SLOW}" in states[SLOW]
    except Unavailable as why:
        pytest.skip(str(why))
