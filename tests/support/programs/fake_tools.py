"""Programs that replace measuring tools without their hardware. They print the output of the real tools."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# Without site-packages, because a tool has 5 s, and a busy machine starts an interpreter slowly.
# perftest: a server accepts one client, and the client prints. ARGS are the arguments.
PERFTEST = """#!{python} -IS
import socket, sys, time
ARGS = sys.argv[1:]
if "--version" in ARGS or "--help" in ARGS:
    print("Version: 6.06\\n{help}")
    sys.exit(1)
port = int(ARGS[ARGS.index("-p") + 1])
if ARGS[-1] != "127.0.0.1":
    bound = ARGS[ARGS.index("--bind_source_ip") + 1] if "--bind_source_ip" in ARGS else ""
    with open({log!r}, "a") as log:
        print("server", bound or "everywhere", file=log)
    with socket.create_server((bound, port)) as server:
        server.accept()
    sys.exit(0)
socket.create_connection(("127.0.0.1", port)).close()
with open({log!r}, "a") as log:
    print(*ARGS, file=log)
{does}
"""


def put(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """Install a program that comes first on PATH."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    if not os.environ["PATH"].startswith(f"{folder}:"):
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def perftest(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, does: str, help: str = "") -> Path:
    """Install a perftest program with this client output. Returns the file with its calls."""
    log = folder / "calls"
    text = PERFTEST.replace("{python}", sys.executable).replace("{log!r}", repr(str(log)))
    put(folder, monkeypatch, name, text.replace("{help}", help).replace("{does}", does))
    return log
