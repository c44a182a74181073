"""From the metrics of linkgauge to the rows of a fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import TypeAlias

from ...models.comparison.side import NEVER_REST, NVLINKS, TRAINED
from ...models.fleet.rows import COUNTED, NAMED, UNKNOWN, Measured, Row, described
from . import promql
from .prometheus import Series

Ask: TypeAlias = Callable[[str], Sequence[Series]]
_PAGE = 200  # instances of a query; an answer has some 10 MB
_QUERIES = (
    *(promql.VERDICTS, promql.CYCLES, promql.DEVICES, promql.TRAINED, promql.NVLINKS, promql.RATES, promql.FINDINGS),
    *(promql.MESSAGES, promql.COSTS, promql.DRAINS, promql.IMPACTS, promql.UNCHECKED, promql.UNCORROBORATED),
)
_Found: TypeAlias = Mapping[str, Sequence[Series]]  # by query, of one instance


def rows(ask: Ask) -> Iterator[Row]:
    """The rows of all nodes that Prometheus has now. A service that does not answer is a node of unknown state."""
    nodes = {one.metric["instance"]: one.metric for one in ask(promql.NODES) if "instance" in one.metric}
    names = sorted(nodes)
    for start in range(0, len(names), _PAGE):
        page = names[start : start + _PAGE]
        found: dict[str, dict[str, list[Series]]] = {name: defaultdict(list) for name in page}
        for query in _QUERIES:
            for one in ask(promql.of_instances(query, page)):
                if one.metric.get("instance") in found:
                    found[one.metric["instance"]][query].append(one)
        for name in page:
            yield from _of_node(name, nodes[name], found[name])
    for one in ask(promql.SILENT):
        name = one.metric.get("instance", "")
        if name not in nodes:
            yield Row(name, name, UNKNOWN, "report", "live", "", 0.0, "unknown", None, "inspect")


def _of_node(instance: str, info: Mapping[str, str], found: _Found) -> Iterator[Row]:
    gpus = [one.metric.get("name", "") for one in found[promql.DEVICES] if one.metric.get("class") == "gpu"]
    node, machine = info.get("node") or instance, info.get("profile") or described(gpus)
    verdict = next((one.metric.get("verdict") for one in found[promql.VERDICTS]), "unknown")
    at = next((one.number for one in found[promql.CYCLES]), 0.0)
    yield Row(instance, node, machine, "report", "live", "", at, verdict)
    for row in (*_devices(found), *_measured(found), *_findings(found), *_gaps(found)):
        yield row._replace(report=instance, node=node, machine=machine)


def _row(kind: str, quantity: str, position: str, number: float | None = None, text: str | None = None) -> Row:
    """A row without its node."""
    return Row("", "", "", kind, quantity, position, number, text)  # type: ignore[arg-type]


def _devices(found: _Found) -> Iterator[Row]:
    """Counts, products, firmware, and trained rates of links that never rest."""
    names = {one.metric.get("subject", ""): _name(one.metric) for one in found[promql.DEVICES]}
    products = {_name(one.metric): one.metric["name"] for one in found[promql.DEVICES] if one.metric.get("name")}
    kinds = {one.metric.get("subject", ""): one.metric.get("class", "") for one in found[promql.DEVICES]}
    for kind in sorted(COUNTED.intersection(kinds.values())):
        yield _row("count", kind, "", float(sum(one == kind for one in kinds.values())), "")
    for one in found[promql.DEVICES]:
        subject, labels = one.metric.get("subject", ""), one.metric
        if kinds[subject] not in NAMED:
            continue
        module = f"module {labels['module_id']}" if labels.get("module_id") else names[subject]
        yield _row("state", "product", module, None, labels.get("name", ""))
        if labels.get("firmware"):
            yield _row("state", "firmware", names[subject], None, labels["firmware"])
    for one in found[promql.TRAINED]:
        subject = one.metric.get("subject", "")
        if kinds.get(subject) in NEVER_REST:
            product = products.get(names[subject].partition("/")[0], "")
            yield _row("link", f"{TRAINED.label}:{kinds[subject]}", names[subject], one.number, product)
    for one in found[promql.NVLINKS]:
        subject = one.metric.get("subject", "")
        name = names.get(subject, subject)
        yield _row("link", f"{NVLINKS.label}:gpu", name, one.number, products.get(name, ""))


def _name(labels: Mapping[str, str]) -> str:
    """The name of a device as in reports: that of its driver, else its subject."""
    if labels.get("class") == "gpu" and labels.get("gpu"):
        return f"gpu{labels['gpu']}"
    driver = labels.get("device") if labels.get("class") in ("nic", "nvme") else None
    return driver or labels.get("subject", "")


def _measured(found: _Found) -> Iterator[Row]:
    for one in found[promql.RATES]:
        labels = one.metric
        quantity = Measured(labels.get("kind", ""), labels.get("via", "")).key
        yield _row("rate", quantity, labels.get("subject", ""), one.number, "")


def _findings(found: _Found) -> Iterator[Row]:
    """The findings. Prometheus has the slowdown of all findings of a node together."""

    def by_subject(query: str, label: str) -> Mapping[tuple[str, str], str]:
        return {_key(one): one.metric.get(label, "") for one in found[query]}

    texts, costs = by_subject(promql.MESSAGES, "message"), by_subject(promql.COSTS, "cost")
    drained = by_subject(promql.DRAINS, "code")
    factor = next((one.number for one in found[promql.IMPACTS] if isfinite(one.number)), None)
    for one in found[promql.FINDINGS]:
        key = _key(one)
        todo = "drain" if key in drained else "inspect"
        row = _row("finding", *key, factor if costs.get(key) == "slower" else None, texts.get(key, ""))
        yield row._replace(cost=costs.get(key, "unknown"), action=todo)


def _key(one: Series) -> tuple[str, str]:
    return one.metric.get("code", ""), one.metric.get("subject", "")


def _gaps(found: _Found) -> Iterator[Row]:
    """What was not checked or has no evidence: Prometheus has only its number."""
    for one in found[promql.UNCHECKED]:
        yield _row("unchecked", one.metric.get("check", ""), one.metric.get("reason", ""))
    for one in found[promql.UNCORROBORATED]:
        yield _row("uncorroborated", one.metric.get("group", ""), "")
