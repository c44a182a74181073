"""Escape sequences in the names of files do not reach the terminal through error messages and warnings."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main

TITLE = "\x1b]0;PWN\x07\x1b[31mred\nOK"
SHOWN = r"\x1b]0;PWN\x07\x1b[31mred OK"


def archive(folder: Path, name: str, member: str) -> Path:
    """An archive with a capture that was cut."""
    content = b"linkgauge capture 1\nrubbish\n"
    with tarfile.open(folder / name, "w") as made:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        made.addfile(info, io.BytesIO(content))
        made.addfile(tarfile.TarInfo("n/another"))
    return folder / name


@pytest.mark.parametrize("command", ["diagnose", "topology", "gate"])
def test_the_name_of_a_file_that_does_not_exist(tmp_path: Path, command: str) -> None:
    option = "--fabric" if command == "gate" else "--from"
    done = CliRunner().invoke(main, [command, option, f"{tmp_path}/{TITLE}"])
    assert done.exit_code == 64
    assert SHOWN in done.output
    assert "\x1b" not in done.output


def test_the_name_of_a_file_in_an_archive(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["diagnose", "--from", str(archive(tmp_path, "n.tar", f"n/{TITLE}"))])
    assert (done.exit_code, done.output.startswith(f"Error: --from n.tar/n/{SHOWN}: ")) == (64, True)


def test_the_name_of_an_unread_file_in_a_warning(tmp_path: Path) -> None:
    (tmp_path / TITLE).write_bytes(bytes(range(32)) * 40)
    (tmp_path / "dmesg.txt").write_text("[    1.0] pci 0000:1e:00.0: BAR 0: assigned\n")
    done = CliRunner().invoke(main, ["topology", "--from", str(tmp_path)])
    assert f"{SHOWN}: a binary file" in done.stderr
    assert "\x1b" not in done.output


def test_an_unknown_word() -> None:
    done = CliRunner().invoke(main, [TITLE])
    assert done.exit_code == 64
    assert "\x1b" not in done.output
