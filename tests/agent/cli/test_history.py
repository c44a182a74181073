"""`linkgauge history`: thirty days of a service, and its errors."""

from __future__ import annotations

import json
import time
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from linkgauge.agent.cli.main import main
from linkgauge.agent.state.history_file import FILE, Writer
from linkgauge.models.facts.units import as_utc, from_utc
from linkgauge.models.inventory.inventory import Inventory, Item
from linkgauge.models.report import Level
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.small_nodes import observation
from tests.support.screens import screen

DAY = 86400.0
STATES = {0: "healthy", 10: "nic", 11: "healthy", 20: "pcie"}  # day: the node of tests/support/screens.py


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["history", *words], prog_name="linkgauge")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Hourly copies to two GPUs; from day 20 on gpu1 is 3 % slower."""
    folder = tmp_path_factory.mktemp("state")
    writer, random, now = Writer(str(folder)), Random(3), time.time()
    for hour in range(30 * 24):
        at = now - 30 * DAY + (hour + 1) * 3600
        report = screen(STATES[max(day for day in STATES if day <= hour / 24)])
        slow = 1 - 0.03 * (hour >= 20 * 24)
        rates = {"gpu0": 55e9 * random.gauss(1, 0.002), "gpu1": 55e9 * random.gauss(1, 0.002) * slow}
        levels = tuple(
            Level(op="copy", ends=("numa0", gpu), observed=rate, observed_at=as_utc(at)) for gpu, rate in rates.items()
        )
        run = [replace(observation(level.flow, "rate", level.observed or 0.0), at=at) for level in levels]
        writer.add(replace(report, levels=levels), at, run)
    writer.close()
    return folder


def test_states_and_rates(folder: Path) -> None:
    lines = run("--state-dir", str(folder), "--since", "31d").output.splitlines()
    assert [line.partition("Z  ")[2] or line for line in lines[:8]] == [
        "HISTORY  this node  4 states, 2 measured flows",
        "ok",
        "ok -> failed",
        "    new  critical nic-port-down: mlx5_4/1 (3c:00.0) is down (DOWN/Polling)",
        "failed -> ok",
        "    gone critical nic-port-down: mlx5_4/1 (3c:00.0) is down (DOWN/Polling)",
        "ok -> failed",
        "    new  critical pcie-link-narrow: gpu1 (module 2, 1e:00.0) runs on x8 of x16",
    ]
    assert [line[:41] for line in lines[9:12]] == [
        "flow (GB/s)                         rates",
        "copy numa0-gpu0                       720",
        "copy numa0-gpu1                       720",
    ]
    assert lines[12].endswith(": 55.0 GB/s -> 53.4 GB/s (-3.0%)")


def test_one_device(folder: Path) -> None:
    lines = run("gpu0", "--state-dir", str(folder)).output.splitlines()
    assert [line.partition("Z  ")[2] or line.split("  ")[0] for line in lines] == [
        "HISTORY",
        "ok",
        "",
        "flow (GB/s)",
        "copy numa0-gpu0",
    ]
    absent = run("gpu9", "--state-dir", str(folder))
    assert (absent.exit_code, absent.output.startswith("Error: gpu9: no device, finding or rate of this")) == (64, True)


def test_json_has_the_start_of_a_change(folder: Path) -> None:
    found = json.loads(run("gpu1", "--state-dir", str(folder), "--format", "json").output)
    (rates,) = found["rates"]
    assert (found["schema"], len(found["states"]), len(rates["rates"])) == ("linkgauge.history/1", 2, 720)
    assert time.time() - from_utc(rates["change"]["start"]) == pytest.approx(10 * DAY, abs=DAY)


def test_a_picture(folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "rates.svg"
    assert run("gpu1", "--state-dir", str(folder), "--plot", str(picture)).exit_code == 0
    assert picture.read_text().startswith("<svg ")


def test_errors_name_the_remedy(tmp_path: Path, folder: Path) -> None:
    absent = run("--state-dir", str(tmp_path))
    assert absent.exit_code == 64
    assert "history.sqlite3: No such file or directory. Start the service with 'systemctl start" in absent.output
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    damaged = run("--state-dir", str(tmp_path))
    assert (damaged.exit_code, "not a database. 'systemctl restart linkgauge'" in damaged.output) == (64, True)
    assert run("--state-dir", str(folder), "--since", "3x").exit_code == 64


def test_changes_of_the_hardware(tmp_path: Path) -> None:
    gpu = Item(kind="gpu", key="0000:18:00.0", alias="gpu0", name="H100", identity="a", firmware="96.00")
    writer = Writer(str(tmp_path))
    for at, changed in ((10.0, gpu), (20.0, replace(gpu, firmware="96.01")), (30.0, replace(gpu, identity="b"))):
        writer.add_inventory(Inventory(taken_at=at, devices=(changed,)))
    writer.close()
    assert run("--state-dir", str(tmp_path), "--since", "40000d").output.splitlines() == [
        "HISTORY  this node  0 states, 0 measured flows",
        "1970-01-01T00:00:20Z  firmware gpu0 (H100, 0000:18:00.0): 96.00 -> 96.01",
        "1970-01-01T00:00:30Z  swapped gpu0 (H100, 0000:18:00.0)",
    ]
    assert run("0000:18:00.0", "--state-dir", str(tmp_path), "--since", "40000d").output.count("gpu0 (H100") == 2
    assert run("gpu1", "--state-dir", str(tmp_path), "--since", "40000d").exit_code == 64


def test_the_service_writes_it(tmp_path: Path) -> None:
    node = Node(tmp_path)
    for _ in range(3):
        node.cycle()
    lines = run("--state-dir", str(tmp_path), "--since", "4000d").output.splitlines()
    assert lines[0] == "HISTORY  hgx  1 state, 0 measured flows"
    assert lines[1].endswith("Z  ok")
