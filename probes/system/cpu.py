"""CPU packages from sysfs (kernel documentation, admin-guide/cputopology), and their names from proc/cpuinfo."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from msgspec.structs import replace

from ...models.facts.machine import Package
from ...models.facts.reason import Reason
from ...models.facts.records import NotChecked, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import cpu_list, decimal, word
from ..sysfs.fact_reader import FactReader
from ..sysfs.packages import CPUS as _CPUS
from ..sysfs.packages import online_cpus

T = TypeVar("T")

CPUINFO = "proc/cpuinfo"
_EVALUATED = re.compile(
    r"(?:processor|vendor_id|model name|cpu|physical id|core id|CPU implementer|CPU part|flags)[ \t]*:"
)
_FLAGS = re.compile(r"(flags[ \t]*:)(?:.*?( hypervisor)(?: .*)?|.*)")
_DEADLINE = 10.0  # seconds for the names that programs report
# Arm reports only numbers. Names are from sys-utils/lscpu-arm.c of util-linux and arch/arm64/include/asm/cputype.h.
_IMPLEMENTERS = {"0x41": "ARM", "0x46": "FUJITSU", "0x48": "HiSilicon", "0x4e": "NVIDIA", "0xc0": "Ampere"}
_PARTS = {
    ("0x41", "0xd0c"): "Neoverse-N1",
    ("0x41", "0xd40"): "Neoverse-V1",
    ("0x41", "0xd42"): "Cortex-A78AE",
    ("0x41", "0xd49"): "Neoverse-N2",
    ("0x41", "0xd4f"): "Neoverse-V2",
    ("0x41", "0xd83"): "Neoverse-V3AE",
    ("0x41", "0xd84"): "Neoverse-V3",
    ("0x41", "0xd85"): "Cortex-X925",
    ("0x41", "0xd87"): "Cortex-A725",
    ("0x41", "0xd8e"): "Neoverse-N3",
    ("0xc0", "0xac3"): "Ampere-1",
    ("0xc0", "0xac4"): "Ampere-1a",
    ("0x4e", "0x010"): "Olympus",
}

_Processors: TypeAlias = Mapping[int, str]  # the block of proc/cpuinfo by CPU number


def read_cpu(host: Host) -> Iterator[Record]:
    """Yield a `Package` for each package with an online CPU. Firmware numbers them, for example "package36"."""
    processors = _parsed(host, CPUINFO, _processors)
    if isinstance(processors, NotChecked):
        yield processors
        processors = None
    records = list(_from_sysfs(host, processors or {}))
    if not any(isinstance(record, Package) for record in records):
        records += _from_cpuinfo(processors or {})
    yield from _named(host, records)


def _named(host: Host, records: list[Record]) -> Iterator[Record]:
    """Yield the records. A child process looks up names that neither proc/cpuinfo nor the table of parts has."""
    unnamed = [one.key for one in records if isinstance(one, Package) and _is_unnamed(one)]
    answers = host.call("cpu_name", *unnamed, deadline=_DEADLINE) if unnamed else ()
    names = {one.key: one for one in answers if isinstance(one, Package)}
    for record in records:
        other = names.get(record.key) if isinstance(record, Package) else None
        if isinstance(record, Package) and other:
            record = replace(record, model=other.model, cites={**record.cites, **other.cites})
        yield record


def _is_unnamed(package: Package) -> bool:
    return package.model is None or "part 0x" in package.model


def _from_sysfs(host: Host, processors: _Processors) -> Iterator[Record]:
    """Read the CPU list of each package from its first CPU only, to save reads on machines with hundreds of CPUs."""
    online = _guarded(lambda: online_cpus(host), f"{_CPUS}/online")
    if isinstance(online, NotChecked):
        yield online
        return
    placed: set[int] = set()
    done: set[str] = set()
    refused: NotChecked | None = None
    for cpu in online or ():
        if cpu in placed:
            continue
        number = _parsed(host, f"{_CPUS}/cpu{cpu}/topology/physical_package_id", decimal)
        if isinstance(number, NotChecked):
            refused = refused or number
            continue
        if number is None:  # the CPU just went offline, or the kernel shows no topology
            continue
        key = f"package{max(number, 0)}"  # -1 if firmware gives no number; then all CPUs are one package
        if key not in done:
            done.add(key)
            reading = FactReader(host, Package, key, f"{_CPUS}/cpu{cpu}/topology")
            placed |= _package(host, reading, processors)
            yield from reading.records()
    if refused:
        yield refused


def _package(host: Host, reading: FactReader, processors: _Processors) -> set[int]:
    """Read a package and return its CPUs."""
    cpus: tuple[int, ...] = reading.take("cpus", "package_cpus_list", cpu_list) or ()
    if not cpus:  # the name before Linux 5.3, now deprecated
        cpus = reading.take("cpus", "core_siblings_list", cpu_list, required=True) or ()
    vendor, model = _vendor_and_model(processors.get(cpu, "") for cpu in cpus)
    reading.set(vendor=vendor, model=model, cores=_cores(host, cpus, reading))
    return set(cpus)


def _cores(host: Host, cpus: tuple[int, ...], reading: FactReader) -> int | None:
    """Count cores as sets of sibling CPUs, like hwloc, because core IDs repeat from die to die."""
    left, cores = set(cpus), 0
    for cpu in cpus:
        if cpu not in left:
            continue
        folder = f"{_CPUS}/cpu{cpu}/topology"
        siblings = _parsed(host, f"{folder}/core_cpus_list", cpu_list)
        if siblings is None:
            siblings = _parsed(host, f"{folder}/thread_siblings_list", cpu_list)
        if isinstance(siblings, NotChecked):
            reading.miss("cores", siblings.reason, siblings.detail, siblings.how, siblings.path)
        if siblings is None or isinstance(siblings, NotChecked):
            return None
        left -= {cpu, *siblings}
        cores += 1
    return cores or None


def _from_cpuinfo(processors: _Processors) -> Iterator[Record]:
    """Yield packages without sysfs topology. CPUs without "physical id" belong to no known package and are left out."""
    packages: dict[str, list[int]] = defaultdict(list)
    for cpu, text in processors.items():
        if number := _entry(text, "physical id"):
            packages[f"package{number}"].append(cpu)
    for key, cpus in packages.items():
        vendor, model = _vendor_and_model(processors[cpu] for cpu in cpus)
        cores = {_entry(processors[cpu], "core id") for cpu in cpus}
        count = len(cores) if None not in cores else None
        yield Package(key=key, vendor=vendor, model=model, cpus=tuple(cpus), cores=count)


def _processors(text: str) -> _Processors:
    """Return the blocks of proc/cpuinfo by "processor" number."""
    blocks = text.split("\n\n")
    return {int(match[1]): block for block in blocks if (match := re.match(r"processor[ \t]*: ([0-9]{1,6})\n", block))}


def _vendor_and_model(processors: Iterator[str]) -> tuple[str | None, str | None]:
    """Return vendor and model of some CPUs. Different models (performance and efficiency cores) are joined by "+"."""
    names = [name for name in dict.fromkeys(map(_name, processors)) if any(name)]
    vendors = dict.fromkeys(vendor for vendor, _ in names if vendor)
    models = dict.fromkeys(model for _, model in names if model)
    return " + ".join(vendors) or None, " + ".join(models) or None


def _name(processor: str) -> tuple[str | None, str | None]:
    """Return "vendor_id" and "model name" (x86), "CPU implementer", "CPU part" (Arm), or "cpu" (POWER)."""
    if model := _entry(processor, "model name") or _entry(processor, "cpu"):
        return _entry(processor, "vendor_id"), model
    implementer, part = _entry(processor, "CPU implementer"), _entry(processor, "CPU part")
    if not implementer or not part:
        return None, None
    return _IMPLEMENTERS.get(implementer, implementer), _PARTS.get((implementer, part), f"part {part}")


def _entry(processor: str, name: str) -> str | None:
    """Return the value of "name : value"; None if it is absent or empty."""
    match = re.search(rf"^{name}[ \t]*:(.*)$", processor, re.MULTILINE)
    try:
        return word(match[1]) if match else None
    except ValueError:
        return None


def processor_lines(text: str) -> str:
    """Return only the lines of proc/cpuinfo that sources evaluate, and of the flags only that of a virtual machine."""
    lines = (line for line in text.splitlines() if not line or _EVALUATED.match(line))
    return "\n".join(_FLAGS.sub(lambda flags: flags[1] + (flags[2] or ""), line) for line in lines)


def _parsed(host: Host, path: str, parse: Callable[[str], T]) -> T | NotChecked | None:
    """Return the parsed file; None if it does not exist; a NotChecked if it is unreadable or invalid."""

    def read() -> T | None:
        text = host.read(path)
        return None if text is None else parse(text)

    return _guarded(read, path)


def _guarded(read: Callable[[], T], path: str) -> T | NotChecked:
    """Return the value; a NotChecked if the file is unreadable or invalid."""
    try:
        return read()
    except Unreadable as refusal:
        return refusal.missed("Package", "node", path)
    except ValueError as wrong:
        return NotChecked(what="Package", subject="node", reason=Reason.UNREADABLE, path=path, detail=str(wrong))
