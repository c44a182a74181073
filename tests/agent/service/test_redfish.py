"""The management controller as a source of the service: seldom read, in the background, and never waited for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from linkgauge.agent.inputs.redfish_file import read_controller
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.service.config import Config, Redfish, read_config
from linkgauge.agent.service.redfish_source import RedfishSource
from linkgauge.models.facts.bmc import BmcLink
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.probes.redfish import Controller
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node
from tests.support.peers.redfish_mockup import controller, mockup
from tests.support.waiting import until

GPU = "0000:1b:00.0"
GOOD = mockup([(GPU, 16, 16)], {0: 16})


def reach(url: str) -> Controller:
    return Controller(url=url, user="reader", password="secret")


def read(source: RedfishSource, of: str = "hgx-h100") -> list[Record]:
    return [one for each in source.sources() for one in each.read(node(of))]


def links(source: RedfishSource, of: str = "hgx-h100") -> list[str]:
    return [one.key for one in read(source, of) if isinstance(one, BmcLink)]


def test_it_is_read_once_in_each_interval() -> None:
    now = [0.0]
    source = RedfishSource(lambda: now[0])
    with controller(GOOD) as (url, asked):
        source.configure(reach(url), 600.0)
        until(lambda: links(source) == [GPU])
        once = len(asked)
        now[0] = 599.0
        assert links(source) == [GPU]
        assert len(asked) == once
        now[0] = 600.0
        read(source)
        until(lambda: len(asked) == 2 * once)


def test_a_device_that_has_left_does_not_come_back() -> None:
    source = RedfishSource(lambda: 0.0)
    with controller(GOOD) as (url, _):
        source.configure(reach(url), 600.0)
        until(lambda: links(source) == [GPU])
    assert links(source, "desktop") == []
    source.configure(None, 600.0)
    assert [len(source.sources()), len(read(source))] == [1, 0]  # its records end


def test_a_reload_during_a_reading_does_not_drop_it() -> None:
    source, go_on = RedfishSource(lambda: 0.0), Event()
    with controller(GOOD, go_on) as (url, asked):
        source.configure(reach(url), 600.0)
        read(source)
        until(lambda: len(asked) == 1)
        source.configure(reach(url), 600.0)
        go_on.set()
        until(lambda: links(source) == [GPU])


def test_nothing_is_asked_without_a_controller() -> None:
    assert RedfishSource().sources() == []


def test_a_controller_that_hangs_delays_no_cycle(service: Callable[..., Node], tmp_path: Path) -> None:
    now, go_on = [0.0], Event()
    hgx = service(tmp_path)
    hgx.daemon.redfish = RedfishSource(lambda: now[0])
    with controller(GOOD, go_on) as (url, asked):
        hgx.daemon.redfish.configure(reach(url), 600.0)
        hgx.cycle()
        until(lambda: len(asked) == 1)
        verdict = hgx.cycle().verdict
        now[0] = 121.0
        report = hgx.cycle()
        assert report.verdict == verdict
        late = [one for one in hgx.daemon.memory.collected["redfish"] if isinstance(one, NotChecked)]
        assert [(one.reason.value, one.detail) for one in late] == [("no-answer", "no complete answer for 121 s")]
        go_on.set()
        until(lambda: links(hgx.daemon.redfish) == [GPU])


def test_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "config").write_text('[redfish]\nfile = "/etc/linkgauge/bmc.toml"\nevery = "1h"\n')
    assert read_config(str(tmp_path / "config")).redfish == Redfish(file="/etc/linkgauge/bmc.toml", every="1h")
    assert Config().redfish.file is None
    (file := tmp_path / "bmc.toml").write_text('user = "reader"\n')
    with pytest.raises(BadInput, match="bmc.toml: url: missing"):
        read_controller(str(file), "linkgauge.toml: [redfish] file =")
