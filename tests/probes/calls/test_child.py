"""Child processes: records from before a hang stay, and no call hangs twice at the same time."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.probes.calls.child import Children
from linkgauge.probes.calls.timeouts import no_answer
from tests.support.mounts import needs_proc
from tests.support.waiting import until, with_deadline

GPUS = [Gpu(key=f"gpu{index}", name="H100") for index in range(3)]
LINES = "".join(f"print({encode(gpu)!r}, flush=True)\n" for gpu in GPUS)


def answers(folder: Path, script: str, deadline: float) -> list[Record]:
    path = folder / "child.py"
    path.write_text(script)
    return list(Children((sys.executable, str(path))).call("nvml", ["--all"], deadline))


def test_all_that_a_child_says(tmp_path: Path) -> None:
    assert answers(tmp_path, LINES, 30) == GPUS


def test_what_came_before_a_hang_is_kept(tmp_path: Path) -> None:
    script = f"{LINES}\nimport signal\nsignal.pause()"
    seconds, said = with_deadline(lambda deadline: answers(tmp_path, script, deadline), len(GPUS) + 1)
    lost = NotChecked(what="Gpu", subject="node", reason=Reason.NO_ANSWER, detail=no_answer(seconds))
    assert said == [*GPUS, lost]


def test_the_deadline_starts_when_the_child_is_ready(tmp_path: Path) -> None:
    """On a busy machine an interpreter takes longer to start than the call to run."""
    script = f"import time\ntime.sleep(0.5)\nprint('+', flush=True)\n{LINES}"
    assert answers(tmp_path, script, 0.25)[:1] == GPUS[:1]


def test_a_child_that_never_gets_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkgauge.probes.calls.deadline.TO_START", 0.1)
    lost = NotChecked(
        what="Gpu", subject="node", reason=Reason.NO_ANSWER, detail="its process was not ready within 0.1 s"
    )
    assert answers(tmp_path, "import signal\nsignal.pause()", 30) == [lost]


def test_a_child_that_breaks_says_why(tmp_path: Path) -> None:
    script = f"{LINES}\nraise SystemExit('the driver is not loaded')"
    assert answers(tmp_path, script, 30) == [
        *GPUS,
        NotChecked(what="Gpu", subject="node", reason=Reason.FAULT, detail="the driver is not loaded"),
    ]


def test_a_child_that_was_killed(tmp_path: Path) -> None:
    script = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
    assert answers(tmp_path, script, 30) == [
        NotChecked(what="Gpu", subject="node", reason=Reason.OTHER, detail="its process ended with -9")
    ]


def test_rubbish_from_a_child_loses_only_that_line(tmp_path: Path) -> None:
    script = f"print('[rubbish')\nprint('[\"Planet\", {{}}]')\n{LINES}"
    said = answers(tmp_path, script, 30)
    assert said[2:] == GPUS
    assert [type(one) for one in said[:2]] == [NotChecked, NotChecked]


def test_what_the_real_children_say_of_a_file_system(tmp_path: Path) -> None:
    said = list(Children().call("statvfs", [str(tmp_path), str(tmp_path / "none")], 30))
    assert len(said) == 2
    assert getattr(said[0], "size", 0) > 0
    assert isinstance(said[1], NotChecked)


def test_a_folder_full_of_modules_is_no_place_to_look_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory may belong to another user. Modules in it are not imported, especially not as root."""
    for name in ("selectors", "msgspec", "pynvml"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('run by mistake')")
    monkeypatch.chdir(tmp_path)
    (said,) = Children().call("statvfs", [str(tmp_path)], 30)
    assert getattr(said, "size", 0) > 0


# The signal waits for the program to wait for it: signal.pause() would miss one that comes just before.
BLOCKED = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
WAITING = """
import signal
import sys
from linkgauge.agent.pipeline.hang_guard import collect_all
from linkgauge.agent.pipeline.source import Source
from linkgauge.probes.calls.child import Children

class Host:
    origin = "live"
    def now(self):
        return 0.0

def read(host):
    for said in Children((sys.executable, sys.argv[1])).call("nvml", [], 300):
        print(said.key, flush=True)
        yield said

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
collect_all([Source("gpus", read)], Host())
"""


def test_an_interrupt_ends_the_children_too(tmp_path: Path) -> None:
    """Threads wait for the children, and Ctrl-C does not reach threads."""
    child, parent = tmp_path / "child.py", tmp_path / "parent.py"
    child.write_text(f"{BLOCKED}{LINES}signal.sigwait({{signal.SIGINT}})")
    parent.write_text(WAITING)
    command = [sys.executable, str(parent), str(child)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stdout
        assert [process.stdout.readline() for _ in GPUS] == ["gpu0\n", "gpu1\n", "gpu2\n"]
        os.killpg(process.pid, signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=100)
        finally:
            process.kill()
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_a_child_that_said_all_and_does_not_end(tmp_path: Path) -> None:
    """For example, a thread of the child hangs in a driver."""
    script = f"{LINES}\nimport os, signal\nos.close(1)\nos.close(2)\nsignal.pause()"
    assert answers(tmp_path, script, 30) == GPUS


@needs_proc
def test_a_child_that_takes_long_to_end_is_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor where its host is: Python would warn of a process that nobody waits for. A busy machine takes its time."""
    monkeypatch.setattr("linkgauge.probes.calls.child.TO_END", 0.0)
    before = psutil.Process().children()
    children = Children((sys.executable, "-c", "import signal; print('+', flush=True); signal.pause()"))
    assert len(list(children.call("nvml", [], 0.0))) == 1
    del children
    gc.collect()
    monkeypatch.undo()
    until(lambda: answers(tmp_path, LINES, 30) == GPUS and psutil.Process().children() == before)


def test_a_probe_does_not_begin_when_nobody_listens_any_more() -> None:
    """The parent was killed before the child asked the kernel for a signal at the parent's end."""
    listener, out = os.pipe()
    os.close(listener)
    command = [sys.executable, "-m", "linkgauge.probes.calls.entrypoint", "host_memory", "numa0"]
    done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    os.close(out)
    assert (done.returncode, done.stderr) == (1, "")  # otherwise it notices this when it writes its records


def test_a_call_ends_though_a_thread_of_it_never_does(tmp_path: Path) -> None:
    script = (
        "import threading\nfrom linkgauge.probes.calls.entrypoint import main\n"
        "threading.Thread(target=threading.Event().wait).start()\nmain()"
    )
    path = tmp_path / "child.py"
    path.write_text(script)
    (said,) = Children((sys.executable, str(path))).call("statvfs", [str(tmp_path)], 30)
    assert getattr(said, "size", 0) > 0
