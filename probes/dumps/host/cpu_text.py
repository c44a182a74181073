"""lscpu, /proc/cpuinfo and dmidecode: the models of the processors and of the machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from ....models.facts.machine import Node, Numa, Package
from ....models.facts.records import Evidence, Record
from ...parsing.parsers import cpu_list
from ..core.part import Part

BEGIN = (
    r"^[ \t]*(?:Architecture:[ ]+(?:x86_64|aarch64|ppc64le|i686)[ \t]*$|CPU op-mode\(s\):|processor[ \t]*: [0-9]{1,5}$"
    r"|\{\s{0,20}\"lscpu\"[ ]?:"  # lscpu -J
    r"|# dmidecode [0-9]|Handle 0x[0-9A-F]{4}, DMI type [0-9])"
)
# Lines of the three outputs alone. "Product Name: X" without its structure is read as nothing: it is of the machine or
# of its board, and not the product of a GPU ("Product Name   : X").
ANY_LINE = (
    r"^[ \t]*(?:NUMA node\d{1,4} CPU\(s\):[ ]|Model name:[ ]{2,40}\S|Vendor ID:[ ]{2,40}[A-Z]|Socket\(s\):[ ]{2,40}\d"
    r"|Core\(s\) per socket:[ ]|CPU\(s\):[ ]{2,40}\d|(?:On|Off)-line CPU\(s\) list:[ ]|Hypervisor vendor:[ ]"
    r"|(?:model name|vendor_id|physical id)[ \t]{1,9}: "
    r"|[Ff]lags[ \t]{0,40}:[ ]{1,40}fpu |(?:System|Base Board|BIOS) Information$|(?:Manufacturer|Product Name): \S"
    r"|\{?\"field\"[ ]?:[ ]?\"(?:NUMA node|Model name|Vendor ID|Socket|Core|Hypervisor))"
)
_ENTRY = re.compile(
    r"^[ \t]*(Model name|Vendor ID|Socket\(s\)|Core\(s\) per socket|CPU\(s\)|Off-line CPU\(s\) list|"
    r"Hypervisor vendor|Flags|flags|"
    r"NUMA node[0-9]{1,4} CPU\(s\)|physical id|model name|vendor_id|processor|"
    r"System Information|Base Board Information|BIOS Information|Manufacturer|Vendor|Product Name|Version)"
    r"(?::|[ \t]*:|[ \t]*$)[ \t]*([^\n]*)",
    re.MULTILINE,
)
_LSCPU = {"model name": "Model name", "vendor_id": "Vendor ID"}
_JSON = re.compile(r"\"field\"[ ]?:[ ]?\"([^\"\n]{1,80}?):?\",\s{0,40}\"data\"[ ]?:[ ]?\"([^\"\n]{0,4000})\"")
# Hypervisor names of lscpu (sys-utils/lscpu-virt.c of util-linux), mapped to the names of probes/system/node.py.
_HYPERVISORS = {"KVM": "KVM", "Microsoft": "Microsoft Hyper-V", "Xen": "Xen", "VMware": "VMware"}
# dmidecode: the field of the Node fact for each structure and entry.
_STRUCTURES = {
    ("System Information", "Manufacturer"): "vendor",
    ("System Information", "Product Name"): "product",
    ("Base Board Information", "Product Name"): "board",
    ("BIOS Information", "Version"): "bios",
}
_UNSET = ("Not Specified", "To Be Filled By O.E.M.", "Default string", "")
_MOST_SOCKETS = 16

_Entries = dict[str, tuple[str, Evidence]]


def read(part: Part) -> Iterator[Record]:
    """A `Package` per socket, a `Numa` per NUMA node, and the `Node` with the machine's vendor, product and
    firmware.
    """
    summary: _Entries = {}
    packages: dict[str, _Entries] = {}
    node: dict[str, tuple[Any, Evidence]] = {}
    structure, block = "", _Entries()
    for line, found in part.matches(_ENTRY):
        name, value = found[1], found[2].strip()
        cite = part.cite(line, found[0][:300])
        if name.endswith("Information"):
            structure = name
        elif (structure, name) in _STRUCTURES and value not in _UNSET and "\t" not in value:
            node.setdefault(_STRUCTURES[structure, name], (value, cite))
        elif name == "processor":
            block = {}
        elif name in ("model name", "vendor_id"):
            block[name] = value, cite
            summary.setdefault(_LSCPU[name], block[name])
        elif name == "physical id":
            packages.setdefault(value, block)
        elif name in ("Flags", "flags"):
            node.setdefault("virtual", ("hypervisor" in value.split(), cite))
        else:
            summary.setdefault(name, (value, cite))
    for line, found in part.matches(_JSON):
        if _ENTRY.match(f"{found[1]}:") and found[1] not in ("Flags", "flags"):
            summary.setdefault(found[1], (found[2].strip(), part.cite(line, f"{found[1]}: {found[2]}")))
    yield from _processors(packages) if packages else _sockets(summary)
    yield from _nodes(summary)
    yield from _machine(summary, node)


def _sockets(summary: Mapping[str, tuple[str, Evidence]]) -> Iterator[Record]:
    """Packages from lscpu: a number of equal sockets, counted from 0."""
    number = _count(summary, "Socket(s)")
    takes = {"model": "Model name", "vendor": "Vendor ID"}
    fields: dict[str, Any] = {field: summary[name][0] for field, name in takes.items() if summary.get(name, ("",))[0]}
    cites = {field: summary[name][1] for field, name in takes.items() if field in fields}
    cores = _count(summary, "Core(s) per socket")
    if cores:
        cites["cores"] = summary["Core(s) per socket"][1]
    if number is None and fields:  # the sockets are equal, and each machine has the first one
        number = 1
    for index in range(number if number and number <= _MOST_SOCKETS else 0):
        yield Package(key=f"package{index}", cores=cores, cites=cites, **fields)


def _processors(packages: Mapping[str, _Entries]) -> Iterator[Record]:
    """Packages from /proc/cpuinfo, by physical id."""
    for number, block in packages.items():
        if re.fullmatch(r"[0-9]{1,4}", number):
            fields = {"model": block.get("model name"), "vendor": block.get("vendor_id")}
            known = {field: entry for field, entry in fields.items() if entry and entry[0]}
            texts: dict[str, Any] = {field: entry[0] for field, entry in known.items()}
            yield Package(
                key=f"package{int(number)}", cites={field: entry[1] for field, entry in known.items()}, **texts
            )


def _nodes(summary: Mapping[str, tuple[str, Evidence]]) -> Iterator[Record]:
    for name, (value, cite) in summary.items():
        if name.startswith("NUMA node"):
            try:
                cpus = cpu_list(value)
            except ValueError:
                continue
            yield Numa(key=f"numa{int(name.split()[1][4:])}", cpus=cpus, cites={"cpus": cite})


def _machine(summary: Mapping[str, tuple[str, Evidence]], node: dict[str, tuple[Any, Evidence]]) -> Iterator[Record]:
    if "Hypervisor vendor" in summary:
        value, cite = summary["Hypervisor vendor"]
        node["virtual"] = True, cite
        if value in _HYPERVISORS:
            node["hypervisor"] = _HYPERVISORS[value], cite
    offline = summary.get("Off-line CPU(s) list")
    present = _count(summary, "CPU(s)")
    if offline and present:
        with suppress(ValueError):
            node["offline_cpus"] = len(cpu_list(offline[0]) or ()), offline[1]
            node["present_cpus"] = present, summary["CPU(s)"][1]
    if node:
        fields = {field: value for field, (value, _) in node.items()}
        yield Node(key="node", cites={field: cite for field, (_, cite) in node.items()}, **fields)


def _count(summary: Mapping[str, tuple[str, Evidence]], name: str) -> int | None:
    value = summary.get(name, ("",))[0]
    return int(value) if re.fullmatch("[0-9]{1,4}", value) else None
