"""CPU packages: from sysfs with few reads, else from proc/cpuinfo."""

from __future__ import annotations

import errno
from collections.abc import Mapping

from msgspec.structs import replace

from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.machine import Package
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.probes.host.entries import Entry, UnreadableFile
from linkgauge.probes.sysfs.packages import first_cpus
from linkgauge.probes.system.cpu import read_cpu
from tests.support.nodes.trees import tree

CPUS = "sys/devices/system/cpu"
BROKEN = UnreadableFile(errno.EIO, "Input/output error")
XEON = "Intel(R) Xeon(R) Platinum 8480C"


def read(files: Mapping[str, Entry]) -> list[Record]:
    return [replace(said, cites={}) if isinstance(said, Package) else said for said in read_cpu(tree(files))]


def cpu(number: int, package: int, cpus: str, core: str, old: bool = False) -> Mapping[str, str]:
    names = ("core_siblings_list", "thread_siblings_list") if old else ("package_cpus_list", "core_cpus_list")
    folder = f"{CPUS}/cpu{number}/topology"
    return {f"{folder}/physical_package_id": str(package), f"{folder}/{names[0]}": cpus, f"{folder}/{names[1]}": core}


def x86(number: int, package: int, core: int) -> str:
    return (
        f"processor\t: {number}\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel name\t: {XEON}\n"
        f"physical id\t: {package}\ncore id\t\t: {core}\npower management:\n\n"
    )


def arm(number: int, implementer: str, part: str) -> str:
    return f"processor\t: {number}\nCPU implementer\t: {implementer}\nCPU variant\t: 0x0\nCPU part\t: {part}\n\n"


def test_two_packages() -> None:
    files = {
        f"{CPUS}/online": "0-7",
        **cpu(0, 0, "0-1,4-5", "0,4"),
        **cpu(1, 0, "0-1,4-5", "1,5"),
        **cpu(2, 1, "2-3,6-7", "2,6"),
        **cpu(3, 1, "2-3,6-7", "3,7"),
        "proc/cpuinfo": "".join(x86(number, number % 4 // 2, number % 2) for number in range(8)),
    }
    assert list(read_cpu(tree(files))) == [
        Package(
            key=f"package{index}",
            model=XEON,
            vendor="GenuineIntel",
            cpus=cpus,
            cores=2,
            cites={"cpus": Evidence(f"{CPUS}/cpu{cpus[0]}/topology/package_cpus_list", text)},
        )
        for index, cpus, text in ((0, (0, 1, 4, 5), "0-1,4-5"), (1, (2, 3, 6, 7), "2-3,6-7"))
    ]


def test_a_core_whose_sibling_is_offline() -> None:
    files = {f"{CPUS}/online": "0-2", **cpu(0, 0, "0-2", "0,2"), **cpu(1, 0, "0-2", "1")}
    assert read(files) == [Package(key="package0", cpus=(0, 1, 2), cores=2)]


def test_old_names_of_the_lists() -> None:
    files = {f"{CPUS}/online": "0-1", **cpu(0, 0, "0-1", "0", old=True), **cpu(1, 0, "0-1", "1", old=True)}
    assert read(files) == [Package(key="package0", cpus=(0, 1), cores=2)]


def test_numbers_of_packages_are_the_firmware_s() -> None:
    files = {
        f"{CPUS}/online": "0-2",
        **cpu(0, 36, "0-2", "0"),
        **cpu(1, 36, "0-2", "1"),
        **cpu(2, 36, "0-2", "2"),
        "proc/cpuinfo": arm(0, "0x41", "0xd87") + arm(1, "0x41", "0xd87") + arm(2, "0x41", "0xd85"),
    }
    assert read(files) == [
        Package(key="package36", model="Cortex-A725 + Cortex-X925", vendor="ARM", cpus=(0, 1, 2), cores=3)
    ]


def test_without_a_list_of_cpus() -> None:
    """As in 15 of 42 machines that hwloc recorded. A CPU without a topology is offline."""
    files = {**cpu(0, 0, "0,2\n\0", "0"), **cpu(2, 0, "0,2\n\0", "2\n\0"), f"{CPUS}/cpu1/online": "0"}
    assert read(files) == [Package(key="package0", cpus=(0, 2), cores=2)]
    assert first_cpus(tree(files)) == {"package0": 0}


def test_a_package_without_a_number() -> None:
    files = {
        f"{CPUS}/online": "0-1",
        **cpu(0, -1, "0-1", "0"),
        **cpu(1, -1, "0-1", "1"),
        "proc/cpuinfo": arm(0, "0x61", "0x032") + arm(1, "0x61", "0x032"),
    }
    assert read(files) == [
        Package(key="package0", model="part 0x032", vendor="0x61", cpus=(0, 1), cores=2),
    ]


def test_a_child_names_processors_that_the_kernel_does_not_name() -> None:
    """Once for all packages. Names that are known are not looked up."""
    files = {
        f"{CPUS}/online": "0-2",
        **cpu(0, 0, "0", "0"),
        **cpu(1, 1, "1", "1"),
        **cpu(2, 2, "2", "2"),
        "proc/cpuinfo": arm(0, "0x61", "0x032") + arm(2, "0x41", "0xd4f"),
    }
    named = [Package(key=f"package{number}", model="Apple M2") for number in range(2)]
    host = tree(files, {("cpu_name", "package0", "package1"): tuple(map(encode, named))})
    models = {one.key: one.model for one in read_cpu(host) if isinstance(one, Package)}
    assert models == {"package0": "Apple M2", "package1": "Apple M2", "package2": "Neoverse-V2"}


def test_power_names_its_processor_otherwise() -> None:
    power = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800.000000MHz\n\ntimebase\t: 512000000\n"
    files = {f"{CPUS}/online": "0", **cpu(0, 0, "0", "0"), "proc/cpuinfo": power}
    assert read(files) == [
        Package(key="package0", model="POWER9, altivec supported", cpus=(0,), cores=1),
    ]


def test_without_topology_in_sysfs() -> None:
    files = {
        f"{CPUS}/online": "0-3",
        "proc/cpuinfo": x86(0, 0, 0) + x86(1, 0, 0) + x86(2, 1, 0) + x86(3, 1, 1),
    }
    assert read(files) == [
        Package(key="package0", model=XEON, vendor="GenuineIntel", cpus=(0, 1), cores=1),
        Package(key="package1", model=XEON, vendor="GenuineIntel", cpus=(2, 3), cores=2),
    ]


def test_processors_without_cores() -> None:
    files = {"proc/cpuinfo": x86(0, 0, 0).replace("core id", "core") + x86(1, 0, 0)}
    assert read(files) == [Package(key="package0", model=XEON, vendor="GenuineIntel", cpus=(0, 1))]


def test_nothing_there() -> None:
    assert read({}) == []


def test_what_would_not_say_hides_nothing_else() -> None:
    folders = [f"{CPUS}/cpu{number}/topology" for number in range(4)]
    files: Mapping[str, Entry] = {
        "proc/cpuinfo": BROKEN,
        f"{CPUS}/online": "0-4",
        **cpu(0, 0, "0", "0"),
        f"{folders[1]}/physical_package_id": BROKEN,
        **cpu(2, 1, "2", "2"),
        f"{folders[2]}/core_cpus_list": BROKEN,
        **cpu(3, 2, "three", "3"),
        **cpu(4, 2, "three", "4"),
    }
    path, garbled = f"{folders[3]}/package_cpus_list", "'three' is not a list of CPUs"
    assert read(files) == [
        NotChecked(
            what="Package", subject="node", reason=Reason.UNREADABLE, path="proc/cpuinfo", detail="Input/output error"
        ),
        Package(key="package0", cpus=(0,), cores=1),
        NotChecked(
            what="Package.cores",
            subject="package1",
            reason=Reason.UNREADABLE,
            path=f"{folders[2]}/core_cpus_list",
            detail="Input/output error",
        ),
        Package(key="package1", cpus=(2,)),
        NotChecked(what="Package.cpus", subject="package2", reason=Reason.UNREADABLE, path=path, detail=garbled),
        Package(key="package2"),
        NotChecked(
            what="Package",
            subject="node",
            reason=Reason.UNREADABLE,
            path=f"{folders[1]}/physical_package_id",
            detail="Input/output error",
        ),
    ]


def test_a_list_of_cpus_that_nobody_can_read() -> None:
    assert read({f"{CPUS}/online": "all", "proc/cpuinfo": x86(0, 0, 0)}) == [
        NotChecked(
            what="Package",
            subject="node",
            reason=Reason.UNREADABLE,
            path=f"{CPUS}/online",
            detail="'all' is not a list of CPUs",
        ),
        Package(key="package0", model=XEON, vendor="GenuineIntel", cpus=(0,), cores=1),
    ]
