"""Each line of the kernel log about each device that can have it (log_lines.toml), and each Xid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bench.accuracy.edits import Edit, measured, names_of, together, without
from bench.accuracy.faults import Case, Cases, is_guest
from bench.accuracy.healthy_nodes import HealthyNode
from bench.accuracy.silence.every_device import link_cases
from bench.accuracy.silence.every_value import names_at
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Net, Nvme, Package, Pci
from linkgauge.models.facts.pci_classes import NVIDIA, card_of, kind_of
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.pci_tree import functions_above
from linkgauge.models.site.toml_tables import read_tables
from linkgauge.probes.kernel_log.patterns import group_events

_XIDS = (48, 61, 62, 63, 64, 74, 79, 92, 94, 95, 109, 119, 120, 136, 140, 143)
_XID_CODES = frozenset({"gpu-xid", "gpu-ecc", "gpu-row-remap", "gpu-missing", "nvlink-errors", "pcie-errors"})


class _Line(Struct, frozen=True):
    """A row of log_lines.toml."""

    name: str
    about: tuple[str, ...]
    text: str
    codes: tuple[str, ...]
    times: int = 1
    counter: str = ""
    removes: str = ""


def log_cases(node: HealthyNode) -> Cases:
    """Each line of log_lines.toml about each device that can have it; each Xid once and eight times."""
    if node.origin == "dumps":
        return
    functions = node.snapshot.of(Pci)
    for row in read_tables((Path(__file__).parent / "log_lines.toml").read_bytes(), dict[str, tuple[_Line, ...]])[
        "line"
    ]:
        for place in _places(node, row.about):
            net = _net_at(node, place)
            if not _writes(functions.get(place), row.text) or ("eth7" in row.text and net is None):
                continue
            port = functions[place].parent if place in functions else None
            number = place.lstrip("abcdefghijklmnopqrstuvwxyz")
            subject = port if row.about == ("port",) and port else place
            text = row.text.replace("{n}", number).replace("{}", subject).replace("eth7", net or "")
            edits = [_logged(node, text, row.times)]
            edits += _counted(node, place, row.counter)
            if row.removes:
                edits.append(without(_gone_with(node, place, row.removes)))
            names = names_at(node, place) | {port or place, f"cpu{number}", "node"}
            if row.removes:
                names |= set(functions_above(place, functions))
            words = ("gpu",) if row.removes == "driver" else ()
            yield Case(f"log: {row.name}", place, together(*edits), frozenset(row.codes), names, words)
    for place in _places(node, ("gpu",)):
        if functions[place].vendor != NVIDIA:
            continue
        names = frozenset(names_of(node.snapshot, place))
        for code in _XIDS:
            text = f"NVRM: Xid (PCI:{place.rpartition('.')[0]}): {code}, pid=1, what happened"
            for times, how in ((1, "once"), (8, "eight times")):
                edit, info = _logged(node, text, times), times == 1  # the driver asks for no recovery: it excuses one
                yield Case(f"log: Xid {code} {how}", place, edit, _XID_CODES, names, info=info)
    for case in link_cases(node):
        if "width" in case.kind and case.kind.endswith("both") and not is_guest(node):
            line = f"pci {case.place}: 7.876 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x1 link at "
            line += f"{functions[case.place].parent} (capable of 252.048 Gb/s with 16.0 GT/s PCIe x16 link)"
            edit = together(case.edit, _logged(node, line, 1))
            yield replace(case, kind=f"{case.kind}, and the log says so", edit=edit)


def _writes(function: Pci | None, text: str) -> bool:
    """Whether the driver of the function writes this line."""
    if function is None:
        return True
    other_nic = "mlx5_core" in text and function.driver != "mlx5_core"
    return not other_nic and not ("NVRM" in text and function.vendor != NVIDIA)


def _counted(node: HealthyNode, place: str, quantity: str) -> list[Edit]:
    """The counter of the same errors, if there is one."""
    counted = [one for one in node.snapshot.observed.get(place, ()) if one.quantity == quantity]
    return [measured(place, quantity, one.value + 50_000, node.now, one.unit, one.busy) for one in counted]


def _gone_with(node: HealthyNode, place: str, what: str) -> list[str]:
    """The names of what is no longer there: the device, or only what the driver of a GPU says of it."""
    if what == "device":
        card = [key for key in node.snapshot.of(Pci) if card_of(key) == card_of(place)]
        return [name for key in card for name in names_of(node.snapshot, key)]
    return [gpu.key for gpu in node.snapshot.of(Gpu).values() if gpu.address == place]


def _net_at(node: HealthyNode, address: str) -> str | None:
    """The network device of a NIC. None: it has none."""
    return next((net.key for net in node.snapshot.of(Net).values() if net.address == address), None)


def _places(node: HealthyNode, about: Sequence[str]) -> Sequence[str]:
    """The devices that a line can be about."""
    if about == ("disk",):
        return sorted(node.snapshot.of(Nvme))
    if about == ("memory",):
        return sorted({str(one.about) for one in node.snapshot.observations if one.quantity == "ce_count"})
    if about == ("package",):
        return sorted(node.snapshot.of(Package))
    kinds = ("gpu", "nic", "nvme") if about == ("port",) else about
    functions = node.snapshot.of(Pci)
    return [address for address in node.snapshot.topology.link_below if kind_of(functions[address]) in kinds]


def _logged(node: HealthyNode, text: str, times: int) -> Edit:
    """Equal lines in the last 80 minutes."""
    lines = [(node.now - 4800 + 4700 * n / max(times - 1, 1), text) for n in range(times)]

    def edit(records: list[Record]) -> list[Record]:
        return [*records, *group_events(lines, "dev/kmsg")]

    return edit
