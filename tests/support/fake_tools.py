"""Programs in the place of measuring tools whose hardware is not here: they print what the real ones print."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

# Without site-packages, because a tool has 5 s, and a busy machine starts an interpreter slowly.
# As perftest: a server takes one client, who prints. ARGS is what it was started with.
PERFTEST = """#!{python} -IS
import socket, sys, time
ARGS = sys.argv[1:]
if "--version" in ARGS or "--help" in ARGS:
    print("Version: 6.06\\n{help}")
    sys.exit(1)
port = int(ARGS[ARGS.index("-p") + 1])
if ARGS[-1] != "127.0.0.1":
    with socket.create_server(("", port)) as server:
        server.accept()
    sys.exit(0)
socket.create_connection(("127.0.0.1", port)).close()
with open({log!r}, "a") as log:
    print(*ARGS, file=log)
{does}
"""


def put(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    """A program that is found before all others."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    if not os.environ["PATH"].startswith(f"{folder}:"):
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def perftest(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, does: str, help: str = "") -> Path:
    """A perftest program whose client does that; the file in which its calls are written down."""
    log = folder / "calls"
    text = PERFTEST.replace("{python}", sys.executable).replace("{log!r}", repr(str(log)))
    put(folder, monkeypatch, name, text.replace("{help}", help).replace("{does}", does))
    return log
