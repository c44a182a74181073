"""`linkgauge fabric`: mistakes of the user are one line with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main

SECRET = {"LINKGAUGE_FABRIC_TOKEN": "0123456789abcdef"}
MPIRUN = {**SECRET, "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("words", "variables", "message"),
    [
        ([], {}, "$LINKGAUGE_FABRIC_TOKEN: a secret of at least 16 characters, the same on all nodes: openssl rand"),
        (["--token-file", "short"], SECRET, "--token-file short: a secret of at least 16 characters"),
        (["--token-file", "none"], SECRET, "--token-file none: No such file or directory"),
        ([], SECRET, "--hosts a,b,c coordinates nodes, --join HOST is a node; or start it with srun or mpirun"),
        (["--hosts", "a"], SECRET, "--hosts a: at least two nodes are required, in a file or as a,b,c"),
        (["--hosts", "a,b", "--join", "c"], SECRET, "--hosts and --join exclude each other"),
        (["--join", "a:b"], SECRET, "--join 'a:b': write HOST or HOST:PORT"),
        (["--hosts", "a,b", "--budget", "3 h"], SECRET, "--budget '3 h': seconds are written 30s"),
        (["--hosts", "a,b", "--topology", "short"], SECRET, "--topology short: neither topology.conf, topology.yaml"),
        (["--hosts", "a,b", "--at", "192.0.2.1", "--wait", "1"], SECRET, "cannot listen at 192.0.2.1 port 18510"),
        (["--join", "127.0.0.1:1", "--wait", "1"], SECRET, "no connection to the coordinator 127.0.0.1 port 1 within"),
        ([], MPIRUN, "--at HOST: name the node of rank 0, because mpirun does not tell it"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str], variables: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", *SECRET):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short").write_text("secret\n")
    found = CliRunner(env=variables).invoke(main, ["fabric", *words], prog_name="linkgauge")
    assert found.exit_code == 64
    assert found.output.splitlines()[-1].startswith(f"Error: {message}")
