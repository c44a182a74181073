"""The sysfs files of a synthetic node's PCI functions (drivers/pci/pci-sysfs.c, drivers/pci/pcie/aer.c)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...models.facts.pcie_rates import generation
from ...models.facts.records import Evidence, Observation
from ..host.entries import Folder
from ..parsing.parsers import PCI_ADDRESS
from .device_models import CLASSES, VENDORS
from .pci import Function
from .schema import Node
from .tree_writer import TreeWriter

# Names of the errors, in the order of their bits (aer_correctable_error_string, aer_uncorrectable_error_string).
_CORRECTABLE = ("RxErr", "BadTLP", "BadDLLP", "Rollover", "Timeout", "NonFatalErr", "CorrIntErr", "HeaderOF")
_UNCORRECTABLE = (
    "Undefined",
    "DLP",
    "SDES",
    "TLP",
    "FCP",
    "CmpltTO",
    "CmpltAbrt",
    "UnxCmplt",
    "RxOF",
    "MalfTLP",
    "ECRC",
    "UnsupReq",
    "ACSViol",
    "UncorrIntErr",
    "BlockedTLP",
    "AtomicOpBlocked",
    "TLPBlockedErr",
    "PoisonTLPBlocked",
)
# Fatal unless configured otherwise (PCI Express Base Specification 5.0, 7.8.4.4: defaults of the severity register).
_FATAL = frozenset({"DLP", "SDES", "FCP", "RxOF", "MalfTLP", "UncorrIntErr"})


def write_functions(tree: TreeWriter, node: Node, functions: Iterable[Function]) -> None:
    """Write the folder of each function, and the links to it. Raises ValueError for values that PCIe does not have."""
    for group, function in enumerate(functions):
        folder, change = function.folder, function.change
        tree.link(f"sys/bus/pci/devices/{function.address}", folder)
        tree.files(folder, **_numbers(function), numa_node=function.numa if change.numa is None else change.numa)
        tree.link(f"{folder}/subsystem", "sys/bus/pci")
        driver = function.model.driver if change.driver is None else change.driver
        tree.put(f"{folder}/uevent", _uevent(function, driver))
        if driver:
            tree.link(f"sys/bus/pci/drivers/{driver}/{function.address}", folder)
            tree.link(f"{folder}/driver", f"sys/bus/pci/drivers/{driver}")
        if node.iommu:
            tree.put(f"sys/kernel/iommu_groups/{group}/type", node.iommu)
            tree.link(f"sys/kernel/iommu_groups/{group}/devices/{function.address}", folder)
            tree.link(f"{folder}/iommu_group", f"sys/kernel/iommu_groups/{group}")
        if change.label:
            tree.put(f"{folder}/label", change.label)
        if change.slot:
            tree.put(f"sys/bus/pci/slots/{change.slot}/address", function.address.rpartition(".")[0])
        counters = {} if node.virtual else _aer(function)
        tree.files(folder, **_link(function), **counters, **_windows(function))
        if counters and not PCI_ADDRESS.search(folder.rpartition("/")[0]):
            _aer_service(tree, function)
        _virtual_function(tree, function)


def _numbers(function: Function) -> Mapping[str, str]:
    model = function.model
    vendor, device = model.id.split(":")
    subvendor, subdevice = (model.subsystem or model.id).split(":")
    number = CLASSES[model.kind] if model.pci_class is None else model.pci_class
    return {
        "class": f"{number:#08x}",
        "vendor": f"0x{vendor}",
        "device": f"0x{device}",
        "subsystem_vendor": f"0x{subvendor}",
        "subsystem_device": f"0x{subdevice}",
    }


def _uevent(function: Function, driver: str) -> str:
    """Format like pci_uevent of drivers/pci/pci-driver.c, after the driver core's line."""
    numbers = {name: text.removeprefix("0x").upper() for name, text in _numbers(function).items()}
    lines = [f"DRIVER={driver}"] if driver else []
    lines += [
        f"PCI_CLASS={numbers['class'].lstrip('0') or '0'}",
        f"PCI_ID={numbers['vendor']}:{numbers['device']}",
        f"PCI_SUBSYS_ID={numbers['subsystem_vendor']}:{numbers['subsystem_device']}",
        f"PCI_SLOT_NAME={function.address}",
    ]
    return "\n".join(lines)


def _windows(function: Function) -> Mapping[str, str]:
    """Return a GPU's memory windows: registers, its memory (64-bit, prefetchable), and a third one.

    Flags as in include/linux/ioport.h. The possible sizes of the second window are a bit map from 1 MiB on
    (resource1_resize).
    """
    largest, size = function.model.bar1, function.change.bar1
    if not largest:
        return {}
    size = largest if size is None else size
    windows = [(0xFB00_0000, 16 << 20, 0x40200), (1 << 44, size, 0x14220C), (0, 0, 0), (1 << 43, 32 << 20, 0x14220C)]
    lines = [(start, start + length - 1, flags) if length else (0, 0, 0) for start, length, flags in windows]
    lines += [(0, 0, 0)] * (13 - len(lines))
    table = "\n".join(f"{start:#018x} {end:#018x} {flags:#018x}" for start, end, flags in lines)
    sizes = (1 << (largest >> 20).bit_length()) - (1 << 6)
    return {"resource": table} | ({"resource1_resize": f"{sizes:016x}"} if sizes > 1 << 8 else {})


def _virtual_function(tree: TreeWriter, function: Function) -> None:
    if function.change.vfs:
        tree.files(function.folder, sriov_numvfs=function.change.vfs, sriov_totalvfs=function.change.vfs)
    if function.physfn:
        physical = function.physfn.folder
        tree.link(f"{function.folder}/physfn", physical)
        number = sum(path.startswith(f"{physical}/virtfn") for path in tree.entries)
        tree.link(f"{physical}/virtfn{number}", function.folder)


def _link(function: Function) -> Mapping[str, str]:
    """Return the four link attributes; none without a PCIe capability."""
    if function.change.lost:
        return _attributes("Unknown", 63, "Unknown", 255)
    if function.physfn or function.model.handed_on:  # the physical function has the link
        return _attributes("Unknown", 0, "Unknown", 0)
    own_maximum = _maximum(function)
    if own_maximum is None:
        return {}
    leads_down = function.model.kind == "port" and function.port is None
    port = function if function.below or leads_down else function.port
    if port and (port.below is None or port.below.change.gone):
        return _attributes(_speed(2.5), 0, _speed(own_maximum[0]), own_maximum[1])
    # The speed of an emulated port is independent of the device below it. A hypervisor may also omit the port.
    ends = [function] if port is None or port.model.emulated else [port, port.below or function]
    speeds, widths = zip(*filter(None, map(_maximum, ends)), strict=True)
    speed = next((end.change.speed for end in ends if end.change.speed is not None), min(speeds))
    width = next((end.change.width for end in ends if end.change.width is not None), min(widths))
    return _attributes(_speed(speed), width, _speed(own_maximum[0]), own_maximum[1])


def _maximum(function: Function) -> tuple[float, int] | None:
    model, change = function.model, function.change
    if model.speed is None:
        return None
    speed = model.speed if change.max_speed is None else change.max_speed
    return speed, model.width if change.max_width is None else change.max_width


def _attributes(speed: str, width: int, max_speed: str, max_width: int) -> Mapping[str, str]:
    return {
        "current_link_speed": speed,
        "current_link_width": str(width),
        "max_link_speed": max_speed,
        "max_link_width": str(max_width),
    }


def _speed(gigatransfers: float) -> str:
    """Format like pci_speed_string of drivers/pci/probe.c."""
    if generation(gigatransfers * 1e9) is None:
        raise ValueError(f"{gigatransfers:g} GT/s is no speed of PCIe: 2.5, 5, 8, 16, 32 and 64 are")
    return f"{gigatransfers:.1f} GT/s PCIe"


def _aer(function: Function) -> Mapping[str, str]:
    """Return the AER counters, which the kernel has for functions with a link."""
    errors = function.change.errors
    unknown = errors.keys() - {*_CORRECTABLE, *_UNCORRECTABLE}
    if unknown:
        raise ValueError(f"{function.address}: AER has no error {', '.join(sorted(unknown))}")
    if not (function.port or function.below):
        return {}
    fatal = {name: number for name, number in errors.items() if name in _FATAL}
    other = {name: number for name, number in errors.items() if name not in _FATAL}
    return {
        "aer_dev_correctable": _counters(_CORRECTABLE, errors, "TOTAL_ERR_COR"),
        "aer_dev_fatal": _counters(_UNCORRECTABLE, fatal, "TOTAL_ERR_FATAL"),
        "aer_dev_nonfatal": _counters(_UNCORRECTABLE, other, "TOTAL_ERR_NONFATAL"),
    }


def _aer_service(tree: TreeWriter, port: Function) -> None:
    """Write the service of a root port whose errors the kernel counts (pcie_device_init of portdrv.c)."""
    name = f"{port.address}:pcie002"
    tree.put(f"{port.folder}/{name}", Folder())
    tree.link(f"sys/bus/pci_express/devices/{name}", f"{port.folder}/{name}")


def _counters(names: Iterable[str], numbers: Mapping[str, int], total: str) -> str:
    counts = {name: numbers.get(name, 0) for name in names}
    return "\n".join(f"{name} {number}" for name, number in {**counts, total: sum(counts.values())}.items())


def busy_speeds(functions: Iterable[Function], at: float) -> Iterator[Observation]:
    """Yield the described speeds of busy links."""
    for function in functions:
        speed = function.change.busy_speed
        if speed is not None:
            evidence = Evidence(f"{function.folder}/current_link_speed", f"{_speed(speed)} while bytes moved")
            yield Observation(
                about=function.address,
                quantity="link_speed",
                unit="transfers_per_second",
                value=speed * 1e9,
                at=at,
                busy=True,
                evidence=evidence,
            )


def pci_ids(functions: Iterable[Function]) -> str:
    """Return the pci.ids text for these functions."""
    names = {function.model.id: function.model.name for function in functions if function.model.name}
    lines = ["# The part of pci.ids that is about this machine"]
    for vendor in sorted({number[:4] for number in names}):
        lines.append(f"{vendor}  {VENDORS.get(vendor, f'Vendor {vendor}')}")
        lines += [f"\t{number[5:]}  {name}" for number, name in sorted(names.items()) if number.startswith(vendor)]
    return "\n".join(lines)
