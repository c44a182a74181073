"""fi_info of libfabric, with and without -v: the provider of each NIC (fi_info(1), src/fi_tostr.c)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.machine import Port, Rdma
from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, NotChecked, Record
from ....models.facts.units import from_gigabits
from ..core.fields import FactCollector
from ..core.part import Part

_NAME = r"(?:rdmap[0-9a-fs]|efa_[0-9]|mlx[45]_|irdma[0-9]|bnxt_re)"
ANY_LINE = rf"^[ \t]*(?:provider: [a-z][\w;-]{{1,60}}[ \t]*$|domain: {_NAME}|fi_(?:pci|link)_attr:[ \t]*$)"
BEGIN = (
    r"^[ \t]*(?:provider: [\w;-]{1,60}[ \t]*\n[ \t]*fabric: |fi_info:[ \t]*$|fi_getinfo: -[0-9]|fi_device_attr:[ \t]*$)"
)
_FIELD = re.compile(r"(?P<name>[a-z_]{2,30}):\s*(?P<value>\S.*)")
_SECTION = re.compile(r"\s*(?P<name>[a-z_]{2,30}):\s*")
_FAILED = re.compile(r"\s*(?P<what>fi_getinfo: -[0-9]{1,5}\b.{0,80})")
# RDMA device names of udev and drivers. Domains of other providers are network devices or shared memory.
_DEVICE = re.compile(rf"(?P<device>{_NAME}\w{{0,20}})(?:-\w{{1,10}})?")
_PLACE = ("domain_id", "bus_id", "device_id", "function_id")  # decimal numbers


def read(part: Part) -> Iterator[Record]:
    """RDMA devices that are a provider's domain; with -v also their PCI address and the rate of their port."""
    fields, provider, section, nic, place = FactCollector(), "", "", "", dict[str, int]()
    begun = False  # the entry has its fabric
    for number, line in part.lines():
        where = part.cite(number, line)
        if failed := _FAILED.match(line):
            why = f"{failed['what'].strip()}: no provider matches the request"
            fields.not_checked.append(
                NotChecked(what="Rdma", subject="node", reason=Reason.OTHER, path=where.source, detail=why)
            )
        elif opened := _SECTION.fullmatch(line):
            section = opened["name"]
            nic, place = ("", {}) if section == "fi_info" else (nic, place)
        elif found := _FIELD.fullmatch(line.strip()):
            name, value = found["name"], found["value"]
            if name == "provider":
                provider, section, nic = value, "", ""
            elif name == "fabric":  # it follows the provider of its entry
                provider = "" if begun else provider
            begun = name == "fabric" or (begun and name != "provider")
            if name == "provider":
                continue
            if name == "domain" and (device := _DEVICE.fullmatch(value)):
                fields.add(Rdma, device["device"], where, driver="efa" if provider == "efa" else None)
            elif section == "fi_device_attr" and name == "name":
                known = _DEVICE.fullmatch(value)
                nic, place = known["device"] if known else "", {}
            elif nic and section == "fi_pci_attr":
                _place(fields, nic, place, name, value, where)
            elif nic:
                _nic(fields, nic, section, name, value, where)
    yield from fields.records()


def _place(fields: FactCollector, nic: str, place: dict[str, int], name: str, value: str, where: Evidence) -> None:
    """The PCI address, once all its parts are known. All parts are zero if the provider does not know it."""
    if name in _PLACE and re.fullmatch("[0-9]{1,5}", value):
        place[name] = int(value)
    if len(place) == len(_PLACE) and any(place.values()):
        domain, bus, device, function = (place[part] for part in _PLACE)
        if domain < 1 << 16 and bus < 256 and device < 32 and function < 8:
            fields.add(Rdma, nic, where, address=f"{domain:04x}:{bus:02x}:{device:02x}.{function}")


def _nic(fields: FactCollector, nic: str, section: str, name: str, value: str, where: Evidence) -> None:
    if (section, name) == ("fi_device_attr", "driver"):
        fields.add(Rdma, nic, where, driver=value)
    elif (section, name) == ("fi_device_attr", "firmware"):
        fields.add(Rdma, nic, where, firmware=value)
    elif (section, name) == ("fi_link_attr", "speed") and re.fullmatch("[0-9]{1,15}", value):
        fields.add(Port, f"{nic}/1", where, device=nic, rate=from_gigabits(int(value) / 1e9) or None)
    elif (section, name) == ("fi_link_attr", "state") and value in ("FI_LINK_UP", "FI_LINK_DOWN"):
        fields.add(Port, f"{nic}/1", where, device=nic, state="ACTIVE" if value == "FI_LINK_UP" else "DOWN")
