"""What each basis expects of a flow, and levels: expected next to observed rates."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from fnmatch import fnmatchcase
from operator import mul

from msgspec.structs import replace

from ..facts.records import COLLECTIVES, Flow
from ..facts.units import as_utc
from ..graph.fair_share import fill
from ..graph.flow_paths import SubFlow, sub_flows
from ..graph.routes import RateOf
from ..graph.topology import Hop
from ..inventory.snapshot import Snapshot, once_per_snapshot
from ..report import Basis, Expectation, Level
from ..site.schema import Rate
from .best_rates import RATES, best_observations
from .contention import able, rate_without_sockets
from .message_size import full
from .peer_flows import COHORT_MEMORY, by_cohort
from .predict import Prediction, Shares, predict
from .product_rates import by_product

_BASELINE = 0.03
_WRITTEN = 0.2  # what a writer expects and what a healthy machine reaches
_REPORTED = 0.1  # between two rates that a person reports, before and after a change
_LONGEST = 16 << 30  # bytes: the size of the published bus bandwidths of machine types
WANTED = "rate_wanted"  # quantity of the rate that the writer of a report expects
BEFORE = "rate_before"  # quantity of the first of these


def levels(snapshot: Snapshot) -> tuple[Level, ...]:
    """One level per observed flow."""
    return tuple(level_of(snapshot, flow) for flow in best_observations(snapshot))


def level_of(snapshot: Snapshot, flow: Flow) -> Level:
    """The expected rates of a flow, and its observed rate if there is one."""
    seen = best_observations(snapshot).get(flow)
    routed = sub_flows(snapshot.topology, flow)
    tightest = min((hop for sub_flow in routed for path in sub_flow for hop in path), key=able, default=None)
    return Level(
        op=flow.op,
        ends=flow.ends,
        via=flow.via,
        size=flow.size,
        beside=flow.beside,
        link_class=_class(flow, tightest),
        rated=_share(flow, routed, rate_without_sockets),
        trained=_share(flow, routed, _trained),
        expected=tuple(expect(snapshot, flow)),
        observed=seen.value if seen else None,
        observed_at=as_utc(seen.at) if seen else None,
    )


def expect(snapshot: Snapshot, flow: Flow) -> Iterator[Expectation]:
    """In the order of trust: site or profile, capability; then cohort and baseline, which are checked in addition."""
    absolute = (*_by_machine(snapshot, flow), *_by_capability(snapshot, flow))
    yield from absolute or by_product(snapshot, flow)
    yield from by_cohort(snapshot, flow)
    for then in snapshot.baseline:
        if then.about == flow and then.quantity in RATES:
            source = f"this node when it was accepted, {as_utc(then.at)}"
            # The bandwidth of a memory varies this much between days
            apart = COHORT_MEMORY if len(flow.ends) == 1 else _BASELINE
            low, high = (1 - apart) * then.value, (1 + apart) * then.value
            yield Expectation(basis="baseline", low=low, typical=then.value, high=high, source=source)
    yield from _by_report(snapshot, flow)
    yield from _by_writer(snapshot, flow)


def _by_report(snapshot: Snapshot, flow: Flow) -> Iterator[Expectation]:
    """The highest rate that the same report gives for the time before a change."""
    before = [one for one in snapshot.observed.get(flow, ()) if one.quantity == BEFORE]
    if before:
        then = max(before, key=lambda one: one.value)
        low, high = (1 - _REPORTED) * then.value, (1 + _REPORTED) * then.value
        source = f"the rate before the change ({then.evidence.source})"
        yield Expectation(basis="baseline", low=low, typical=then.value, high=high, source=source)


def _by_writer(snapshot: Snapshot, flow: Flow) -> Iterator[Expectation]:
    """The rate that the writer of a report expects of the flow. Such numbers are rounded, or are those of a link."""
    wanted = [one for one in snapshot.observed.get(flow, ()) if one.quantity == WANTED]
    if wanted:
        most = max(wanted, key=lambda one: one.value)
        source = f"the text expects this rate ({most.evidence.source})"
        low, high = (1 - _WRITTEN) * most.value, (1 + _WRITTEN) * most.value
        yield Expectation(basis="baseline", low=low, typical=most.value, high=high, source=source)


def _by_machine(snapshot: Snapshot, flow: Flow) -> Iterator[Expectation]:
    """Rates from the site file, for all machines or for this type; else from the catalog."""
    machine = snapshot.machine
    ours = machine is not None and machine in snapshot.site.machine
    for rate in (*snapshot.site.rates, *(machine.rates if machine else ())):
        if _is_about(snapshot, rate, flow):
            basis: Basis = "site" if ours or rate in snapshot.site.rates else "profile"
            yield Expectation(basis=basis, low=rate.low, typical=rate.typical, high=rate.high, source=rate.source)
            return
    long = flow.size is None or flow.size >= full(flow.op)
    if machine and long and machine.gpus in (None, len(flow.ends)) and flow.op in machine.bus_bandwidth:
        low, typical, high = map(mul, machine.bus_bandwidth[flow.op], _shares(snapshot, flow))
        source = f"{machine.name}: {machine.source}"
        yield Expectation(basis="site" if ours else "profile", low=low, typical=typical, high=high, source=source)


def _shares(snapshot: Snapshot, flow: Flow) -> Shares:
    """The shares of the machine type's rates at the size of the flow."""
    if not flow.size or not all(map(snapshot.topology.find, flow.ends)):
        return 1.0, 1.0, 1.0
    each = [_predicted(snapshot, replace(flow, size=size)) for size in (flow.size, max(flow.size, _LONGEST))]
    now, longest = (one.shares if one and one.shares else (1.0, 1.0, 1.0) for one in each)
    return now[0] / longest[0], now[1] / longest[1], now[2] / longest[2]


def machine_name(snapshot: Snapshot) -> str:
    """The name of the machine type; empty if it is not known."""
    return snapshot.machine.name if snapshot.machine else ""


def _is_about(snapshot: Snapshot, rate: Rate, flow: Flow) -> bool:
    """Whether the rate applies: rates in site files and catalog are for long messages and one flow at a time."""
    long = flow.size is None or flow.size >= full(flow.op)
    alike = rate.op == flow.op and rate.via in ("", flow.via) and len(rate.ends) == len(flow.ends)
    if not (long and alike) or flow.beside:
        return False
    devices = [snapshot.topology.find(end) for end in flow.ends]
    names = [(end, *((one.id, *one.aliases) if one else ())) for end, one in zip(flow.ends, devices, strict=True)]
    return all(any(fnmatchcase(name, wanted) for name in known) for known, wanted in zip(names, rate.ends, strict=True))


def _by_capability(snapshot: Snapshot, flow: Flow) -> Iterator[Expectation]:
    """The rate of good machines over the links of the flow.

    For collectives only if the participating GPUs and the message size are known. In all other cases the machine type
    has the better figure.
    """
    if flow.op in COLLECTIVES and (flow.size is None or not all(map(snapshot.topology.find, flow.ends))):
        return
    reached = _predicted(snapshot, flow)
    if reached:
        yield capability(reached)


def _predicted(snapshot: Snapshot, flow: Flow) -> Prediction | None:
    """Flows that ran at the same time are predicted together."""
    if not flow.beside or flow.ends in flow.beside:
        return predict(snapshot.topology, together(flow), machine=machine_name(snapshot)).get(flow)
    runs = _predicted_runs(snapshot)
    every = frozenset((flow.ends, *flow.beside))
    key = flow.op, flow.size, flow.via, every
    if key not in runs:
        flows = [Flow(flow.op, ends, flow.size, flow.via) for ends in sorted(every)]
        runs[key] = predict(snapshot.topology, flows, machine=machine_name(snapshot))
    return runs[key].get(Flow(flow.op, flow.ends, flow.size, flow.via))


@once_per_snapshot
def _predicted_runs(snapshot: Snapshot) -> dict[Hashable, Mapping[Flow, Prediction]]:
    """The predictions by run of simultaneous flows. `_predicted` adds a run on first use."""
    return {}


def capability(reached: Prediction) -> Expectation:
    """A prediction as an expectation with basis "capability"."""
    bottleneck = "+".join(link.id for link in reached.bottleneck.links)
    return Expectation(
        basis="capability",
        low=reached.low,
        typical=reached.typical,
        high=reached.high,
        bottleneck=bottleneck,
        source=reached.source,
    )


def together(flow: Flow) -> list[Flow]:
    """The flow and the flows that ran at the same time."""
    return [flow, *(Flow(flow.op, ends, flow.size, flow.via) for ends in flow.beside)]


def _class(flow: Flow, tightest: Hop | None) -> str:
    """The kind of link that limits the flow: "pcie5x16"; the operation if no link does."""
    return (tightest.links[0].grade or tightest.links[0].kind) if tightest else flow.op


def _share(flow: Flow, routed: tuple[SubFlow, ...], rate: RateOf) -> float | None:
    """The rate of the flow alone at those rates; None if no rate is known."""
    share = fill({flow: routed}, rate).get(flow)
    return share.rate if share else None


def _trained(hop: Hop) -> float:
    known = [link.trained for link in hop.links if link.trained is not None]
    return sum(known) if len(known) == len(hop.links) else float("inf")
