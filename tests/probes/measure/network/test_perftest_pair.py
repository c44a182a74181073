"""ib_write_bw between two nodes, with a program that prints the output of the real one."""

from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

import pytest

from linkgauge.probes.measure.external_tools import ToolFailed
from linkgauge.probes.measure.network.perftest_pair import client, command, free_port, serve, wait_for
from tests.support.perftest_outputs import RATES, ROW, output
from tests.support.programs.fake_tools import put

TOOL = """#!{python} -IS
import socket, sys
port = int(sys.argv[sys.argv.index("-p") + 1])
if sys.argv[-1] == "127.0.0.1":
    socket.create_connection(("127.0.0.1", port)).close()
    print({text!r})
else:
    socket.create_server(("127.0.0.1", port)).accept()
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    put(folder, monkeypatch, "ib_write_bw", TOOL.replace("{python}", sys.executable).replace("{text!r}", repr(text)))


def test_the_client_has_the_rate_of_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, output("RDMA_Write BW Test", RATES.format("Gb/sec"), ROW))
    port = free_port()
    server = threading.Thread(target=serve, args=("mlx5_0/1", port, 1 << 30, 60.0))
    server.start()
    wait_for(port)
    assert client("mlx5_0/1", "127.0.0.1", port, 1 << 30, 60.0) == pytest.approx(391.85e9 / 8)
    server.join()
    assert command("mlx5_0/2", 7, 1 << 30)[1:] == [
        *("-F", "--report_gbits", "-d", "mlx5_0", "-i", "2", "-p", "7", "-s", "1048576", "-n", "256")
    ]


def test_an_output_without_a_result_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "Couldn't initialize ROCm device")
    no_result = pytest.raises(ToolFailed, match="its output contains no result")
    with socket.create_server(("127.0.0.1", 0)) as server, no_result:
        client("mlx5_0", "127.0.0.1", server.getsockname()[1], 1, 60.0)
