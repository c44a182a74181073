"""A machine for tests of NVIDIA GPUs: a file tree, and calls that real child processes answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from linkgauge.models.facts.records import Record
from linkgauge.models.report import Origin
from linkgauge.probes.calls.child import Children
from linkgauge.probes.host.entries import Entry, Link
from linkgauge.probes.host.recorded import Recorded
from tests.support.nodes.trees import tree

BOUND = "sys/bus/pci/drivers/nvidia"


@dataclass
class Machine:
    """`seconds` replaces every deadline."""

    files: Recorded
    children: Children = field(default_factory=Children)
    seconds: float = 60
    origin: Origin = "live"

    def read(self, path: str) -> str | None:
        return self.files.read(path)

    def list(self, path: str) -> list[str]:
        return self.files.list(path)

    def resolve(self, path: str) -> str | None:
        return self.files.resolve(path)

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        del deadline
        yield from self.children.call(what, args, self.seconds)

    def now(self) -> float:
        return self.files.now()


def bound(*addresses: str, version: str = "580.95.05") -> Mapping[str, Entry]:
    """The sysfs entries of a driver with these functions."""
    links = {f"{BOUND}/{address}": Link(f"/sys/devices/pci0000:00/{address}") for address in addresses}
    return {
        f"{BOUND}/bind": "",
        f"{BOUND}/module": Link("/sys/module/nvidia"),
        **links,
        "sys/module/nvidia/version": version,
    }


def machine(files: Mapping[str, Entry], command: tuple[str, ...] = (), seconds: float = 60) -> Machine:
    """A machine with these files. `command` answers its calls."""
    return Machine(tree(files), Children(command) if command else Children(), seconds)
