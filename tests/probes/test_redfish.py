"""A management controller as a second witness: links, parts, conflicts, and controllers that fail."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.cli.main import main
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.agent.pipeline.source import Source
from linkgauge.models.facts.bmc import BmcLink, BmcPart
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.records import Fact, NotChecked, Record
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes import redfish
from linkgauge.probes.host.recorded import Recorded, dump
from linkgauge.probes.redfish import Controller, read_redfish
from tests.support.nodes.described import node
from tests.support.nodes.mutation_rows import width
from tests.support.peers.http_receiver import one_answer
from tests.support.peers.redfish_mockup import CHASSIS, controller, mockup

GPU, DISK = "0000:01:00.0", "0000:02:00.0"
GOOD = mockup([(GPU, 16, 16), (DISK, 4, 4)], {0: 16, 1: 4}, {"PSU1": "OK", "Fan 1": "OK"})


def read(resources: Any, host: Recorded | None = None, password: str = "secret") -> list[Record]:
    with controller(resources) as (url, _):
        reach = Controller(url=url, user="reader", password=password)
        return list(read_redfish(reach, host or node("desktop")))


def report_with(resources: Any, host: Recorded) -> Report:
    with controller(resources) as (url, _):
        reach = Controller(url=url, user="reader", password="secret")
        source = Source("redfish", lambda host: read_redfish(reach, host))
        return diagnose(host, (*SOURCES, source), measure_nothing, Site()).report


def bare(report: Report) -> set[tuple[str, str]]:
    return {(one.subject, quantity) for one in report.coverage.uncorroborated for quantity in one.quantities}


def test_links_and_parts() -> None:
    found = read(GOOD)
    links = [(one.key, one.width, one.max_width, one.slot_width) for one in found if isinstance(one, BmcLink)]
    assert links == [(GPU, 16, 16, 16), (DISK, 4, 4, 4)]
    assert [(one.key, one.width) for one in found if isinstance(one, Pci)] == [(GPU, 16), (DISK, 4)]
    parts = [(one.kind, one.name, one.health) for one in found if isinstance(one, BmcPart)]
    assert parts == [("power supply", "PSU1", "OK"), ("fan", "Fan 1", "OK")]
    assert not [one for one in found if isinstance(one, NotChecked)]


def test_a_second_witness_supports_the_width() -> None:
    alone = diagnose(node("desktop"), SOURCES, measure_nothing, Site()).report
    both = report_with(GOOD, node("desktop"))
    assert bare(alone) - bare(both) == {(GPU, "link width"), (DISK, "link width")}
    assert (both.verdict, both.findings) == (alone.verdict, alone.findings)


@pytest.mark.parametrize(("lanes", "slot"), [((8, 16), 16), ((16, 16), 8), ((16, 8), 16)])
def test_a_witness_that_disagrees_supports_nothing(lanes: tuple[int, int], slot: int) -> None:
    report = report_with(mockup([(GPU, *lanes)], {0: slot}), node("desktop"))
    assert (GPU, "link width") in bare(report)
    assert report.findings == ()


def test_a_width_that_differs_from_sysfs_is_a_conflict(tmp_path: Path) -> None:
    (capture := tmp_path / "node").write_text(dump(width(GPU, 8)(node("desktop"))))
    with controller(GOOD) as (url, _):
        (file := tmp_path / "bmc.toml").write_text(f'url = "{url}"\nuser = "reader"\npassword = "secret"\n')
        arguments = ["topology", "--conflicts", "--from", str(capture), "--redfish", str(file)]
        done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0
    assert done.output.startswith(
        "2 points on which sources disagree; a stated fault is used, else the first source.\n"
    )  # also NVML
    assert f"other  16  (Redfish {CHASSIS}/PCIeDevices/0)" in done.output


def with_speeds(now: object, device: object, slot: object) -> dict[str, Any]:
    """GOOD, in which the controller also reports generations of the GPU's link."""
    resources: dict[str, Any] = deepcopy(GOOD)
    resources[f"{CHASSIS}/PCIeDevices/0"]["PCIeInterface"] |= {"PCIeType": now, "MaxPCIeType": device}
    resources[f"{CHASSIS}/PCIeSlots"]["Slots"][0]["PCIeType"] = slot
    return resources


@pytest.mark.parametrize(
    ("now", "device", "slot", "supported"),
    [
        ("Gen1", "Gen4", "Gen5", True),  # at rest
        ("Gen4", "Gen5", "Gen4", True),
        ("Gen4", "Gen5", "Gen5", False),
        ("Gen5", "Gen4", "Gen4", False),
        ("Gen4", "Gen4", "fast", False),
    ],
)
def test_a_second_witness_of_the_speed(now: str, device: str, slot: str, supported: bool) -> None:
    alone, both = report_with(GOOD, node("desktop")), report_with(with_speeds(now, device, slot), node("desktop"))
    assert (bare(alone) - bare(both) == {(GPU, "link speed of both ends")}) == supported
    assert (both.verdict, both.findings) == (alone.verdict, alone.findings)


def test_speeds_of_a_link() -> None:
    (link,) = (one for one in read(with_speeds("Gen1", "Gen5", "Gen8")) if isinstance(one, BmcLink) and one.key == GPU)
    assert (link.speed, link.max_speed, link.slot_speed) == (2.5e9, 32e9, None)


def test_a_device_that_the_kernel_does_not_know_is_left_out() -> None:
    assert [one for one in read(mockup([("0000:77:00.0", 16, 16)], {})) if isinstance(one, BmcLink | Pci)] == []


@pytest.mark.parametrize(
    ("reason", "health", "begins"),
    [
        ("hardware power brake", {"PSU2": "Critical", "Fan 1": "Critical"}, "power supply PSU2: Critical"),
        ("hardware thermal slowdown", {"PSU2": "OK", "Fan 3": "Warning"}, "fan Fan 3: Warning"),
    ],
)
def test_parts_that_explain_throttling(reason: str, health: dict[str, str], begins: str) -> None:
    further = f"\n[device.gpu5]\ngpu = {{clock_reasons = ['hardware slowdown', '{reason}']}}\n"
    report = report_with(mockup([], {}, health), node("hgx-h100", further))
    (finding,) = (one for one in report.findings if one.code == "gpu-throttled")
    assert str(finding.cause).startswith(f"the management controller reports {begins}")
    assert finding.evidence[-1].source.startswith(f"Redfish {CHASSIS}/")


def test_older_controllers_have_power_and_thermal() -> None:
    status = {"Status": {"Health": "Warning"}}
    older = {
        **GOOD,
        CHASSIS: {"Power": {"@odata.id": f"{CHASSIS}/Power"}, "Thermal": {"@odata.id": f"{CHASSIS}/Thermal"}},
        f"{CHASSIS}/Power": {"PowerSupplies": [{"Name": "PSU1", "MemberId": "0", **status}]},
        f"{CHASSIS}/Thermal": {"Fans": [{"FanName": "F1", "MemberId": "0", **status}]},
    }
    parts = [(one.kind, one.name, one.health) for one in read(older) if isinstance(one, BmcPart)]
    assert parts == [("power supply", "PSU1", "Warning"), ("fan", "F1", "Warning")]


def reasons(found: list[Record]) -> list[str]:
    return [one.reason.value for one in found if isinstance(one, NotChecked)]


def test_controllers_that_refuse_lack_or_damage() -> None:
    assert reasons(read(GOOD, password="wrong")) == ["permission"]
    assert reasons(read({})) == ["not-supported"]
    assert reasons(read({**GOOD, f"{CHASSIS}/PCIeSlots": b"{"})) == ["unreadable"]
    assert reasons(read(mockup([("0000:77:00.0", 16, 16)], {}))) == ["not-supported"]  # of no device of the kernel
    (refused,) = read_redfish(Controller(url="http://127.0.0.1:1"), node("desktop"))
    assert isinstance(refused, NotChecked)


def test_a_server_of_another_protocol() -> None:
    with one_answer(b"SSH-2.0-OpenSSH_9.2\r\n") as url:
        (refused,) = read_redfish(Controller(url=url, user="reader", password="secret"), node("desktop"))
    assert isinstance(refused, NotChecked)
    assert (refused.reason.value, refused.detail) == ("unreadable", "not an answer of HTTP")


def test_a_controller_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redfish, "_REQUEST_SECONDS", 0.2)
    go_on = Event()
    with controller(GOOD, go_on) as (url, asked):
        found = list(read_redfish(Controller(url=url, user="reader", password="secret"), node("desktop")))
        go_on.set()
    assert (reasons(found), len(asked)) == (["no-answer"], 1)


def test_a_controller_with_too_many_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redfish, "_MOST", 5)
    assert reasons(read(GOOD)) == ["no-answer"]


def test_only_paths_of_redfish_are_read() -> None:
    with controller({**GOOD, CHASSIS: {"PCIeDevices": {"@odata.id": "http://other/redfish/v1/x"}}}) as (url, asked):
        list(read_redfish(Controller(url=url, user="reader", password="secret"), node("desktop")))
    assert asked == ["/redfish/v1/", "/redfish/v1/Chassis", CHASSIS]


class Session(redfish._Session):
    """Resources without a server."""

    def __init__(self, resources: dict[str, Any]) -> None:
        self.resources = resources

    def get(self, path: object) -> Any:
        value = self.resources.get(path) if isinstance(path, str) else None
        return value if isinstance(value, dict) else {}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 300) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(sorted(GOOD)), st.data())
def test_any_value_in_any_place_gives_records(path: str, data: st.DataObject) -> None:
    resource = dict(GOOD[path])
    for name in list(resource):
        resource[name] = data.draw(VALUES | st.just(resource[name]))
    resources = {**GOOD, path: resource}

    session = Session(resources)
    for _, chassis in session.members(session.get("/redfish/v1/"), "Chassis"):
        for one in (*redfish._links(session, chassis, frozenset({GPU, DISK})), *redfish._parts(session, chassis)):
            assert isinstance(one, Fact)
            assert one.key


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('url = "bmc.example"\n', "must begin with http:// or https://"),
        ('user = "x"\n', "url: missing"),
        ('url = "https://reader:secret@bmc"\n', "give user and password as keys of their own"),
        ('url = "https://x"\npassphrase = "x"\n', "passphrase: unknown key"),
    ],
)
def test_mistakes_in_the_file(tmp_path: Path, text: str, says: str) -> None:
    (file := tmp_path / "bmc.toml").write_text(text)
    done = CliRunner().invoke(main, ["diagnose", "--redfish", str(file)])
    assert (done.exit_code, says in done.stderr) == (64, True), done.stderr
