"""Silence is not health: /metrics and `linkgauge gate` second by second, while a real service runs on a broken node."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.nodes.described import node
from tests.support.programs.command_line import COMMAND, Completed
from tests.support.programs.each_second import SILENT, Second, Table, watched
from tests.support.programs.mounted_machine import MountedMachine, mounted, needs_mounts
from tests.support.programs.service import SERVE, Service, service

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FAST = 'cycle = "1s"\n'
LONGEST = 180.0  # seconds
GONE, HUNG, NARROW, UNLINKED = 5, 6, 2, 1  # numbers of GPUs


@dataclass
class Run:
    """A machine, its service and the table of seconds."""

    machine: MountedMachine
    folder: Path
    table: Table
    stack: ExitStack
    service: Service | None = None

    def start(self) -> Service:
        """Start the service."""
        self.table.note("service starts")
        config = self.folder / "linkgauge.toml"
        config.write_text(FAST)
        inside = self.machine.inside(*SERVE)
        self.service = self.stack.enter_context(
            service("--config", str(config), env=self.machine.env, program=inside, longest=LONGEST)
        )
        self.table.address = self.service.address
        return self.service

    def kill(self) -> None:
        """End the service as a lack of memory does."""
        assert self.service
        self.table.note("kill -9")
        self.service.end(signal.SIGKILL)
        self.table.until(lambda second: second.verdict == SILENT)

    def boot(self) -> None:
        """Another boot: the service ends, and starts with another boot_id."""
        self.kill()
        self.table.note("boot")
        self.machine.boot()
        self.start()

    def do(self, text: str, change: Callable[[], None]) -> float:
        """Change the machine. Returns when."""
        self.table.note(text)
        change()
        return time.monotonic() - self.table.began

    def linkgauge(self, *arguments: str) -> Completed:
        return self.machine.run(*COMMAND, *arguments)


@pytest.fixture
def at(library: Path, tmp_path: Path) -> Iterator[Run]:
    needs_mounts()
    machine = mounted(node("hgx-h100"), tmp_path, library)
    table = Table(("127.0.0.1", 1), str(machine.state))
    with ExitStack() as stack:
        stack.enter_context(watched(table))
        yield Run(machine, tmp_path, table, stack)


def healthy(second: Second) -> bool:
    return second.verdict == "ok" and not second.codes


def shows(*codes: tuple[str, str]) -> Callable[[Second], bool]:
    """These findings and no other are present, and all were evaluated in the last cycle."""
    return lambda second: second.codes == set(codes) and not second.stale


def no_loss(seconds: list[Second], *codes: tuple[str, str]) -> None:
    """Each second in which something answers shows these findings, and never an open gate or a good verdict."""
    assert seconds
    for second in seconds:
        assert second.closed, second
        if second.verdict != SILENT:
            assert second.codes >= set(codes), second
            assert second.verdict in ("failed", "unknown"), second


def test_a_gpu_is_removed_while_the_service_runs(at: Run) -> None:
    gpu = at.machine.gpus[GONE]
    lost = ("gpu-missing", gpu)
    at.start()
    at.table.until(healthy)
    at.do(f"{gpu} is removed", lambda: at.machine.remove(gpu))
    shown = at.table.until(lambda second: lost in second.codes)
    at.boot()
    at.table.until(shows(lost))
    no_loss(at.table.since(shown.at - 0.1), lost)
    ticket = at.linkgauge("ticket", gpu)
    assert ticket.returncode == 0, ticket
    assert gpu in ticket.stdout
    accepted = at.linkgauge("accept", "--passive")
    assert accepted.returncode == 0, accepted
    at.table.until(healthy)


def test_a_reduced_capability_from_the_start(at: Run) -> None:
    """The GPU, and so the port above it, can do less than the seven others. The link uses all of that."""
    gpu = at.machine.gpus[NARROW]
    at.do(
        f"{gpu} can do 16 GT/s x8",
        lambda: at.machine.set(
            gpu,
            max_link_speed="16.0 GT/s PCIe",
            current_link_speed="16.0 GT/s PCIe",
            max_link_width="8",
            current_link_width="8",
        ),
    )
    at.machine.tell_driver(
        *(f"gpu.{NARROW}.pcie_{key}" for key in ("gen=4", "gen_max=4", "gen_gpu_max=4", "width=8", "width_max=8"))
    )
    at.start()
    first = at.table.until(lambda second: second.verdict not in (SILENT, "unknown"))
    assert (first.verdict, first.closed) == ("failed", True)
    assert {subject for _, subject in first.codes} == {gpu}
    at.kill()
    at.start()
    again = at.table.until(lambda second: second.verdict == "failed")
    assert again.codes == first.codes
    no_loss(at.table.since(first.at - 0.1), *first.codes)


@pytest.mark.parametrize("repaired", [False, True], ids=["as before", "repaired"])
def test_a_boot(at: Run, repaired: bool) -> None:
    gpu = at.machine.gpus[NARROW]
    narrow = ("pcie-link-narrow", gpu)
    at.machine.set(gpu, current_link_width="8")
    at.machine.tell_driver(f"gpu.{NARROW}.pcie_width=8")
    at.start()
    shown = at.table.until(shows(narrow))
    at.kill()
    at.table.note("boot")
    at.machine.boot()
    if repaired:
        at.machine.set(gpu, current_link_width="16")
        at.machine.tell_driver(f"gpu.{NARROW}.pcie_width=16")
        at.table.note(f"{gpu} is repaired")
    at.start()
    if repaired:
        good = at.table.until(healthy)
        before = [one for one in at.table.since(shown.at) if one.at < good.at]
        no_loss(before, narrow)
        assert all(one.stale == {narrow} for one in before if one.verdict != SILENT and one.at > before[-2].at)
    else:
        at.table.until(shows(narrow))
        no_loss(at.table.since(shown.at - 0.1), narrow)


def test_a_gpu_hangs_beside_other_faults(at: Run) -> None:
    """What the hung GPU had is stale. What others have is evaluated as before, and what is repaired goes."""
    narrow, hung = at.machine.gpus[NARROW], at.machine.gpus[HUNG]
    faults = {
        ("pcie-link-narrow", narrow),
        ("nvlink-inactive", at.machine.gpus[UNLINKED]),
        ("nvlink-inactive", hung),
    }
    at.machine.set(narrow, current_link_width="8")
    at.machine.tell_driver(f"gpu.{NARROW}.pcie_width=8", f"gpu.{UNLINKED}.link.3.up=0", f"gpu.{HUNG}.link.4.up=0")
    at.start()
    shown = at.table.until(shows(*faults))
    at.do(f"{hung} hangs", lambda: at.machine.tell_driver(f"gpu.{HUNG}.delay_ms=60000"))
    silent = at.table.until(lambda second: ("gpu-driver-failed", hung) in second.codes)
    assert ("nvlink-inactive", hung) in silent.stale
    at.table.until(lambda second: second.at > silent.at + 20 and second.stale == {("nvlink-inactive", hung)})
    no_loss(at.table.since(shown.at - 0.1), *faults)
    at.do(f"{narrow} is repaired", lambda: at.machine.set(narrow, current_link_width="16"))
    at.machine.tell_driver(f"gpu.{NARROW}.pcie_width=16")
    at.table.until(lambda second: ("pcie-link-narrow", narrow) not in second.codes)
    no_loss(at.table.since(shown.at - 0.1), *(faults - {("pcie-link-narrow", narrow)}))


def test_kill_9(at: Run) -> None:
    """Three times in a row: the first page shows the findings."""
    gpu = at.machine.gpus[NARROW]
    narrow = ("pcie-link-narrow", gpu)
    at.machine.set(gpu, current_link_width="8")
    at.machine.tell_driver(f"gpu.{NARROW}.pcie_width=8")
    at.start()
    shown = at.table.until(shows(narrow))
    for _ in range(3):
        at.kill()
        at.start()
        first = at.table.until(lambda second: second.verdict != SILENT)
        assert first.codes == {narrow}
    at.table.until(shows(narrow))
    no_loss(at.table.since(shown.at - 0.1), narrow)


def test_a_boot_after_which_all_gpus_hang(at: Run) -> None:
    """What was found in the boot before stays, and is stale, because nothing can evaluate it."""
    unlinked = ("nvlink-inactive", at.machine.gpus[UNLINKED])
    at.machine.tell_driver(f"gpu.{UNLINKED}.link.3.up=0")
    at.start()
    shown = at.table.until(shows(unlinked))
    at.machine.tell_driver("gpu.*.delay_ms=60000")
    at.boot()
    hung = {("gpu-driver-failed", gpu) for gpu in at.machine.gpus}
    silent = at.table.until(lambda second: second.codes >= hung)
    at.table.until(lambda second: second.at > silent.at + 10 and second.stale == {unlinked})
    no_loss(at.table.since(shown.at - 0.1), unlinked)
