"""`linkgauge top --url`: readings from the reports of a service, which may stop or be something else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from threading import Event

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from linkgauge.agent.cli.main import main
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.top.service_page import ServiceFeed, fetch
from linkgauge.exporters.metrics.sample import CycleInfo
from linkgauge.models.facts.units import from_utc
from linkgauge.models.report import Report
from linkgauge.models.traffic.view import View, advance
from tests.support.nodes.described import report_of
from tests.support.programs.web_clients import AT, Clock, pages_of, server_of
from tests.support.traffic_nodes import first, second


def taken(answers: Iterable[Report | str], feed: ServiceFeed) -> list[View]:
    """The view after each answer. The service's clock is that of its counters."""
    view, found = View(), []
    for one in answers:
        reading = feed.take([one])
        at = from_utc(one.taken_at) if isinstance(one, Report) and one.taken_at else reading.at
        view = advance(view, replace(reading, at=at))
        found.append(view)
    return found


def test_two_reports_and_a_service_that_stops() -> None:
    pages = pages_of()
    with server_of(pages) as server:
        url = "http://{}:{}/".format(*server.address)
        feed = ServiceFeed(url, 1.0)
        for host in (first(), second()):
            pages.put(report_of(host), CycleInfo(ended=host.now(), seconds=0.25))
            last, report = fetch(url), report_of(host)
            assert (last.topology, last.observations) == (report.topology, report.observations)
            assert [one.why for one in last.not_checked] == [one.why for one in report.not_checked]
    _, view, gone = taken([report_of(first()), report_of(second()), "--url x: Connection refused"], feed)
    rates = {(one.carrier.name, one.carrier.kind): (one.received, one.sent) for one in view.links}
    assert rates["mlx5_2/1", "port"] == (42e9, 2e9)
    assert rates["gpu0", "nvlink"] == (300e9, 350e9)
    assert rates["nvme0n1", "disk"] == (None, None)
    assert (view.node, view.gpus, view.note) == ("hgx", {}, None)
    assert {(one.received, one.sent) for one in gone.links} == {(None, None)}
    assert gone.note == "--url x: Connection refused"
    assert [one.carrier for one in gone.links] == [one.carrier for one in view.links]


def test_rates_have_the_exact_times_of_the_sources() -> None:
    """The times of observations in a report are whole seconds: a rate over a cycle of 3 s would be a third wrong."""
    pages = pages_of()
    with server_of(pages) as server:
        feed = ServiceFeed("http://{}:{}".format(*server.address), 1.0)
    later = report_of(second())
    later = replace(later, runs=tuple(replace(run, at=run.at + 0.5) for run in later.runs))
    _, view = taken([report_of(first()), later], feed)
    assert {one.carrier.name: one.received for one in view.links if one.received} == {
        "gpu0": 600e9 / 2.5,
        "mlx5_2/1": 84e9 / 2.5,
        "eth0": 27000 / 2.5,
    }


def test_a_service_without_cycles_loses_no_device() -> None:
    clock = Clock()
    pages = pages_of(clock=clock)
    with server_of(pages) as server:
        feed = ServiceFeed("http://{}:{}".format(*server.address), 1.0)
        running = fetch("http://{}:{}".format(*server.address))
        clock.now = 1e6
        stopped = fetch("http://{}:{}".format(*server.address))
    before, view = taken([running, stopped], feed)
    assert view.note is not None
    assert view.note.startswith("no cycle since ")
    assert {one.carrier for one in view.links} == {one.carrier for one in before.links}
    assert "lost" not in {one.state for one in view.links}


def test_each_report_is_passed_on_once() -> None:
    clock = Clock()
    pages = pages_of(clock=clock)
    with server_of(pages) as server:
        feed = ServiceFeed("http://{}:{}".format(*server.address), 0.01)
        found: list[Report | str] = []
        end = Event()

        def put(group: int, answer: Report | str) -> None:
            found.append(answer)
            if len(found) == 1:
                later = replace(report_of(second()), taken_at="2026-11-21T03:00:15Z")
                pages.put(later, CycleInfo(ended=from_utc(AT), seconds=0.25))
            elif len(found) == 2:
                clock.now = 1e6  # its loop stops
            else:
                end.set()

        feed.start(put, end)
        assert end.wait(60)
    assert [(one.taken_at, bool(one.topology.devices)) for one in found if isinstance(one, Report)] == [
        (AT, True), ("2026-11-21T03:00:15Z", True), ("2026-11-21T03:00:15Z", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("127.0.0.1:9841", "the address must begin with http:// or https://"),
        ("file:///etc", "the address must begin with http:// or https://"),
        ("http://127.0.0.1:1", "Connection refused"),
        ("http://{}:{}/nothing", "404 Not Found"),
    ],
)
def test_an_address_that_is_wrong(url: str, why: str) -> None:
    with server_of() as server:
        wrong = url.format(*server.address)
        with pytest.raises(BadInput, match=rf"(?s)^--url .*{re.escape(why)}"):
            fetch(wrong)


def test_the_command_has_one_line_for_a_wrong_address(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["top", "--once", "--url", "http://127.0.0.1:1"])
    assert (done.exit_code, done.output) == (64, "Error: --url http://127.0.0.1:1: Connection refused\n")
    done = CliRunner().invoke(main, ["top", "--once", "--url", "http://127.0.0.1:1", "--root", str(tmp_path)])
    assert done.exit_code == 64
    done = CliRunner().invoke(main, ["top"])
    assert (done.exit_code, done.output.splitlines()[-1]) == (
        64,
        "Error: the live view needs a terminal: add --once or --json",
    )
