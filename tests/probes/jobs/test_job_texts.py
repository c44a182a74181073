"""The texts of jobs on a node: from the folder to levels and findings of the service."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.jobs.job_rates import job_rates, proven_by_jobs, slow_groups
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.entries import Folder
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.jobs.job_texts import JobTexts
from tests.support.nodes.described import node

FOLDER = "/var/lib/node_exporter/nccl_inspector"
LINE = (
    'nccl_bus_bandwidth_gbs{{version="v5.1",slurm_job_id="7",node="a",gpu="GPU{gpu}",comm_name="TP {group}",'
    'n_nodes="{nodes}",nranks="2",collective="AllReduce",message_size="64-65MB",algo_proto="Ring_simple"}} {rate}\n'
)


def texts(rates: Mapping[int, float], nodes: int = 1) -> dict[str, str]:
    """GPU -> rate; each two neighbouring GPUs are a group."""
    return {
        f"{FOLDER[1:]}/nccl_inspector_metrics_{gpu}.prom": LINE.format(gpu=gpu, group=gpu // 2, nodes=nodes, rate=rate)
        for gpu, rate in rates.items()
    }


def at(seconds: int, files: Mapping[str, str]) -> Recorded:
    parents = {"/".join(FOLDER[1:].split("/")[:depth]): Folder() for depth in range(1, 5)}
    return Recorded(seconds, {**parents, **files})


def records(reader: JobTexts, seconds: int, files: Mapping[str, str]) -> list[Record]:
    return list(reader(at(seconds, files)))


RATES = {gpu: 200.0 + gpu for gpu in range(8)}


def test_only_texts_that_change_are_read() -> None:
    """A text that is there when the service starts may be of a job that ended."""
    reader = JobTexts(FOLDER)
    assert records(reader, 0, texts(RATES)) == []
    fresh = records(reader, 30, texts({gpu: rate + 1 for gpu, rate in RATES.items()}))
    assert [one.about.ends for one in fresh if isinstance(one, Observation) and not isinstance(one.about, str)] == [
        ("GPU-0", "GPU-1"),
        ("GPU-2", "GPU-3"),
        ("GPU-4", "GPU-5"),
        ("GPU-6", "GPU-7"),
    ]
    assert [round(one.value / 1e9) for one in fresh if isinstance(one, Observation)] == [202, 204, 206, 208]
    assert len(records(reader, 140, texts({gpu: rate + 1 for gpu, rate in RATES.items()}))) == 4
    assert records(reader, 160, texts({gpu: rate + 1 for gpu, rate in RATES.items()})) == []


def test_groups_of_several_nodes_or_without_all_ranks_are_not_used() -> None:
    for before, after in (
        (texts(RATES, 2), texts(dict.fromkeys(RATES, 1.0), 2)),
        (texts({0: 200.0}), texts({0: 100.0})),
    ):
        reader = JobTexts(FOLDER)
        assert [*records(reader, 0, before), *records(reader, 30, after)] == []


def test_a_folder_that_is_absent_has_no_records() -> None:
    assert records(JobTexts(FOLDER), 0, {}) == []


def snapshot_records(rates: Mapping[int, float]) -> list[Record]:
    reader = JobTexts(FOLDER)
    records(reader, 0, texts(RATES))
    gpus = [Gpu(key=f"gpu{7 - gpu}", uuid=f"GPU-{gpu}") for gpu in range(8)]
    return [*gpus, *records(reader, 30, texts(rates))]


def test_a_slow_group_is_a_finding() -> None:
    slow = snapshot_records({gpu: 100.0 if gpu in (2, 3) else 210.0 for gpu in range(8)})
    snapshot = assemble(slow, Site(), 30)
    assert len(job_rates(snapshot)) == 4
    (finding,) = slow_groups(snapshot)
    assert (finding.code, finding.kind, finding.subject, finding.basis) == (
        "bandwidth-low",
        "state",
        "gpu4-gpu5",
        "kin",
    )
    assert [*proven_by_jobs(snapshot)] == []  # nothing is known about the links of these GPUs


def test_groups_that_differ_are_no_finding() -> None:
    """A mean contains waiting: only if all others agree, the slow one differs."""
    for rates in ({gpu: 210.0 - 3 * gpu for gpu in range(8)}, {gpu: 30.0 * (gpu // 2 + 1) for gpu in range(8)}):
        assert [*slow_groups(assemble(snapshot_records(rates), Site(), 30))] == []


def test_any_text_is_read_or_ignored() -> None:
    reader = JobTexts(FOLDER)
    name = f"{FOLDER[1:]}/a.prom"
    found = [*records(reader, 0, {name: "x"}), *records(reader, 30, {name: 'nccl_bus_bandwidth_gbs{} nan\n\x00"'})]
    assert [one for one in found if not isinstance(one, NotChecked)] == []


@pytest.mark.parametrize(("share", "expected"), [(1.0, ["all_reduce of a job"]), (0.5, [])])
def test_a_collective_at_its_expected_rate_shows_good_links(share: float, expected: list[str]) -> None:
    """A lower mean says nothing: it contains waiting."""
    host = node("hgx-h100")
    records = [record for source in SOURCES for record in source.read(host)]
    uuids = tuple(one.uuid for one in records if isinstance(one, Gpu) and one.uuid)
    seen = Observation(
        about=Flow("all_reduce", uuids, 1 << 30),
        quantity="job_bus_bandwidth",
        unit="bytes_per_second",
        value=share * 450e9,
        at=host.now(),
        evidence=Evidence("text", "DP 0"),
    )
    report = evaluate(assemble([*records, seen], Site(), host.now()))
    assert [one.op for one in report.levels if one.observed == seen.value] == expected
    assert [one.code for one in report.findings if one.code == "bandwidth-low"] == []
