"""The health check of Slurm: drained and resumed nodes, with a stub of scontrol for a hundred nodes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.gate.decision import decide
from linkgauge.agent.slurm.health_check import Check, CheckRecord, keep, record_of
from linkgauge.agent.slurm.scontrol import ScontrolError, Slurm
from linkgauge.agent.state import acceptance as state
from linkgauge.agent.state import status_file
from linkgauge.models.report import Finding, Report
from linkgauge.models.site.gate import Gate, causes, has_room
from linkgauge.models.site.schema import read_site
from tests.support.nodes.described import node, report_of
from tests.support.programs.slurm_stub import Cluster

NAMES = [f"gpu-{number:03}" for number in range(100)]
# A wrong row of the site file: every node should have this, and no node has it.
WRONG = '[[machine]]\nname = "ours"\nsource = "a mistake"\ngpu = "*"\nproduct = "*"\ngpus = 9\n'
ENFORCED = '[gate]\nenforce = true\ncodes = ["gpu-missing"]\n'
DRAINED = "linkgauge: gpu-missing node"


def evaluated(text: str) -> Report:
    return report_of(node("hgx-h100"), read_site(text))


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path, NAMES)


class One:
    """A node of the cluster. The status file of its service has the report."""

    def __init__(self, cluster: Cluster, name: str, site: str, report: Report | None, at: float = 1e9) -> None:
        self.cluster, self.name, self.at = cluster, name, at
        self.folder = str(cluster.folder / "state" / name)
        self.site = cluster.folder / f"{name}.toml"
        # No file there, whatever is on this machine.
        self.site.write_text(f"{site}disable_file = '{cluster.folder}/disabled'\n" if "[gate]" in site else site)
        if report is not None:
            self.finds(report)

    def finds(self, report: Report) -> None:
        status_file.write(self.folder, report, time.time(), 15.0, {})

    def check(self, sleep: Callable[[float], None] = lambda seconds: None) -> str | None:
        """Run the health check; no time passes for its deadlines."""
        slurm = Slurm(program=str(self.cluster.program), until=60.0, monotonic=lambda: 0.0)
        seen = decide(str(self.site), self.folder)
        return Check(decision=seen, slurm=slurm, node=self.name, folder=self.folder, sleep=sleep).run(self.at)


def all_at_once(cluster: Cluster, site: str) -> list[str | None]:
    """The health checks of all nodes. All count the drained nodes after all have written their notes."""
    report = evaluated(WRONG)
    nodes = [One(cluster, name, WRONG + site, report) for name in NAMES]
    together = Barrier(len(nodes))

    def run(one: One) -> str | None:
        return one.check(lambda seconds: (together.wait(120), None)[1])

    with ThreadPoolExecutor(len(nodes)) as pool:
        return list(pool.map(run, nodes))


def test_by_default_a_wrong_row_drains_nothing_and_slurm_is_not_asked(cluster: Cluster) -> None:
    results = all_at_once(cluster, "[gate]\n")
    assert cluster.drained == []
    assert cluster.calls == []
    assert {str(text).partition(": ")[0] for text in results} == {
        "open; with enforce = true it would close for gpu-missing node"
    }


@pytest.mark.slow
def test_enforced_a_wrong_row_drains_two_of_a_hundred_that_all_check_at_once(cluster: Cluster) -> None:
    results = all_at_once(cluster, ENFORCED)
    assert cluster.drained == NAMES[:2]
    assert {cluster.get(name, "Reason").partition(" [")[0] for name in cluster.drained} == {DRAINED}
    assert {cluster.get(name, "Comment") for name in NAMES} == {""}
    assert sum(str(text).startswith("drained for gpu-missing node: ") for text in results) == 2
    assert results.count("gpu-missing node: not drained: 2.0% of all nodes are drained already") == 98


def test_a_further_node_finds_no_room_and_does_not_ask_again_at_once(cluster: Cluster) -> None:
    for name in NAMES[50:52]:
        cluster.put(name, State="IDLE+DRAIN", Reason="linkgauge: nic-missing node [root@1000000000]")
    one = One(cluster, NAMES[0], WRONG + ENFORCED, evaluated(WRONG))
    assert one.check() == "gpu-missing node: not drained: 2.0% of all nodes are drained already"
    calls = len(cluster.calls)
    one.at += 60
    assert one.check() == "gpu-missing node: not drained: too many nodes were drained at 2001-09-09T01:46:40Z"
    assert len(cluster.calls) == calls
    one.at += 3600
    cluster.put(NAMES[50], State="IDLE", Reason="")
    assert one.check() == f"drained for gpu-missing node: {evaluated(WRONG).findings[0].message}"


def test_what_others_have_drained_is_left_alone(cluster: Cluster) -> None:
    cluster.put(NAMES[0], State="IDLE+DRAIN", Reason="a fan [root@1000000000]")
    one = One(cluster, NAMES[0], WRONG + ENFORCED, evaluated(WRONG))
    assert one.check() == "gpu-missing node: not drained: the node is IDLE+DRAIN already (a fan)"
    one.finds(evaluated(""))
    state.write(one.folder, state.Acceptance(at=one.at + 10))
    assert one.check() is None
    assert cluster.get(NAMES[0], "State") == "IDLE+DRAIN"
    assert [call for call in cluster.calls if call.startswith("update")] == []


def test_notes_of_others_are_left_alone(cluster: Cluster) -> None:
    cluster.put(NAMES[0], Comment="spare")
    one = One(cluster, NAMES[0], WRONG + ENFORCED, evaluated(WRONG))
    assert str(one.check()).startswith("drained for")
    assert (cluster.get(NAMES[0], "Comment"), cluster.get(NAMES[0], "Extra")) == ("spare", "")
    cluster.put(NAMES[1], Comment="spare", Extra="{}")
    results = One(cluster, NAMES[1], WRONG + ENFORCED, evaluated(WRONG)).check()
    assert (
        results
        == "gpu-missing node: not drained: Comment and Extra of the node are in use; clear one, for the drain request"
    )


def test_a_node_comes_back_only_when_it_is_good_and_accepted(cluster: Cluster) -> None:
    one = One(cluster, NAMES[0], WRONG + ENFORCED, evaluated(WRONG), at=time.time() - 30)
    one.check()
    assert one.check() == f"{DRAINED}: drained until the node is repaired and accepted"
    one.finds(evaluated(""))
    assert one.check() == f"{DRAINED}: drained until 'linkgauge accept'"
    accepted = time.time() + 5
    state.write(one.folder, state.Acceptance(at=accepted))
    assert one.check() == f"{DRAINED}: drained until the service finds no fault"
    assert cluster.drained == [NAMES[0]]
    status_file.write(one.folder, evaluated(""), accepted + 1, 15.0, {})
    one.at = accepted + 2
    assert str(one.check()).startswith("resumed, accepted at ")
    assert cluster.drained == []
    assert record_of(one.folder).drained is None
    calls = len(cluster.calls)
    assert one.check() is None
    assert len(cluster.calls) == calls


def test_a_node_whose_state_folder_was_lost_comes_back_too(cluster: Cluster) -> None:
    cluster.put(NAMES[3], State="IDLE+DRAIN", Reason=f"{DRAINED} [root@1000000000]")
    one = One(cluster, NAMES[3], ENFORCED, evaluated(""), at=time.time())
    state.write(one.folder, state.Acceptance(at=time.time() - 60))
    assert str(one.check()).startswith("resumed")
    assert cluster.drained == []


def test_a_note_that_a_run_left_when_it_was_ended_is_taken_away(cluster: Cluster) -> None:
    cluster.put(NAMES[0], Comment=DRAINED)
    one = One(cluster, NAMES[0], ENFORCED, evaluated(""))
    keep(one.folder, CheckRecord(asked=True))
    assert one.check() is None
    assert cluster.get(NAMES[0], "Comment") == ""
    assert not record_of(one.folder).asked


def test_slurm_that_does_not_answer_changes_nothing(cluster: Cluster) -> None:
    cluster.program.write_text(
        "#!/bin/sh\necho 'slurm_load_node error: Unable to contact slurm controller' >&2; exit 1\n"
    )
    with pytest.raises(ScontrolError, match="Unable to contact slurm controller"):
        One(cluster, NAMES[0], WRONG + ENFORCED, evaluated(WRONG)).check()
    cluster.program.write_text("#!/bin/sh\nexec sleep 60\n")
    with pytest.raises(ScontrolError, match="no answer within 0.2 s"):
        Slurm(program=str(cluster.program), until=0.2, monotonic=lambda: 0.0).nodes()
    with pytest.raises(ScontrolError, match="no time left"):
        Slurm(program=str(cluster.program), until=0.0, monotonic=lambda: 0.0).nodes()
    with pytest.raises(ScontrolError, match="No such file"):
        Slurm(program="/nowhere/scontrol", until=1.0, monotonic=lambda: 0.0).nodes()


def test_a_health_check_without_time_left_removes_its_request(cluster: Cluster) -> None:
    one = One(cluster, NAMES[0], WRONG + ENFORCED, evaluated(WRONG))
    passed = [0.0]

    def sleep(seconds: float) -> None:
        passed[0] = 60.0 if seconds == 2.0 else 0.0

    slurm = Slurm(program=str(cluster.program), until=60.0, monotonic=lambda: passed[0])
    check = Check(
        decision=decide(str(one.site), one.folder), slurm=slurm, node=one.name, folder=one.folder, sleep=sleep
    )
    with pytest.raises(ScontrolError, match="no time left"):
        check.run(one.at)
    assert [call.partition(" ")[0] for call in cluster.calls] == ["show", "update", "update"]
    assert cluster.get(NAMES[0], "Comment") == ""


def test_an_old_count_drains_nothing(cluster: Cluster) -> None:
    one = One(cluster, NAMES[0], WRONG + ENFORCED, evaluated(WRONG))
    times = iter([0.0, 0.0, 0.0, 0.0, 2.0, *[2.0] * 9])
    slurm = Slurm(program=str(cluster.program), until=60.0, monotonic=lambda: next(times))
    check = Check(
        decision=decide(str(one.site), one.folder), slurm=slurm, node=one.name, folder=one.folder, sleep=lambda s: None
    )
    with pytest.raises(ScontrolError, match="too slowly"):
        check.run(one.at)
    assert cluster.drained == []
    assert cluster.get(NAMES[0], "Comment") == ""


@given(
    st.lists(st.tuples(st.floats(0, 6), st.floats(0, 0.99)), min_size=1, max_size=40),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
def test_however_checks_overlap_no_more_are_drained_than_there_is_room_for(
    nodes: list[tuple[float, float]], most: int, chance: random.Random
) -> None:
    """Each check writes its note at its own time, counts two seconds later, and drains within one second."""
    names = [f"n{number}" for number in range(len(nodes))]
    chance.shuffle(names)
    gate = Gate(max_drained=most / len(nodes) if most <= len(nodes) else 1.0)
    acts = [
        (at, kind, name)
        for name, (begun, slow) in zip(names, nodes, strict=True)
        for at, kind in ((begun, "ask"), (begun + 2, "count"), (begun + 2 + slow, "end"))
    ]
    asking: set[str] = set()
    drained: set[str] = set()
    goes: dict[str, bool] = {}
    for _, kind, name in sorted(acts):
        if kind == "ask":
            asking.add(name)
        elif kind == "count":
            goes[name] = has_room(name, drained, asking, len(names), gate)
        else:
            asking.discard(name)
            drained |= {name} if goes[name] else set()
    assert len(drained) <= most
    assert bool(drained) == bool(most)


def test_only_what_is_certain_counts_and_is_not_silenced() -> None:
    def finding(**changed: str) -> Finding:
        fields = {"code": "gpu-missing", "severity": "critical", "subject": "node", "message": "7 of 8", **changed}
        return Finding(**fields)  # type: ignore[arg-type]

    gate = Gate(codes=("gpu-missing",))
    assert [str(one) for one in causes([finding(), finding()], gate)] == ["gpu-missing node"]
    others = [{"confidence": "likely"}, {"severity": "info"}, {"silenced": "ticket 4"}, {"code": "gpu-ecc"}]
    assert [list(causes([finding(**one)], gate)) for one in others] == [[], [], [], []]
