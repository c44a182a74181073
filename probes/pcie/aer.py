"""Errors that the kernel counted at PCIe functions (ABI/testing/sysfs-bus-pci-devices-aer_stats; Linux 4.19 or later).

The kernel counts only where it owns Advanced Error Reporting (AER): there the root port has an `aer` service
(drivers/pci/pcie/portdrv.c, get_port_device_capability). With pci=noaer, or if the firmware handles errors first, the
files exist and stay at 0.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, NotChecked, Observation, Record
from ..host.host import Host, Unreadable, exists
from ..parsing.parsers import PCI_ADDRESS, count

SERVICES = "sys/bus/pci_express/devices"
# pcie_device_init of portdrv.c names a service "PORT:pcieNNN". NNN is hexadecimal: the port type (0: root port), then
# the service (2: AER, PCIE_PORT_SERVICE_AER of portdrv.h). Linux 4.x printed two digits.
_AER_SERVICE = re.compile(r"(?P<port>.+):pcie0{1,2}2")
# Unsupported requests are left out of the sums: probing for missing devices causes them on healthy machines.
_HARMLESS = frozenset({"UnsupReq"})
# A bit without a name: "dev_nonfatal_errs_bit[27]". Kernels from commit 0678e3109a3c (5.2) to 5e6ae050955b (5.17) read
# beyond the table and show other counters under such names: bit 27 of dev_nonfatal_errs is the correctable total.
_UNNAMED = "_bit["
_HOW = (
    "read the log of the BMC; the kernel counts errors if it is booted without pci=noaer and the firmware hands AER "
    "over to the operating system"
)


def read_errors(host: Host, folders: Mapping[str, str]) -> Iterator[Record]:
    """Yield the counters of the functions in `folders`, by address, and a NotChecked for ports without the service.

    Below these, a counter above 0 is still an error: the firmware can pass single errors to the kernel.
    """
    serviced = _serviced(host)
    silent: set[str] = set()
    roots: set[str] = set()
    for address, folder in folders.items():
        root = _root_port(folder)
        for record in _counters(host, address, folder):
            roots.add(root)
            if serviced is None or root in serviced or not isinstance(record, Observation) or record.value:
                yield record
            else:
                silent.add(root)
    yield from _unowned(sorted(silent), len(roots))


def _serviced(host: Host) -> Collection[str] | None:
    """Return the addresses of the ports with an `aer` service; None if the services are not known."""
    try:
        names = host.list(SERVICES)
    except Unreadable:
        return None
    if not names and not exists(host, SERVICES):
        return None
    return {found["port"] for name in names if (found := _AER_SERVICE.fullmatch(name))}


@lru_cache(maxsize=1024)
def _root_port(folder: str) -> str:
    """Return the topmost function of the path. Intel VMD has a further root below a function."""
    above = ""
    for name in folder.split("/"):
        if not PCI_ADDRESS.fullmatch(name):
            above = ""
        elif not above:
            above = name
    return above


def _unowned(ports: list[str], number: int) -> Iterator[NotChecked]:
    """Yield a NotChecked for each root port whose counters stay at 0, or one for the node if all do."""
    for subject in ("node",) if ports and len(ports) == number else ports:
        where = "no root port has" if subject == "node" else "this root port does not have"
        yield NotChecked(
            what="Pci.aer",
            subject=subject,
            reason=Reason.NOT_SUPPORTED,
            path=SERVICES,
            detail=f"{where} the kernel's aer service, so the counters of PCIe errors below stay at 0",
            how=_HOW,
        )


def _counters(host: Host, address: str, folder: str) -> Iterator[Record]:
    """Yield errors since boot by severity. A file has lines of a name and a count, and a line TOTAL_ERR_..."""
    for severity in ("correctable", "nonfatal", "fatal"):
        path = f"{folder}/aer_dev_{severity}"
        try:
            text = host.read(path)
            if text is None:
                continue
            number, shown = _errors(text)
        except Unreadable as refusal:
            yield refusal.missed(f"Pci.aer_{severity}", address, path)
            continue
        except ValueError:
            why = f"{path} does not hold a name and a number a line"
            yield NotChecked(what=f"Pci.aer_{severity}", subject=address, reason=Reason.UNREADABLE, detail=why)
            continue
        yield Observation(
            about=address,
            quantity=f"aer_{severity}",
            unit="count",
            value=number,
            at=host.now(),
            evidence=Evidence(path, shown),
        )


@lru_cache(maxsize=256)  # nearly all files have the same text: no errors
def _errors(text: str) -> tuple[float, str]:
    """Return the number of errors and a text with their names. Raises ValueError.

    An error may set several bits. A fatal error of an endpoint sets none: the kernel does not read the registers of a
    device behind a link that failed (aer_get_device_error_info), and counts it in TOTAL only.
    """
    counts = {name: count(number) for name, number in (line.rsplit(None, 1) for line in text.splitlines())}
    total = sum(number for name, number in counts.items() if name.startswith("TOTAL"))
    named = {name: n for name, n in counts.items() if not name.startswith("TOTAL") and _UNNAMED not in name}
    seen = {name: n for name, n in named.items() if n and name not in _HARMLESS}
    if (further := total - sum(named.values())) > 0:
        seen["not named by the kernel"] = further
    return float(sum(seen.values())), ", ".join(f"{name} {n}" for name, n in seen.items()) or "no errors"
