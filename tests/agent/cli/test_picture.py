"""`linkgauge topology --format svg`: a file, a path by any names, and mistakes of the user."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from linkgauge.agent.cli.main import main
from linkgauge.probes.host.recorded import dump
from tests.support.nodes.described import node


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("node") / "hgx.capture"
    file.write_text(dump(node("hgx-h100")))
    return file


def topology(capture: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["topology", "--from", str(capture), *options])


def test_a_picture_in_a_file(capture: Path, tmp_path: Path) -> None:
    file = tmp_path / "node.svg"
    assert topology(capture, "--format", "svg", "-o", str(file)).exit_code == 0
    assert file.read_text().startswith("<svg xmlns=")


@pytest.mark.parametrize(("one", "two"), [("gpu1", "numa0"), ("module 2", "NUMA0"), ("1e:00.0", "numa0")])
def test_a_path_takes_any_name(capture: Path, one: str, two: str) -> None:
    assert (
        "bottleneck gpu1 to 0000:1a:03.0, 63.0 GB/s" in topology(capture, "--format", "svg", "--path", one, two).output
    )


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--path", "gpu0", "gpu1"), "Error: --path marks a path in a picture: add --format svg"),
        (("--format", "svg", "--path", "gpu0", "gpu9"), "Error: --path gpu0 gpu9: "),
        (("--format", "svg", "--path", "gpu0", "gpu*"), "Error: --path gpu0 gpu*: name one of gpu0, gpu1, "),
        (("--format", "svg", "--path", "gpu0", "lo"), "Error: --path gpu0 lo: no links connect them; "),
        (("--format", "svg", "--rates"), "Error: --matrix, --rates, --copies and --conflicts are text: "),
    ],
)
def test_a_mistake_gives_one_line(capture: Path, options: tuple[str, ...], line: str) -> None:
    result = topology(capture, *options)
    assert result.exit_code in (2, 64)
    assert line in result.output
