"""How fast disks and arrays read: large blocks of data, past the page cache. Nothing is written unless that is asked.

`plan` says what is read; `reads` runs in a child. Limits: docs/operate/probes.md.
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
from ...pcie.speed_samples import LinkSamples
from ...storage.block_mounts import Place, disk_of, place_of, places_of
from ..probe import Probe, Wanted
from . import data_blocks, direct_io, disk_write
from . import fio_gdsio as disk_tools
from .data_blocks import BLOCK, Block, NoData
from .direct_io import Moved

_DEPTH, _MOST_THREADS = 8, 64  # reads at a time of each disk: fewer do not fill one, more gain little; and of an array
_SECONDS = {"quick": 0.25, "full": 3.0}  # of one disk
_BYTES = {"quick": 4 * GIB, "full": 48 * GIB}  # of one disk: what the fastest (PCIe 5, 14 GB/s) read in that time
_LOOKING, _FOUND, _STARTING = 0.5, 0.1, 0.3  # seconds for files at most and usually, and until a process begins
_GRACE = 20.0  # seconds, beyond which it hangs
_FEWEST, _SHORTEST = 16, 0.02  # blocks, seconds: in less, threads that begin and end are a part of what is measured
_CHECKED = 256  # blocks that are looked at before a tool reads them, which does not look
# NVMe disks that are not in the machine, by their models (AWS, "Map Amazon EBS volumes to NVMe device names"; Google
# Cloud, "Local SSD": nvme_card is one; Azure, "Enable NVMe": NVMe Direct Disk is one).
_REMOTE = ("Amazon Elastic Block Store*", "nvme_card-pd*", "MSFT NVMe Accelerator*")


def plan(report: Report, wanted: Wanted) -> Iterator[Probe]:
    """Local NVMe disks, and arrays of them in the place of their members; what is far only where it is named."""
    if wanted.effort == "passive":
        return
    topology, quick = report.topology, wanted.effort == "quick"
    disks = [one.id for one in _local(topology, quick) if {one.id, _above(topology).get(one.id)} & wanted.ends]
    for group in filter(None, [disks] if quick else [[one] for one in disks]):
        yield _probe("disks", wanted, group, "host")
    pairs = [name for disk in disks for name in (disk, _gpu(topology, disk)) if name and _gpu(topology, disk)]
    if pairs and not quick:
        yield _probe("gdsio", wanted, [*pairs, *(["owned"] if wanted.owned else [])], "gpu")
    for folder in wanted.mounts:
        yield _probe("mount", wanted, [folder], "host")
    if wanted.write_to is not None:
        yield _probe("write", wanted, [wanted.write_to], "host")


def _probe(what: str, wanted: Wanted, targets: Sequence[str], end: str) -> Probe:
    count = len(targets) // (2 if what == "gdsio" else 1)
    seconds = _STARTING + count * (_SECONDS[wanted.effort] + _FOUND)
    kinds = frozenset({("disk", end), ("array", end), (end, "disk")})
    return Probe(
        name="disk_read",
        args=(what, wanted.effort, *targets),
        kinds=kinds,
        seconds=seconds,
        bytes=count * _BYTES[wanted.effort],
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
    """A disk of an NVMe controller of this machine, or a partition of one."""
    disk = _disk(topology, part)
    device, above = topology.find(disk), _above(topology).get(disk, "")
    remote = device is None or any(fnmatchcase(device.name, pattern) for pattern in _REMOTE)
    return not remote and topology.kind(above) == "nvme"


def _disk(topology: Topology, part: str) -> str:
    return _above(topology).get(part, part) if topology.kind(part) == "partition" else part


def _above(topology: Topology) -> dict[str, str]:
    return {link.b: link.a for link in topology.links if link.kind == "disk"}


def _gpu(topology: Topology, disk: str) -> str | None:
    """The GPU that is nearest, as its driver calls it, and its address: "gpu3=0000:1b:00.0"."""
    for name in routes(topology, _above(topology).get(disk, disk)):
        device = topology.by_name[name]
        if device.kind == "gpu":
            return next((f"{alias}={device.id}" for alias in device.aliases if alias.startswith("gpu")), None)
    return None


def reads(what: str, effort: str, *targets: str) -> Iterator[Record]:
    """What "disks", or the file system of a folder ("mount"), read; what is written into it ("write"); and what
    gdsio reads from disks into GPUs, which stand in pairs.
    """
    host = Live()
    if what == "write":
        yield from disk_write.writes(host, targets[0], _SECONDS[effort])
        return
    owned = what == "gdsio" and targets[-1] == "owned"  # the GPUs are the caller's
    for number, target in enumerate(targets[:-1] if owned else targets):
        if what == "gdsio" and number % 2:
            continue
        folder = place_of(host, target) if what == "mount" else None
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


def _blocks(host: Host, name: str, folder: Place | None, most: int) -> list[Block]:
    """What is known to hold data. Raises NoData."""
    places = [folder] if folder else places_of(host, name)
    try:
        return data_blocks.of_files(places, most, time.monotonic() + _LOOKING)
    except NoData as nothing:
        if folder:
            raise
        try:
            return data_blocks.of_device(f"/dev/{name}", most)
        except OSError as error:
            raise NoData(f"{nothing}; /dev/{name}: {error.strerror}", reason_of(error.errno)) from None


def _read(host: Host, name: str, blocks: Sequence[Block], effort: str) -> Iterator[Record]:
    """At the full level by fio, where it is installed."""
    folder = _folder(host, name)
    samples = LinkSamples(host, folder)
    parts = host.list(f"{folder}/slaves") if folder else []  # of an array its disks
    depth = min(_MOST_THREADS, _DEPTH * max(1, len(parts)))
    flow = Flow("read", (name, "host"))
    if effort == "full":
        run = disk_tools.longest_run(blocks)
        checked = direct_io.read(run[:: max(1, len(run) // _CHECKED)], depth, _SECONDS["quick"])
        said = list(disk_tools.by_fio(name, run, depth, _SECONDS[effort], samples.sample))
        rates = [one for one in said if isinstance(one, Observation)]
        yield from said
        if rates and not checked.failed:
            yield from _hollow(flow, checked, rates[-1].at)
            yield from samples.observations(f"while fio read {name}")
            whole = checked.bytes + min(len(run) * BLOCK, rates[-1].value * (_SECONDS[effort] + 1))
            yield _bytes_moved(name, whole, rates[-1].at, rates[-1].evidence)
            return
    moved = direct_io.read(blocks, depth, _SECONDS[effort], samples.sample)
    yield from told(flow, name, moved, depth)
    yield from samples.observations(f"{moved.rate / 1e6:.0f} MB/s from {name}")


def told(flow: Flow, name: str, moved: Moved, depth: int) -> Iterator[Record]:
    """What a run of own reads says; too short a one has no rate."""
    now = time.time()
    text = (
        f"{moved.blocks} blocks of {BLOCK // MIB} MiB in {moved.seconds:.2f} s, {depth} at a time, past the page cache"
    )
    evidence = Evidence("preadv", text)
    if moved.failed:
        yield NotChecked(
            what="disk_read",
            subject=name,
            reason=reason_of(moved.failed.errno),
            detail=f"{moved.failed.strerror}, after {text}",
        )
    elif moved.blocks < _FEWEST or moved.seconds < _SHORTEST:
        yield NotChecked(
            what="disk_read", subject=name, reason=Reason.NOT_MEASURED, detail=f"too little to tell: {text}", how=_HOW
        )
    else:
        yield Observation(
            about=flow, quantity="rate", unit="bytes_per_second", value=moved.rate, at=now, busy=True, evidence=evidence
        )
        yield from _hollow(flow, moved, now)
    yield _bytes_moved(name, moved.bytes, now, evidence)


def _bytes_moved(name: str, value: float, at: float, evidence: Evidence) -> Observation:
    return Observation(about=name, quantity="bytes_moved", unit="bytes", value=float(value), at=at, evidence=evidence)


def _hollow(flow: Flow, moved: Moved, at: float) -> Iterator[Record]:
    """How much of it was zeros: which a disk may give without reading."""
    if moved.zeros:
        evidence = Evidence("preadv", f"{moved.zeros} of {moved.blocks} blocks hold nothing but zeros")
        yield Observation(
            about=flow, quantity="zeros", unit="share", value=moved.hollow, at=at, busy=True, evidence=evidence
        )


def _folder(host: Host, name: str) -> str:
    """The disk's in sysfs; empty for what is no disk of this machine: a file system of a server."""
    try:
        return (host.resolve(f"sys/class/block/{name}") or "") if "/" not in name else ""
    except Unreadable:
        return ""
