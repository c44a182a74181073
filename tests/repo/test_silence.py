"""The faults that bench/accuracy/silence enumerates, and how it judges what a report says of them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bench.accuracy.edits import measured, set_fields, together
from bench.accuracy.faults import Case
from bench.accuracy.healthy_nodes import HealthyNode, node_of
from bench.accuracy.silence.outcomes import broken, cases_of, failures, judged
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Nvme

NODE = node_of("server-raid")
DEAD = Case(
    "a disk", "nvme0", set_fields(Nvme, "nvme0", state="dead"), frozenset({"storage-degraded"}), frozenset({"nvme0"})
)


def judge(case: Case, node: HealthyNode = NODE) -> tuple[str, tuple[str, ...]]:
    result = judged(node, evaluate(broken(node, [])), case)
    return result.outcome, result.extra


def test_outcomes() -> None:
    """The right thing, another thing, one more thing, nothing."""
    two = together(DEAD.edit, set_fields(Nvme, "nvme1", state="dead"))
    assert judge(DEAD) == ("named", ())
    assert judge(replace(DEAD, subjects=frozenset({"nvme3"})))[0] == "misnamed"
    assert judge(replace(DEAD, codes=frozenset({"nic-missing"})))[0] == "misnamed"
    assert judge(replace(DEAD, edit=two)) == ("named", ("storage-degraded nvme1",))
    assert judge(replace(DEAD, edit=list)) == ("missed", ())


def test_listed_values_are_no_miss() -> None:
    """The only network card of its kind: nothing says how many lanes it should have."""
    for case in cases_of(node_of("gh200"), "PCIe width of a nvme: both", quick=False):
        assert judge(case, node_of("gh200"))[0] == "uncorroborated"
        assert judge(replace(case, words=("colour",)), node_of("gh200"))[0] == "missed"


def test_every_place_is_enumerated() -> None:
    node = node_of("hgx-h100")
    gpus = {gpu.address for gpu in node.snapshot.of(Gpu).values()}
    for kind in ("PCIe width of a gpu: trained", "PCIe speed of a gpu: both", "removal of a gpu", "log: Xid 79 once"):
        cases = cases_of(node, kind, quick=False)
        assert {case.place for case in cases if case.devices == 1} == gpus, kind
        assert [case.devices for case in cases if case.devices > 1] == [8], kind
    assert {case.place for case in cases_of(node, "a disk is dead", quick=False)} >= node.snapshot.of(Nvme).keys()
    assert len({case.place for case in cases_of(node, "one nvlink link down", quick=False)}) == 8 * 18 + 1


def test_quick_takes_one_of_equal_devices_and_all_at_once() -> None:
    cases = cases_of(node_of("hgx-h100"), "removal of a gpu", quick=True)
    assert [case.devices for case in cases] == [1, 8]


def test_counters_grow_from_an_earlier_value() -> None:
    """In an hour: the earlier value is in the past of the snapshot. Since boot: there is none."""
    name = "counter symbol_error"
    now, since = (cases_of(NODE, f"{name} {when}", quick=True)[0] for when in ("in an hour", "since boot"))
    assert [one.value for one in broken(NODE, [now]).past] == [0.0]
    assert broken(NODE, [since]).past == ()
    grown = measured(since.place, "symbol_error", 240_000.0, NODE.now)
    assert (
        broken(NODE, [since]).observed[since.place] == broken(NODE, [replace(since, edit=grown)]).observed[since.place]
    )


def test_limits() -> None:
    healthy = evaluate(broken(NODE, []))
    good, wrong = judged(NODE, healthy, DEAD), judged(NODE, healthy, replace(DEAD, subjects=frozenset({"nvme3"})))
    missed = judged(NODE, healthy, replace(DEAD, edit=list))
    assert list(failures([good] * 99 + [missed], [])) == []
    assert list(failures([good] * 98 + [missed] * 2, [])) == ["2 of 100 faults are missed"]
    assert list(failures([good, wrong], [])) == ["1 faults are misnamed"]


@pytest.mark.parametrize(
    ("node", "kind", "outcome"),
    [
        ("mi300x", "one xgmi link down", "named"),
        ("mi300x", "all links of a GPU down", "named"),
        ("gcp-a3-mega", "PCIe speed of a nic: port", "uncorroborated"),
        ("a100-pcie-bare", "GPU pair without peer read", "uncorroborated"),
        ("vgpu", "GPU: memory at 80 %", "uncorroborated"),
    ],
)
def test_named_or_listed(node: str, kind: str, outcome: str) -> None:
    """Values of equal GPUs, and values for which the node has no evidence."""
    healthy_node = node_of(node)
    case = next(one for one in cases_of(healthy_node, kind, quick=True) if one.devices == 1)
    assert judge(case, healthy_node) == (outcome, ())


@pytest.mark.slow
def test_trained_links_are_named() -> None:
    """A link below what both ends support, on any node: always named, and nothing else."""
    for name in ("hgx-h100", "mi300x", "xe9680"):
        node = node_of(name)
        for case in cases_of(node, "PCIe width of a *: trained", quick=True):
            assert judge(case, node) == ("named", ()), (name, case.kind, case.place)
