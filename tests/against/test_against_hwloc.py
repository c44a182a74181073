"""Machines that hwloc recorded: packages, memory, PCI tree and link speeds equal those of its lstopo.

The records lie outside of this project; without them, nothing is compared. lstopo's default is to hide PCI functions
that programs seldom ask for (--filter io:important): the XML files were made, and the program is run, with all of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest

from linkgauge.agent.inputs.resolve import from_paths
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.models.facts.machine import Numa, Package, Pci
from linkgauge.models.facts.pcie_rates import rated
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.entries import Link
from linkgauge.probes.host.host import Host
from linkgauge.probes.host.live import Live
from linkgauge.probes.pcie.pci import read_pci
from tests.support.nodes.trees import tree

RECORDS = Path(__file__).parents[3] / "shared/data/hwloc"
WITH_XML = ("32em64t-2n8c+dax+nvme+mic+dimms", "40intel64-2g2n4c+pcilocality", "nvidia-dgx-gb10")
WITHOUT_XML = ("32intel64-2p8co2t+8ve",)
# In the record of its configuration space, this bridge leads to bus 0. lstopo leaves out bridges whose buses cannot be
# (hwloc_pcidisc_find_bridge_buses of hwloc/plugins.h); it is in sysfs, so we show it.
HIDDEN = {"32em64t-2n8c+dax+nvme+mic+dimms": {"0000:00:11.0"}}
# Two thirds of the files, which nothing here compares. The other test of a record reads them from the archive.
_UNREAD = re.compile(
    r"/(acpi_cppc|cache|cpufreq|cpuidle|cpuset|firmware|LNXSYSTM:00|microcode|power|regs|thermal_throttle)(/|$)"
    r"|/memory\d+$"
)
_TYPE = re.compile(r"([0-9a-f]{4}) \[([0-9a-f]{4}):([0-9a-f]{4})\]")
_BUSES = re.compile(r"([0-9a-f]{4}:)\[([0-9a-f]{2})-[0-9a-f]{2}\]")


@dataclass
class Machine:
    """The values of a machine that both programs show."""

    packages: set[str] = field(default_factory=set)
    memory: dict[str, int] = field(default_factory=dict)  # bytes, by NUMA node
    functions: dict[str, tuple[int, ...]] = field(default_factory=dict)  # class and subclass, vendor, device
    parents: dict[str, str] = field(default_factory=dict)  # the bridge or root above a function
    rates: dict[str, float] = field(default_factory=dict)  # GB/s, rated for the speed and width that it runs at now


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the root of a recorded machine."""

    @cache
    def unpack(name: str) -> Path:
        if not RECORDS.is_dir():
            pytest.skip(f"the recorded machines are not here: {RECORDS}")
        folder = tmp_path_factory.mktemp("machine")
        with tarfile.open(RECORDS / f"{name}.tar.bz2") as archive:
            wanted = [member for member in archive if not _UNREAD.search(member.name)]
            if hasattr(tarfile, "data_filter"):  # Python before 3.10.12 has none
                archive.extractall(folder, wanted, filter="data")
            else:
                archive.extractall(folder, wanted)
        (root,) = folder.iterdir()  # its name differs from the archive's
        return root

    return unpack


@pytest.mark.parametrize("name", WITH_XML)
@pytest.mark.slow
@pytest.mark.skipif(not RECORDS.is_dir(), reason=f"the recorded machines are not here: {RECORDS}")
def test_as_lstopo_showed_it_then(name: str) -> None:
    """From the archive as it is; the other test reads the files on a disk."""
    host = from_paths([str(RECORDS / f"{name}.tar.bz2")]).host
    assert by_us(host, name) == by_lstopo((RECORDS / f"{name}.xml").read_text())


@pytest.mark.skipif(not shutil.which("lstopo"), reason="lstopo is not installed (package hwloc-nox)")
@pytest.mark.parametrize("name", [*WITH_XML, *WITHOUT_XML])
@pytest.mark.slow
def test_as_lstopo_shows_it_now(name: str, unpacked: Callable[[str], Path]) -> None:
    root = unpacked(name)
    command = ["lstopo", "--filter", "io:all", "--of", "xml", "-"]
    shown = subprocess.run(
        command, env={**os.environ, "HWLOC_FSROOT": str(root)}, capture_output=True, text=True, check=True, timeout=60
    )
    assert by_us(Live(str(root)), name) == by_lstopo(shown.stdout)


def test_a_bridge_of_which_a_copy_has_only_the_folder() -> None:
    """As 0000:5f:03.0 in one of the records: what is below it is below the bridge above, as lstopo has it."""
    port, card = "sys/devices/pci0000:5d/0000:5d:02.0", "0000:5e:00.0/0000:5f:03.0/0000:60:00.0"
    host = tree(
        {
            "sys/bus/pci/devices/0000:5d:02.0": Link(f"/{port}"),
            "sys/bus/pci/devices/0000:5e:00.0": Link(f"/{port}/0000:5e:00.0"),
            "sys/bus/pci/devices/0000:60:00.0": Link(f"/{port}/{card}"),
            f"{port}/class": "0x060400",
            f"{port}/0000:5e:00.0/class": "0x060400",
            f"{port}/{card}/class": "0x020000",
        }
    )
    parents = {fact.key: fact.parent for fact in read_pci(host) if isinstance(fact, Pci)}
    assert parents == {"0000:5d:02.0": "pci0000:5d", "0000:5e:00.0": "0000:5d:02.0", "0000:60:00.0": "0000:5e:00.0"}


def by_us(host: Host, name: str) -> Machine:
    """Without the functions that lstopo hides. Our output must have them."""
    snapshot = assemble((said for reader in SOURCES for said in collect(reader, host)), Site(), host.now())
    functions = dict(snapshot.of(Pci))
    shown = {device.id for device in snapshot.topology.devices}
    assert {*functions, *snapshot.of(Numa), *snapshot.of(Package)} <= shown
    for address in HIDDEN.get(name, ()):
        del functions[address]
    return Machine(
        packages=set(snapshot.of(Package)),
        memory={key: numa.memory or 0 for key, numa in snapshot.of(Numa).items()},
        functions={key: ((f.pci_class or 0) >> 8, f.vendor or 0, f.device or 0) for key, f in functions.items()},
        parents={key: f.parent or "" for key, f in functions.items()},
        rates=dict(rates(functions)),
    )


def rates(functions: Mapping[str, Pci]) -> Iterator[tuple[str, float]]:
    """The rate of each function with a recorded speed and width. lstopo's numbers have single precision."""
    for key, function in functions.items():
        if function.speed and function.width:
            yield key, round(rated(function.speed, function.width) / 1e9, 4)


def by_lstopo(xml: str) -> Machine:
    machine = Machine()
    for thing, above in objects(ElementTree.fromstring(xml), ""):
        said = thing.attrib
        if said["type"] == "Package":
            machine.packages.add(f"package{said['os_index']}")
        elif said["type"] == "NUMANode":
            machine.memory[f"numa{said['os_index']}"] = int(said["local_memory"])
        elif address := said.get("pci_busid"):
            numbers = _TYPE.match(said["pci_type"])
            assert numbers
            machine.functions[address] = tuple(int(number, 16) for number in numbers.groups())
            machine.parents[address] = above
            if rate := float(said["pci_link_speed"]):  # 0: not known
                machine.rates[address] = round(rate, 4)
    return machine


def objects(thing: ElementTree.Element, above: str) -> Iterator[tuple[ElementTree.Element, str]]:
    """Every object below, with the name of the PCI bridge or root that it is under."""
    for child in thing.iterfind("object"):
        yield child, above
        buses = _BUSES.fullmatch(child.get("bridge_pci", ""))
        name = child.get("pci_busid") or (f"pci{buses[1]}{buses[2]}" if buses else above)
        yield from objects(child, name)
