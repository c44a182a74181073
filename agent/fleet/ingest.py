"""From report files to Parquet files of rows, in two processes: the engine reads them without holding all in memory."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
import pyarrow
import pyarrow.parquet

from ...models.fleet.rows import Row, Summary, rows_of
from ...probes.calls.bounded_read import bounded_read

_MOST = 256 << 20  # bytes of a report
_CHUNK = 200  # reports of one Parquet file, about 60,000 rows
_FEW = 400  # reports that one process reads faster than two, which have to start first
_PROCESSES = 2
SCHEMA = pyarrow.schema([(name, pyarrow.float64() if name == "number" else pyarrow.string()) for name in Row._fields])
_decoder = msgspec.json.Decoder(Summary)


class Skipped(msgspec.Struct, frozen=True):
    """A file that holds no report of this version."""

    file: str
    why: str


def ingest(reports: Sequence[str], folder: str) -> tuple[list[str], list[Skipped]]:
    """Write the rows of the reports to Parquet files in the folder. Returns their paths, and what was skipped."""
    chunks = [reports[start : start + _CHUNK] for start in range(0, len(reports), _CHUNK)]
    targets = [os.path.join(folder, f"rows-{number:05}.parquet") for number in range(len(chunks))]
    skipped = list(chain.from_iterable(_each(chunks, targets)))
    return [target for target in targets if os.path.exists(target)], skipped


def _each(chunks: Sequence[Sequence[str]], targets: Sequence[str]) -> Iterator[list[Skipped]]:
    if sum(map(len, chunks)) <= _FEW:
        yield from map(_write, chunks, targets)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Rows form no cycles, and the search for cycles takes 40 % of the time.
    with ProcessPoolExecutor(_PROCESSES, get_context("spawn"), gc.disable) as pool:
        yield from pool.map(_write, chunks, targets)


def _write(files: Sequence[str], target: str) -> list[Skipped]:
    """Write the rows of these reports."""
    rows: list[Row] = []
    skipped = []
    for file in files:
        try:
            rows += rows_of(_decoder.decode(bounded_read(file, _MOST)), file)
        except OSError as refused:
            skipped.append(Skipped(file, refused.strerror or str(refused)))
        except (ValueError, RecursionError) as wrong:  # no JSON, no report, too large
            skipped.append(Skipped(file, str(wrong)))
    if rows:
        write_rows(rows, target)
    return skipped


def write_rows(rows: Sequence[Row], target: str) -> None:
    """Write rows as Parquet."""
    arrays = [pyarrow.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, schema=SCHEMA), target, compression="zstd")
