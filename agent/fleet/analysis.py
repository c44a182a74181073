"""The analysis of a fleet with the embedded engine, DuckDB."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import ibis

from ...models.fleet.rows import Row
from ...models.fleet.tables import Fleet, evaluate
from ..inputs.site_file import BadInput
from .files import Found
from .ingest import SCHEMA, Skipped, ingest, write_rows

if TYPE_CHECKING:
    from ibis.expr.types import Table

_MEMORY = "1GB"  # of the engine, which writes to the temporary folder what exceeds it


class Analysis:
    """Rows of reports in a temporary folder and in files of earlier runs, and what was skipped."""

    def __init__(
        self, own: Sequence[str], earlier: Sequence[str], folder: str, reports: int, skipped: Sequence[Skipped] = ()
    ) -> None:
        self.reports = reports  # files that were read; those of earlier runs are not counted
        self.skipped = tuple(skipped)
        self._own, self._earlier = list(own), list(earlier)
        self._engine = ibis.duckdb.connect(
            memory_limit=_MEMORY, temp_directory=os.path.join(folder, "spill"), autoinstall_known_extensions=False
        )

    def fleet(self) -> Fleet:
        """All tables. Raises BadInput if a file of rows is damaged."""
        try:
            return evaluate(self._engine, self._rows())
        except _engine_error() as wrong:
            raise BadInput(f"{', '.join(self._earlier)}: {str(wrong).splitlines()[0]}") from None

    def write(self, path: str) -> None:
        """Write all rows to one Parquet file, which is an input of later runs. Raises BadInput."""
        try:
            self._rows().to_parquet(path)
        except (OSError, _engine_error()) as refused:
            raise BadInput(f"{path}: {str(refused).splitlines()[0]}") from None

    def _rows(self) -> Table:
        """All rows. A file of rows may have the reports of another one: its reports have its name, too."""
        tables = [self._engine.read_parquet(self._own).select(*SCHEMA.names)] if self._own else []
        for file in self._earlier:
            table = self._engine.read_parquet(file).select(*SCHEMA.names)
            tables.append(table.mutate(report=ibis.literal(f"{file}: ") + table.report))
        return ibis.union(*tables)


@contextmanager
def of_files(found: Found) -> Iterator[Analysis]:
    """The analysis of report files. Raises BadInput if none of them holds a report."""
    with TemporaryDirectory(prefix="linkgauge-") as folder:
        rows, skipped = ingest(found.reports, folder)
        for file in found.rows:
            _check(file)
        if not (rows or found.rows):
            first = f": {skipped[0].file}: {skipped[0].why}" if skipped else ""
            raise BadInput(f"no report of linkgauge among {len(found.reports)} files{first}")
        yield Analysis(rows, found.rows, folder, len(found.reports) - len(skipped), skipped)


@contextmanager
def of_rows(rows: Sequence[Row]) -> Iterator[Analysis]:
    """The analysis of rows that come from elsewhere. Raises BadInput if there are none."""
    if not rows:
        raise BadInput("no node of linkgauge there")
    with TemporaryDirectory(prefix="linkgauge-") as folder:
        target = os.path.join(folder, "rows.parquet")
        write_rows(rows, target)
        yield Analysis([target], (), folder, 0)


def _check(file: str) -> None:
    """Refuse a Parquet file with other columns. Raises BadInput."""
    import pyarrow
    import pyarrow.parquet

    try:
        found = {field.name: field.type for field in pyarrow.parquet.read_schema(file)}
    except (OSError, pyarrow.ArrowException) as wrong:
        raise BadInput(f"{file}: {str(wrong).splitlines()[0]}") from None
    for field in SCHEMA:
        if field.name not in found:
            raise BadInput(f"{file}: no rows of linkgauge fleet: the column {field.name} is absent")
        if found[field.name] not in (field.type, pyarrow.large_string(), pyarrow.null()):
            raise BadInput(f"{file}: the column {field.name} has the type {found[field.name]}, not {field.type}")


def _engine_error() -> type[Exception]:
    import duckdb

    error: type[Exception] = duckdb.Error
    return error
