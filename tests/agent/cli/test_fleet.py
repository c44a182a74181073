"""`linkgauge fleet`: files, formats, and errors that name the remedy."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from linkgauge.agent.cli.main import main
from linkgauge.models.fleet.rows import Row
from linkgauge.models.site.schema import read_site
from tests.support.fleet.reports import write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_spec("ibis"), reason="the extra [fleet] is not installed"),
]


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["fleet", *map(str, words)], prog_name="linkgauge")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reports of twelve nodes, of which one is broken, and two files that are no reports."""
    folder = tmp_path_factory.mktemp("reports")
    write(str(folder), 12)
    (folder / "below").mkdir()
    (folder / "below" / "other.json").write_text('{"schema": "linkgauge.report/2"}')
    (folder / "cut.json").write_text("{")
    return folder


def test_the_text(folder: Path) -> None:
    done = run(folder)
    lines = done.stdout.splitlines()
    assert (done.exit_code, lines[0]) == (0, "FLEET  12 nodes, 1 machine type, 2 files skipped")
    assert lines[3].split() == ["hgx-h100-8", "12", *lines[3].split()[2:]]
    assert "1 node to drain, 0 to inspect; the first to repair first" in lines
    assert done.stderr.splitlines()[0].startswith(f"Warning: {folder}/below/other.json: Invalid enum value")


def test_reports_with_one_name_are_one_node(folder: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.json").write_text((folder / "node00001.json").read_text())
    done = run(tmp_path)
    assert done.stderr == "Warning: 2 reports have 1 names of nodes: only the newest of each name counts\n"
    assert done.stdout.startswith("FLEET  1 node, 1 machine type\n")


def test_rows_as_parquet_are_an_input(folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    assert run(folder, "--format", "parquet", "--table", "rows", "-o", rows).exit_code == 0
    tables = [
        run(path, "--format", "csv", "--table", "reasons").stdout for path in (folder, rows, f"{tmp_path}/*.parquet")
    ]
    assert tables[0] == tables[1] == tables[2]
    assert tables[0].startswith("node,machine,action,cost,factor,source,what,position,text,value,usual\n")


def test_the_same_reports_twice_count_once(folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    run(folder, "--format", "parquet", "--table", "rows", "-o", rows)
    assert (
        run(folder, rows, "--format", "csv", "--table", "cohorts").stdout
        == run(folder, "--format", "csv", "--table", "cohorts").stdout
    )


def test_the_exported_site_file_is_valid(folder: Path, tmp_path: Path) -> None:
    site = tmp_path / "site.toml"
    assert run(folder, "--export", site, "-o", tmp_path / "text").exit_code == 0
    (machine,) = read_site(site.read_text()).machine
    assert (machine.name, machine.gpus, machine.source) == ("hgx-h100-8", 8, "12 nodes of this fleet")


def test_the_page_is_complete(folder: Path) -> None:
    page = run(folder, "--format", "html").stdout
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    assert "http" not in page.replace("http-equiv", "")


def parquet_files(folder: Path) -> dict[str, Path]:
    """Files of other columns, with another type of a column, and with damaged pages."""
    import pyarrow.parquet

    files = {name: folder / f"{name}.parquet" for name in ("other", "typed", "holed")}
    columns = {name: ["x" * 100] * 50 for name in Row._fields}
    pyarrow.parquet.write_table(pyarrow.table({"other": [1]}), files["other"])
    pyarrow.parquet.write_table(pyarrow.table(columns), files["typed"])
    pyarrow.parquet.write_table(pyarrow.table({**columns, "number": [float(n) for n in range(50)]}), files["holed"])
    content = files["holed"].read_bytes()
    files["holed"].write_bytes(content[:4] + bytes(600) + content[604:])
    return files


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ((), "name reports (files, folders, patterns), or --prometheus URL"),
        (("absent",), "absent: no such file or folder"),
        (("{empty}",), "no file *.json or *.parquet there: write reports with linkgauge diagnose --format json"),
        (("{cut}",), "no report of linkgauge among 1 files: {cut}: Input data was truncated"),
        (("{bad}",), "{bad}: Parquet magic bytes not found in footer."),
        (("{other}",), "{other}: no rows of linkgauge fleet: the column report is absent"),
        (("{typed}",), "{typed}: the column number has the type string, not double"),
        (("{holed}",), "Error: {holed}: "),
        (("{cut}", "--format", "parquet"), "--format parquet needs --output FILE"),
        (("{cut}", "--table", "gaps"), "--table is for csv and parquet: leave it out with --format text"),
    ],
)
def test_errors(folder: Path, tmp_path: Path, words: tuple[str, ...], error: str) -> None:
    (tmp_path / "empty").mkdir()
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"no parquet at all")
    names = {"empty": tmp_path / "empty", "cut": folder / "cut.json", "bad": bad, **parquet_files(tmp_path)}
    done = run(*(word.format(**names) for word in words))
    assert done.exit_code == 64
    assert error.format(**names) in done.stderr
