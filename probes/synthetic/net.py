"""Network and RDMA devices of a synthetic node (ABI/testing/sysfs-class-net, ABI/stable/sysfs-class-infiniband)."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from ...models.facts.machine import Net
from ...models.facts.records import Evidence
from ...models.facts.units import from_gigabits
from ..host.entries import Entry, UnreadableFile
from .pci import Function
from .tree_writer import TreeWriter

_INVALID = UnreadableFile(errno.EINVAL, os.strerror(errno.EINVAL))
_ETHERNET, _INFINIBAND, _LOOPBACK = 1, 32, 772  # include/uapi/linux/if_arp.h
_JUMBO = 9000
_STATISTICS = (
    "collisions",
    "multicast",
    "rx_bytes",
    "rx_crc_errors",
    "rx_dropped",
    "rx_errors",
    "rx_packets",
    "tx_bytes",
    "tx_carrier_errors",
    "tx_dropped",
    "tx_errors",
    "tx_packets",
)
_PORT_COUNTERS = (
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "port_rcv_constraint_errors",
    "port_rcv_data",
    "port_rcv_errors",
    "port_rcv_packets",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors",
    "port_xmit_data",
    "port_xmit_discards",
    "port_xmit_packets",
    "port_xmit_wait",
    "symbol_error",
)
_HW_COUNTERS = (
    "duplicate_request",
    "local_ack_timeout_err",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "rnr_nak_retry_err",
    "roce_slow_restart_cnps",
    "rx_icrc_encapsulated",
)
_EFA_COUNTERS = ("rx_bytes", "rx_drops", "rx_pkts", "tx_bytes", "tx_pkts")
# Lanes and speed by rate in Gb/s, in the format of rate_show (drivers/infiniband/core/sysfs.c).
_RATES = {
    10: "4X SDR",
    25: "1X EDR",
    40: "4X QDR",
    50: "1X HDR",
    56: "4X FDR",
    100: "4X EDR",
    200: "4X HDR",
    400: "4X NDR",
    800: "4X XDR",
}


def write_net(tree: TreeWriter, functions: Iterable[Function]) -> None:
    """Write loopback and the devices of NIC drivers. Raises ValueError for a rate that is not in _RATES."""
    up: dict[str, Entry | int] = {"carrier": 1, "duplex": _INVALID, "speed": _INVALID}
    _netdev(tree, "sys/devices/virtual/net/lo", 1, _LOOPBACK, 0x9, 65536, up)
    numbers = count(2)
    for function in functions:
        if function.model.kind == "nic" and not function.physfn:
            rdma, netdev = names(function)
            if netdev:
                _network_device(tree, function, netdev, next(numbers))
            if rdma:
                _rdma(tree, function, rdma, netdev)


def names(function: Function) -> tuple[str | None, str | None]:
    """Return the names of a NIC's RDMA device and network device; None if it has none."""
    model, remaining_names = function.model, list(function.names)
    rdma = remaining_names.pop(0) if model.rdma else None
    return rdma, remaining_names.pop(0) if model.netdev else None


def link_modes(functions: Iterable[Function], *requested: str) -> Iterator[Net]:
    """Yield the results of the call `ethtool`: speeds of a port and its partner."""
    ports = {str(names(function)[1]): function for function in functions if function.model.netdev}
    for name, function in ports.items():
        if name not in requested:
            continue
        rate, change = function.model.rate, function.change
        partner = (rate if change.partner is None else change.partner) if change.up and change.enabled else 0
        if rate:
            source = f"ETHTOOL_GLINKSETTINGS {name}"
            cites = {
                "max_speed": Evidence(source, f"supported {rate * 1000:g} Mb/s"),
                "partner_speed": Evidence(source, f"link partner {partner * 1000:g} Mb/s"),
            }
            yield Net(
                key=name, cites=cites, max_speed=from_gigabits(rate), partner_speed=from_gigabits(partner) or None
            )


def _rate(function: Function) -> float:
    return function.model.rate if function.change.rate is None else function.change.rate


def _is_fabric(function: Function) -> bool:
    """Whether the NIC is for RoCE between GPU nodes, which needs an MTU for packets of 4096 bytes."""
    return bool(function.model.rdma) and function.model.rate >= 100


def _network_device(tree: TreeWriter, function: Function, name: str, number: int) -> None:
    change, folder = function.change, f"{function.folder}/net/{name}"
    infiniband = function.model.infiniband
    megabits = int(_rate(function) * 1000)
    link: dict[str, Entry | int] = {"carrier": 1, "duplex": "full", "speed": megabits or -1}
    if not change.up:
        link = {"carrier": 0, "duplex": "unknown", "speed": -1}
    if not change.enabled:
        link = dict.fromkeys(link, _INVALID)
    kind, mtu = (_INFINIBAND, 2044) if infiniband else (_ETHERNET, _JUMBO if _is_fabric(function) else 1500)
    _netdev(tree, folder, number, kind, 0x1003 if change.enabled else 0x1002, mtu, link)
    tree.files(f"{folder}/statistics", **{n: v for n, v in change.counters.items() if n in _STATISTICS})
    tree.put(f"{folder}/carrier_changes", change.counters.get("carrier_changes", 1))
    tree.put(f"{folder}/dev_port", int(function.address[-1]) if infiniband else 0)
    tree.link(f"{folder}/device", function.folder)


def _netdev(
    tree: TreeWriter, folder: str, number: int, kind: int, flags: int, mtu: int, link: Mapping[str, Entry | int]
) -> None:
    name = folder.rpartition("/")[2]
    up = link["carrier"] == 1
    tree.files(
        folder,
        type=kind,
        flags=f"{flags:#x}",
        mtu=mtu,
        ifindex=number,
        dev_port=0,
        carrier_changes=0,
        operstate="unknown" if kind == _LOOPBACK else "up" if up else "down",
        **link,
    )
    if kind == _ETHERNET:
        tree.put(f"{folder}/address", f"02:00:00:00:{number >> 8:02x}:{number & 0xFF:02x}")
    tree.files(f"{folder}/statistics", **dict.fromkeys(_STATISTICS, 0))
    tree.link(f"sys/class/net/{name}", folder)


def _rdma(tree: TreeWriter, function: Function, name: str, netdev: str | None) -> None:
    model, folder = function.model, f"{function.folder}/infiniband/{name}"
    number = int(re.sub("[:.]", "", function.address), 16)
    guid = f"0200:00ff:fe{number >> 16 & 0xFF:02x}:{number & 0xFFFF:04x}"
    tree.files(folder, fw_ver=model.firmware, node_guid=guid, sys_image_guid=guid, node_type="1: CA")
    if model.hca_type:
        tree.files(folder, hca_type=model.hca_type, board_id=model.board_id)
    tree.link(f"{folder}/device", function.folder)
    tree.link(f"sys/class/infiniband/{name}", folder)
    port, up = f"{folder}/ports/1", function.change.up
    infiniband = model.infiniband
    rate = _rate(function) if up else 10 if infiniband else 40
    if rate not in _RATES:
        raise ValueError(f"{name}: no lanes have a rate of {rate:g} Gb/s; {', '.join(map(str, _RATES))} are known")
    tree.files(
        port,
        link_layer=model.link_layer,
        state="4: ACTIVE" if up else "1: DOWN",
        phys_state="5: LinkUp" if up else "2: Polling" if infiniband else "3: Disabled",
        rate=f"{rate:g} Gb/sec ({_RATES[int(rate)]})",
        lid="0x1" if infiniband and up else "0x0",
    )
    tree.put(f"{port}/gids/0", f"fe80:0000:0000:0000:{guid}")
    if netdev and not infiniband:
        tree.put(f"{port}/gid_attrs/ndevs/0", netdev)
        tree.put(f"{port}/gid_attrs/types/0", "RoCE v2")
    _counters(tree, port, function)


def _counters(tree: TreeWriter, port: str, function: Function) -> None:
    efa = function.model.link_layer == "Unknown"
    groups = {"hw_counters": _EFA_COUNTERS} if efa else {"counters": _PORT_COUNTERS, "hw_counters": _HW_COUNTERS}
    for group, counters in groups.items():
        tree.files(f"{port}/{group}", **{name: function.change.counters.get(name, 0) for name in counters})
    tree.put(f"{port}/hw_counters/lifespan", 12 if efa else 10)
