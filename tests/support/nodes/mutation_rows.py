"""Nodes with one fault each, and the expected single finding or gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from linkgauge.models.facts.jsonl import encode
from linkgauge.models.facts.records import Evidence, Observation
from linkgauge.probes.host.entries import Folder, Link, UnreadableFile
from linkgauge.probes.host.recorded import Recorded
from tests.support.nodes.described import with_entry

Mutation: TypeAlias = Callable[[Recorded], Recorded]
DEVICES = "sys/bus/pci/devices"


def place(recorded: Recorded, path: str) -> str:
    """The resolved path."""
    real = recorded.resolve(path)
    assert real
    return real


def write(path: str, text: str) -> Mutation:
    """The file has this text."""
    return lambda recorded: with_entry(recorded, place(recorded, path), text)


def refuse(path: str) -> Mutation:
    """The file cannot be read."""
    return lambda recorded: with_entry(recorded, place(recorded, path), UnreadableFile(5, "Input/output error"))


def both(*mutations: Mutation) -> Mutation:
    def mutate(recorded: Recorded) -> Recorded:
        for mutation in mutations:
            recorded = mutation(recorded)
        return recorded

    return mutate


def trained(address: str, attribute: str, text: str) -> Mutation:
    """Both ends of the link above the function show this value, as on real hardware."""

    def mutate(recorded: Recorded) -> Recorded:
        folder = place(recorded, f"{DEVICES}/{address}")
        for end in (folder, folder.rpartition("/")[0]):
            recorded = with_entry(recorded, f"{end}/{attribute}", text)
        return recorded

    return mutate


def width(address: str, lanes: int) -> Mutation:
    return trained(address, "current_link_width", str(lanes))


def unnamed(address: str, name: str) -> Mutation:
    """The file and the function's uevent cannot be read."""
    return both(refuse(f"{DEVICES}/{address}/uevent"), refuse(f"{DEVICES}/{address}/{name}"))


def busy(address: str, speed: float) -> Mutation:
    """The link runs at this speed (transfers per second) under load."""
    seen = Observation(
        about=address,
        quantity="link_speed",
        unit="transfers_per_second",
        value=speed,
        at=4e9,
        busy=True,
        evidence=Evidence("link_load", f"{speed / 1e9:g} GT/s"),
    )
    return lambda recorded: with_call_line(recorded, ("link_load",), encode(seen))


def with_call_line(recorded: Recorded, call: tuple[str, ...], line: str) -> Recorded:
    """Add a line to the answer of a call."""
    lines = (*recorded.calls.get(call, ()), line)
    return Recorded(recorded.taken, recorded.entries, {**recorded.calls, call: lines})


def lost(address: str) -> Mutation:
    """The function fell off the bus: the values that the kernel then shows."""
    return both(
        *(write(f"{DEVICES}/{address}/{end}_link_width", "63") for end in ("current", "max")),
        write(f"{DEVICES}/{address}/current_link_speed", "Unknown"),
        write(f"{DEVICES}/{address}/max_link_speed", "64.0 GT/s PCIe"),
    )


def logged(text: str) -> Mutation:
    """Add a record to the kernel log."""
    return lambda recorded: with_entry(
        recorded, "dev/kmsg", f"{recorded.read('dev/kmsg') or ''}\n3,99,99000000,-;{text}"
    )


def driver(address: str, name: str | None) -> Mutation:
    """The function has another driver, or none."""
    link = Link(f"/sys/bus/pci/drivers/{name}") if name else None

    def mutate(recorded: Recorded) -> Recorded:
        target = with_entry(recorded, f"sys/bus/pci/drivers/{name}", Folder()) if name else recorded
        target = with_entry(target, f"sys/bus/pci/drivers/nvidia/{address}", None)
        return with_entry(target, f"{place(recorded, f'{DEVICES}/{address}')}/driver", link)

    return mutate


def without_links(address: str) -> Mutation:
    """The kernel shows no link attributes of the function."""
    names = [f"{end}_link_{what}" for end in ("current", "max") for what in ("speed", "width")]

    def mutate(recorded: Recorded) -> Recorded:
        folder = place(recorded, f"{DEVICES}/{address}")
        for name in names:
            recorded = with_entry(recorded, f"{folder}/{name}", None)
        return recorded

    return mutate


def gone(path: str) -> Mutation:
    return lambda recorded: with_entry(recorded, path, None)


PORT = "sys/class/infiniband/{}/ports/1/{}"
XID = "NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
MEDIUM_ERROR = "critical medium error, dev sda, sector 8 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 2"
SPEED_10G = both(write(PORT.format("mlx5_0", "rate"), "10 Gb/sec (1X QDR)"), write("sys/class/net/eth0/speed", "10000"))
NO_CARRIER = write("sys/class/net/eth0/carrier", "0")
Named: TypeAlias = "tuple[str, str] | None"


# Name, mutation, the finding (code and subject), and the gap (what and subject).
ROWS: dict[str, list[tuple[str, Mutation, Named, Named]]] = {
    "desktop": [
        ("GPU on x8", width("0000:01:00.0", 8), ("pcie-link-narrow", "0000:01:00.0"), None),
        ("GPU a generation down", busy("0000:01:00.0", 8e9), ("pcie-link-slow", "0000:01:00.0"), None),
        ("port down", NO_CARRIER, ("nic-port-down", "eth0"), None),
        ("port slow", write("sys/class/net/eth0/speed", "1000"), ("nic-rate-low", "eth0"), None),
        ("NVMe on x2", width("0000:02:00.0", 2), ("storage-link-slow", "0000:02:00.0"), None),
        ("NVMe slow", busy("0000:02:00.0", 8e9), ("storage-link-slow", "0000:02:00.0"), None),
        ("GPU lost", lost("0000:01:00.0"), ("gpu-missing", "0000:01:00.0"), None),
        ("NVMe lost", lost("0000:02:00.0"), ("storage-degraded", "0000:02:00.0"), None),
        ("unreadable", refuse(f"{DEVICES}/0000:01:00.0/current_link_width"), None, ("Pci.width", "0000:01:00.0")),
        (
            "rubbish",
            write(f"{DEVICES}/0000:02:00.0/max_link_speed", "\x7fELF"),
            None,
            ("Pci.max_speed", "0000:02:00.0"),
        ),
    ],
    "server-raid": [
        ("NIC on x4", width("0000:31:00.0", 4), ("pcie-link-narrow", "0000:31:00.0"), None),
        ("NIC a generation down", busy("0000:31:00.0", 8e9), ("pcie-link-slow", "0000:31:00.0"), None),
        (
            "port down",
            both(write(PORT.format("mlx5_0", "state"), "1: DOWN"), NO_CARRIER),
            ("nic-port-down", "mlx5_0/1"),
            None,
        ),
        ("port slow", SPEED_10G, ("nic-rate-low", "mlx5_0/1"), None),
        ("NVMe on x2", width("0000:32:00.0", 2), ("storage-link-slow", "0000:32:00.0"), None),
        (
            "NVMe dead",
            write("sys/class/nvme/nvme1/state", "dead"),
            ("storage-degraded", "nvme1"),
            ("Nvme.critical_warning", "node"),
        ),
        ("array broken", write("sys/class/block/md0/md/array_state", "broken"), ("storage-degraded", "md0"), None),
        ("array degraded", write("sys/class/block/md0/md/raid_disks", "5"), ("storage-degraded", "md0"), None),
        (
            "no memory",
            write("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 0 kB"),
            ("numa-memory-missing", "numa1"),
            None,
        ),
        (
            "bad signal",
            write(f"{DEVICES}/0000:32:00.0/aer_dev_fatal", "DLP 2\nTOTAL_ERR_FATAL 2"),
            ("pcie-errors", "0000:32:00.0"),
            None,
        ),
        ("unreadable", refuse(PORT.format("mlx5_1", "state")), None, ("Port.state", "mlx5_1/1")),
        ("rubbish", write("sys/class/block/md0/md/raid_disks", "many"), None, ("Array.wanted", "md0")),
    ],
    "hgx-h100": [
        ("GPU on x8", width("0000:1b:00.0", 8), ("pcie-link-narrow", "0000:1b:00.0"), None),
        ("GPU a generation down", busy("0000:1b:00.0", 16e9), ("pcie-link-slow", "0000:1b:00.0"), None),
        ("uplink on x8", width("0000:19:00.0", 8), ("pcie-link-narrow", "0000:19:00.0"), None),
        ("uplink slow", busy("0000:19:00.0", 16e9), ("pcie-link-slow", "0000:19:00.0"), None),
        (
            "uplink built slow",
            both(
                trained("0000:19:00.0", "max_link_speed", "16.0 GT/s PCIe"),
                trained("0000:19:00.0", "current_link_speed", "16.0 GT/s PCIe"),
            ),
            ("pcie-path-bottleneck", "0000:19:00.0"),
            None,
        ),
        (
            "port down",
            both(
                write(PORT.format("mlx5_2", "state"), "1: DOWN"),
                write(PORT.format("mlx5_2", "phys_state"), "2: Polling"),
            ),
            ("nic-port-down", "mlx5_2/1"),
            None,
        ),
        ("port slow", write(PORT.format("mlx5_2", "rate"), "200 Gb/sec (4X HDR)"), ("nic-rate-low", "mlx5_2/1"), None),
        ("NVMe on x2", width("0000:1d:00.0", 2), ("storage-link-slow", "0000:1d:00.0"), None),
        ("GPU lost", lost("0000:1b:00.0"), ("gpu-missing", "0000:1b:00.0"), None),
        ("NIC lost", lost("0000:1c:00.0"), ("nic-missing", "0000:1c:00.0"), None),
        ("GPU without driver", driver("0000:1b:00.0", None), ("gpu-driver-failed", "0000:1b:00.0"), None),
        ("GPU lent to a guest", driver("0000:1b:00.0", "vfio-pci"), ("gpu-driver-failed", "0000:1b:00.0"), None),
        ("no subnet manager", write(PORT.format("mlx5_2", "state"), "2: INIT"), ("nic-port-down", "mlx5_2/1"), None),
        ("no link shown", without_links("0000:1b:00.0"), None, ("Pci.width", "0000:1b:00.0")),
        ("no link of a NIC shown", without_links("0000:1c:00.0"), None, ("Pci.width", "0000:1c:00.0")),
        ("GPU on x0", write(f"{DEVICES}/0000:1b:00.0/current_link_width", "0"), None, ("Pci.width", "0000:1b:00.0")),
        ("one that hides", unnamed("0000:1c:00.0", "vendor"), None, ("Pci.vendor", "0000:1c:00.0")),
        ("Xid", logged(XID), ("gpu-xid", "0000:1b:00.0"), None),
        ("medium error", logged(MEDIUM_ERROR), ("storage-degraded", "sda"), None),
        ("read-only", logged("EXT4-fs (sda2): Remounting filesystem read-only"), ("storage-degraded", "sda2"), None),
        (
            "GPU at rest",
            trained("0000:1b:00.0", "current_link_speed", "2.5 GT/s PCIe"),
            None,
            ("Pci.speed", "0000:1b:00.0"),
        ),
        ("unreadable", unnamed("0000:1b:00.0", "class"), None, ("Pci.pci_class", "0000:1b:00.0")),
        ("rubbish", write(PORT.format("mlx5_2", "rate"), "fast"), None, ("Port.rate", "mlx5_2/1")),
    ],
    "vm-p5": [
        ("GPU a generation down", busy("0000:4b:00.0", 16e9), None, ("Pci.speed", "0000:4b:00.0")),
        ("NVMe on x2", write(f"{DEVICES}/0000:4c:00.0/current_link_width", "2"), None, ("Pci.width", "0000:4c:00.0")),
        ("port down", NO_CARRIER, ("nic-port-down", "eth0"), None),
        ("EFA missing", gone("sys/class/infiniband/efa_5"), ("nic-missing", "node"), None),
        ("EFA's rate", write(PORT.format("efa_5", "rate"), "50 Gb/sec (4X EDR)"), None, None),
        ("GPU lost", lost("0000:4b:00.0"), ("gpu-missing", "0000:4b:00.0"), None),
        ("GPU gone", gone(f"{DEVICES}/0000:4b:00.0"), ("gpu-missing", "node"), None),
        ("unreadable", refuse("sys/class/net/eth0/carrier"), None, ("Net.carrier", "eth0")),
        ("rubbish", write("sys/class/dmi/id/product_name", "\x00"), None, ("Node.product", "node")),
    ],
}
