"""The command line as users run it: its arguments, and one sentence and exit code 64 for each mistake."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from linkgauge import __version__
from linkgauge.agent.cli.main import main
from linkgauge.agent.cli.output.exits import EXIT
from linkgauge.models.catalog import codes
from tests.support.nodes.trees import write
from tests.support.programs.command_line import COMMAND, PATHS, linkgauge

pytestmark = pytest.mark.e2e

FULL = Path("/dev/full")
NCCL = """\
#  Rank  0 Group  0 Pid   6899 on   node-1 device  0 [0000:04:00] NVIDIA Größe \u2713
#       size     count    type   redop    root    time   algbw   busbw #wrong    time   algbw   busbw #wrong
 17179869184  4294967296   float     sum      -1   62239  276.03  483.05      0   62200  276.20  483.35      0
"""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wrong inputs and some right ones."""
    folder = tmp_path_factory.mktemp("inputs")
    write(folder / "root", {"sys/class/net/eth0/mtu": "1500", "proc/sys/kernel/hostname": "node-1"})
    assert linkgauge("capture", "capture", "--root", "root", cwd=folder).returncode == 0
    capture = (folder / "capture").read_text()
    write(
        folder,
        {
            "half": capture[: len(capture) // 2],
            "version": capture.replace("capture 1", "capture 99", 1),
            "text": "hello",
            "nccl": NCCL,
            "unknown.toml": "speed = 1",
            "broken.toml": "ignore = [",
            "codes.toml": "ignore = { speed = 'x' }",
            "dumps/nccl": NCCL,
            "wrong.toml": "fabric = 1",
        },
    )
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "latin.toml").write_bytes(b"\xff\xfe")
    (folder / "loop").symlink_to("loop")
    (folder / "empty").mkdir()
    (folder / "links").mkdir()
    (folder / "links/nccl").symlink_to("../nccl")
    os.mkfifo(folder / "pipe")
    with open(folder / "sparse", "wb") as file:
        file.truncate(1 << 30)
    return folder


MISTAKES = {
    "diagnose --root none": "--root none: No such file or directory",
    "diagnose --root empty": "--root empty: holds neither sys nor proc",
    "diagnose --root text": "--root text: not a folder",
    "diagnose --root loop": "--root loop: Too many levels of symbolic links",
    "diagnose --root ''": "--root : No such file or directory",
    "diagnose --from none": "--from none: No such file or directory",
    "diagnose --from ''": "--from : No such file or directory",
    "diagnose --from empty": "--from empty: the folder is empty",
    "diagnose --from binary": "--from binary: a binary file",
    "diagnose --from half": "--from half: line ",
    "diagnose --from version": "--from version: line 1: this is capture format 99, and only format 1 is known here",
    "diagnose --from loop": "--from loop: Too many levels of symbolic links",
    "diagnose --from sparse": "--from sparse: larger than 256 MB",
    "diagnose --from pipe": "--from pipe: not a plain file",
    "diagnose --from /dev/zero": "--from /dev/zero: not a plain file",
    "diagnose --from capture --root root": "--from and --root exclude each other",
    "diagnose --from '' --root root": "--from and --root exclude each other",
    "topology --from half": "--from half: line ",
    "topology --root empty": "--root empty: holds neither sys nor proc",
    "diagnose --from capture --site none": "--site none: No such file or directory",
    "diagnose --from capture --site ''": "--site : No such file or directory",
    "diagnose --from capture --site empty": "--site empty: not a plain file",
    "diagnose --from capture --site unknown.toml": "--site unknown.toml: speed: unknown key",
    "diagnose --from capture --site broken.toml": "--site broken.toml: ",
    "diagnose --from capture --site wrong.toml": "--site wrong.toml: fabric: expected array, got int",
    "diagnose --from capture --site latin.toml": "--site latin.toml: ",
    "diagnose --from capture --site sparse": "--site sparse: larger than 256 MB",
    "diagnose --from capture --output none/report": "none/report: No such file or directory",
    "diagnose --from capture --output empty": "empty: Is a directory",
    "diagnose --from capture --format xml": "'xml' is not one of 'text', 'json'",
    "diagnose --from capture further": "Got unexpected extra argument (further)",
    "diagnose --fast": "No such option",
    "diagnose --from": "Option '--from' requires an argument",
    "diagnos": "No such command 'diagnos'",
    "--fast": "No such option",
    "capture": "Missing argument 'FILE'",
    "capture none/capture --root root": "none/capture: No such file or directory",
    "capture - --root empty": "--root empty: holds neither sys nor proc",
    "capture - --synthetic none": "--synthetic none: No such file or directory",
    "capture - --synthetic ''": "--synthetic : No such file or directory",
    "capture - --synthetic broken.toml": "--synthetic broken.toml: ",
    "capture - --synthetic unknown.toml": "--synthetic unknown.toml: ",
    "explain link": "no finding has the code 'link'; 'linkgauge explain' lists them",
    "explain nvlink-inactiv": "no finding has the code 'nvlink-inactiv'; did you mean 'nvlink-inactive'?",
    "topology --matrix --format json": "--matrix, --rates, --copies and --conflicts are text: leave out --format json",
    "topology --rates --copies": "--rates and --copies exclude each other",
    "topology --rates --conflicts": "--rates and --conflicts exclude each other",
    "topology --with-tools --from capture": "--with-tools runs the tools of this machine: leave out",
    "diagnose --with-tools --root empty": "--with-tools runs the tools of this machine",
    "diagnose --from capture --ignore gpu-xids": "--ignore: no finding has the code 'gpu-xids'; did you",
    "diagnose --from capture --site codes.toml": "--site codes.toml: [ignore]: no finding has the code 'speed'",
    "ticket": "Missing argument 'SUBJECT'",
    "ticket nobody --from capture": "this node has no device 'nobody'; 'linkgauge topology' lists all names",
    "serve --from capture": "--from is another machine: leave out --root, and pass a --state-dir",
    "serve --from capture --state-dir state --root root": "--from is another machine: leave out --root",
    "serve --from nccl --state-dir state": "--from nccl: not a capture; 'linkgauge diagnose --from' reads",
    "serve --from none --state-dir state": "--from none: No such file or directory",
    "completion tcsh": "'tcsh' is not one of 'bash', 'zsh', 'fish'",
}


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_sentence_and_no_report(inputs: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: the interpreter's start would take most of the time."""
    monkeypatch.chdir(inputs)
    arguments = ["" if argument == "''" else argument for argument in command.split()]
    done = CliRunner().invoke(main, arguments, prog_name="linkgauge")
    check_mistake(command, done.exit_code, done.stdout, done.stderr)


@pytest.mark.parametrize("command", ["diagnose --from half", "serve --from none --state-dir state", "--fast"])
@pytest.mark.slow
def test_a_mistake_in_a_process_of_its_own(inputs: Path, command: str) -> None:
    done = linkgauge(*command.split(), cwd=inputs)
    check_mistake(command, done.returncode, done.stdout, done.stderr)


def check_mistake(command: str, code: int, output: str, errors: str) -> None:
    assert (code, output) == (64, "")
    *usage, sentence = errors.splitlines()
    assert sentence.startswith("Error: ")
    assert MISTAKES[command] in sentence
    assert sentence.isprintable()
    assert usage == [] or usage[0].startswith("Usage: linkgauge ")


def test_without_a_command_there_is_help() -> None:
    done = linkgauge()
    assert done.returncode in (0, 64)  # click before 8.2 treats this as a request for help, not as a mistake
    assert "Inspect:" in done.stdout + done.stderr


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    "command",
    ["diagnose --from capture --output", "diagnose --from capture --format json --output", "capture --root root"],
)
@pytest.mark.slow
def test_a_full_disk_is_named(inputs: Path, command: str) -> None:
    done = linkgauge(*command.split(), str(FULL), cwd=inputs)
    assert (done.returncode, done.stdout, done.stderr) == (64, "", "Error: /dev/full: No space left on device\n")


PRINTING = (
    "diagnose --from capture",
    "diagnose --from capture --format json",
    "topology --from capture",
    "explain",
    "capture - --root root",
    "explain pcie-link-narrow",
    "completion bash",
    "--version",
    "--help",
    "diagnose --help",
)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", PRINTING)
@pytest.mark.slow
def test_a_full_disk_under_standard_output(inputs: Path, command: str) -> None:
    with FULL.open("w") as full:
        done = linkgauge(*command.split(), cwd=inputs, stdout=full)
    assert (done.returncode, done.stderr) == (64, "Error: standard output: No space left on device\n")


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
def test_a_full_disk_under_standard_error_keeps_the_exit_code() -> None:
    """And 1 would mean a degraded node."""
    with FULL.open("w") as full:
        assert linkgauge("diagnose", "--from", "none", stderr=full).returncode == 64
        assert linkgauge("diagnose", "--fast", stderr=full).returncode == 64


@pytest.mark.parametrize("command", PRINTING)
@pytest.mark.slow
def test_a_reader_that_left(inputs: Path, command: str) -> None:
    """As `| head` does: it is no fault, and the exit code is no verdict."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = linkgauge(*command.split(), cwd=inputs, stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.slow
def test_closed_streams_keep_the_exit_code(inputs: Path, closed: str) -> None:
    shell = ("sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND)
    for arguments, expected in (
        (("--from", "nccl"), 3),
        (("--root", "root", "--passive"), 3),
        (("--from", "none"), 64),
    ):
        done = subprocess.run([*shell, "diagnose", *arguments], cwd=inputs, env=PATHS, capture_output=True, timeout=60)
        assert done.returncode == expected
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "source", ["--from capture", "--root root", "--from nccl", "--from dumps", "--from links/nccl"]
)
def test_the_exit_code_is_the_verdict(inputs: Path, source: str) -> None:
    done = linkgauge("diagnose", "--passive", "--format", "json", *source.split(), cwd=inputs)
    report = json.loads(done.stdout)
    assert done.returncode == EXIT[report["verdict"]]
    assert done.stderr == ""
    assert report["node"] == {"--root root": "node-1", "--from capture": "some-node-1"}.get(source)
    assert [level["observed"] for level in report["levels"]] == (
        [483.05e9] if source.split()[1] in ("nccl", "dumps", "links/nccl") else []
    )


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.slow
def test_a_report_in_a_file(inputs: Path, tmp_path: Path, form: str) -> None:
    """The same as on standard output, apart from how long it took."""
    source = ("diagnose", "--from", "nccl", "--format", form)
    printed = linkgauge(*source, cwd=inputs)
    kept = linkgauge(*source, "--output", str(tmp_path / "report"), cwd=inputs)
    assert (kept.returncode, kept.stdout, kept.stderr) == (printed.returncode, "", "")
    text = (tmp_path / "report").read_text()
    times = r"[0-9-]{10}T[0-9:]{8}Z|[0-9]+\.[0-9]+ s\b|\"(seconds|at)\": [0-9.e-]+"
    assert re.sub(times, "", text) == re.sub(times, "", printed.stdout)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


def test_a_capture_in_a_file_and_on_standard_output(inputs: Path) -> None:
    printed = linkgauge("capture", "-", "--root", "root", cwd=inputs).stdout
    kept = (inputs / "capture").read_text()
    assert printed.splitlines()[2:] == kept.splitlines()[2:]  # but for the time
    assert printed[-20:] == kept[-20:]


def test_letters_that_the_terminal_does_not_have(inputs: Path) -> None:
    """Older locales: the names of devices are the makers' own."""
    done = linkgauge("topology", "--from", "nccl", cwd=inputs, env={"PYTHONIOENCODING": "latin-1"}, encoding="latin-1")
    assert done.returncode == 0
    assert "NVIDIA Größe \\u2713" in done.stdout


def test_names_of_files_that_are_no_text(tmp_path: Path) -> None:
    """A dump may be called anything; the report stays text of one encoding."""
    names = (b"a\xff", b"b\x1b[2J\nVERDICT ok", "c\u202e".encode())
    for name in names:
        (tmp_path / os.fsdecode(name)).write_text("nothing")
    (tmp_path / "d").symlink_to("/etc/hostname")
    done = linkgauge("diagnose", "--from", str(tmp_path), "--format", "json")
    subjects = [lost["subject"] for lost in json.loads(done.stdout)["not_checked"] if lost["what"] == "dump"]
    assert subjects == ["a\ufffd", "b\x1b[2J\nVERDICT ok", "c\u202e", "d"]
    shown = linkgauge("diagnose", "--from", str(tmp_path))
    assert shown.returncode == done.returncode == EXIT["unknown"]
    assert "\x1b" not in shown.stdout
    assert "\nVERDICT" not in shown.stdout
    assert "copy the file into the folder" in linkgauge("diagnose", "-v", "--from", str(tmp_path)).stdout
    assert linkgauge("topology", "--from", str(tmp_path), "--format", "json").returncode == 0


def test_the_version() -> None:
    done = linkgauge("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"linkgauge, version {__version__}\n", "")


@pytest.mark.parametrize("name", ["", *main.commands])
@pytest.mark.parametrize("columns", ["80", "300"])
def test_help(name: str, columns: str) -> None:
    shown = CliRunner().invoke(main, [*name.split(), "-h"], prog_name="linkgauge", env={"COLUMNS": columns})
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"Usage: linkgauge {name}".rstrip())
    assert lines[2].strip()
    assert max(map(len, lines)) < 100
    assert (
        shown.stdout
        == CliRunner().invoke(main, [*name.split(), "--help"], prog_name="linkgauge", env={"COLUMNS": columns}).stdout
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, tmp_path: Path) -> None:
    script = linkgauge("completion", shell).stdout
    assert f"_LINKGAUGE_COMPLETE={shell}_complete" in script
    if shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True, timeout=60)
    words = {"COMP_WORDS": "linkgauge dia", "COMP_CWORD": "dia" if shell == "fish" else "1"}
    assert "diagnose" in linkgauge(env={"_LINKGAUGE_COMPLETE": f"{shell}_complete", **words}).stdout


def test_explain_lists_every_code_and_explains_each() -> None:
    listing = CliRunner().invoke(main, ["explain"])
    assert listing.exit_code == 0
    assert [line.split()[0] for line in listing.stdout.splitlines() if not line.startswith(" ")] == list(codes())
    for code, meaning in codes().items():
        shown = CliRunner().invoke(main, ["explain", code])
        assert shown.exit_code == 0
        assert shown.stdout.startswith(f"{code} ({' or '.join(meaning.severity)}")
        assert all(command in shown.stdout for command in meaning.confirm)
