"""GPUDirect Storage: gdscheck -p, and rates of gdsio: https://docs.nvidia.com/gpudirect-storage.

Both tools are closed source. The formats of versions 0.9 to 1.18 come from the troubleshooting guide and from issues of
https://github.com/NVIDIA/gds-nvidia-fs. A gdsio result names neither disk nor GPU. Both are in the command, if it names
the disk itself and not a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.gpu import Driver, Gpu
from ....models.facts.machine import Node, Setting
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Record
from ....models.facts.units import GIB, KIB, MIB
from ..core.fields import FactCollector
from ..core.part import Part

_PROMPT = r"(?:\[?[\w.@:~/-]{0,60}(?: [\w.~/-]{1,40}\])?[$#%] )?"
_COMMAND = rf"{_PROMPT}(?:sudo )?(?:[\w./-]{{1,80}}/)?gdsio -"
_RESULT = r"IoType: (?:RAND)?(?:READ|WRITE) XferType: "
_RULE = r"={8,}[ \t]*\n[ \t]*"  # lines of "=" surround the headings of gdscheck
_HEADINGS = r"(?:ENVIRONMENT|DRIVER CONFIGURATION|CUFILE CONFIGURATION|GPU INFO|PLATFORM INFO):[ \t]*\n[ \t]*={8,}"
_LINES = (
    r"GDS release version(?: \(beta\))?: |nvidia_fs version: |CUFILE_[A-Z_]{3,40} : |properties\.\w{1,40} : "
    r"|NVMe(?: P2PDMA)?[ ]{1,20}: (?:Supported|Unsupported|compat|nvfs|p2pdma|c2c)\b"
    r"|GPU index [0-9]{1,4} |IOMMU ?: (?:dis|en|Pass)|Nvidia Driver Info Status: |Found ACS enabled for switch "
    r"|Platform verification (?:succeeded|failed)|Cuda Driver Version Installed: |Platform: [^\n]{1,80}, Arch: "
)
BEGIN = rf"^[ \t]*(?:{_COMMAND}|{_RESULT}|(?:{_RULE}){{1,3}}{_HEADINGS}|(?:{_RULE})?(?:{_LINES}))"
_GDSIO = re.compile(rf"\s*{_COMMAND}")
_DISK = re.compile(r"\s-f\s+/dev/([a-z][a-z0-9]{1,30})(?!\S)")
_OF_GPU = re.compile(r"\s-d\s+(\d{1,3})(?!\S)")
_RATE = re.compile(
    r"\s*IoType: (?:RAND)?(?P<side>READ|WRITE) XferType: (?P<type>\w{1,30}) Threads: \d{1,6}\s+DataSetSize: \S{1,60} "
    r"IOSize: (?P<size>\d{1,9})\(KiB\)[ ,]{1,3}Throughput: (?P<rate>\d{1,6}\.\d{1,9}) GiB/sec,? .*"
)
# Transfer types through host memory. CPU_CACHED_GPU reads from the page cache, which is not the rate of a disk.
_VIA = {"GPUD": "", "GPUD_ASYNC": "", "GPU_BATCH": "", "CPU_GPU": "host", "CPU_ASYNC_GPU": "host", "CPUONLY": ""}
_GPU = re.compile(
    r"\s*GPU index (?P<number>\d{1,4}) (?P<name>\S.*?)(?: bar:1 bar size \(MiB\):(?P<bar>\d{1,9}))? "
    r"(?:supports|does not support) GDS\b(?:, IOMMU State: (?P<iommu>Disabled|Enabled|Pass-through or Enabled))?.*"
)
# A file system or a kind of disks
_STORAGE = re.compile(
    r"\s*(?P<kind>[A-Z][\w ]{1,24}?)[ ]{1,20}: (?P<mode>Supported|Unsupported|compat|nvfs|p2pdma|c2c)\s*"
)
_FEWEST_KINDS = 4  # gdscheck lists at least these
_FACTS = {
    "module": re.compile(r"\s*nvidia_fs version: +\d.*"),
    # NVMe drives by PCI peer-to-peer DMA, or by nvidia-fs
    "nvme": re.compile(
        r"\s*NVMe(?P<direct> P2PDMA)?[ ]{1,20}: (?P<mode>Supported|Unsupported|compat|nvfs|p2pdma|c2c)\s*"
    ),
    "ports": re.compile(r"\s*(?:--)?rdma_device_status\s{1,9}: Up: (?P<up>\d{1,4}) Down: (?P<down>\d{1,4})\s*"),
    "iommu": re.compile(r"\s*IOMMU ?: (?P<state>disabled|enabled|Pass-through or enabled)\s*"),
    "open": re.compile(r"\s*Nvidia Driver Info Status: .*\bNvidia Open Driver Installed\b.*"),
    "cuda": re.compile(r"\s*Cuda Driver Version Installed: +(?P<cuda>\d{4,6})\s*"),
    "platform": re.compile(r"\s*Platform: (?P<product>\S.*?), Arch: \w+\(Linux (?P<kernel>[\w.+-]{3,80})\)\s*"),
    "falls back": re.compile(r"\s*properties\.use_compat_mode : (?P<falls_back>true|false)\s*"),
    "acs": re.compile(
        r"\s*Found ACS enabled for switch (?P<domain>[0-9a-f]{4}:)?(?P<place>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s*"
    ),
}


def read(part: Part) -> Iterator[Record]:
    """The settings and GPUs of gdscheck, and the rates of gdsio."""
    fields = FactCollector()
    iommus: list[tuple[str, Evidence]] = []  # of each GPU; versions before 1.12 have one line for the machine
    for number, line in part.lines():
        if gpu := _GPU.fullmatch(line):
            size = int(gpu["bar"]) * MIB if gpu["bar"] else None
            cite = part.cite(number, line)
            fields.add(Gpu, f"gpu{int(gpu['number'])}", cite, name=gpu["name"], bar1=size or None)
            iommus += [(gpu["iommu"].lower(), cite)] if gpu["iommu"] else []
        for kind, form in _FACTS.items():
            if found := form.fullmatch(line):
                _take(fields, kind, found, part.cite(number, line))
    _storage(fields, part)
    if iommus and all(state == "disabled" for state, _ in iommus):
        fields.add(Setting, "iommu", iommus[0][1], value="disabled")
    yield from fields.records()
    yield from _rates(part)


def _take(fields: FactCollector, kind: str, found: re.Match[str], cite: Evidence) -> None:
    if kind == "module":  # another source reads the module's version
        fields.add(Setting, "gds_module", cite, value="nvidia_fs")
    elif kind == "nvme":
        fields.add(Setting, "gds_nvme_p2pdma" if found["direct"] else "gds_nvme", cite, value=found["mode"])
    elif kind == "falls back":
        fields.add(Setting, "gds_compat_mode", cite, value=found["falls_back"])
    elif kind == "open":
        fields.add(Setting, "kernel_module", cite, value="Open Kernel Module")
    elif kind == "cuda":
        number = int(found["cuda"])
        fields.add(Driver, "nvidia", cite, cuda=f"{number // 1000}.{number % 1000 // 10}")
    elif kind == "platform":
        fields.add(Node, "node", cite, product=found["product"], kernel=found["kernel"])
    elif kind == "ports":
        _ports(fields, int(found["up"]), int(found["down"]), cite)
    elif kind == "acs":
        address = f"{found['domain'] or '0000:'}{found['place']}".lower()
        file = cite.source.rpartition(":")[0]
        why = "gdscheck reports that ACS is on, but not which of its controls"
        fields.not_checked.append(
            NotChecked(
                what="controls of ACS at",
                subject=address,
                reason=Reason.OTHER,
                path=file,
                detail=why,
                how="lspci -vvv, as root",
            )
        )
    elif found["state"] == "disabled":
        fields.add(Setting, "iommu", cite, value="disabled")
    else:
        why = "gdscheck reports that the IOMMU is on, but not whether it translates"
        how = "cat /sys/kernel/iommu_groups/*/type"
        fields.not_checked.append(
            NotChecked(what="IOMMU", subject="node", reason=Reason.OTHER, path=cite.source, detail=why, how=how)
        )


def _storage(fields: FactCollector, part: Part) -> None:
    """The setting gds_storage: whether any kind of storage is supported, if the list is long enough to say so."""
    rows = [(part.cite(number, line), row) for number, line in part.lines() if (row := _STORAGE.fullmatch(line))]
    if len({row["kind"] for _, row in rows}) >= _FEWEST_KINDS:  # the same output can be taken several times
        supported = any(row["mode"] != "Unsupported" for _, row in rows)
        fields.add(Setting, "gds_storage", rows[0][0], value="some" if supported else "none")


def _ports(fields: FactCollector, up: int, down: int, cite: Evidence) -> None:
    """A gap, if RDMA devices are down: gdscheck does not name them."""
    if down:
        why = f"gdscheck reports {down} of {down + up} RDMA devices as down, but not which"
        one = NotChecked(
            what="RDMA ports",
            subject="node",
            reason=Reason.OTHER,
            path=cite.source,
            detail=why,
            how="ibstat; rdma link",
        )
        fields.not_checked.append(one)


def _rates(part: Part) -> Iterator[Record]:
    """The rates of commands with one disk and one GPU. A NotChecked for all others."""
    disks: list[str] = []
    gpus: list[str] = []
    named, unassigned = dict[str, Gpu](), list[str]()
    for number, line in part.lines():
        if _GDSIO.match(line):
            disks, gpus = _DISK.findall(line), _OF_GPU.findall(line)
        elif (found := _RATE.fullmatch(line)) and found["type"] in _VIA and float(found["rate"]):
            if len(disks) == len(gpus) == 1:
                gpu = f"gpu{int(gpus[0])}"
                named.setdefault(gpu, Gpu(key=gpu))
                yield part.rate(_flow(found, disks[0], gpu), float(found["rate"]) * GIB, part.cite(number, line))
            else:
                unassigned.append(part.where(number))
    yield from named.values()
    if unassigned:
        more = f" and {len(unassigned) - 1} more" if len(unassigned) > 1 else ""
        why = "gdsio results that do not name the disk and the GPU"
        how = "keep the command, and name the disk itself: gdsio -f /dev/nvme0n1 -d 0 -I 0"
        yield NotChecked(
            what="Observation", subject="node", reason=Reason.OTHER, path=f"{unassigned[0]}{more}", detail=why, how=how
        )


def _flow(found: re.Match[str], disk: str, gpu: str) -> Flow:
    ends = (disk, "host" if found["type"] == "CPUONLY" else gpu)
    op = found["side"].lower()
    return Flow(op, ends if op == "read" else ends[::-1], int(found["size"]) * KIB or None, _VIA[found["type"]])
