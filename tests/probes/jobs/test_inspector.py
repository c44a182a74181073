"""The readers of the NCCL Inspector's output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.jobs import log as logs
from linkgauge.models.jobs.log import JobLog, Kind
from linkgauge.probes.jobs.inspector_files import form_of, read_files
from linkgauge.probes.jobs.inspector_lines import LinesReader

NORMAL = Kind("all_reduce", "RING", "SIMPLE", 120)
METRICS = (
    'nccl_bus_bandwidth_gbs{{version="v5.1",slurm_job_id="{job}",node="node{node}",gpu="GPU{gpu}",comm_name="DP 0",'
    'n_nodes="2",nranks="4",collective="AllReduce",message_size="1-2GB",algo_proto="Ring_simple"}} {rate}\n'
    'nccl_collective_exec_time_microseconds{{version="v5.1",slurm_job_id="{job}",node="node{node}",gpu="GPU{gpu}",'
    'comm_name="DP 0",n_nodes="2",nranks="4",collective="AllReduce",message_size="1-2GB",algo_proto="Ring_simple"}} 9\n'
)


def context(rank: int = 0, version: str = "v4.3", **changed: Any) -> dict[str, Any]:
    header = {"id": "0x7f", "comm_name": "dp", "rank": rank, "n_ranks": 4, "nnodes": 2}
    metadata = {
        "inspector_output_format_version": version,
        "git_rev": "",
        "rec_mechanism": "nccl_profiler_interface",
        "dump_timestamp_us": 1748030377748202,
        "hostname": f"node{rank // 2}",
        "pid": 100 + rank,
    }
    return {
        "header": {key: changed.get(key, value) for key, value in header.items()},
        "metadata": {key: changed.get(key, value) for key, value in metadata.items()},
    }


def collective(number: int, time: float = 9000, **changed: Any) -> dict[str, Any]:
    values = {
        "coll": "AllReduce",
        "coll_algo": "RING",
        "coll_proto": "SIMPLE",
        "coll_sn": number,
        "coll_msg_size_bytes": 1 << 30,
        "coll_exec_time_us": time,
        "coll_timing_source": "kernel_gpu",
        "coll_algobw_gbs": 119.3,
        "coll_busbw_gbs": 178.9,
    }
    return {"coll_perf": {**values, **changed}}


def batch(rank: int, records: list[dict[str, Any]], version: str = "v4.3") -> list[dict[str, Any]]:
    """The lines of one dump, as a version of the format has them."""
    own = {"coll_records": len(records), "coll_dropped_since_last_dump": 3, "p2p_records": 0}
    marker = {**context(rank, version), "dump_stats": own}
    if version == "v4.3":
        return [marker, *records]
    whole = [{**context(rank, version), **one} for one in records]
    return [marker, *whole] if version == "v4.2" else whole


def read(lines: Iterable[Mapping[str, Any] | bytes]) -> JobLog:
    log = JobLog()
    reader = LinesReader(log)
    reader.read(one if isinstance(one, bytes) else json.dumps(one).encode() for one in lines)
    reader.end()
    return log


def times(log: JobLog) -> dict[int, list[tuple[int, float]]]:
    """Rank -> numbers and times of its operations of the usual kind."""
    members = log.communicators["0x7f"].members if log.communicators else {}
    found = {}
    for rank, member in members.items():
        series = member.series.get(NORMAL)
        found[rank] = list(zip(series.numbers, series.times, strict=True)) if series else []
    return found


@pytest.mark.parametrize("version", ["v4.0", "v4.1", "v4.2", "v4.3"])
def test_all_formats_say_the_same(version: str) -> None:
    log = read([line for rank in (0, 1) for line in batch(rank, [collective(1), collective(2, 8000)], version)])
    assert times(log) == {0: [(1, 9000), (2, 8000)], 1: [(1, 9000), (2, 8000)]}
    one = log.communicators["0x7f"]
    assert (one.name, one.n_ranks, one.n_nodes, one.members[1].host, one.members[1].process) == (
        "dp",
        4,
        2,
        "node0",
        "pid 101",
    )
    lost = {"operations that the ranks did not write, because their buffers were full": 6}
    assert log.problems == (lost if version > "v4.1" else {})
    assert log.versions == {version}


def test_a_batch_has_only_the_lines_that_it_announces() -> None:
    """A line after the batch, and lines after a damaged line, could be of any communicator."""
    lines: list[Any] = [*batch(0, [collective(1)]), collective(2)]
    log = read([*lines, *batch(1, [collective(3), collective(4)])[:2], b'{"coll_perf": {"co', collective(4)])
    assert times(log) == {0: [(1, 9000)], 1: [(3, 9000)]}
    assert log.problems == {
        "operations that the ranks did not write, because their buffers were full": 6,
        "lines without a communicator": 2,
        "damaged lines": 1,
        "announced lines that are missing or follow a damaged line": 1,
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (collective(1, -5), "operations with an impossible time, size or number"),
        (collective(-1), "operations with an impossible time, size or number"),
        (collective(1, coll_msg_size_bytes=0), "operations with an impossible time, size or number"),
        (collective(1, coll="Gossip"), "operations of an unknown name"),
        (collective(1, coll_timing_source="collective_cpu"), "operations whose time is of the CPU, not of the GPU"),
        (context(0, n_ranks=8), "lines whose n_ranks differs from that of other lines of the communicator"),
        (context(7), "lines with a rank that its communicator does not have"),
        (context(0, pid=999), "lines of a rank that another process has too"),
        (context(0, hostname="other"), "lines of a rank that another process has too"),
    ],
)
def test_what_cannot_be_is_counted_and_not_used(line: dict[str, Any], problem: str) -> None:
    log = read([{**context(0, "v4.0"), **collective(1)}, {**context(0, "v4.0"), **collective(2), **line}])
    assert log.problems == {problem: 1}
    assert times(log) == {0: [(1, 9000)]}


def test_sends_have_their_peer() -> None:
    sent = {"p2p": "Send", "p2p_sn": 5, "p2p_peer": 2, "p2p_msg_size_bytes": 1 << 20, "p2p_exec_time_us": 40}
    log = read([{**context(0, "v4.1"), "p2p_perf": sent}, {**context(0, "v4.1"), "p2p_perf": {**sent, "p2p_peer": 9}}])
    member = log.communicators["0x7f"].members[0]
    assert {kind: list(one.times) for kind, one in member.series.items()} == {Kind("send", "", "", 80, 2): [40]}
    assert log.problems == {"lines with a rank that its communicator does not have": 1}


def test_all_ranks_keep_the_same_operations_however_many_there_are() -> None:
    """Ranks that lost different operations keep, of those that both have, the same."""
    log = JobLog()
    member = log.member_of(logs.Communicator("a", 2), 0, "host", "pid 1")
    assert member is not None
    one, other = logs.Series(), logs.Series()
    for number in range(50_000):
        one.add(number, 1.0, log.depth)
        if number % 5:
            other.add(number, 1.0, log.depth)
    assert 16 < len(one.numbers) <= logs.DEPTH
    assert one.count == 50_000
    least = min(one.limit, other.limit)
    alike = [{number for number in each.numbers if logs._mixed(number) < least} for each in (one, other)]
    assert alike[1] == {number for number in alike[0] if number % 5}
    thirds = [sum(1 for number in one.numbers if number * 3 // 50_000 == third) for third in range(3)]
    assert min(thirds) >= 3  # they are of the whole run


def test_a_log_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MOST_SERIES", 3)
    monkeypatch.setattr(logs, "MOST_MEMBERS", 2)
    sizes = [collective(1, coll_msg_size_bytes=1 << power) for power in (20, 22, 24, 26)]
    log = read([line for rank in (0, 1, 2) for line in batch(rank, sizes, "v4.1")])
    assert (log.series, log.members) == (3, 2)
    assert log.problems == {
        "operations beyond the number of kinds that are kept": 5,
        "lines of ranks beyond the number that is kept": 4,
    }


def test_files(tmp_path: Path) -> None:
    """A file that is still being written has an incomplete last line; a file of another kind is not recognised."""
    whole = "".join(json.dumps(line) + "\n" for line in batch(0, [collective(1), collective(2)]))
    (tmp_path / "node0-pid100.log").write_text(whole[:-20])
    (tmp_path / "nccl_inspector_metrics_GPU-12.prom").write_text(METRICS.format(job=7, node=1, gpu=3, rate=178.9))
    (tmp_path / "notes.txt").write_text('{"coll": 1}\nnothing\n')
    forms = {path.name: form_of(str(path)) for path in sorted(tmp_path.iterdir())}
    assert forms == {
        "nccl_inspector_metrics_GPU-12.prom": "metrics",
        "node0-pid100.log": "lines",
        "notes.txt": None,
    }
    log = read_files([(str(tmp_path / name), form) for name, form in forms.items() if form])
    assert times(log) == {0: [(1, 9000)]}
    assert log.problems["last lines that were not complete"] == 1
    member = log.communicators["DP 0 of 4 ranks, job 7"].members[0]
    assert (member.host, member.process, member.gpu) == ("node1", "GPU-12", "GPU3")
    seconds = [time / 1e6 for one in member.series.values() for time in one.times]
    assert seconds == pytest.approx([2**30 * 1.5 / 178.9e9])
    gone = read_files([(str(tmp_path / "gone"), "lines")])
    assert gone.unread == {"No such file or directory": 1}


def test_a_line_without_end_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(
        b"".join(json.dumps(line).encode() + b"\n" for line in batch(0, [collective(1)], "v4.1"))
        + b"{" * (6 << 20)
        + b"\n"
        + b"".join(json.dumps(line).encode() + b"\n" for line in batch(0, [collective(2)], "v4.1"))
    )
    log = read_files([(str(path), "lines")])
    assert times(log) == {0: [(1, 9000), (2, 9000)]}
    assert log.problems == {"damaged lines": 1}


_values = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5)


@given(st.data())
def test_any_value_in_any_field_is_read_or_counted(data: st.DataObject) -> None:
    line = json.loads(json.dumps({**context(0, "v4.1"), **collective(1)}))
    for part in line.values():
        key = data.draw(st.sampled_from(sorted(part)))
        part[key] = data.draw(_values)
    log = read([line])
    kept = sum(
        one.count for each in log.communicators.values() for m in each.members.values() for one in m.series.values()
    )
    assert kept + sum(log.problems.values()) == 1


@given(st.lists(st.binary(max_size=80)))
def test_any_bytes_are_counted(lines: list[bytes]) -> None:
    log = read(lines)
    assert log.communicators == {}
    assert sum(log.problems.values()) == sum(1 for line in lines if line.strip())
