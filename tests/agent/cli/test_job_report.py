"""`linkgauge diagnose --from` with the output of the NCCL Inspector."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from bench.accuracy.jobs.cluster import layout, table_of_ranks
from bench.accuracy.jobs.simulate import Fault, log_of, simulate
from bench.accuracy.jobs.text import write_files
from linkgauge.agent.cli.main import main
from tests.support.unprivileged import run_as_user

NIC = Fault("nic", "node003/nic4", 2, start=24)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a job on four nodes, one NIC of which becomes slow; beside it the table of ranks."""
    folder = tmp_path_factory.mktemp("job") / "nccl-inspector-4711"
    made = layout("tensor+sharded", 4)
    write_files(folder, log_of(made, simulate(made, [NIC], 0.02, 48, np.random.default_rng(3))))
    (folder.parent / "ranks.csv").write_text(table_of_ranks(made))
    return folder


def run(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["diagnose", *words])
    return done.exit_code, done.output


def report(folder: Path, *words: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run("--from", str(folder), "--format", "json", *words)[1])
    return result


def test_text(job: Path) -> None:
    code, text = run("--from", str(job), "--ranks", str(job.parent / "ranks.csv"), "--machine", "nvidia-dgx-h100")
    assert code == 1
    lines = [line for line in text.splitlines() if not line.startswith(("Taken", "Judged"))]
    assert lines[:2] == [
        "DEGRADED  a job, 32 GPUs on 4 nodes  nvidia-dgx-h100",
        "WARNING  node003/nic4 limits all_reduce to 20.9 GB/s of 42.5 GB/s: measure it when the node is",
    ]
    table = lines[lines.index(next(line for line in lines if line.startswith("BUS BANDWIDTH"))) :]
    assert table[1].startswith("  all_reduce 512 MiB, 2 ranks on 2 nodes ")
    assert table[2].startswith("    low   replica12: 20.5 GB/s, ")
    assert table[2].endswith(" ms, since operation 24")
    assert table[3].split("  ", 2)[1] == "reduce_scatter 256 MiB, 2 ranks on 2 nodes"
    assert table[3].split()[-5:] == ["16", "21.2", "43.3", "43.3", "=====-----"]
    assert "32 files of the NCCL Inspector, format v4.3" in text.replace("\n", " ")


def test_json(job: Path) -> None:
    result = report(job, "--ranks", str(job.parent / "ranks.csv"))
    (finding,) = result["findings"]
    assert (finding["code"], finding["subject"], finding["since"]) == (
        "bandwidth-low",
        "node003/nic4",
        "2025-05-23T20:00:01Z",
    )
    assert {key: result["job"][key] for key in ("gpus", "nodes", "communicators", "files", "formats")} == {
        "gpus": 32,
        "nodes": 4,
        "communicators": 36,
        "files": 32,
        "formats": ["v4.3"],
    }
    low = [one["communicator"] for one in result["job"]["rates"] if one["low"]]
    assert low == ["replica12", "shard12"]


def test_html(job: Path) -> None:
    page = run("--from", str(job), "--format", "html")[1]
    assert "degraded: a job, 32 GPUs on 4 nodes" in page
    assert page.count("<meter ") == 36  # communicators and their kinds of collectives
    assert '<td class="number low">20.5</td><td><meter value="0.468">0.468</meter></td><td>operation 24</td>' in page


def test_a_report_for_each_node(job: Path, tmp_path: Path) -> None:
    report(job, "--ranks", str(job.parent / "ranks.csv"), "--reports", str(tmp_path / "nodes"))
    result = {path.stem: json.loads(path.read_text()) for path in sorted((tmp_path / "nodes").iterdir())}
    assert {name: (one["node"], one["verdict"], len(one["findings"])) for name, one in result.items()} == {
        "node000": ("node000", "ok", 0),
        "node001": ("node001", "ok", 0),
        "node002": ("node002", "ok", 0),
        "node003": ("node003", "degraded", 1),
    }
    assert result["node003"]["findings"][0]["subject"] == "node003/nic4"
    assert {key: result["node000"]["job"][key] for key in ("gpus", "nodes", "communicators")} == {
        "gpus": 8,
        "nodes": 1,
        "communicators": 17,
    }
    assert "shard12" not in {one["communicator"] for one in result["node000"]["job"]["rates"]}


def test_the_name_of_a_node_does_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    text = METRIC.format(node="/../../x", gpu=0, rate=1)
    (tmp_path / "nccl_inspector_metrics_0.prom").write_text(text)
    report(tmp_path, "--reports", str(tmp_path / "nodes"))
    assert [path.name for path in (tmp_path / "nodes").iterdir()] == ["node_.._.._x.json"]


METRIC = (
    'nccl_bus_bandwidth_gbs{{version="v5.1",slurm_job_id="4711",node="node{node}",gpu="GPU{gpu}",comm_name="DP {gpu}",'
    'n_nodes="4",nranks="4",collective="AllReduce",message_size="512-513MB",algo_proto="Ring_simple"}} {rate}\n'
)


def test_prometheus_texts(tmp_path: Path) -> None:
    """The means of a window contain waiting, so only equal communicators are compared. The text has no ranks."""
    for node in range(4):
        for gpu in range(8):
            text = METRIC.format(node=node, gpu=gpu, rate=18 if gpu == 3 else 35)
            (tmp_path / f"nccl_inspector_metrics_{node}-{gpu}.prom").write_text(text)
    result = report(tmp_path, "--machine", "nvidia-dgx-h100")
    assert result["job"]["ids"] == ["4711"]
    assert [(one["subject"], one["confidence"], one["basis"]) for one in result["findings"]] == [
        ("DP 3 of 4 ranks, job 4711", "possible", "kin")
    ]
    (finding,) = result["findings"]
    assert "the switches of rail 3, or the NIC 3 of node0, node1, node2 or node3, its cable" in finding["cause"]
    assert finding["candidates"] == ["rail3", "node0/nic3", "node1/nic3", "node2/nic3", "node3/nic3"]
    assert finding["steps"] == [
        "When these nodes are idle, measure between them: linkgauge fabric --hosts node0,node1,node2,node3 --rail "
        "DEVICE, where DEVICE is NIC 3 of these nodes.",
        "Or run the next job on half of these nodes and on others, and compare its rates.",
    ]


def changed(change: Callable[[dict[str, Any]], object]) -> Callable[[str], str]:
    """Change some of the lines as JSON."""

    def apply(text: str) -> str:
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            change(line)
        return "".join(f"{json.dumps(line)}\n" for line in lines)

    return apply


def header(**values: object) -> Callable[[dict[str, Any]], object]:
    return lambda line: line.get("header", {}).update(values) if "header" in line else None


def times(factor: float) -> Callable[[dict[str, Any]], object]:
    def change(line: dict[str, Any]) -> None:
        if "coll_perf" in line:
            line["coll_perf"]["coll_exec_time_us"] = int(factor * line["coll_perf"]["coll_exec_time_us"])

    return change


def clock(line: dict[str, Any]) -> None:
    if "metadata" in line:
        line["metadata"]["dump_timestamp_us"] += 5 * 3600 * 10**6


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (changed(header(n_ranks=999)), "whose n_ranks differs"),
        (changed(header(rank=0)), "another process has too"),
        (changed(header(rank=-1)), "a rank that its communicator does not have"),
        (changed(times(-1)), "an impossible time"),
        (lambda text: text[: len(text) // 2], "last lines that were not complete"),
        (lambda text: text.replace('"coll_sn"', '"coll_sn'), "damaged lines"),
        (lambda text: "\n".join(text.splitlines()[1:]) + "\n", "lines without a communicator"),
        (lambda text: text.replace('"id": "', '"id": "other job ').replace("node", "elsewhere"), ""),
        (changed(times(0.001)), "its times are shorter than its links allow"),
        (changed(times(1000)), ""),
    ],
)
def test_hostile_lines_are_reported_and_name_no_link(
    change: Callable[[str], str], problem: str, tmp_path: Path
) -> None:
    """The files of two ranks of a healthy job are damaged. No finding is critical, and none names a link for sure."""
    made = layout("tensor+sharded", 4)
    write_files(tmp_path, log_of(made, simulate(made, [], 0.02, 48, np.random.default_rng(3))))
    for name in ("node001-pid1003.log", "node002-pid1005.log"):
        (tmp_path / name).write_text(change((tmp_path / name).read_text()))
    result = report(tmp_path, "--machine", "nvidia-dgx-h100")
    assert [one for one in result["findings"] if one["severity"] == "critical" or one["code"] == "bandwidth-low"] == []
    assert problem in " ".join(one["why"] for one in result["not_checked"])


def test_clocks_that_differ_are_reported(tmp_path: Path) -> None:
    made = layout("tensor+sharded", 4)
    write_files(tmp_path, log_of(made, simulate(made, [], 0.02, 48, np.random.default_rng(3))))
    for path in tmp_path.glob("node001-*"):
        path.write_text(changed(clock)(path.read_text()))
    result = report(tmp_path)
    assert result["findings"] == []
    assert "the clocks of its hosts differ by at least 17912 s" in " ".join(one["why"] for one in result["not_checked"])


@pytest.mark.e2e
def test_what_cannot_be_read_prevents_ok(tmp_path: Path) -> None:
    """Without the closed file and the closed folder, the rest of the job is ok."""
    made = layout("tensor+sharded", 4)
    write_files(tmp_path, log_of(made, simulate(made, [], 0.02, 48, np.random.default_rng(3))))
    (tmp_path / "rest").mkdir()
    (tmp_path / "rest.log").write_text("")
    assert report(tmp_path)["verdict"] == "ok"
    for path in (tmp_path / "rest", tmp_path / "rest.log"):
        path.chmod(0)
    try:
        code, text = run_as_user("diagnose", "--from", str(tmp_path), "--format", "json")
    finally:
        (tmp_path / "rest").chmod(0o700)
    assert code == 3
    (gap,) = (one for one in json.loads(text)["not_checked"] if one["subject"] == "files")
    assert gap["why"] == "2 files or folders could not be read: Permission denied"


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--ranks", "x.csv"], "--ranks is for the output of the NCCL Inspector: name its folder with --from"),
        (["--from", "/nowhere", "--ranks", "x.csv"], "--from /nowhere: no such file or folder"),
        (["--from", "/dev/null", "--machine", "x"], "--from /dev/null has no output of the NCCL Inspector"),
        (["--from", "JOB", "--ranks", "/nowhere"], "--ranks /nowhere: No such file or directory"),
        (["--from", "JOB", "--ranks", "LOG"], "has no line 'Init COMPLETE': run the job with NCCL_DEBUG=INFO"),
        (["--from", "JOB", "--machine", "dgx"], "no machine type is called 'dgx'"),
        (["--from", "JOB", "--format", "prometheus"], "a job has no metrics: use --format text, json or html"),
    ],
)
def test_mistakes(words: list[str], error: str, job: Path) -> None:
    log = job.parent / "nccl.log"
    log.write_text("a:1:1 [0] NCCL INFO Bootstrap: Using eth0\n")
    names = {"JOB": str(job), "LOG": str(log)}
    code, text = run(*(names.get(word, word) for word in words))
    assert code == 64
    assert error in text
