"""Settings of the machine around its GPUs, as the rows of models/catalog/settings.toml say where they stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ...models.catalog.settings import Row, settings
from ...models.facts.machine import Setting
from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, NotChecked, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import count, hexadecimal, shown, word
from ..pcie.bound_devices import AMD, NVIDIA, gpus, iommu_groups, names_in, rdma
from ..storage.nvme import CONTROLLERS
from ..sysfs.packages import first_cpus

STATUS = "proc/self/status"
_LONGEST = 100  # characters of a value
# What the folders of drivers tell at once. The other conditions of rows are judged with all facts (models/rules).
_HERE: Mapping[str, Callable[[Host], object]] = {
    "gpu": gpus,
    "nvidia gpu": lambda host: gpus(host, NVIDIA),
    "amd gpu": lambda host: gpus(host, AMD),
    "rdma": rdma,
    "nvme": lambda host: names_in(host, CONTROLLERS),
}


@dataclass(frozen=True, slots=True)
class _Machine:
    """What is asked of a machine once, whatever the number of rows that need it."""

    host: Host
    here: Mapping[str, bool]
    things: dict[str, list[str]] = field(default_factory=dict)  # by placeholder
    texts: dict[str, str | None] = field(default_factory=dict)

    def read(self, path: str) -> str | None:
        if path not in self.texts:
            self.texts[path] = self.host.read(path)
        return self.texts[path]


def read_settings(host: Host) -> Iterator[Record]:
    """A `Setting` for each row that this machine has; where its parts differ, "powersave, performance"."""
    machine = _Machine(host, {name: bool(asked(host)) for name, asked in _HERE.items()})
    for name, row in settings().items():
        if row.paths and all(_may_be(condition, machine.here) for condition in row.where):
            yield from _setting(machine, name, row)


def status_lines(status: str) -> str:
    """The lines of proc/self/status that are read here: the others tell of its owner."""
    entries = tuple(row.entry for row in settings().values() if STATUS in row.paths)
    return "\n".join(line for line in status.splitlines() if line.startswith(entries))


def _may_be(condition: str, here: Mapping[str, bool]) -> bool:
    return any(here.get(name, True) for name in condition.split("|"))


def _setting(machine: _Machine, name: str, row: Row) -> Iterator[Record]:
    values: dict[str, Evidence] = {}
    refused: NotChecked | None = None
    for places in _places(machine, row):
        try:
            for value, evidence in _values(machine, row, places):
                values.setdefault(value, evidence)
        except Unreadable as refusal:
            refused = refused or NotChecked(
                what="Setting.value",
                subject=name,
                reason=refusal.reason,
                path=refusal.path,
                detail=refusal.why,
                how=refusal.how,
            )
        except ValueError as wrong:
            refused = refused or NotChecked(
                what="Setting.value", subject=name, reason=Reason.UNREADABLE, path=places[0], detail=str(wrong)
            )
    if refused:
        yield refused
    if values:
        cites = {"value": next(iter(values.values()))}
        yield Setting(key=name, value=", ".join(values), cites=cites)
    elif refused:
        yield Setting(key=name)


def _places(machine: _Machine, row: Row) -> list[tuple[str, ...]]:
    """The paths of the row with its placeholder filled in, once for each thing."""
    placeholder = next((one for one in ("cpu", "group", "process") if f"{{{one}}}" in row.paths[0]), None)
    if placeholder is None:
        return [row.paths]
    if placeholder not in machine.things:
        machine.things[placeholder] = _things(machine, placeholder, row)
    return [tuple(path.format(**{placeholder: thing}) for path in row.paths) for thing in machine.things[placeholder]]


def _things(machine: _Machine, placeholder: str, row: Row) -> list[str]:
    if placeholder == "cpu":
        return [str(cpu) for cpu in first_cpus(machine.host).values()]
    if placeholder == "group":
        return iommu_groups(machine.host)
    try:
        first = (machine.read(row.service) or "").partition("\n")[0]
    except Unreadable:
        return []  # a process that nobody names is none that we know of
    return [first] if re.fullmatch("[1-9][0-9]{0,9}", first) else []


def _values(machine: _Machine, row: Row, places: tuple[str, ...]) -> Iterator[tuple[str, Evidence]]:
    """What the first of the paths that is there holds, and of all that a * stands for. Raises as value_in does."""
    if row.read == "exists":
        yield from _existing(machine.host, places)
        return
    for place in places:
        paths = list(_expanded(machine, row, place)) if "*" in place else [place]
        texts = {path: text for path in paths if (text := machine.read(path)) is not None}
        for path, text in texts.items():
            value, line = value_in(row, text)
            yield value, Evidence(path, line)
        if texts:
            return


def _existing(host: Host, places: tuple[str, ...]) -> Iterator[tuple[str, Evidence]]:
    """The last part of the first path that is there; "none" where the folder that it would be in is there."""
    for place in places:
        if host.resolve(place) is not None:
            name = place.rpartition("/")[2]
            yield name, Evidence(place, name)
            return
    folder = places[0].rpartition("/")[0]
    if host.resolve(folder) is not None:
        yield "none", Evidence(places[0], "not there")


def _expanded(machine: _Machine, row: Row, place: str) -> Iterator[str]:
    above, _, below = place.partition("*")
    folder, _, start = above.rpartition("/")
    for name in machine.host.list(folder):
        if name.startswith(start) and name.isprintable():
            beside = f"{folder}/{name}"
            if not any(machine.read(f"{beside}/{file}") == text for file, text in row.skip.items()):
                yield f"{beside}{below}"


def value_in(row: Row, text: str) -> tuple[str, str]:
    """The value in a file's text, and the line where it stands. ValueError for a text that holds none."""
    if row.read in ("entry", "bit"):
        text = _line(row.entry, text)
        found = re.match(r"[ \t:=]+(\S+)", text[len(row.entry) :])
    else:
        pattern = {"bracket": r"\[(\S+)\]", "match": row.entry}.get(row.read, r"\s*(\S+)")
        found = re.search(pattern, text)
        text = text.partition("\n")[0]
    value = word(found[1]) if found else None
    if not value or len(value) > _LONGEST or "," in value and row.read != "entry":
        raise ValueError(f"{shown(text)} is not the value of a setting")
    if row.read == "number":
        value = str(count(value))
    elif row.read == "bit":
        value = str(hexadecimal(f"0x{value}") >> row.bit & 1)
    return value, text[: 2 * _LONGEST]


def _line(entry: str, text: str) -> str:
    line = next((line for line in text.splitlines() if line.startswith(entry)), None)
    if line is None:
        raise ValueError(f"has no {entry}")
    return line
