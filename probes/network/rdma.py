"""RDMA devices (InfiniBand, RoCE, EFA, soft ones) and their ports from sysfs (ABI/stable/sysfs-class-infiniband).

GUIDs, GIDs and node descriptions are not read, because they identify machines.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from ...models.facts.machine import Port, Rdma
from ...models.facts.reason import Reason
from ...models.facts.records import Record
from ...models.facts.units import BytesPerSecond, from_gigabits
from ..host.host import Host, Unreadable
from ..parsing.parsers import hexadecimal, shown, word
from ..sysfs.class_devices import devices, is_virtual, pci_function
from ..sysfs.counter_files import read_counters
from ..sysfs.fact_reader import FactReader

DEVICES = "sys/class/infiniband"
_NUMBERED = re.compile(r"[0-9]{1,3}: (.+)")
_RATE = re.compile(r"([0-9]{1,5}(?:\.[0-9])?) Gb/sec \(([0-9]{1,2}X(?: [A-Z0-9]{1,6})?)\)")
# PortXmitData and PortRcvData count units of four bytes (InfiniBand Architecture Specification 1, 16.1.3.5).
_IN_BYTES = {"port_xmit_data": 4, "port_rcv_data": 4, "rx_bytes": 1, "tx_bytes": 1}
# Counters of link errors, congestion and retries. Drivers have dozens more, each in its own file: eight ports would
# cost hundreds of reads (infiniband-diags perfquery; mlx5 and EFA driver counters).
_COUNTERS = frozenset(
    {
        "symbol_error",
        "link_error_recovery",
        "link_downed",
        "local_link_integrity_errors",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
        "excessive_buffer_overrun_errors",
        "port_xmit_discards",
        "port_xmit_wait",
        "port_xmit_data",
        "port_rcv_data",
        "out_of_sequence",
        "packet_seq_err",
        "local_ack_timeout_err",
        "rnr_nak_retry_err",
        "out_of_buffer",
        "rx_icrc_encapsulated",
        "np_cnp_sent",
        "rp_cnp_handled",
        "roce_adp_retrans",
        "rx_bytes",
        "tx_bytes",
        "rx_drops",
        "retrans_bytes",
        "retrans_pkts",
        "retrans_timeout_events",
        "impaired_remote_conn_events",
        "unresponsive_remote_events",
    }
)
_FIRST_GIDS = 4  # the port's own GIDs come first; later entries belong to addresses of users


def read_rdma(host: Host) -> Iterator[Record]:
    """Yield an `Rdma` for each device, a `Port` for each port, and their counters."""
    for name, folder in (yield from devices(host, DEVICES, "Rdma")):
        yield from _device(host, name, folder)


def _device(host: Host, name: str, folder: str) -> Iterator[Record]:
    reading = FactReader(host, Rdma, name, folder)
    reading.take("board_id", "board_id", word)
    reading.take("hca_type", "hca_type", word)
    reading.take("firmware", "fw_ver", word)
    reading.set(
        address=pci_function(folder),
        driver=None if is_virtual(folder) else reading.target("driver", "device/driver"),
    )
    yield from reading.records()
    try:
        ports = [int(port) for port in host.list(f"{folder}/ports") if re.fullmatch("[0-9]{1,3}", port)]
    except Unreadable as refusal:
        yield refusal.missed("Port", name, f"{folder}/ports")
        return
    for port in ports:
        yield from _port(host, name, folder, port, ports)


def _port(host: Host, device: str, device_folder: str, number: int, ports: Sequence[int]) -> Iterator[Record]:
    key, folder = f"{device}/{number}", f"{device_folder}/ports/{number}"
    reading = FactReader(host, Port, key, folder)
    reading.take("state", "state", _numbered, required=True)
    reading.take("physical_state", "phys_state", _numbered, required=True)
    reading.take("rate", "rate", _rate, required=True)
    reading.take("lid", "lid", _lid)
    reading.set(device=device, lanes=_lanes(reading.text("rate")))
    layer = reading.take("link_layer", "link_layer", _link_layer)
    if layer == "InfiniBand" and (reading.text("state") or "").endswith("ACTIVE"):
        _distrust_sdr(host, reading, device_folder)
    try:
        # InfiniBand GIDs do not belong to a network device.
        shared = None if layer == "InfiniBand" else _gid_netdev(host, folder)
        reading.set(netdev=shared or _function_netdev(host, f"{device_folder}/device/net", number, ports))
    except Unreadable as refusal:
        reading.refused("netdev", refusal.path, refusal)
    yield from reading.records()
    for counters in ("counters", "hw_counters"):
        yield from _counters(host, f"Port.{counters}", key, f"{folder}/{counters}")


def _distrust_sdr(host: Host, reading: FactReader, device_folder: str) -> None:
    """Set the rate to unknown if the kernel may not know the port's speed.

    rate_show of drivers/infiniband/core/sysfs.c prints speeds that it does not know as SDR: NDR before Linux 5.11
    (commit 00d7c3f759ca), XDR before 6.7. Older kernels print "10 Gb/sec (4X)". SDR is a rate only if
    an equal port shows another speed.
    """
    text = reading.text("rate") or ""
    if not _is_sdr(text) or any(not _is_sdr(other) for other in _equal_rates(host, device_folder)):
        return
    reading.set(rate=None, lanes=None)
    reading.miss(
        "rate",
        Reason.NOT_SUPPORTED,
        f"the kernel shows {text}, as for each speed that it does not know (NDR, XDR)",
        "ibstat, iblinkinfo or mlxlink show the speed; a newer kernel shows it in sysfs",
    )


def _is_sdr(rate: str) -> bool:
    return re.fullmatch(r"[1-9].*\([0-9]{1,2}X(?: SDR)?\)", rate) is not None


def _equal_rates(host: Host, device_folder: str) -> Iterator[str]:
    """Yield the rates of the active ports of all RDMA devices of the same type."""
    for name in host.list(DEVICES):
        with suppress(Unreadable):
            if host.read(f"{DEVICES}/{name}/hca_type") != host.read(f"{device_folder}/hca_type"):
                continue
            for port in host.list(f"{DEVICES}/{name}/ports"):
                folder = f"{DEVICES}/{name}/ports/{port}"
                if (host.read(f"{folder}/state") or "").endswith("ACTIVE"):
                    yield host.read(f"{folder}/rate") or ""


def _gid_netdev(host: Host, folder: str) -> str | None:
    """Return the network device of the port's own GIDs. Of thousands of table entries, unused ones return EINVAL."""
    for index in range(_FIRST_GIDS):
        try:
            name = host.read(f"{folder}/gid_attrs/ndevs/{index}")
        except Unreadable as refusal:
            if refusal.code != errno.EINVAL:
                raise
            continue
        if not name or not name.isprintable():
            return None
        return name
    return None


def _function_netdev(host: Host, folder: str, number: int, ports: Sequence[int]) -> str | None:
    """Return the network device on the same PCI function.

    If there is one port and one network device, they belong together, because some drivers number the ports of a card
    instead of a function. Else dev_port, which counts from 0, must match the port number, which counts from 1.
    """
    names = [name for name in host.list(folder) if name.isprintable()]
    if len(names) != 1 or len(ports) != 1:
        names = [name for name in names if host.read(f"{folder}/{name}/dev_port") == str(number - 1)]
    return names[0] if len(names) == 1 else None


def _counters(host: Host, what: str, about: str, folder: str) -> Iterator[Record]:
    try:
        names = [name for name in host.list(folder) if name in _COUNTERS]
    except Unreadable as refusal:
        yield refusal.missed(what, about, folder)
        return
    yield from read_counters(host, what, about, folder, names, _IN_BYTES)


def _numbered(text: str) -> str | None:
    """Parse "4: ACTIVE"; None if the driver reports an unknown state."""
    match = _NUMBERED.fullmatch(text)
    if not match or not text.isprintable():
        raise ValueError(f"{shown(text)} is not a number and its name")
    return None if match[1] in ("UNKNOWN", "<unknown>") else match[1]


def _rate(text: str) -> BytesPerSecond | None:
    """Parse "400 Gb/sec (4X NDR)" or "10 Gb/sec (4X)"; None for 0."""
    if not (match := _RATE.fullmatch(text)):
        raise ValueError(f"{shown(text)} is not a rate")
    return from_gigabits(float(match[1])) or None


def _lanes(rate: str | None) -> str | None:
    match = _RATE.fullmatch(rate or "")
    return match[2] if match else None


def _lid(text: str) -> int | None:
    """Parse a LID; None for 0: the port type has none (Ethernet, EFA), or the subnet manager has not assigned one."""
    return hexadecimal(text) or None


def _link_layer(text: str) -> str | None:
    """Return the name of libibverbs: the kernel's "Unknown" (EFA) is "Unspecified" there."""
    return "Unspecified" if text == "Unknown" else word(text)
