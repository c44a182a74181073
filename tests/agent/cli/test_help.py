"""`linkgauge --help`, and errors that name what the user wrote."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.commands import GROUPS, START
from linkgauge.agent.cli.main import main
from linkgauge.agent.inputs import site_file
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.service import config


def test_the_help_groups_the_commands() -> None:
    text = CliRunner().invoke(main, ["--help"], prog_name="linkgauge").output
    titles = [line.rstrip(":") for line in text.splitlines() if line and not line.startswith(" ")]
    assert titles[-len(GROUPS) - 1 :] == ["Start with", *GROUPS]
    assert [line for line in text.splitlines() if line.startswith("  linkgauge ")] == [
        f"  {command:<22}  {purpose}" for command, purpose in START
    ]


def test_every_command_is_in_one_group() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    assert main.list_commands(click.Context(main)) == sorted(grouped)


def test_an_error_in_a_default_file_names_the_file_and_the_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    site, settings = tmp_path / "site.toml", tmp_path / "linkgauge.toml"
    site.write_text("fabric = 1\n")
    settings.write_text("cycel = '2s'\n")
    monkeypatch.setattr(site_file, "SITE", str(site))
    monkeypatch.setattr(config, "CONFIG", str(settings))
    with pytest.raises(BadInput, match=f"^{site}: fabric: expected"):
        site_file.site(None)
    with pytest.raises(BadInput, match=f"^{settings}: cycel"):
        config.read_config(None)
