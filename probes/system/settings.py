"""Settings of the machine that affect its GPUs. The rows of models/catalog/settings.toml define their paths."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from ...models.catalog.settings import Row, settings
from ...models.facts.machine import Setting
from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, NotChecked, Record
from ..host.host import Host, Unreadable
from ..parsing.parsers import count, hexadecimal, shown, word
from ..pcie.bound_devices import AMD, NVIDIA, gpus, iommu_groups, names_in, rdma
from ..storage.nvme import CONTROLLERS
from ..sysfs.packages import first_cpus
from .job_variables import read_variables

STATUS = "proc/self/status"
_LONGEST = 100  # characters of a value
# Conditions that are decidable from driver folders. The rules evaluate other conditions with all facts (models/rules).
_CONDITIONS: Mapping[str, Callable[[Host], object]] = {
    "gpu": gpus,
    "nvidia gpu": lambda host: gpus(host, NVIDIA),
    "amd gpu": lambda host: gpus(host, AMD),
    "rdma": rdma,
    "nvme": lambda host: names_in(host, CONTROLLERS),
}


class _Machine(Struct, frozen=True):
    """Values of a machine that are read once for all rows."""

    host: Host
    conditions: Mapping[str, bool]
    values: dict[str, list[str]] = field(default_factory=dict)  # by placeholder and service
    texts: dict[str, str | None] = field(default_factory=dict)

    def read(self, path: str) -> str | None:
        if path not in self.texts:
            self.texts[path] = self.host.read(path)
        return self.texts[path]


def read_settings(host: Host) -> Iterator[Record]:
    """Yield a `Setting` for each row that applies. Different values of parts are joined: "powersave, performance"."""
    machine = _Machine(host, {name: bool(condition(host)) for name, condition in _CONDITIONS.items()})
    for name, row in settings().items():
        if row.paths and all(_may_be(condition, machine.conditions) for condition in row.where):
            yield from _setting(machine, name, row)
    yield from read_variables(host)


def status_lines(status: str) -> str:
    """Return only the lines of proc/self/status that settings need; the others contain private data of the owner."""
    entries = tuple(row.entry for row in settings().values() if STATUS in row.paths)
    return "\n".join(line for line in status.splitlines() if line.startswith(entries))


def _may_be(condition: str, conditions: Mapping[str, bool]) -> bool:
    return any(conditions.get(name, True) for name in condition.split("|"))


def _setting(machine: _Machine, name: str, row: Row) -> Iterator[Record]:
    values: dict[str, Evidence] = {}
    refused: NotChecked | None = None
    for paths in _paths(machine, row):
        try:
            for value, evidence in _values(machine, row, paths):
                values.setdefault(value, evidence)
        except Unreadable as refusal:
            refused = refused or refusal.missed("Setting.value", name, refusal.path)
        except ValueError as wrong:
            refused = refused or NotChecked(
                what="Setting.value", subject=name, reason=Reason.UNREADABLE, path=paths[0], detail=str(wrong)
            )
    if refused:
        yield refused
    if values:
        cites = {"value": next(iter(values.values()))}
        yield Setting(key=name, value=", ".join(values), cites=cites)
    elif refused:
        yield Setting(key=name)


def _paths(machine: _Machine, row: Row) -> list[tuple[str, ...]]:
    """Return the row's paths for each value of its placeholder."""
    placeholder = next((one for one in ("cpu", "group", "process") if f"{{{one}}}" in row.paths[0]), None)
    if placeholder is None:
        return [row.paths]
    key = f"{placeholder} {row.service}"
    if key not in machine.values:
        machine.values[key] = _placeholder_values(machine, placeholder, row)
    return [tuple(path.format(**{placeholder: value}) for path in row.paths) for value in machine.values[key]]


def _placeholder_values(machine: _Machine, placeholder: str, row: Row) -> list[str]:
    if placeholder == "cpu":
        return [str(cpu) for cpu in first_cpus(machine.host).values()]
    if placeholder == "group":
        return iommu_groups(machine.host)
    try:
        first = (machine.read(row.service) or "").partition("\n")[0]
    except Unreadable:
        return []  # without a readable process number there is no process to read
    return [first] if re.fullmatch("[1-9][0-9]{0,9}", first) else []


def _values(machine: _Machine, row: Row, paths: tuple[str, ...]) -> Iterator[tuple[str, Evidence]]:
    """Yield the values of the first existing path, or of all matches of a path with *. Raises like value_in()."""
    if row.read == "exists":
        yield from _existing(machine.host, paths)
        return
    for pattern in paths:
        matches = list(_expanded(machine, row, pattern)) if "*" in pattern else [pattern]
        texts = {path: text for path in matches if (text := machine.read(path)) is not None}
        for path, text in texts.items():
            if row.optional and not any(line.startswith(row.entry) for line in text.splitlines()):
                continue
            value, line = value_in(row, text)
            yield value, Evidence(path, line)
        if texts:
            return


def _existing(host: Host, paths: tuple[str, ...]) -> Iterator[tuple[str, Evidence]]:
    """Yield the last part of the first existing path; "none" if only its folder exists."""
    for path in paths:
        if host.resolve(path) is not None:
            name = path.rpartition("/")[2]
            yield name, Evidence(path, name)
            return
    folder = paths[0].rpartition("/")[0]
    if host.resolve(folder) is not None:
        yield "none", Evidence(paths[0], "not there")


def _expanded(machine: _Machine, row: Row, pattern: str) -> Iterator[str]:
    above, _, below = pattern.partition("*")
    folder, _, start = above.rpartition("/")
    for name in machine.host.list(folder):
        if name.startswith(start) and name.isprintable():
            entry = f"{folder}/{name}"
            if not any(machine.read(f"{entry}/{file}") == text for file, text in row.skip.items()):
                yield f"{entry}{below}"


def value_in(row: Row, text: str) -> tuple[str, str]:
    """Return the value in a file's text and its line. Raises ValueError if the text contains none."""
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
