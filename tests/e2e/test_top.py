"""`linkgauge top` on a terminal: traffic, keys, another size, lost devices, and its end."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from linkgauge.probes.host.recorded import dump
from tests.support.mounts import needs_terminals
from tests.support.nodes.described import BROKEN, node
from tests.support.nodes.trees import write
from tests.support.programs.terminal import Terminal, on_a_terminal
from tests.support.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, needs_terminals]

KEYS = "q quit  p pause"


def rise(root: Path, port: str, counter: str, by: int) -> None:
    """Let a counter of an RDMA port rise."""
    file = root / f"sys/class/infiniband/{port}/ports/1/counters/{counter}"
    written = file.with_name("written")
    written.write_text(f"{int(file.read_text()) + by}\n")
    written.replace(file)


def test_a_session(tmp_path: Path) -> None:
    write(tmp_path, node("hgx-h100").entries)
    with on_a_terminal("top", "--root", str(tmp_path), "--interval", "100ms") as terminal:
        until(lambda: "mlx5_2/1" in terminal.text)
        assert "only files are read under --root" in terminal.text
        until(lambda: bool(re.search(r"mlx5_2/1 +port +0 B/s", terminal.text)))

        def is_busy() -> bool:
            rise(tmp_path, "mlx5_2", "port_xmit_data", 10**6)
            return bool(re.search(r"mlx5_2/1 +port +0 B/s +[0-9.]+ [kMGT]B/s", terminal.text))

        until(is_busy)
        rise(tmp_path, "mlx5_2", "symbol_error", 3)
        until(lambda: "+3 symbol_error" in terminal.text)
        (tmp_path / "sys/class/infiniband/mlx5_3").unlink()
        until(lambda: bool(re.search(r"mlx5_3/1 .* lost$", terminal.text, re.MULTILINE)))
        terminal.resize(15, 60)
        until(lambda: terminal.shown.get(15, "").startswith(KEYS) and max(terminal.shown) == 15)
        assert max(map(len, terminal.shown.values())) <= 60
        terminal.press("t")
        until(lambda: "NUMA node 0" in terminal.text)
        terminal.press("/eth0\r")
        until(lambda: "filter: eth0" in terminal.text and "mlx5_2/1" not in terminal.text)
        terminal.press("p")
        until(lambda: "PAUSED" in terminal.text)
        terminal.press("q")
        assert terminal.ended() == 0
        assert terminal.written.endswith("\x1b[?25h\x1b[?1049l")


@pytest.mark.parametrize(
    "end",
    [lambda terminal: terminal.press("\x03"), lambda terminal: os.kill(terminal.pid, signal.SIGTERM)],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_its_end_restores_the_terminal(end: Callable[[Terminal], None], tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    with on_a_terminal("top", "--root", str(tmp_path)) as terminal:
        until(lambda: KEYS in terminal.text)
        assert terminal.settings != terminal.before
        end(terminal)
        until(lambda: "\x1b[?1049l" in terminal.written)
        until(lambda: terminal.settings == terminal.before)
        assert terminal.ended() == 0


@pytest.mark.parametrize(("colour", "escapes"), [("1", False), ("", True)])
def test_the_report_on_a_terminal(colour: str, escapes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the width of the terminal, and colours unless NO_COLOR forbids them."""
    capture = tmp_path / "node"
    capture.write_text(dump(node("hgx-h100", BROKEN)))
    with on_a_terminal("diagnose", "--from", str(capture), columns=64, NO_COLOR=colour) as terminal:
        assert terminal.ended() == 2
    assert ("\x1b[1;31m" in terminal.written) == escapes
    lines = re.sub(r"\x1b\[[0-9;]*m|.*\x1b\[K|\r", "", terminal.written).splitlines()  # without lines of progress
    assert lines[0].startswith("FAILED")
    assert max(map(len, lines)) <= 64
