"""The probe `disk_read`: the read rate of disks and arrays with large direct reads. It writes only on request.

`plan` selects the disks; `reads` runs in a child process. Limits: docs/operate/probes.md.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from ....models.facts.reason import Reason, reason_of
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import GIB, MIB
from ....models.graph.routes import routes
from ....models.graph.topology import Device, Topology
from ....models.report import Report
from ...host.host import Host, Unreadable
from ...host.live import Live
from ...storage.block_mounts import MountedFolder, disk_of, mount_points_of, mounted_folder
from ..probe import Probe, Scope
from . import data_blocks, direct_io, disk_write
from . import fio_gdsio as disk_tools
from .data_blocks import BLOCK, Block, NoData
from .direct_io import Transfer
from .disk_links import DiskLinks

_DEPTH, _MOST_THREADS = 8, 64  # concurrent reads of a disk (more gain little), and of an array at most
_SECONDS = {"quick": 0.25, "full": 3.0}  # for one disk
# Bytes that the fastest disk (PCIe 5, 14 GB/s) reads in that time.
_BYTES = {"quick": 4 * GIB, "full": 48 * GIB}
_SEARCH_LIMIT, _SEARCH_TYPICAL = 0.5, 0.1  # seconds for finding files
_STARTING = 0.3  # seconds for the start of a process
_GRACE = 20.0  # seconds beyond the plan after which the process is killed
_FEWEST, _SHORTEST = 16, 0.02  # blocks, seconds: in shorter runs the start and end of threads distort the result
_CHECKED = 256  # blocks checked for zeros before a tool reads them, because tools do not check
# Models of NVMe disks that are network disks (AWS, "Map Amazon EBS volumes to NVMe device names"; Google Cloud, "Local
# SSD": nvme_card is local; Azure, "Enable NVMe": NVMe Direct Disk is local).
_REMOTE = ("Amazon Elastic Block Store*", "nvme_card-pd*", "MSFT NVMe Accelerator*")


def plan(report: Report, scope: Scope) -> Iterator[Probe]:
    """Yield probes of local NVMe disks and arrays (at "quick" without members), and of requested folders."""
    if scope.effort == "passive":
        return
    topology, quick = report.topology, scope.effort == "quick"
    disks = [one.id for one in _local(topology, quick) if {one.id, _above(topology).get(one.id)} & scope.ends]
    for group in filter(None, [disks] if quick else [[one] for one in disks]):
        yield _probe("disks", scope, group, "host")
    pairs = [name for disk in disks for name in (disk, _gpu(topology, disk)) if name and _gpu(topology, disk)]
    if pairs and not quick:
        yield _probe("gdsio", scope, [*pairs, *(["owned"] if scope.owned else [])], "gpu")
    for folder in scope.mounts:
        yield _probe("mount", scope, [folder], "host")
    if scope.write_to is not None:
        yield _probe("write", scope, [scope.write_to], "host")


def _probe(what: str, scope: Scope, targets: Sequence[str], end: str) -> Probe:
    count = len(targets) // (2 if what == "gdsio" else 1)
    seconds = _STARTING + count * (_SECONDS[scope.effort] + _SEARCH_TYPICAL)
    kinds = frozenset({("disk", end), ("array", end), (end, "disk")})
    return Probe(
        name="disk_read",
        args=(what, scope.effort, *targets),
        kinds=kinds,
        seconds=seconds,
        bytes=count * _BYTES[scope.effort],
        deadline=seconds + _GRACE,
    )


def _local(topology: Topology, quick: bool) -> Iterator[Device]:
    members = defaultdict[str, list[str]](list)
    for link in topology.links:
        if link.kind == "member":
            members[link.b].append(link.a)
    arrays = {array for array, parts in members.items() if all(_is_local(topology, part) for part in parts)}
    inside = {_disk(topology, part) for array in arrays for part in members[array]}
    for device in topology.devices:
        alone = device.kind == "disk" and _is_local(topology, device.id) and not (quick and device.id in inside)
        if alone or device.id in arrays:
            yield device


def _is_local(topology: Topology, part: str) -> bool:
    """Whether `part` is a disk, or a partition of a disk, of an NVMe controller of this machine."""
    disk = _disk(topology, part)
    device, above = topology.find(disk), _above(topology).get(disk, "")
    remote = device is None or any(fnmatchcase(device.name, pattern) for pattern in _REMOTE)
    return not remote and topology.kind(above) == "nvme"


def _disk(topology: Topology, part: str) -> str:
    return _above(topology).get(part, part) if topology.kind(part) == "partition" else part


def _above(topology: Topology) -> dict[str, str]:
    return {link.b: link.a for link in topology.links if link.kind == "disk"}


def _gpu(topology: Topology, disk: str) -> str | None:
    """Return the driver's name and the address of the nearest GPU: "gpu3=0000:1b:00.0"."""
    for name in routes(topology, _above(topology).get(disk, disk)):
        device = topology.by_name[name]
        if device.kind == "gpu":
            return next((f"{alias}={device.id}" for alias in device.aliases if alias.startswith("gpu")), None)
    return None


def reads(what: str, effort: str, *targets: str) -> Iterator[Record]:
    """Measure the targets; `what` selects the test.

    "disks": reads of disks. "mount": reads of the file system of each folder. "write": writes to a folder. "gdsio":
    GPUDirect reads; targets are pairs of disk and GPU, and "owned" at the end if the caller owns the GPUs.
    """
    host = Live()
    if what == "write":
        yield from disk_write.writes(host, targets[0], _SECONDS[effort])
        return
    owned = what == "gdsio" and targets[-1] == "owned"  # the caller owns the GPUs
    for number, target in enumerate(targets[:-1] if owned else targets):
        if what == "gdsio" and number % 2:
            continue
        folder = mounted_folder(host, target) if what == "mount" else None
        if what == "mount" and folder is None:
            yield NotChecked(
                what="disk_read",
                subject=target,
                reason=Reason.NOT_INSTALLED,
                detail="there is no such folder",
                how="name one",
            )
            continue
        name = target if folder is None else disk_of(host, folder.device) if folder.device else folder.point
        try:
            blocks = _blocks(host, name, folder, _BYTES[effort])
        except NoData as nothing:
            yield NotChecked(what="disk_read", subject=name, reason=nothing.reason, detail=str(nothing), how=_HOW)
            continue
        with data_blocks.closing(blocks):
            if what == "gdsio":
                yield from disk_tools.by_gdsio(name, targets[number + 1], blocks, _SECONDS[effort], owned)
            else:
                yield from _read(host, name, blocks, effort)


_HOW = "run as root; or put a file of 1 GiB that is not zeros there, and name its folder with --mount"


def _blocks(host: Host, name: str, folder: MountedFolder | None, most: int) -> list[Block]:
    """Return blocks with data. Raises NoData."""
    folders = [folder] if folder else mount_points_of(host, name)
    try:
        return data_blocks.of_files(folders, most, time.monotonic() + _SEARCH_LIMIT)
    except NoData as nothing:
        if folder:
            raise
        try:
            return data_blocks.of_device(f"/dev/{name}", most)
        except OSError as error:
            raise NoData(f"{nothing}; /dev/{name}: {error.strerror}", reason_of(error.errno)) from None


def _read(host: Host, name: str, blocks: Sequence[Block], effort: str) -> Iterator[Record]:
    """Measure reads of the blocks, at "full" with fio if it is installed."""
    folder = _folder(host, name)
    samples = DiskLinks(host, name)
    parts = host.list(f"{folder}/slaves") if folder else []  # the disks of an array
    depth = min(_MOST_THREADS, _DEPTH * max(1, len(parts)))
    flow = Flow("read", (name, "host"))
    if effort == "full":
        run = disk_tools.longest_run(blocks)
        checked = direct_io.read(run[:: max(1, len(run) // _CHECKED)], depth, _SECONDS["quick"])
        records = list(disk_tools.by_fio(name, run, depth, _SECONDS[effort], samples.sample))
        rates = [one for one in records if isinstance(one, Observation)]
        yield from records
        if rates and not checked.failed:
            yield from _zeros(flow, checked, rates[-1].at)
            yield from samples.observations(f"while fio read {name}")
            total = checked.bytes + min(len(run) * BLOCK, rates[-1].value * (_SECONDS[effort] + 1))
            yield _bytes_moved(name, total, rates[-1].at, rates[-1].evidence)
            return
    transfer = direct_io.read(blocks, depth, _SECONDS[effort], samples.sample)
    yield from results(flow, name, transfer, depth)
    yield from samples.observations(f"{transfer.rate / 1e6:.0f} MB/s from {name}")


def results(flow: Flow, name: str, transfer: Transfer, depth: int) -> Iterator[Record]:
    """Yield the results of a run of direct_io; no rate if the run was too short."""
    now = time.time()
    text = (
        f"{transfer.blocks} blocks of {BLOCK // MIB} MiB in {transfer.seconds:.2f} s, "
        f"{depth} at a time, past the page cache"
    )
    evidence = Evidence("preadv", text)
    if transfer.failed:
        yield NotChecked(
            what="disk_read",
            subject=name,
            reason=reason_of(transfer.failed.errno),
            detail=f"{transfer.failed.strerror}, after {text}",
        )
    elif transfer.blocks < _FEWEST or transfer.seconds < _SHORTEST:
        yield NotChecked(
            what="disk_read",
            subject=name,
            reason=Reason.NOT_MEASURED,
            detail=f"too little data for a rate: {text}",
            how=_HOW,
        )
    else:
        yield Observation(
            about=flow,
            quantity="rate",
            unit="bytes_per_second",
            value=transfer.rate,
            at=now,
            busy=True,
            evidence=evidence,
        )
        yield from _zeros(flow, transfer, now)
    yield _bytes_moved(name, transfer.bytes, now, evidence)


def _bytes_moved(name: str, value: float, at: float, evidence: Evidence) -> Observation:
    return Observation(about=name, quantity="bytes_moved", unit="bytes", value=float(value), at=at, evidence=evidence)


def _zeros(flow: Flow, transfer: Transfer, at: float) -> Iterator[Record]:
    """Yield the share of zeros, which a disk may return without reading its memory."""
    if transfer.zeros:
        evidence = Evidence("preadv", f"{transfer.zeros} of {transfer.blocks} blocks hold nothing but zeros")
        yield Observation(
            about=flow, quantity="zeros", unit="share", value=transfer.zero_share, at=at, busy=True, evidence=evidence
        )


def _folder(host: Host, name: str) -> str:
    """Return the disk's sysfs folder; empty for a network file system."""
    try:
        return (host.resolve(f"sys/class/block/{name}") or "") if "/" not in name else ""
    except Unreadable:
        return ""
