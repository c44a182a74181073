"""The health of NVMe controllers, from their log page 02h (NVM Express Base Specification 2.0c, 5.16.1.3)."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from collections.abc import Iterator
from typing import Any

from ...models.facts.machine import Nvme
from ...models.facts.reason import Reason, reason_of
from ...models.facts.records import Evidence, NotChecked, Record
from ..host.host import Host, Unreadable
from .nvme import CONTROLLERS

_DEADLINE = 5.0  # seconds for all controllers
_ADMIN = 0xC0484E41  # NVME_IOCTL_ADMIN_CMD of include/uapi/linux/nvme_ioctl.h
# struct nvme_admin_cmd of the same file.
_COMMAND = struct.Struct("=BBHIIIQQIIIIIIIIII")
_GET_LOG_PAGE, _HEALTH, _EVERY_NAMESPACE = 0x02, 0x02, 0xFFFFFFFF
_SIZE = 512  # bytes of the log page
_TIMEOUT = 2000  # milliseconds
_HOW = "run as root: the kernel needs CAP_SYS_ADMIN for it"


def read_nvme_health(host: Host) -> Iterator[Record]:
    """Yield the health of each PCIe controller that is live. A controller over fabrics belongs to another machine."""
    try:
        names = [name for name in host.list(CONTROLLERS) if _is_local(host, f"{CONTROLLERS}/{name}")]
    except Unreadable:
        return  # nvme.py reports it
    if names:
        yield from host.call("nvme_health", *names, deadline=_DEADLINE)


def _is_local(host: Host, folder: str) -> bool:
    return host.read(f"{folder}/transport") == "pcie" and host.read(f"{folder}/state") == "live"


def health(*names: str) -> Iterator[Record]:
    """The call `nvme_health`: the log page of each controller in turn."""
    for name in names:
        path = f"/dev/{name}"
        try:
            yield health_of(name, _log_page(path))
        except OSError as error:
            denied = error.errno in (1, 13)
            yield NotChecked(
                what="Nvme.critical_warning",
                subject=name,
                reason=reason_of(error.errno),
                path=path,
                detail=str(error.strerror),
                how=_HOW if denied else None,
            )


def _log_page(path: str) -> bytes:
    """Read the log page with an admin command. Raises OSError."""
    page = ctypes.create_string_buffer(_SIZE)
    selector = _HEALTH | (_SIZE // 4 - 1) << 16  # the number of four-byte words, minus one
    address = ctypes.addressof(page)
    numbers = (_GET_LOG_PAGE, 0, 0, _EVERY_NAMESPACE, 0, 0, 0, address, 0, _SIZE, selector, 0, 0, 0, 0, 0, _TIMEOUT, 0)
    command = bytearray(_COMMAND.pack(*numbers))
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if status := fcntl.ioctl(descriptor, _ADMIN, command):
            raise OSError(5, f"the controller refused the log page with status {status:#x}")
    finally:
        os.close(descriptor)
    return page.raw


def health_of(name: str, page: bytes) -> Record:
    """Parse the log page. A page of zeros is no answer: a live controller has a temperature."""
    temperature = int.from_bytes(page[1:3], "little")
    if len(page) != _SIZE or not temperature:
        why = "the log page is empty"
        return NotChecked(what="Nvme.critical_warning", subject=name, reason=Reason.UNREADABLE, detail=why)
    values: dict[str, Any] = {
        "critical_warning": page[0],
        "spare": page[3],
        "spare_threshold": page[4],
        "used": page[5],
        "media_errors": int.from_bytes(page[160:176], "little"),
    }
    text = ", ".join(f"{key} {value}" for key, value in values.items())
    return Nvme(key=name, cites=dict.fromkeys(values, Evidence(f"log page 02h of /dev/{name}", text)), **values)
