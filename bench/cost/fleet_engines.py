"""The tables of a fleet from two engines: python -m bench.cost.fleet_engines [REPORTS]

The same Ibis expressions run on DuckDB, which linkgauge embeds, and on Polars, each in a process of its own. Prints
seconds and memory of the evaluation of the rows, without the reading of reports. The exit code is 1 if a table differs.
"""

from __future__ import annotations

import os
import pickle
import resource
import subprocess
import sys
import time
from tempfile import TemporaryDirectory

from tests.support.fleet.reports import write

ENGINES = ("duckdb", "polars")
REPORTS = 10_000


def evaluated(engine: str, rows: str, target: str) -> None:
    """Evaluate the rows in this process. Prints seconds, seconds of processors and the highest memory in MB."""
    import ibis

    from linkgauge.models.fleet.tables import evaluate

    connection = getattr(ibis, engine).connect()
    table = connection.read_parquet(rows, table_name="rows")
    start, before = time.perf_counter(), time.process_time()
    fleet = evaluate(connection, table)
    taken, used = time.perf_counter() - start, time.process_time() - before
    with open(target, "wb") as file:
        pickle.dump(fleet.tables, file)
    print(f"{taken:8.1f} {used:12.1f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:6.0f}")


def main(reports: int) -> int:
    """Print a line for each engine, and compare their tables."""
    import pandas

    tables = []
    print(f"{'engine':8} {'seconds':>8} {'processor s':>12} {'MB':>6}   {reports} reports", flush=True)
    with TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "reports"))
        write(os.path.join(folder, "reports"), reports)
        rows = os.path.join(folder, "rows.parquet")
        words = ["fleet", os.path.join(folder, "reports"), "--table", "rows", "--format", "parquet", "-o", rows]
        subprocess.run([sys.executable, "-m", "linkgauge", *words], check=True)
        for engine in ENGINES:
            target = os.path.join(folder, engine)
            command = [sys.executable, "-m", __spec__.name, engine, rows, target]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            print(f"{engine:8} {done.stdout.rstrip()}", flush=True)
            with open(target, "rb") as file:
                tables.append(pickle.load(file))
    for name, table in tables[0].items():
        pandas.testing.assert_frame_equal(table, tables[1][name], check_dtype=False, obj=name)
        print(f"{name}: {len(table)} rows, equal")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ENGINES:
        evaluated(*sys.argv[1:])
    else:
        sys.exit(main(int((sys.argv[1:] or [str(REPORTS)])[0])))
