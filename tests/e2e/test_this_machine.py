"""The machine that the tests run on: what its own tools show is in the topology, without root, and in its capture."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.live import Live

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NOBODY = 65534
EXIT_CODES = {"ok": 0, "degraded": 1, "failed": 2, "unknown": 3}
COMMAND = ("-c", "from linkgauge.agent.cli.main import main; main()")
NO_STATE = ("--state-dir", "/nonexistent/linkgauge")  # a service of this machine may know an earlier inventory
PATHS = {"PATH": os.defpath, "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.fixture(scope="module")
def devices() -> set[str]:
    """The ids of all devices in the topology."""
    host = Live()
    snapshot = assemble((record for reader in SOURCES for record in collect(reader, host)), Site(), host.now())
    return {device.id for device in snapshot.topology.devices}


def shown_by(*command: str) -> str:
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed")
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if shown.returncode:
        pytest.skip(f"{' '.join(command)}: {shown.stderr.strip()}")  # no PCI bus, no block devices in this container
    return shown.stdout


def test_every_pci_function_of_lspci(devices: set[str]) -> None:
    assert {line.split()[0] for line in shown_by("lspci", "-D", "-n").splitlines()} - devices == set()


def test_every_network_device_of_ip(devices: set[str]) -> None:
    """ "4: eth0: <BROADCAST,UP> ...", "5: eth1@if6: ..." """
    names = {line.split()[1].rstrip(":").partition("@")[0] for line in shown_by("ip", "-o", "link").splitlines()}
    assert names - devices == set()


def test_every_disk_and_partition_of_lsblk(devices: set[str]) -> None:
    """Empty ones too: a zram device without memory, a card reader without a card."""
    assert set(shown_by("lsblk", "-l", "-n", "-o", "NAME").split()) - devices == set()


def test_every_numa_node_of_lstopo(devices: set[str]) -> None:
    xml = ElementTree.fromstring(shown_by("lstopo", "--of", "xml"))
    names = {f"numa{node.get('os_index')}" for node in xml.iterfind(".//object[@type='NUMANode']")}
    assert names - devices == set()


def test_root_is_not_needed() -> None:
    """Nobody gets the same topology from the same sources; of what he cannot read, he learns how to get it."""
    if os.geteuid() != 0:
        pytest.skip("the tests do not run as root: the others here have shown it")
    python = reachable_python()
    ours, theirs = report("diagnose", "--passive"), report("diagnose", "--passive", python=python, user=NOBODY)
    assert theirs["topology"] == ours["topology"]
    assert [(run["name"], run["ok"]) for run in theirs["runs"]] == [(run["name"], True) for run in ours["runs"]]
    assert [lost for lost in theirs["not_checked"] if lost not in ours["not_checked"] and not lost["how"]] == []


def test_a_capture_gives_the_same_report(tmp_path: Path) -> None:
    capture = str(tmp_path / "this.capture")
    for _ in range(10):  # other tests mount file systems, attach disks and create network devices
        subprocess.run([sys.executable, *COMMAND, "capture", capture], env=PATHS, check=True, timeout=60)
        then, now = steady(report("diagnose", "--from", capture)), steady(report("diagnose", "--passive"))
        if then == now:
            break
    assert then == now


def reachable_python() -> str:
    """An interpreter of our version that everybody may run, with our libraries."""
    for python in (sys.executable, shutil.which(f"python3.{sys.version_info.minor}", path=os.defpath)):
        try:
            command = [python or "", "-c", "import linkgauge.agent.cli.main"]
            subprocess.run(command, env=PATHS, user=NOBODY, group=NOBODY, extra_groups=[], check=True, timeout=60)
        except (OSError, subprocess.CalledProcessError):
            continue
        return python or ""
    pytest.skip(f"user {NOBODY} may not read this program, its libraries or {sys.executable}")


def report(*arguments: str, python: str = sys.executable, user: int | None = None) -> Any:
    drop: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    command = [python, *COMMAND, *arguments, *NO_STATE, "--format", "json"]
    done = subprocess.run(command, env=PATHS, capture_output=True, text=True, timeout=60, **drop)
    found = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (EXIT_CODES[found["verdict"]], "")
    return found


def steady(found: Any) -> Any:
    """The report without what differs from one moment to the next, and from a machine to its capture."""
    observed = [(one["about"], one["quantity"]) for one in found["observations"] if one["quantity"] != "link_speed"]
    runs = [(run["name"], run["ok"]) for run in found["runs"]]
    parts = {name: found[name] for name in found if name not in ("node", "source", "taken_at", "seconds")}
    return {**parts, "observations": observed, "runs": runs}
