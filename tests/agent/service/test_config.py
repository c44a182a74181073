"""The configuration of the service: valid values, and the messages about others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.inputs import site_file
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.service import config
from linkgauge.agent.service.config import Config, Jobs, Probing, key_of, read_config, seconds
from linkgauge.agent.web.pages import Pages
from linkgauge.agent.web.server import serving

WHOLE = """
listen = ":9841"
web = "/etc/linkgauge/web.yml"
site = "/etc/linkgauge/site.toml"
detail = "links"
cycle = "30s"
cycle_busy = "2m"
slow = "1h"
discovery = "1d"
textfile = "/var/lib/node_exporter/linkgauge.prom"
log = "debug"
log_format = "json"

[probes]
every = "6h"
jitter = "30m"
level = "full"
budget = "30s,20GB"
only = ["host_memory"]
skip = ["disk_read"]

[jobs]
inspector = "/var/lib/node_exporter/nccl_inspector"
"""


def test_every_key(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(WHOLE)
    assert read_config(str(tmp_path / "config")) == Config(
        listen=":9841",
        web="/etc/linkgauge/web.yml",
        site="/etc/linkgauge/site.toml",
        detail="links",
        cycle="30s",
        cycle_busy="2m",
        slow="1h",
        discovery="1d",
        textfile="/var/lib/node_exporter/linkgauge.prom",
        log="debug",
        log_format="json",
        probes=Probing(
            every="6h", jitter="30m", level="full", budget="30s,20GB", only=("host_memory",), skip=("disk_read",)
        ),
        jobs=Jobs(inspector="/var/lib/node_exporter/nccl_inspector"),
    )


def test_nothing_measures_without_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "CONFIG", str(tmp_path / "none"))
    assert read_config(None) == Config()
    (tmp_path / "empty").touch()
    assert read_config(str(tmp_path / "empty")) == Config(listen="127.0.0.1:9841", cycle="15s", probes=Probing())
    assert Config().probes.every is None


def test_the_one_of_the_system_is_read_where_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "linkgauge.toml").write_text('cycle = "1m"')
    monkeypatch.setattr(config, "CONFIG", str(tmp_path / "linkgauge.toml"))
    assert read_config(None) == Config(cycle="1m")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('cycel = "15s"', "unknown key; did you mean cycle?"),
        ("cycle = 15", "cycle: "),
        ('cycle = "0s"', "cycle: "),
        ('cycle = "15 s"', "cycle: "),
        ('detail = "all"', "detail: "),
        ('log = "loud"', "log: "),
        ("[probes]\nbudget = 'much'", "'much': seconds are written 30s, bytes 20GB, both 30s,20GB"),
        ("[probes]\nlevel = 'passive'", "level: "),
        ("cycle =", "Invalid value"),
        ("\0", "a binary file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(BadInput) as wrong:
        read_config(str(tmp_path / "config"))
    assert str(wrong.value).startswith(f"--config {tmp_path / 'config'}")
    assert why in str(wrong.value)


def test_one_that_was_named_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        read_config(str(tmp_path / "none"))


@pytest.mark.parametrize(("time", "long"), [("15s", 15), ("10m", 600), ("6h", 21600), ("1d", 86400)])
def test_times(time: str, long: float) -> None:
    assert seconds(time) == long


@given(st.text(max_size=9))
def test_any_text_is_a_time_or_a_sentence(text: str) -> None:
    if re.fullmatch("[0-9]{1,6}[smhd]", text):
        assert seconds(text) >= 0
    else:
        with pytest.raises(ValueError, match="write 15s, 10m, 6h or 1d"):
            seconds(text)


def test_errors_name_the_file_and_the_key_and_no_option_that_was_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As started by systemd: `linkgauge serve` without options."""
    system, other = tmp_path / "linkgauge.toml", tmp_path / "site.toml"
    monkeypatch.setattr(config, "CONFIG", str(system))
    monkeypatch.setattr(site_file, "SITE", str(other))
    system.write_text("cycel = '2s'")
    with pytest.raises(BadInput, match=f"^{system}: cycel: unknown key"):
        read_config(None)
    system.write_text(f"site = '{tmp_path}/none'\n")
    with pytest.raises(BadInput, match=f"^{system}: site = {tmp_path}/none: No such file"):
        site_file.site(read_config(None).site, given_by=key_of(None, "site"))
    system.write_text("listen = 'here'\n")
    with (
        pytest.raises(BadInput, match=f"^{system}: listen = here: give HOST:PORT"),
        serving(read_config(None).listen, Pages(), given_by=key_of(None, "listen")),
    ):
        pass
    other.write_text("[ignore]\nspeed = 'x'\n")
    with pytest.raises(BadInput, match=rf"^{other}: \[ignore\]: no finding has the code 'speed'"):
        site_file.site(None)
