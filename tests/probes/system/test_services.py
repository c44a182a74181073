"""Services of NVIDIA machines: what systemd runs, and the version of the fabric manager."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Service
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.probes.calls.timeouts import hung
from linkgauge.probes.host.entries import Entry, Folder, Link, UnreadableFile
from linkgauge.probes.system.fabric_manager import version
from linkgauge.probes.system.services import read_services
from tests.support.nodes.trees import tree

GPU: dict[str, Entry] = {"sys/bus/pci/drivers/nvidia/0000:17:00.0": Link("")}
SLICE = "sys/fs/cgroup/system.slice"
NAMES = ("nvidia-fabricmanager", "nvidia-imex", "nvidia-persistenced")


def said(files: dict[str, Entry], calls: dict[tuple[str, ...], tuple[str, ...]] | None = None) -> list[Record]:
    return list(read_services(tree({**GPU, **files}, calls)))


def service(name: str, running: bool, path: str, text: str) -> Service:
    return Service(key=name, running=running, cites={"running": Evidence(path, text)})


@pytest.mark.parametrize("folder", [SLICE, "sys/fs/cgroup/unified/system.slice", "sys/fs/cgroup/systemd/system.slice"])
def test_what_systemd_runs(folder: str) -> None:
    """A group of its own with processes in it; one that ended leaves an empty group, or none."""
    manager, persistence = (f"{folder}/{name}.service/cgroup.procs" for name in (NAMES[0], NAMES[2]))
    assert said({manager: "812\n815", persistence: ""}) == [
        service(NAMES[0], True, manager, "812\n815"),
        Service(key=NAMES[1], running=False),
        service(NAMES[2], False, persistence, ""),
    ]


def test_the_service_of_this_program() -> None:
    own = f"{SLICE}/linkgauge.service/cgroup.procs"
    assert said({own: "99"})[-1] == service("linkgauge", True, own, "99")


def test_where_the_groups_of_the_host_are_not_seen_nothing_is_said() -> None:
    running: dict[str, Entry] = {f"{SLICE}/{NAMES[0]}.service/cgroup.procs": "812"}
    assert said({}) == []
    assert said({**running, "sys/fs/cgroup/cgroup.type": "domain"}) == []
    assert list(read_services(tree(running))) == []  # no GPU


def test_what_would_not_say_hides_nothing_else() -> None:
    path = f"{SLICE}/{NAMES[0]}.service/cgroup.procs"
    assert said({path: UnreadableFile(13, "Permission denied")}) == [
        NotChecked(
            what="Service.running",
            subject=NAMES[0],
            reason=Reason.PERMISSION,
            path=path,
            detail="Permission denied",
            how="run as root",
        ),
        Service(key=NAMES[0]),
        Service(key=NAMES[1], running=False),
        Service(key=NAMES[2], running=False),
    ]


def test_the_version_is_asked_where_the_program_is() -> None:
    known = Service(key=NAMES[0], version="570.124.06")
    calls: dict[tuple[str, ...], tuple[str, ...]] = {("fabric_manager",): (encode(known),)}
    assert said({"usr/bin/nv-fabricmanager": ""}, calls) == [known]
    assert said({}, calls) == []


def program(folder: Path, script: str) -> str:
    """A small program in the fabric manager's place."""
    path = folder / "nv-fabricmanager"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_version_that_the_program_says(tmp_path: Path) -> None:
    path = program(tmp_path, "echo 'Fabric Manager version is : 570.124.06'")
    cites = {"version": Evidence(path, "Fabric Manager version is : 570.124.06")}
    assert list(version(path)) == [Service(key=NAMES[0], version="570.124.06", cites=cites)]


def test_a_program_that_says_none(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    path = program(tmp_path, "echo 'cannot run'")
    for asked, reason, why in (
        (path, Reason.UNREADABLE, "'cannot run\\n' names no version"),
        (str(tmp_path / "none"), Reason.NOT_INSTALLED, "No such file or directory"),
        (str(tmp_path / "empty"), Reason.PERMISSION, "Permission denied"),
    ):
        assert list(version(asked)) == [
            NotChecked(what="Service.version", subject=NAMES[0], reason=reason, path=f"{asked} --version", detail=why)
        ]


@pytest.mark.slow
def test_a_program_that_never_ends(tmp_path: Path) -> None:
    (missed,) = version(program(tmp_path, "exec sleep 60"))
    assert isinstance(missed, NotChecked)
    assert hung(missed)
    assert missed.detail == "no answer within 4 s"


@given(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=20)))
def test_any_text(groups: dict[str, str]) -> None:
    files: dict[str, Entry] = {f"{SLICE}/{name}.service/cgroup.procs": text for name, text in groups.items()}
    told = said({SLICE: Folder(), **files})
    assert all(decode(encode(one)) == one for one in told)
    running = {one.key: one.running for one in told if isinstance(one, Service)}
    assert running == {name: bool(groups.get(name)) for name in NAMES}


def test_an_empty_folder_of_groups() -> None:
    assert said({SLICE: Folder()}) == [Service(key=name, running=False) for name in NAMES]
