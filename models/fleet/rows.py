"""Rows of a report for the comparison of a fleet: one row for each value at a position of a node.

A table of these rows is the only thing that the expressions read, so each engine that stores it can compute them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from ..comparison.side import NVLINKS, TRAINED, Item, items_of
from ..diagnosis.headlines import action, needs_drain
from ..facts.units import from_utc
from ..graph.topology import Topology
from ..report import Coverage, Finding, Level, Origin, Profile, Report, Verdict

# report: one row for each report; its quantity is the source of the report. rate: a measured flow. link: a trained
# rate. count: devices of a kind. state: a text that equal nodes share. finding: what the report found. unchecked,
# uncorroborated: what the report could not judge.
Kind: TypeAlias = Literal["report", "rate", "link", "count", "state", "finding", "unchecked", "uncorroborated"]

COUNTED = frozenset({"gpu", "nic", "nvme", "nvswitch", "port", "package", "numa"})
NAMED = frozenset({*COUNTED, "netdev"})
UNKNOWN = "unknown machine type"  # such nodes are not compared
DUMPS: Origin = "dumps"


class Row(NamedTuple):
    """One value. None: it does not apply. Rates are bytes per second, times seconds since 1970."""

    report: str  # the file
    node: str
    machine: str  # machine type
    kind: Kind
    quantity: str
    position: str = ""  # device or flow
    number: float | None = None  # of a report its time, of a finding the factor by which jobs take longer
    text: str | None = None  # of a report its verdict, of a link the product of its device
    cost: str | None = None  # of a finding, as in the report
    action: str | None = None  # of a report and a finding: keep, inspect, drain


class Measured(NamedTuple):
    """What was measured between the ends of a flow. Flows of several nodes with equal values are comparable."""

    op: str
    via: str = ""
    size: int | None = None  # bytes
    beside: int = 0  # flows at the same time

    @property
    def key(self) -> str:
        """The quantity of a row: "copy:nvlink:268435456:0"."""
        return f"{self.op}:{self.via}:{self.size or ''}:{self.beside}"


def measured(quantity: str) -> Measured:
    """What the quantity of a row of kind "rate" names. Raises ValueError."""
    op, via, size, beside = quantity.split(":")
    return Measured(op, via, int(size) if size else None, int(beside))


class Unchecked(Struct, frozen=True):
    """What a report could not check, in its JSON form."""

    what: str
    subject: str


class Summary(Struct, frozen=True, kw_only=True):
    """The parts of a report that become rows."""

    schema: Literal["linkgauge.report/1"]
    node: str | None
    taken_at: str | None
    profile: Profile | None
    verdict: Verdict
    source: Origin
    findings: tuple[Finding, ...] = ()
    not_checked: tuple[Unchecked, ...] = ()
    coverage: Coverage = Coverage()
    levels: tuple[Level, ...] = ()
    topology: Topology = Topology()


def rows_of(report: Summary | Report, file: str) -> Iterator[Row]:
    """The rows of a report."""
    items = {key: item for key, item in items_of(report.topology).items() if item.kind in NAMED}
    node = report.node or file
    gpus = (item.product for item in items.values() if item.kind == "gpu")
    machine = report.profile.name if report.profile else described(gpus)
    taken = from_utc(report.taken_at) if report.taken_at else 0.0
    yield Row(file, node, machine, "report", report.source, "", taken, report.verdict, None, action(report))
    if report.source != DUMPS:  # outputs of tools show a part of the devices
        for kind, count in Counter(item.kind for item in items.values() if item.kind in COUNTED).items():
            yield Row(file, node, machine, "count", kind, "", float(count), "")
    products = {item.name: item.product for item in items.values() if item.product}
    for item in items.values():
        yield from _of_item(item, products, file, node, machine)
    for level in report.levels:
        if level.observed is not None:
            quantity = Measured(level.op, level.via, level.size, len(level.beside)).key
            yield Row(file, node, machine, "rate", quantity, level.flow.subject, level.observed, "")
    for one in report.findings:
        if one.severity != "info" and not one.silenced:
            yield _of_finding(one, file, node, machine)
    for gap in report.not_checked:
        yield Row(file, node, machine, "unchecked", gap.what, gap.subject)
    for bare in report.coverage.uncorroborated:
        position = items[bare.subject].name if bare.subject in items else bare.subject
        for quantity in bare.quantities:
            yield Row(file, node, machine, "uncorroborated", quantity, position)


def described(gpus: Iterable[str]) -> str:
    """The number and product of the GPUs, for a node of no known machine type."""
    products = Counter(gpus)
    if not products or "" in products:
        return UNKNOWN
    return " + ".join(f"{count} x {product}" for product, count in sorted(products.items()))


def _of_item(item: Item, products: Mapping[str, str], file: str, node: str, machine: str) -> Iterator[Row]:
    module = item.place if item.kind == "gpu" and item.place else item.name  # drivers number the GPUs that are left
    yield Row(file, node, machine, "state", "product", module, None, item.product)
    for field, value in item.values.items():
        if field in (TRAINED, NVLINKS):
            product = products.get(item.name.partition("/")[0], "")  # a port belongs to the NIC mlx5_0
            yield Row(file, node, machine, "link", f"{field.label}:{item.kind}", item.name, float(str(value)), product)
        else:
            yield Row(file, node, machine, "state", field.label, item.name, None, str(value))


def _of_finding(one: Finding, file: str, node: str, machine: str) -> Row:
    factor = max(one.impact.values(), default=None)
    text = f"{one.device or one.subject} {one.fact or one.message}"
    todo = "drain" if needs_drain(one) else "inspect"
    return Row(file, node, machine, "finding", one.code, one.subject, factor, text, one.cost, todo)
