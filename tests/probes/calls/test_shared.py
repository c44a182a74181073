"""The children of a one-shot run: short calls share a process, and none waits for long ones."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from linkgauge.models.facts.machine import Mount
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.probes.calls.shared import SharedChildren
from linkgauge.probes.calls.timeouts import hung
from tests.support.mounts import needs_proc
from tests.support.waiting import until

# Prints the number of its process for each call. A call of "nvml" hangs. The second process starts slowly.
ANSWERS = """
import json, os, signal, sys, time
from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.machine import Mount
if sys.argv[1] != "--shared":
    print("+", flush=True)
    print(encode(Mount(key=sys.argv[1], size=os.getpid())), flush=True)
    sys.exit()
time.sleep(0.4)
for line in sys.stdin:
    what = json.loads(line)[0]
    print("+", flush=True)
    if what.startswith("nvml"):
        signal.pause()
    time.sleep(0.1)
    print(encode(Mount(key=what, size=os.getpid())), flush=True)
    print(".", flush=True)
"""


def shared(folder: Path) -> SharedChildren:
    path = folder / "child.py"
    path.write_text(ANSWERS)
    return SharedChildren((sys.executable, str(path)))


def test_parallel_calls_share_a_process_and_each_has_its_whole_deadline(tmp_path: Path) -> None:
    """A call that waits for another one, or for the process to start, is not late."""
    some = shared(tmp_path)
    calls = ("statvfs", "ethtool", "pci_config", "fabric_manager", "journal")
    with ThreadPoolExecutor(len(calls)) as pool:
        records = list(pool.map(lambda what: list(some.call(what, [], 0.3)), calls))
    mounts = [one for (one,) in records if isinstance(one, Mount)]
    assert [one.key for one in mounts] == list(calls)
    assert len({one.size for one in mounts[:4]}) == 1
    assert mounts[4].size != mounts[0].size


def test_a_driver_that_hangs_is_asked_once(tmp_path: Path) -> None:
    some = shared(tmp_path)
    first: list[Record] = list(some.call("nvml", [], 0.2))
    start = time.monotonic()
    (second,) = some.call("nvml_wiring", [], 60)
    assert time.monotonic() - start < 30
    assert all(hung(one) for one in (*first, second))
    assert isinstance(second, NotChecked)
    assert (second.what, second.reason) == ("GpuPair", Reason.NO_ANSWER)
    assert [type(one) for one in some.call("statvfs", [], 30)] == [Mount]


@needs_proc
def test_the_process_ends_with_the_run(tmp_path: Path) -> None:
    before = psutil.Process().children()
    some = shared(tmp_path)
    assert len(list(some.call("statvfs", [], 30))) == 1
    assert psutil.Process().children() != before
    del some
    until(lambda: psutil.Process().children() == before)


def test_the_real_child() -> None:
    some = SharedChildren()
    for _ in range(2):
        (mount,) = some.call("statvfs", ["/"], 30)
        assert isinstance(mount, Mount)
        assert mount.size
