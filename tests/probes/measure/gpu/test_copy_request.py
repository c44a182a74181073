"""What is asked of probes of copies, and what they plan for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.records import Flow
from linkgauge.probes.measure.gpu import device_memory, host_copy, peer_copy
from linkgauge.probes.measure.gpu.copy_request import CopyRequest, flows, parsed
from linkgauge.probes.measure.gpu.cuda_gpus import fitting
from linkgauge.probes.measure.probe import Effort, Plan, Probe, Scope
from tests.support.nodes.described import EACH, node, report_of

NAMES = st.sampled_from(["gpu0", "gpu7", "numa0", "host", "0000:1b:00.0"])
RUNS = st.lists(st.lists(st.lists(NAMES, min_size=1, max_size=2).map(tuple), min_size=1).map(tuple)).map(tuple)
GPUS = st.dictionaries(st.sampled_from(["gpu0", "gpu7"]), st.sampled_from(["0000:1b:00.0", "10000:01:00.0"]))
PLANS: tuple[Plan, ...] = (host_copy.plan, peer_copy.plan, device_memory.plan)


@given(st.sampled_from(["quick", "full"]), GPUS, RUNS, st.booleans())
def test_words_and_back(
    effort: Effort, gpus: dict[str, str], runs: tuple[tuple[tuple[str, ...], ...], ...], owned: bool
) -> None:
    asked = CopyRequest(effort=effort, gpus=gpus, runs=runs, owned=owned)
    assert parsed(asked.args) == asked


def test_flows_know_what_ran_beside_them() -> None:
    run = (("numa0", "gpu0"), ("gpu0", "numa0"))
    assert flows(run, 64) == [Flow("copy", run[0], 64, beside=(run[1],)), Flow("copy", run[1], 64, beside=(run[0],))]
    (staged,) = flows((("gpu0", "gpu1"),), None, {("gpu0", "gpu1"): "host"})
    assert staged.via == "host"


@given(st.integers(0, 1 << 40), st.sampled_from([1 << 20, 64 << 20]), st.integers(1, 20))
def test_buffers_are_a_twentieth_of_what_is_free(free: int, size: int, buffers: int) -> None:
    found = fitting(free, size, buffers, 1 << 16)
    if found is None:
        assert buffers << 16 > free // 20 // 2
    else:
        assert found * buffers <= free // 20
        assert found == size or 2 * found * buffers > free // 20


def plans(name: str, effort: Effort, *ends: str, owned: bool = False) -> list[Probe]:
    report = report_of(node(name))
    every = frozenset(device.id for device in report.topology.devices)
    wanted = Scope(effort=effort, ends=frozenset(ends) or every, owned=owned)
    return [probe for plan in PLANS for probe in plan(report, wanted)]


@pytest.mark.parametrize("name", ["hgx-h100", "vm-h100"])
def test_every_numa_node_with_cpus_is_copied_from(name: str) -> None:
    """Also where nobody knows what its memory can do: in a virtual machine."""
    runs = [run for probe in plans(name, "full") if probe.name == "host_copy" for run in parsed(probe.args).runs]
    alone = {ends for run in runs if len(run) == 1 for ends in run}
    gpus = [f"gpu{number}" for number in range(8)]
    assert {(f"numa{node}", gpu) for node in (0, 1) for gpu in gpus} < alone


@pytest.mark.parametrize("name", EACH)
def test_all_plans_keep_their_time(name: str) -> None:
    """Of what the levels allow, they leave room for memory, disks and adapters."""
    assert sum(probe.seconds for probe in plans(name, "quick")) <= 10
    assert sum(probe.seconds for probe in plans(name, "full")) <= 60
    for probe in (*plans(name, "quick"), *plans(name, "full")):
        assert probe.deadline > 4 * probe.seconds
        assert probe.bytes > 0


def test_what_is_planned_for_eight_gpus() -> None:
    host, peers, memory = plans("hgx-h100", "quick")
    asked = parsed(host.args)
    assert asked.gpus == {
        f"gpu{n}": f"0000:{bus}:00.0" for n, bus in enumerate(("1b", "1e", "3b", "3e", "9b", "9e", "bb", "be"))
    }
    assert asked.runs[:3] == ((("numa0", "gpu0"),), (("gpu0", "numa0"),), (("numa0", "gpu1"),))
    assert asked.runs[16:] == (tuple((f"numa{n // 4}", f"gpu{n}") for n in range(8)),)
    assert parsed(peers.args).runs == tuple(((f"gpu{n}", f"gpu{(n + 1) % 8}"),) for n in range(8))
    assert parsed(memory.args).runs == tuple(((f"gpu{n}",),) for n in range(8))
    full = [parsed(probe.args).runs for probe in plans("hgx-h100", "full")]
    assert [len(runs) for runs in full] == [24, 3, 16, 56, 28, 1, 8]
    assert len(full[5][0]) == 56


def test_what_was_slow_is_asked_alone() -> None:
    report = plans("hgx-h100", "full", "0000:3b:00.0", "0000:9e:00.0")
    assert {run for run in parsed(report[3].args).runs if not {"gpu2", "gpu5"} & {*run[0]}} == set()
    assert [len(parsed(probe.args).runs) for probe in report] == [6, 3, 4, 26, 13, 1, 2]
    assert parsed(plans("hgx-h100", "quick", "0000:3b:00.0")[2].args).gpus == {"gpu2": "0000:3b:00.0"}
    assert plans("hgx-h100", "quick", "0000:10:01.0") == []


def test_where_peers_go_over_pcie_switches_are_played_off() -> None:
    crowds = parsed(plans("rtx-pro-6000", "full")[5].args).runs
    beside, across = crowds[0], crowds[1]
    assert beside == (("gpu0", "gpu1"), ("gpu2", "gpu3"), ("gpu4", "gpu5"), ("gpu6", "gpu7"))
    assert across == (("gpu0", "gpu2"), ("gpu2", "gpu4"), ("gpu4", "gpu6"), ("gpu6", "gpu0"))
    assert crowds[2:6] == (
        (("gpu0", "gpu2"), ("gpu1", "gpu4")),
        (("gpu2", "gpu0"), ("gpu3", "gpu4")),
        (("gpu4", "gpu0"), ("gpu5", "gpu2")),
        (("gpu6", "gpu0"), ("gpu7", "gpu2")),
    )
    assert len(crowds[6]) == 56


def test_who_has_no_gpu_of_nvidia_plans_nothing() -> None:
    assert plans("mi300x", "full") == plans("server-raid", "full") == []
    (host, _) = plans("container", "quick")  # seven of the machine's eight are not its own
    assert [*parsed(host.args).gpus] == ["gpu0"]


def test_the_owner_of_the_gpus_says_so() -> None:
    assert all(parsed(probe.args).owned for probe in plans("t4", "full", owned=True))
    assert not any(parsed(probe.args).owned for probe in plans("t4", "full"))
