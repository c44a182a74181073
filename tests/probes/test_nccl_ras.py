"""NCCL's RAS subsystem over TCP: which ranks a report names, also if the server is old, slow, cut off or hangs."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner, Result

from linkgauge.agent.cli.main import main
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.agent.pipeline.source import Source
from linkgauge.models.diagnosis.headlines import action
from linkgauge.models.facts.job_ranks import Rank
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.models.site.schema import Site
from linkgauge.probes import nccl_ras
from linkgauge.probes.host.live import Live
from linkgauge.probes.host.recorded import dump
from linkgauge.probes.nccl_ras import address_of, read_ras
from tests.support.dump_samples import SAMPLES
from tests.support.nodes.described import node
from tests.support.peers.prometheus_server import free_port
from tests.support.peers.ras_server import as_bytes, job, ras_server

NARROW = "\n[device.gpu5]\nwidth = 8\n"
FIVE = ["10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4", "127.0.0.1"]  # the last one is this machine
ASKED = ["CLIENT PROTOCOL 2", "TIMEOUT 2", "SET FORMAT json", "VERBOSE STATUS"]


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_ras, "sleep", lambda seconds: None)


def records(report: bytes | Mapping[str, Any], *later: Mapping[str, Any], formats: bool = True) -> list[Record]:
    """The records of a server that sends this report, and another one for each further query."""
    answers = [one if isinstance(one, bytes) else as_bytes(one) for one in (report, *later)]

    def sent(query: int) -> Iterator[bytes]:
        yield answers[min(query, len(answers)) - 1]

    with ras_server(sent, formats) as (address, said):
        found = list(read_ras(address_of(address), Live("/")))
    assert all(lines == ASKED for lines in said)
    return found


def ranks(found: list[Record]) -> list[tuple[Any, ...]]:
    return [(one.number, one.state, one.gpu, one.here, one.launched) for one in found if isinstance(one, Rank)]


def reasons(found: list[Record]) -> list[tuple[str, str]]:
    return [(one.reason.value, one.why) for one in found if isinstance(one, NotChecked)]


def test_a_late_rank_is_joined_with_its_gpu_and_the_finding_about_its_link() -> None:
    with ras_server(lambda query: iter([as_bytes(job(FIVE, {37: 812, 3: 811}, dead=[20]))])) as (address, said):
        ras = Source("nccl_ras", lambda host: read_ras(address_of(address), Live("/")))
        report = diagnose(node("hgx-h100", NARROW), (*SOURCES, ras), measure_nothing, Site()).report
    assert [lines == ASKED for lines in said] == [True, True]
    (narrow,) = report.findings
    assert (narrow.code, narrow.fact) == ("pcie-link-narrow", "runs on x8 of x16; rank 37 is late")
    assert narrow.message.endswith(
        "; rank 37 (gpu5) is late: it has launched 812 AllReduce operations, most ranks 815, unchanged for 1 s"
    )
    assert [one.why for one in report.not_checked if one.what == "Rank"] == [
        "not known to use a GPU of this node: rank 20 (GPU 4 of 10.1.0.3) is dead; rank 3 (GPU 3 of 10.1.0.1) is late: "
        "it has launched 811 AllReduce operations, most ranks 815, unchanged for 1 s"
    ]


def test_a_rank_of_a_gpu_without_a_finding_is_a_symptom() -> None:
    with ras_server(lambda query: iter([as_bytes(job(FIVE, {}, dead=[37]))])) as (address, _):
        ras = Source("nccl_ras", lambda host: read_ras(address_of(address), Live("/")))
        report = diagnose(node("hgx-h100"), (*SOURCES, ras), measure_nothing, Site()).report
    assert (report.verdict, action(report)) == ("unknown", "inspect")
    assert [one.message for one in report.findings] == ["rank 37 (gpu5) is dead; no finding concerns gpu5 or its links"]


def test_ranks_of_other_hosts_say_nothing_about_this_node() -> None:
    with ras_server(lambda query: iter([as_bytes(job(FIVE, {}, dead=[3]))])) as (address, _):
        ras = Source("nccl_ras", lambda host: read_ras(address_of(address), Live("/")))
        report = diagnose(node("hgx-h100"), (*SOURCES, ras), measure_nothing, Site()).report
    assert (report.verdict, report.findings) == ("ok", ())


def test_a_rank_that_moves_on_between_two_queries_is_not_late() -> None:
    assert ranks(records(job(FIVE, {37: 812}), job(FIVE, {37: 900}, counted=903))) == []
    assert ranks(records(job(FIVE, {37: 812}), job(FIVE, {37: 812}, counted=903))) == [(37, "late", 5, True, 812)]
    assert ranks(records(job(FIVE, {37: 812}), job(FIVE, {}))) == []


def test_without_a_majority_nobody_is_late() -> None:
    assert ranks(records(job(FIVE, dict.fromkeys(range(20), 812)))) == []
    assert ranks(records(job(FIVE, {3: 816}))) == []  # one that is ahead makes no other late


def test_a_server_that_knows_no_json_reports_as_text() -> None:
    text = (SAMPLES / "jobs/nccl_ras/verbose.txt").read_bytes()
    found = records(text, formats=False)
    assert ranks(found) == [
        (33, "dead", 1, False, None),
        (34, "dead", 2, False, None),
        (46, "unresponsive", 6, False, None),
        (12, "failed", 4, False, None),
        (3, "absent", 3, False, None),
        (4, "absent", 4, False, None),
        (5, "aborted", 5, False, None),
        (37, "late", 5, False, 812),
        (38, "late", 6, False, 0),
    ]
    assert reasons(found) == []


def test_a_report_in_single_bytes() -> None:
    def slowly(query: int) -> Iterator[bytes]:
        yield from (bytes([one]) for one in as_bytes(job(["127.0.0.1"], {}, dead=[2], per_host=4)))

    with ras_server(slowly) as (address, _):
        assert ranks(list(read_ras(address_of(address), Live("/")))) == [(2, "dead", 2, True, None)]


def test_a_report_that_is_cut_off_names_the_ranks_before_the_cut() -> None:
    whole = as_bytes(job(FIVE, {1: 3}, dead=[37]))
    found = records(whole[: whole.index(b'"rank": 38')])
    assert ranks(found) == [(1, "late", 1, False, 3)]
    assert [reason for reason, _ in reasons(found)] == ["incomplete", "incomplete"]
    assert [reason for reason, _ in reasons(records(b""))] == ["incomplete"]


def test_a_report_that_contradicts_itself_is_incomplete() -> None:
    report = job(["127.0.0.1"], {}, per_host=4)
    report["communicators"][0]["ranks"][1]["rank"] = 0
    why = "communicator a9b4c2d1e0f38765 has 4 ranks, and the report lists 3 of them"
    assert [why in text for _, text in reasons(records(report))] == [True]


def test_a_server_that_hangs_or_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nccl_ras, "_SECONDS", 0.3)
    ended = Event()

    def hanging(query: int) -> Iterator[bytes]:
        yield b"{"
        ended.wait(60)

    with ras_server(hanging) as (address, _):
        found = reasons(list(read_ras(address_of(address), Live("/"))))
        ended.set()
    assert [reason for reason, _ in found][0] == "no-answer"
    (refused,) = reasons(list(read_ras(("127.0.0.1", free_port()), Live("/"))))
    assert refused[1].endswith("Connection refused")
    with socket.create_server(("127.0.0.1", 0)) as closing:
        ras = partial(read_ras, closing.getsockname()[:2], Live("/"))
        closing.listen(0)
        assert [reason for reason, _ in reasons(list(ras()))] == ["no-answer"]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost", ("localhost", 28028)),
        ("node7:1234", ("node7", 1234)),
        ("[::1]:28028", ("::1", 28028)),
        ("[::1]", ("::1", 28028)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "node").write_text(dump(node("hgx-h100", NARROW)))

    def command(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["diagnose", "--brief", "--from", str(path), *arguments])

    with ras_server(lambda query: iter([as_bytes(job(["10.1.0.1"], {5: 812}))])) as (address, _):
        done = command("--ras", address)
        monkeypatch.setenv("NCCL_RAS_ADDR", address)
        assert command("--ras").output == done.output
    assert done.exit_code == 2
    assert "runs on x8 of x16; rank 5 is late: power-cycle" in done.output
    wrong = command("--ras", "localhost:x")
    assert (wrong.exit_code, "--ras localhost:x: give HOST:PORT" in wrong.stderr) == (64, True)
