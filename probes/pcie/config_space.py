"""The configuration space of PCI functions: payload sizes, relaxed ordering, access control (ACS).

Capabilities form a linked list in the first 256 bytes, extended capabilities a list after them (PCI Express Base
Specification 5.0, 7.5.3, 7.6.3 and 7.7.8; names as in include/uapi/linux/pci_regs.h). Users without privileges can
read only 64 bytes (pci_read_config of drivers/pci/pci-sysfs.c).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from ...models.facts.machine import Pci
from ...models.facts.pci_classes import kind_of
from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import Evidence, NotChecked, Record
from ..host.host import Host
from ..host.live import Live
from ..parsing.parsers import PCI_ADDRESS
from .bound_devices import gpus, rdma
from .links import DEVICES
from .power import is_asleep

DEADLINE = 5.0  # seconds
WANTED = frozenset({"bridge", "gpu", "nic", "nvme", "nvswitch"})
_OPEN = 64  # bytes that all users can read
_SIZE = 4096
_STATUS, _HAS_LIST, _FIRST = 0x06, 0x10, 0x34
_EXPRESS, _DEVICE_CONTROL = 0x10, 0x08
LINK_CAPABILITY, LINK_STATUS = 0x0C, 0x12  # offsets in the PCI Express capability
_SPEEDS = (2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9)  # by the code of the speed, from 1
_WIDTHS = (1, 2, 4, 8, 12, 16, 32)
_EXTENDED, ACS, ACS_CONTROL = 0x100, 0x000D, 0x06
# ACS control bits from PCI_ACS_SV on, with the names of lspci.
_CONTROLS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
_DENIED = (
    "the kernel shows users only 64 bytes of configuration space; ACS of ports (redirection of peer traffic), "
    "payload sizes and read request sizes are hidden"
)


def read_pci_config(host: Host) -> Iterator[Record]:
    """Yield capabilities() if devices can be peers: with several GPUs, or a GPU and a NIC."""
    number = len(gpus(host))
    if number > 1 or number and rdma(host):
        yield from host.call("pci_config", deadline=DEADLINE)


def capabilities(root: str = "/") -> Iterator[Record]:
    """The call `pci_config`: a `Pci` for each bridge, GPU, NIC and NVMe controller with a PCI Express capability."""
    folder, host = os.path.join(root, DEVICES), Live(root)
    denied = False
    for address in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path = f"{DEVICES}/{address}/config"
        if not PCI_ADDRESS.fullmatch(address) or is_asleep(host, f"{DEVICES}/{address}"):
            continue
        try:
            with open(os.path.join(root, path), "rb", buffering=0) as file:
                config = file.read(_OPEN)
                if not _wanted(config):
                    continue
                # Only these are read completely: some devices crash if their whole space is read (lspci(8), -xxx).
                config += file.read(_SIZE - _OPEN)
        except OSError as error:
            yield NotChecked(
                what="Pci.acs", subject=address, reason=reason_of(error.errno), path=path, detail=str(error.strerror)
            )
            continue
        if len(config) <= _OPEN:
            denied = True
        elif capability := capabilities_of(address, config, path):
            yield capability
    if denied:
        yield NotChecked(what="Pci.acs", subject="node", reason=Reason.PERMISSION, detail=_DENIED, how="run as root")


def _wanted(config: bytes) -> bool:
    """Whether the function is of a kind in WANTED and responds. Virtual functions have no vendor here."""
    if len(config) < _OPEN:
        return False
    vendor, device = struct.unpack_from("<HH", config)
    code = int.from_bytes(config[0x09:0x0C], "little")
    return vendor != 0xFFFF and kind_of(Pci(key="", pci_class=code, vendor=vendor, device=device)) in WANTED


def capabilities_of(address: str, config: bytes, path: str) -> Pci | None:
    """Parse a whole configuration space; None if it has no PCI Express capability."""
    at = _capability(config, _EXPRESS)
    if at is None or at + _DEVICE_CONTROL + 2 > len(config):
        return None
    (control,) = struct.unpack_from("<H", config, at + _DEVICE_CONTROL)
    cites = {"max_payload": Evidence(path, f"DevCtl {control:#06x}")}
    acs: tuple[str, ...] | None = None
    place = _extended_capability(config, ACS)
    if place is not None and place + ACS_CONTROL + 2 <= len(config):
        (switches,) = struct.unpack_from("<H", config, place + ACS_CONTROL)
        acs = acs_names(switches)
        cites["acs"] = Evidence(path, f"ACSCtl {switches:#06x}: {' '.join(acs) or 'nothing on'}")
    return Pci(
        key=address,
        max_payload=_size(control >> 5),
        max_read_request=_size(control >> 12),
        relaxed_ordering=bool(control & 1 << 4),
        acs=acs,
        cites=cites,
    )


def acs_names(switches: int) -> tuple[str, ...]:
    """The services of access control that are switched on, from the register (7.7.8.3)."""
    return tuple(name for bit, name in enumerate(_CONTROLS) if switches >> bit & 1)


def link_of(config: bytes) -> Mapping[str, Any]:
    """The fields of a `Pci` about its link, from a whole configuration space."""
    at = _capability(config, _EXPRESS)
    if at is None or at + LINK_STATUS + 2 > len(config):
        return {}
    (capability,) = struct.unpack_from("<I", config, at + LINK_CAPABILITY)
    (status,) = struct.unpack_from("<H", config, at + LINK_STATUS)
    return {**link_capability(capability), **link_status(status)}


def link_capability(register: int) -> Mapping[str, Any]:
    """The largest speed and width of a link, from the register (7.5.3.6)."""
    return _named(register, "max_speed", "max_width")


def link_status(register: int) -> Mapping[str, Any]:
    """The trained speed and width of a link, from the register (7.5.3.8)."""
    return _named(register, "speed", "width")


def _named(register: int, speed: str, width: str) -> Mapping[str, Any]:
    """Both registers have the speed in bits 0 to 3, and the width in bits 4 to 9. Reserved values give nothing."""
    code, lanes = register & 0xF, register >> 4 & 0x3F
    known = {speed: _SPEEDS[code - 1]} if 0 < code <= len(_SPEEDS) else {}
    return {**known, width: lanes} if lanes in _WIDTHS else known


def _size(code: int) -> int | None:
    """Convert a three-bit code to bytes; None for the reserved codes 6 and 7."""
    return 128 << (code & 7) if code & 7 < 6 else None


def _capability(config: bytes, wanted: int) -> int | None:
    """Return the offset of a capability. The search ends if the list loops or leaves the space."""
    if len(config) <= _OPEN or not config[_STATUS] & _HAS_LIST:
        return None
    at, seen = config[_FIRST] & ~3, set[int]()
    while _OPEN <= at < min(len(config), _EXTENDED) - 1 and at not in seen:
        if config[at] == wanted:
            return at
        seen.add(at)
        at = config[at + 1] & ~3
    return None


def _extended_capability(config: bytes, wanted: int) -> int | None:
    at, seen = _EXTENDED, set[int]()
    while _EXTENDED <= at <= len(config) - 4 and at not in seen:
        (header,) = struct.unpack_from("<I", config, at)
        if header & 0xFFFF == wanted:
            return at
        seen.add(at)
        at = header >> 20 & ~3
    return None
