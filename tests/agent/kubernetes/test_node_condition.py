"""The node condition and the taints of devices that the service sets, with a stub of the API that checks schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.kubernetes import cluster_api, device_taints
from linkgauge.agent.kubernetes.cluster_api import ApiError, Cluster
from linkgauge.agent.kubernetes.node_condition import Condition, NodeCondition, condition_of
from linkgauge.agent.service import background_sender
from linkgauge.agent.service.config import Config, Push, read_config
from linkgauge.agent.service.push import close_all, publishers
from linkgauge.models.report import Report, Verdict
from tests.support.nodes.daemon_nodes import Node
from tests.support.nodes.described import node, report_of
from tests.support.peers.http_receiver import one_answer
from tests.support.peers.kubernetes_api import Api, cluster_of
from tests.support.waiting import until

NARROW = "\n[device.gpu1]\nwidth = 8\n"
TWO = f"{NARROW}[device.nvme3]\nwidth = 2\n"
HEALTHY = {"type": "LinkgaugeHealthy", "status": "True", "reason": "LinksWork", "message": "linkgauge found no fault"}


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def cluster(api: Api) -> Iterator[Cluster]:
    with cluster_of(api) as cluster:
        yield cluster


def slice_of(*devices: tuple[str, str], driver: str = "gpu.nvidia.com") -> dict[str, Any]:
    """A ResourceSlice of devices with these names and addresses."""
    shown = [
        {"name": name, "attributes": {"resource.kubernetes.io/pciBusID": {"string": address}}}
        for name, address in devices
    ]
    pool = {"name": "worker-3", "generation": 1, "resourceSliceCount": 1}
    return {"spec": {"driver": driver, "pool": pool, "nodeName": "worker-3", "devices": shown}}


@pytest.mark.parametrize(
    ("further", "verdict", "expected"),
    [
        ("", "ok", Condition("True", "LinksWork", "linkgauge found no fault")),
        (
            TWO,
            "failed",
            Condition(
                "False",
                "PcieLinkNarrow",
                "failed: gpu1 (module 2, 1e:00.0) runs on x8 of x16: power-cycle, then reseat (+1)",
            ),
        ),
        (
            "\n[device.nvme3]\nwidth = 2\n",
            "degraded",
            Condition("False", "StorageLinkSlow", "degraded: nvme3 (40:00.0) runs on x2 of x4: reseat the drive"),
        ),
        ("", "unknown", Condition("Unknown", "NotJudged", "Nothing could be judged.")),
    ],
)
def test_a_condition_for_each_verdict(further: str, verdict: Verdict, expected: Condition) -> None:
    report = report_of(node("hgx-h100", further))
    assert condition_of(report if report.verdict == verdict else replace(report, verdict=verdict)) == expected


def test_a_transition_is_a_change_of_the_status_alone(api: Api, cluster: Cluster) -> None:
    now = [0.0]
    condition = NodeCondition(lambda: now[0])
    broken = condition_of(report_of(node("hgx-h100", NARROW)))
    assert condition.update(cluster, "worker-3", Condition("True", "LinksWork", "linkgauge found no fault"))
    at = {"lastHeartbeatTime": "1970-01-01T00:00:00Z", "lastTransitionTime": "1970-01-01T00:00:00Z"}
    assert api.node["status"]["conditions"] == [{**HEALTHY, **at}]
    now[0] = 60.0
    assert condition.update(cluster, "worker-3", broken)
    assert not condition.update(cluster, "worker-3", broken)
    changed = api.node["status"]["conditions"][0]
    assert changed["lastTransitionTime"] == changed["lastHeartbeatTime"] == "1970-01-01T00:01:00Z"
    now[0] = 400.0
    assert condition.update(cluster, "worker-3", broken)  # a heartbeat
    assert NodeCondition(lambda: 500.0).update(cluster, "worker-3", replace_message(broken))  # after a restart
    changed = api.node["status"]["conditions"][0]
    assert (changed["lastTransitionTime"], changed["message"]) == ("1970-01-01T00:01:00Z", "another")
    assert changed["lastHeartbeatTime"] == "1970-01-01T00:08:20Z"


def replace_message(condition: Condition) -> Condition:
    return replace(condition, message="another")


def faults(further: str) -> Report:
    return report_of(node("hgx-h100", further))


def test_rules_taint_devices_that_a_driver_publishes(api: Api, cluster: Cluster) -> None:
    api.slices = [
        slice_of(("gpu-0", "0000:1b:00.0"), ("gpu-1", "0000:1E:00.0")),
        slice_of(("mlx5-4", "0000:3c:00.0"), driver="nic.example"),
    ]
    broken = device_taints.faulty_devices(faults(f"{TWO}[device.mlx5_4]\nup = false\n"))
    assert broken == {
        "0000:1e:00.0": "pcie-link-narrow",
        "0000:3c:00.0": "nic-port-down",
        "0000:40:00.0": "storage-link-slow",
    }
    device_taints.update(cluster, "worker-3", broken, "None")
    assert sorted(rule["spec"]["deviceSelector"]["device"] for rule in api.rules.values()) == ["gpu-1", "mlx5-4"]
    (gpu,) = (one for one in api.rules.values() if one["spec"]["deviceSelector"]["device"] == "gpu-1")
    assert gpu["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "linkgauge",
        "linkgauge.io/node": "worker-3",
    }
    assert gpu["spec"] == {
        "deviceSelector": {"driver": "gpu.nvidia.com", "pool": "worker-3", "device": "gpu-1"},
        "taint": {"key": "linkgauge.io/fault", "value": "pcie-link-narrow", "effect": "None"},
    }
    made = len(api.changes)
    device_taints.update(cluster, "worker-3", broken, "None")
    assert len(api.changes) == made  # nothing changed
    device_taints.update(cluster, "worker-3", broken, "NoSchedule")
    assert {one["spec"]["taint"]["effect"] for one in api.rules.values()} == {"NoSchedule"}
    device_taints.update(cluster, "worker-3", {}, "NoSchedule")
    assert api.rules == {}


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """What ends when the service stops."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def started(
    service: Callable[..., Node], tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, stack: ExitStack
) -> Callable[..., Node]:
    """A service in a pod of this cluster."""
    monkeypatch.setenv("NODE_NAME", "worker-3")
    monkeypatch.setattr(cluster_api, "here", lambda: cluster)
    monkeypatch.setattr(background_sender.BackgroundSender.__init__, "__defaults__", ((0.01,),))

    def start(further: str = "", push: Push = Push(kubernetes=True)) -> Node:  # noqa: B008
        hgx = service(tmp_path)
        hgx.host.recorded = node("hgx-h100", further)
        hgx.daemon.publishers = publishers(Config(push=push), str(tmp_path))
        stack.callback(close_all, hgx.daemon.publishers)
        return hgx

    return start


def status(api: Api) -> str:
    conditions = api.node["status"].get("conditions") or [{"status": ""}]
    return str(conditions[0]["status"])


def test_the_service_sets_the_condition(started: Callable[..., Node], api: Api) -> None:
    hgx = started(NARROW)
    hgx.cycle()
    until(lambda: status(api) == "False")
    hgx.host.recorded = node("hgx-h100")
    assert any(hgx.cycle().verdict == "ok" for _ in range(20))
    until(lambda: status(api) == "True")


def test_a_service_that_stops_says_so(started: Callable[..., Node], api: Api, stack: ExitStack) -> None:
    hgx = started(NARROW)
    hgx.cycle()
    until(lambda: status(api) == "False")
    stack.close()
    until(lambda: status(api) == "Unknown")
    assert api.node["status"]["conditions"][0]["reason"] == "ServiceStopped"


def test_a_service_that_stops_asks_an_api_that_refuses_once(
    started: Callable[..., Node], api: Api, stack: ExitStack
) -> None:
    started().cycle()
    until(lambda: status(api) != "")
    before, api.refuse = len(api.changes), [503]
    stack.close()
    until(lambda: api.refuse == [])
    assert len(api.changes) == before


def test_an_api_that_refuses_is_asked_again(started: Callable[..., Node], api: Api) -> None:
    api.refuse = [503, 403]
    started().cycle()
    until(lambda: status(api) in ("True", "Unknown"))


def test_an_api_that_hangs_delays_no_cycle(started: Callable[..., Node], api: Api) -> None:
    api.hangs = True
    hgx = started(NARROW)
    hgx.cycle()
    assert api.hanging.wait(60)
    assert [hgx.cycle().verdict for _ in range(2)] == ["failed"] * 2
    assert api.changes == []
    api.hangs = False
    api.go_on.set()
    until(lambda: status(api) == "False")


def test_the_service_taints_devices(started: Callable[..., Node], api: Api) -> None:
    api.slices = [slice_of(("gpu-1", "0000:1e:00.0"))]
    hgx = started(NARROW, Push(kubernetes=True, device_taints="None"))
    hgx.cycle()
    until(lambda: len(api.rules) == 1)
    hgx.host.recorded = node("hgx-h100")
    assert any(hgx.cycle().verdict == "ok" for _ in range(20))
    until(lambda: not api.rules)


def test_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "config").write_text('[push]\nkubernetes = true\ndevice_taints = "NoSchedule"\n')
    assert read_config(str(tmp_path / "config")).push == Push(kubernetes=True, device_taints="NoSchedule")
    (tmp_path / "config").write_text('[push]\ndevice_taints = "NoSchedule"\n')
    with pytest.raises(BadInput, match="device_taints without kubernetes = true"):
        read_config(str(tmp_path / "config"))


def test_an_answer_that_is_no_object_is_a_refusal() -> None:
    with pytest.raises(ApiError):
        Cluster("http://127.0.0.1:1").ask("GET", "/api/v1/nodes/worker-3")
    with one_answer(b"SSH-2.0-OpenSSH_9.2\r\n") as url, pytest.raises(ApiError, match="BadStatusLine"):
        Cluster(url).ask("GET", "/api/v1/nodes/worker-3")
