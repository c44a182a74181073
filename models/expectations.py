"""What each basis expects of a flow, and the levels: expected beside observed."""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Iterator

from .case import Case
from .facts import Pci
from .link_rates import Attainable, attainable, generation
from .report import Expectation, Level
from .routes import Route, rated, route
from .said import Flow, Observation
from .shares import shares
from .topology import Hop
from .units import as_gigabytes

RATES = ("rate", "bus_bandwidth")  # quantities of observations that are judged as levels
# How far equal flows of one healthy machine lie apart. Links: 8 H200 copies within 0.2 %, 12 A100 pairs within 0.04 %
# (stas00 ml-engineering; simllm); ten times that. Host memory has no published figure: copies of a few threads
# vary with placement, so the bound is wide.
_KIN_LINK, _KIN_MEMORY = 0.02, 0.15
_BASELINE = 0.03
# Collectives come within a tenth of their peak between 0.2 and 5 GB (fits of 8xA100 to 8xB200); below, a message is
# compared with the same size only.
_LONG = 1 << 30
_FEWEST_KIN = 3  # others to compare with: among fewer, nobody knows who is the odd one


def best_observations(case: Case) -> dict[Flow, Observation]:
    """The highest rate that was seen of each flow: disturbances only lower a measurement."""
    best: dict[Flow, Observation] = {}
    for about, series in case.observed.items():
        rates = [one for one in series if one.quantity in RATES]
        if isinstance(about, Flow) and rates:
            best[about] = max(rates, key=lambda one: one.value)
    return best


def levels(case: Case) -> tuple[Level, ...]:
    """A level for each flow that was observed."""
    best = best_observations(case)
    return tuple(_level(case, flow, best) for flow in best)


def _level(case: Case, flow: Flow, best: dict[Flow, Observation]) -> Level:
    way = way_of(case, flow)
    tightest = min(way, key=rated, default=None)
    return Level(
        op=flow.op,
        ends=flow.ends,
        via=flow.via,
        size=flow.size,
        beside=flow.beside,
        link_class=_class(case, flow, tightest),
        rated=_finite(rated(tightest)) if tightest else None,
        trained=_trained(way),
        expected=tuple(expect(case, flow, best)),
        observed=best[flow].value,
    )


def expect(case: Case, flow: Flow, best: dict[Flow, Observation]) -> Iterator[Expectation]:
    """In the order of trust: site or profile, capability; then kin and baseline, which are judged besides."""
    yield from _by_machine(case, flow)
    yield from _by_capability(case, flow)
    yield from _by_kin(case, flow, best)
    for then in case.baseline:
        if then.about == flow and then.quantity in RATES:
            source = "this node when it was accepted"
            low, high = (1 - _BASELINE) * then.value, (1 + _BASELINE) * then.value
            yield Expectation(basis="baseline", low=low, typical=then.value, high=high, source=source)


def _by_machine(case: Case, flow: Flow) -> Iterator[Expectation]:
    long = flow.size is None or flow.size >= _LONG
    whole = case.machine is not None and case.machine.gpus in (None, len(flow.ends))
    if case.machine and long and whole and flow.op in case.machine.bus_bandwidth:
        low, typical, high = case.machine.bus_bandwidth[flow.op]
        source = f"{case.machine.name}: {case.machine.source}"
        basis = "site" if case.machine in case.site.machine else "profile"
        yield Expectation(basis=basis, low=low, typical=typical, high=high, source=source)  # type: ignore[arg-type]


def _by_capability(case: Case, flow: Flow) -> Iterator[Expectation]:
    """Copies over PCIe: the fair share of the tightest hop, times what good copies reach at its generation."""
    way = way_of(case, flow)
    tightest = min(way, key=rated, default=None)
    reach = _attainable(case, tightest) if tightest else None
    if flow.op != "copy" or tightest is None or reach is None:
        return
    share = shares(case.topology, together(flow), rated).get(flow)
    if share is None:
        return
    yield Expectation(
        basis="capability",
        low=reach.low * share,
        typical=reach.typical * share,
        high=reach.high * share,
        bottleneck="+".join(link.id for link in tightest.links),
        source=f"both ends of {tightest.links[0].id} give {as_gigabytes(share)}; copies reach {reach.typical:.0%} of it"
        f" ({reach.source})",
    )


def _by_kin(case: Case, flow: Flow, best: dict[Flow, Observation]) -> Iterator[Expectation]:
    mine = kinship(case, flow)
    others = [one.value for other, one in best.items() if other != flow and kinship(case, other) == mine]
    if len(others) < _FEWEST_KIN:
        return
    typical = statistics.median(others)
    apart = _KIN_MEMORY if len(flow.ends) == 1 else _KIN_LINK
    source = f"median of {len(others)} equal flows of this node"
    low, high = (1 - apart) * typical, (1 + apart) * typical
    yield Expectation(basis="kin", low=low, typical=typical, high=high, source=source)


def kinship(case: Case, flow: Flow) -> Hashable:
    """Flows of one kinship should be equally fast: same operation and size, like ends, like hops."""
    devices = [case.topology.find(end) for end in flow.ends]
    kinds = tuple(device.kind if device else end for device, end in zip(devices, flow.ends, strict=True))
    return flow.op, flow.size, flow.via, len(flow.beside), kinds, tuple(rated(hop) for hop in way_of(case, flow))


def together(flow: Flow) -> list[Flow]:
    """The flow and those that ran beside it."""
    return [flow, *(Flow(flow.op, ends, flow.size, flow.via) for ends in flow.beside)]


def way_of(case: Case, flow: Flow) -> Route:
    """The route of a flow between two devices; empty where it has none or more than two ends."""
    return (route(case.topology, flow.ends[0], flow.ends[1], flow.via) or ()) if len(flow.ends) == 2 else ()


def _attainable(case: Case, hop: Hop) -> Attainable | None:
    """By the generation that both ends of a PCIe hop support."""
    link = hop.links[0]
    ends = (case.of(Pci).get(link.a), case.of(Pci).get(link.b))
    speeds = [end.max_speed for end in ends if end and end.max_speed]
    number = generation(min(speeds)) if link.kind == "pcie" and speeds else None
    return attainable(number) if number else None


def _class(case: Case, flow: Flow, tightest: Hop | None) -> str:
    """What kind of link limits the flow: "pcie5x16"; the operation where no link does."""
    if tightest is None:
        return flow.op
    link = tightest.links[0]
    ends = [end for end in (case.of(Pci).get(link.a), case.of(Pci).get(link.b)) if end]
    speeds = [end.max_speed for end in ends if end.max_speed]
    widths = [end.max_width for end in ends if end.max_width]
    number = generation(min(speeds)) if speeds else None
    return f"pcie{number}x{min(widths)}" if link.kind == "pcie" and number and widths else link.kind


def _trained(way: Route) -> float | None:
    known = ([link.trained for link in hop.links if link.trained is not None] for hop in way)
    trained = [sum(rates) for hop, rates in zip(way, known, strict=True) if len(rates) == len(hop.links)]
    return min(trained, default=None)


def _finite(rate: float) -> float | None:
    return None if rate == float("inf") else rate
