"""Logs of the fabric manager, what systemd says of it, and gpud's state of the fabric; cut, and of rubbish."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.machine import Event, Service
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.nvidia import fabric_log
from linkgauge.probes.dumps.registry import READERS

SHARED = Path(__file__).parents[3].parent / "shared"
AT = 1795230000.0
MANAGER = "nvidia-fabricmanager"
WHEN = "Nov 05 13:55:26 node1 "
BEGUN = f"{WHEN}systemd[1]: Starting NVIDIA fabric manager service..."
MISMATCH = (
    f"{WHEN}nv-fabricmanager[104230]: fabric manager NVIDIA GPU driver interface version 550.127.05 don't match with "
    "driver version 550.120. Please update with matching NVIDIA driver package."
)
EXITED = f"{WHEN}systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE"
READY = f"{WHEN}nv-fabricmanager[42]: Successfully configured all the available GPUs and NVSwitches to route traffic."
STARTED = f"{WHEN}systemd[1]: Started NVIDIA fabric manager service."
OWN = "[Jul 09 2024 18:14:07] [{}] [tid 12727] {}"
ERROR = "detected NVSwitch {} error {} on {} on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61"


def said(*lines: str) -> list[Record]:
    text = "\n".join(lines)
    assert recognise(text)
    return list(fabric_log.read(Part("fm.txt", 1, text, AT)))


def plain(*lines: str) -> list[Record]:
    """What is said, without where it stood."""
    return [replace(one, cites={}) if isinstance(one, Fact) else one for one in said(*lines)]


def test_a_manager_that_refuses_the_driver() -> None:
    proof = Evidence("fm.txt:2", MISMATCH)
    assert said(BEGUN, MISMATCH, EXITED) == [
        Service(
            key=MANAGER,
            running=False,
            version="550.127.05",
            cites={"running": Evidence("fm.txt:3", EXITED), "version": proof},
        ),
        Driver(key="nvidia", version="550.120", cites={"version": proof}),
    ]


def test_its_refusal_is_said_where_no_gpu_is_known() -> None:
    """A log alone names both versions. Of GPUs that need no manager nothing is said."""

    def found(*facts: Fact) -> list[tuple[str, str]]:
        snapshot = assemble([*said(MISMATCH), *facts], Site(), AT, origin="dumps")
        return [(finding.code, finding.subject) for finding in evaluate(snapshot).findings]

    assert found() == [("driver-mismatch", MANAGER)]
    assert found(Gpu(key="gpu0", name="NVIDIA GeForce RTX 4090")) == []
    assert found(Gpu(key="gpu0", name="NVIDIA H100 80GB HBM3"))[0][0] == "driver-mismatch"


@pytest.mark.parametrize(
    ("lines", "running"),
    [
        ((BEGUN, READY, STARTED), True),
        ((STARTED, f"{WHEN}systemd[1]: Stopped NVIDIA fabric manager service."), False),
        ((EXITED, STARTED), True),
        ((f"{WHEN}systemd[1]: Failed to start NVIDIA fabric manager service.",), False),
        ((OWN.format("INFO", READY.partition(": ")[2]),), True),
        ((OWN.format("INFO", "multicast group 0 is freed."),), None),
    ],
)
def test_the_last_word_counts(lines: tuple[str, ...], running: bool | None) -> None:
    assert plain(*lines) == ([] if running is None else [Service(key=MANAGER, running=running)])


@pytest.mark.parametrize(
    ("state", "running"),
    [
        ("active (running)", True),
        ("failed (Result: exit-code)", False),
        ("inactive (dead)", False),
        ("activating (start)", None),
    ],
)
def test_status_goes_before_its_log(state: str, running: bool | None) -> None:
    lines = ("● nvidia-imex.service - NVIDIA IMEX service", f"     Active: {state} since Sun 2026-11-01", STARTED)
    found = {one.key: one.running for one in plain(*lines) if isinstance(one, Service)}
    assert found == {MANAGER: True} | ({} if running is None else {"nvidia-imex": running})


def test_errors_of_switches_are_those_of_the_kernel() -> None:
    """Equal ones are one; "NodeId" is what later versions write."""
    lines = [
        OWN.format("ERROR", ERROR.format(*words))
        for words in (("non-fatal", 12028, "fid 0"), ("non-fatal", 12028, "NodeId 0"), ("fatal", 20034, "fid 0"))
    ]
    mild, fatal = (ERROR.format("non-fatal", 12028, "NodeId 0"), ERROR.format("fatal", 20034, "fid 0"))
    switch = "0000:86:00.0"
    assert said(*lines) == [
        Event(
            key=f"sxid 12028 {switch} link61 mild",
            kind="sxid",
            code=12028,
            subject=switch,
            text=mild,
            fatal=False,
            link=61,
            count=2,
            cites={"text": Evidence("fm.txt:2", lines[1])},
        ),
        Event(
            key=f"sxid 20034 {switch} link61 fatal",
            kind="sxid",
            code=20034,
            subject=switch,
            text=fatal,
            fatal=True,
            link=61,
            count=1,
            cites={"text": Evidence("fm.txt:3", lines[2])},
        ),
    ]


def test_the_version_in_its_own_log() -> None:
    assert plain(OWN.format("INFO", "Fabric Manager version is : 570.86.15")) == [
        Service(key=MANAGER, version="570.86.15")
    ]


def test_state_of_the_fabric_in_json() -> None:
    joined = {"gpu_uuid": "GPU-1", "clique_id": 7, "cluster_uuid": "0-0", "state": "Completed", "status": "Success"}
    text = json.dumps({"fabric_manager_active": False, "fabric_states": [joined, {"gpu_uuid": "GPU-2"}, 3]})
    assert plain(text) == [
        Service(key=MANAGER, running=False),
        Gpu(key="GPU-1", uuid="GPU-1", fabric_state="completed", fabric_status="Success", fabric_clique=7),
        Gpu(key="GPU-2", uuid="GPU-2"),
    ]
    assert said(text[:60]) == [
        NotChecked(
            what="dump", subject="fm.txt", reason=Reason.UNREADABLE, path="fm.txt:1", detail="Input data was truncated"
        )
    ]


WHOLE = (BEGUN, STARTED, OWN.format("ERROR", ERROR.format("fatal", 20034, "fid 0")), MISMATCH, EXITED)
SAMPLES = ("\n".join(WHOLE),)


def test_cut_at_every_line() -> None:
    """A log that ends sooner tells how it was then."""
    states = [None, True, True, False, False]
    for end, running in enumerate(states, 1):
        found = [one.running for one in said(*WHOLE[:end]) if isinstance(one, Service)]
        assert found == ([] if running is None else [running])


@given(
    st.text()
    | st.lists(st.sampled_from(WHOLE) | st.text(max_size=9)).map("\n".join)
    | st.recursive(
        st.none() | st.booleans() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)
    ).map(lambda one: json.dumps({"fabric_states": [one], "fabric_manager_active": one}))
)
def test_any_text(text: str) -> None:
    re.compile(fabric_log.BEGIN, re.MULTILINE).search(text)
    for one in fabric_log.read(Part("fm.txt", 1, text)):
        assert isinstance(one, (Fact, NotChecked))


@given(st.permutations(WHOLE))
def test_lines_in_any_order(lines: list[str]) -> None:
    kinds = {type(one) for one in said(*lines)}
    assert kinds == {Service, Driver, Event}


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared with outputs of real tools")
def test_outputs_of_real_tools() -> None:
    """Logs of the manager, and nothing else."""
    for path in sorted(SHARED.glob("data/outputs/*/*")) + sorted(SHARED.glob("cases/*/dumps/*")):
        parts = split(path.name, path.read_text("utf-8", "replace"), 0.0, READERS)
        found = [family for family, _ in parts if family and family.name == "fabric_log"]
        assert bool(found) == bool(re.search("fabric.*(log|txt)$", path.name)), path
