"""Fuzzing of reports of jobs: python -m bench.fuzz.fuzz_jobs [--inputs N] [--first N] [--seed N].

Each input is of a small healthy job, as JSON lines of format v4.3 or v4.2 or as Prometheus texts. Some of its files are
damaged or contradict the others. The reader gets one of these files; every 20th input is a whole folder, from which a
report is made. No exception, no critical finding, and each time below the limit. An input depends only on its number
and the seed. The exit code is 1 if one failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from bench.accuracy.jobs.cluster import layout, table_of_ranks
from bench.accuracy.jobs.simulate import log_of, machines, simulate
from bench.accuracy.jobs.text import write_files
from bench.fuzz.mutations import changed
from linkgauge.agent.inputs.inspector import found_in
from linkgauge.exporters.formats.json import as_json
from linkgauge.exporters.text.report import as_text
from linkgauge.models.jobs.evaluate import evaluate_job
from linkgauge.models.jobs.node_reports import node_reports
from linkgauge.models.jobs.placement import read_rows
from linkgauge.models.report import Finding, Report
from linkgauge.probes.jobs.inspector_files import read_files

NODES, STEPS = 2, 10
THROUGH = 20  # every 20th input becomes a report
SECONDS = 5.0  # processor time of one input; other processes disturb it
ODD: Sequence[Any] = (
    *(-1, 0, 1, 2**31, 2**63, 2**64, 10**400, -(10**30), 1.5, 1e308, float("nan"), float("inf"), -float("inf")),
    *(None, True, "", "x" * 5000, "\ud800", "\x00", "../../x", "\x1b[31m", [], {}, [[]] * 50, {"id": {}}),
)
METRIC = (
    'nccl_bus_bandwidth_gbs{{version="v5.1",slurm_job_id="4711",node="node{node}",gpu="GPU{gpu}",comm_name="DP {gpu}",'
    'n_nodes="4",nranks="4",collective="AllReduce",message_size="512-513MB",algo_proto="Ring_simple"}} {rate}\n'
)
Files = dict[str, bytes]
Damage = Callable[[Random, bytes, bytes], bytes]  # the file, and another one of the job


def value(chance: Random, text: bytes, other: bytes) -> bytes:
    """Replace a value in some of the lines."""
    lines = text.splitlines(keepends=True)
    odd, share = chance.choice(ODD), chance.choice((0.05, 0.5, 1.0))
    where = chance.randrange(100)
    for index, line in enumerate(lines):
        if chance.random() < share:
            lines[index] = _with_value(line, where, odd)
    return b"".join(lines)


def _with_value(line: bytes, where: int, odd: object) -> bytes:
    try:
        made = json.loads(line)
    except ValueError:
        return line
    inside = list(made.values())[where % len(made)] if isinstance(made, dict) and made else None
    target = inside if isinstance(inside, dict) and inside and where >= 10 else made
    if not isinstance(target, dict) or not target:
        return line
    target[list(target)[where % len(target)]] = odd
    return json.dumps(made).encode() + b"\n"


def shifted(chance: Random, text: bytes, other: bytes) -> bytes:
    """Multiply a number of all lines: other clocks, times, sizes, ranks, numbers of operations."""
    key = chance.choice(
        (
            "rank",
            "n_ranks",
            "pid",
            "dump_timestamp_us",
            "coll_sn",
            "coll_msg_size_bytes",
            "coll_exec_time_us",
            "coll_records",
        )
    )
    by = chance.choice((-1, 0, 2, 1000, 10**12))
    lines = []
    for line in text.splitlines():
        try:
            made = json.loads(line)
        except ValueError:
            continue
        for part in made.values() if isinstance(made, dict) else ():
            if isinstance(part, dict) and isinstance(part.get(key), int):
                part[key] *= by
        lines.append(json.dumps(made))
    return "".join(f"{line}\n" for line in lines).encode()


def lines_changed(chance: Random, text: bytes, other: bytes) -> bytes:
    """Drop, repeat, mix or exchange lines, also with those of another file."""
    lines, others = text.splitlines(keepends=True), other.splitlines(keepends=True)
    match chance.randrange(6):
        case 0:
            lines = [line for line in lines if chance.random() < 0.7]
        case 1:
            chance.shuffle(lines)
        case 2:
            lines = [each for line in lines for each in (line, line)]
        case 3:
            lines += others
        case 4:
            lines = [each for pair in zip(lines, others, strict=False) for each in pair]
        case _:
            lines = others
    return b"".join(lines)


def octets(chance: Random, text: bytes, other: bytes) -> bytes:
    """Cut, empty or overwrite the file."""
    at = chance.randrange(len(text) + 1)
    match chance.randrange(8):
        case 0:
            return text[:at]
        case 1:
            return b""
        case 2:
            return chance.randbytes(chance.randrange(3000))
        case 3:
            return text[:at] + chance.randbytes(20) + text[at:]
        case 4:
            return text.replace(b"\n", chance.choice((b"\r\n", b"\r", b"", b"\n\n", b"\x00")))
        case 5:
            return b"\xef\xbb\xbf" + text
        case 6:
            return text.decode("utf-8", "replace").encode("utf-16")
    return text[:at] + b"{" * chance.choice((10, 100_000)) + text[at:]


def any_text(chance: Random, text: bytes, other: bytes) -> bytes:
    """As the fuzzer of dump readers changes texts."""
    words = [one.decode("utf-8", "replace") for one in (text, other)]
    return changed(chance, words[:1], words[1:]).encode("utf-8", "replace")


DAMAGES: Sequence[Damage] = (value, value, shifted, lines_changed, octets, any_text)


def jobs() -> Iterator[tuple[str, Files]]:
    """Name and files of healthy jobs."""
    for name, version in (("tensor+sharded", "v4.3"), ("tensor+pipeline+data", "v4.2"), ("expert+data", "v4.3")):
        made = layout(name, NODES)
        log = log_of(made, simulate(made, [], 0.02, STEPS, np.random.default_rng(1)))
        with tempfile.TemporaryDirectory() as folder:
            write_files(Path(folder), log, version)
            yield f"{name} {version}", {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    texts = {
        f"nccl_inspector_metrics_{node}-{gpu}.prom": METRIC.format(node=node, gpu=gpu, rate=35 + gpu / 10).encode()
        for node in range(4)
        for gpu in range(4)
    }
    yield "metrics", texts


def damaged(chance: Random, files: Mapping[str, bytes], count: int) -> Files:
    """So many of the files, changed."""
    found = {}
    for name in chance.sample(sorted(files), count):
        text = files[name]
        for _ in range(chance.choice((1, 1, 2))):
            text = chance.choice(DAMAGES)(chance, text, files[chance.choice(sorted(files))])
        found[name] = text
    return found


def report_of(folder: Path, chance: Random) -> Report:
    """The report of the folder, rendered in each format."""
    log = read_files(found_in([str(folder)]).files)
    rows = read_rows(table_of_ranks(layout("tensor+data", NODES))) if chance.random() < 0.5 else ()
    report = evaluate_job(log, 0.0, rows, machines(NODES) if chance.random() < 0.5 else None)
    as_json(report)
    as_text(report, False, "full")
    if chance.random() < 0.1:
        for one in node_reports(report, log):
            as_json(one)
    return report


@contextmanager
def exchanged(folder: Path, healthy: Mapping[str, bytes], other: Mapping[str, bytes]) -> Iterator[None]:
    """The other files instead of the healthy ones."""
    for name, text in other.items():
        (folder / name).write_bytes(text)
    try:
        yield
    finally:
        for name in other:
            if name in healthy:
                (folder / name).write_bytes(healthy[name])
            else:
                (folder / name).unlink()


def check(number: int, seed: int, root: Path, known: Mapping[str, Files]) -> Sequence[Finding]:
    """Read one input; every THROUGH-th one with the other files of its job, to a report."""
    chance = Random(f"{seed} {number}")
    name = chance.choice(sorted(known))
    whole = number % THROUGH == 0
    other = damaged(chance, known[name], chance.choice((1, 1, 2, 3, len(known[name]))) if whole else 1)
    folder = root / (name if whole else "alone")
    with exchanged(folder, known[name] if whole else {}, other):
        began = time.process_time()
        found = report_of(folder, chance).findings if whole else ()
        if not whole:
            read_files(found_in([str(folder)]).files)
        assert all(one.severity != "critical" for one in found), found
        assert (took := time.process_time() - began) < SECONDS, f"{took:.1f} s"
    return found


def main() -> int:
    """Run the inputs, and print what failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    failed, counts, known = 0, Counter[str](), dict(jobs())
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, files in (*known.items(), ("alone", {})):
            (root / name).mkdir()
            for each, text in files.items():
                (root / name / each).write_bytes(text)
        for number in range(asked.first, asked.first + asked.inputs):
            try:
                found = check(number, asked.seed, root, known)
            except Exception:
                failed += 1
                print(f"input {number} of seed {asked.seed}:\n{traceback.format_exc()}", flush=True)
            else:
                counts.update({f"{one.code} {one.confidence}" for one in found})
    reports = asked.inputs // THROUGH
    print(f"{asked.inputs} inputs, {reports} reports, {failed} failed; reports with {dict(sorted(counts.items()))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
