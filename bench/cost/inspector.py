"""How fast `linkgauge diagnose` reads the output of the NCCL Inspector, and in how much memory.

python -m bench.cost.inspector [--ranks 512] [--steps 1000 2000 4000]: for each number of steps, the size of the files,
the seconds and megabytes per second of one processor, and the resident memory. It must not grow with the steps.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.accuracy.jobs.cluster import GPUS, host_of

_CHILD = """
import resource, sys
from linkgauge.agent.inputs.inspector import found_in
from linkgauge.models.jobs.evaluate import evaluate_job
from linkgauge.probes.jobs.inspector_files import read_files
found = found_in(sys.argv[1:])
log = read_files(found.files)
read = resource.getrusage(resource.RUSAGE_SELF)
evaluate_job(log, 0.0)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(log.bytes, log.lines, read.ru_utime + read.ru_stime, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""


def write(folder: Path, ranks: int, steps: int) -> None:
    """One file per rank, format v4.3: two collectives in each step, one inside the node and one over all nodes."""
    chance = np.random.default_rng(1)
    for rank in range(ranks):
        node, gpu = divmod(rank, GPUS)
        with (folder / f"{host_of(node)}-pid{gpu}.log").open("w") as file:
            for name, own, of, size in ((f"tp{node}", gpu, GPUS, 1 << 26), (f"dp{gpu}", node, ranks // GPUS, 1 << 29)):
                times = chance.normal(size / 1e4, size / 1e6, steps).astype(int)
                file.write(json.dumps(_marker(name, own, of, host_of(node), gpu, steps)) + "\n")
                file.writelines(_LINE % (step, size, time) for step, time in enumerate(times))


_LINE = (
    '{"coll_perf":{"coll":"AllReduce","coll_algo":"RING","coll_proto":"SIMPLE","coll_sn":%d,"coll_msg_size_bytes":%d,'
    '"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":277.210914,"coll_busbw_gbs":485.119}}\n'
)


def _marker(name: str, rank: int, of: int, host: str, pid: int, records: int) -> dict[str, object]:
    return {
        "header": {"id": name, "comm_name": name, "rank": rank, "n_ranks": of, "nnodes": 1},
        "metadata": {
            "inspector_output_format_version": "v4.3",
            "dump_timestamp_us": 1748030377748202,
            "hostname": host,
            "pid": pid,
        },
        "dump_stats": {"coll_records": records, "p2p_records": 0},
    }


def main() -> None:
    """Print one line for each number of steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=512)
    parser.add_argument("--steps", type=int, nargs="*", default=[250, 1000, 4000])
    asked = parser.parse_args()
    for steps in asked.steps:
        with tempfile.TemporaryDirectory() as folder:
            write(Path(folder), asked.ranks, steps)
            line = [sys.executable, "-c", _CHILD, folder]
            done = subprocess.run(line, capture_output=True, text=True, check=True, env=os.environ)
        size, lines, read, whole, resident = map(float, done.stdout.split())
        print(
            f"{asked.ranks} ranks, {steps} steps: {size / 1e6:.0f} MB, {lines:.0f} lines; read in {read:.1f} s of a "
            f"processor, {size / read / 1e6:.0f} MB/s; with evaluation {whole:.1f} s; {resident / 1e3:.0f} MB resident"
        )


if __name__ == "__main__":
    main()
