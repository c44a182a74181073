"""Health events for NVSentinel: ten faults and their end over gRPC, on a unix socket, with the public protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.json_format import MessageToDict

from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.service import background_sender
from linkgauge.agent.service.config import Config, Push, read_config
from linkgauge.agent.service.push import close_all, publishers
from linkgauge.models.site.gate import Gate
from linkgauge.models.site.schema import Site
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node
from tests.support.paths import TESTS
from tests.support.peers.health_event_server import PlatformConnector, platform_connector
from tests.support.waiting import until

TEN = """
[device.gpu0]
width = 8
[device.gpu1]
inactive = [3]
[device.gpu2]
gpu = {remap_failed = true}
[device.gpu3]
gpu = {ecc_uncorrected = 2}
[device.gpu4]
gpu = {remap_pending = true, remapped_uncorrectable = 1, recovery = 'GPU reset'}
[device.gpu5]
gpu = {clock_reasons = ['hardware slowdown', 'hardware power brake']}
[device.mlx5_4]
up = false
[device.nvme3]
width = 2
[device.nvme1]
width = 1
[files]
"sys/class/infiniband/mlx5_2/ports/1/rate" = "200 Gb/sec (4X HDR)"
"""
ONE = "\n[device.gpu0]\nwidth = 8\n"
UNAVAILABLE, INVALID = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODE_NAME", raising=False)
    monkeypatch.setattr(background_sender.BackgroundSender.__init__, "__defaults__", ((0.01,),))


@pytest.fixture
def connector(tmp_path: Path) -> Iterator[tuple[str, PlatformConnector]]:
    with platform_connector(tmp_path) as server:
        yield server


@pytest.fixture
def started(
    service: Callable[..., Node], tmp_path: Path, connector: tuple[str, PlatformConnector]
) -> Iterator[Callable[[str], Node]]:
    """A service with this node, which sends to the connector."""
    with ExitStack() as stack:

        def start(further: str, name: str | None = None) -> Node:
            hgx = service(tmp_path)
            hgx.host.recorded = node("hgx-h100", further)
            push = Push(nvsentinel=connector[0], node=name)
            hgx.daemon.publishers = publishers(Config(push=push), str(tmp_path))
            stack.callback(close_all, hgx.daemon.publishers)
            return hgx

        yield start


def known(connector: PlatformConnector) -> list[tuple[str, bool]]:
    """Each event: its check and its first entity, and whether it is a recovery."""
    return [
        (" ".join((one.checkName, *(two.entityValue for two in one.entitiesImpacted[:1]))), one.isHealthy)
        for one in connector.events
    ]


@pytest.mark.slow
def test_ten_faults_and_their_end(
    started: Callable[[str], Node],
    connector: tuple[str, PlatformConnector],
    golden: Callable[[Path, str], None],
) -> None:
    _, server = connector
    hgx = started(TEN)
    hgx.cycle()
    until(lambda: len(server.events) >= 10)
    hgx.cycle(2)  # the same faults again
    faults = {name for name, _ in known(server)}
    assert len(server.events) == len(faults) == 10
    hgx.host.recorded = node("hgx-h100")
    assert any(hgx.cycle().findings == () for _ in range(20))
    until(lambda: len(server.events) >= 20)
    assert sorted(known(server)[10:]) == sorted((name, True) for name in faults)
    several = sorted((_as_json(one) for one in server.events), key=lambda one: (one["checkName"], len(one["metadata"])))
    golden(TESTS / "golden/health_events.json", json.dumps(several, indent=1, sort_keys=True) + "\n")


def _as_json(event: Any) -> dict[str, Any]:
    shown: dict[str, Any] = MessageToDict(
        event, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    if event.isHealthy:
        del shown["generatedTimestamp"]  # of the cycle that no longer shows the fault
    return shown


def test_a_receiver_that_is_unavailable_gets_the_events_later(
    started: Callable[[str], Node], connector: tuple[str, PlatformConnector]
) -> None:
    _, server = connector
    server.refuse = [UNAVAILABLE] * 3
    started(ONE).cycle()
    until(lambda: bool(server.events))
    assert (server.refused, known(server)) == ([1, 1, 1], [("LinkgaugePcieLinkNarrow 0000:1b:00.0", False)])


@pytest.mark.parametrize("status", [grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.PERMISSION_DENIED])
def test_events_are_not_lost_by_a_refusal_that_can_end(
    started: Callable[[str], Node], connector: tuple[str, PlatformConnector], status: grpc.StatusCode
) -> None:
    _, server = connector
    server.refuse = [status]
    started(ONE).cycle()
    until(lambda: bool(server.events))
    assert known(server) == [("LinkgaugePcieLinkNarrow 0000:1b:00.0", False)]


def test_an_event_whose_call_a_stop_ends_is_sent_after_the_restart(
    started: Callable[[str], Node],
    connector: tuple[str, PlatformConnector],
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, server = connector
    server.hangs = True
    hgx = started(ONE)
    hgx.cycle()
    assert server.hanging.wait(60)
    close_all(hgx.daemon.publishers)
    assert "refused" not in caplog.text
    assert "please report it" not in caplog.text
    server.hangs = False
    server.go_on.set()
    until(lambda: len(server.events) == 1)  # the call that ended; its sender does not know that it arrived
    started(ONE).cycle()
    until(lambda: len(server.events) == 2)
    assert known(server) == [("LinkgaugePcieLinkNarrow 0000:1b:00.0", False)] * 2


def test_a_new_receiver_gets_all_faults(
    started: Callable[[str], Node], connector: tuple[str, PlatformConnector], tmp_path: Path
) -> None:
    started(ONE).cycle()
    until((tmp_path / "health-events.json").exists)
    (other := tmp_path / "other").mkdir()
    with platform_connector(other) as (address, server):
        hgx = started(ONE)
        config = Config(push=Push(nvsentinel=address))
        hgx.daemon.publishers = publishers(config, str(tmp_path), hgx.daemon.publishers)  # as a reload
        hgx.cycle()
        until(lambda: bool(server.events))
        assert known(server) == [("LinkgaugePcieLinkNarrow 0000:1b:00.0", False)]
        close_all(hgx.daemon.publishers)


def test_a_damaged_state_file_is_in_the_log(
    started: Callable[[str], Node],
    connector: tuple[str, PlatformConnector],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "health-events.json").write_text("{")
    started(ONE).cycle()
    until(lambda: bool(connector[1].events))
    assert "health-events.json: damaged, or of another version" in caplog.text
    assert "the ends of earlier faults are not sent" in caplog.text


def test_events_that_the_receiver_refuses_are_not_sent_again(
    started: Callable[[str], Node], connector: tuple[str, PlatformConnector], caplog: pytest.LogCaptureFixture
) -> None:
    _, server = connector
    server.refuse = [INVALID]
    hgx = started(ONE)
    hgx.cycle()
    until(lambda: "1 events were refused: INVALID_ARGUMENT: not now" in caplog.text)
    hgx.cycle(3)
    hgx.host.recorded = node("hgx-h100", "\n[device.nvme3]\nwidth = 2\n")
    hgx.cycle(3)
    until(lambda: len(server.events) >= 2)
    assert sorted(known(server)) == [
        ("LinkgaugePcieLinkNarrow 0000:1b:00.0", True),
        ("LinkgaugeStorageLinkSlow 0000:40:00.0", False),
    ]


def test_a_receiver_that_hangs_delays_no_cycle(
    started: Callable[[str], Node], connector: tuple[str, PlatformConnector]
) -> None:
    _, server = connector
    server.hangs = True
    hgx = started(ONE)
    hgx.cycle()
    assert server.hanging.wait(60)
    assert [hgx.cycle().verdict for _ in range(2)] == ["failed"] * 2  # while the first call still hangs
    assert server.batches == []
    server.hangs = False
    server.go_on.set()
    until(lambda: bool(server.events))
    assert known(server) == [("LinkgaugePcieLinkNarrow 0000:1b:00.0", False)]


def test_after_a_restart_only_changes_are_sent(
    started: Callable[[str], Node], connector: tuple[str, PlatformConnector], tmp_path: Path
) -> None:
    _, server = connector
    started(ONE).cycle()
    until((tmp_path / "health-events.json").exists)
    hgx = started("")  # the fault ended while the service was down
    hgx.cycle()
    until(lambda: len(server.events) >= 2)
    assert [healthy for _, healthy in known(server)] == [False, True]


@pytest.mark.parametrize(
    ("gate", "strategies"),
    [
        (Gate(), [2, 2]),
        (Gate(remediate=True, codes=("pcie-link-narrow",)), [1, 2]),  # the disk is not on the list
    ],
)
def test_nothing_is_remediated_that_the_site_file_does_not_list(
    started: Callable[[str], Node], connector: tuple[str, PlatformConnector], gate: Gate, strategies: list[int]
) -> None:
    _, server = connector
    hgx = started(f"{ONE}[device.nvme3]\nwidth = 2\n")
    hgx.daemon.site = Site(gate=gate)
    hgx.cycle()
    until(lambda: len(server.events) >= 2)
    assert [one.processingStrategy for one in sorted(server.events, key=lambda one: one.checkName)] == strategies
    hgx.daemon.site = Site(gate=gate, ignore={"pcie-link-narrow": "known"})
    hgx.cycle()
    until(lambda: len(server.events) >= 3)  # what an operator silences is over, under the same strategy
    assert (server.events[2].isHealthy, server.events[2].processingStrategy) == (True, strategies[0])


def test_the_name_of_the_node(
    started: Callable[..., Node], connector: tuple[str, PlatformConnector], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, server = connector
    monkeypatch.setenv("NODE_NAME", "worker-3")
    started(ONE).cycle()
    until(lambda: bool(server.events))
    assert server.events[0].nodeName == "worker-3"
    started(f"{ONE}[device.nvme3]\nwidth = 2\n", "worker-4").cycle()
    until(lambda: len(server.events) >= 2)
    assert server.events[1].nodeName == "worker-4"


def test_a_reload_replaces_only_what_changed(tmp_path: Path, connector: tuple[str, PlatformConnector]) -> None:
    both = Push(nvsentinel=connector[0], kubernetes=True)
    first = publishers(Config(push=both), str(tmp_path))
    same = publishers(Config(push=both, cycle="30s"), str(tmp_path), first)
    fewer = publishers(Config(push=Push(kubernetes=True)), str(tmp_path), same)
    assert (same, fewer) == (first, first[1:])
    bad = Push(nvsentinel="unix:///run/other.sock")
    assert [one.settings for one in publishers(Config(push=bad), str(tmp_path), fewer)] == [
        ("nvsentinel", "unix:///run/other.sock", None)
    ]
    assert publishers(Config(), str(tmp_path), fewer) == ()


def test_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "config").write_text('[push]\nnvsentinel = "unix:///run/x.sock"\nnode = "n1"\n')
    assert read_config(str(tmp_path / "config")) == Config(push=Push(nvsentinel="unix:///run/x.sock", node="n1"))
    (tmp_path / "config").write_text('[push]\nnvsentinel = "/run/x.sock"\n')
    with pytest.raises(BadInput, match=r"push: nvsentinel: .*unix:///"):
        read_config(str(tmp_path / "config"))
