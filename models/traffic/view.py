"""The traffic of each link, as a fold over readings: `advance` makes the next view of the last one and a reading."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ..facts.gpu import Gpu
from ..graph.topology import Topology
from .carriers import RECEIVED, SENT, Carrier, carriers, in_order
from .reading import GPU_LINKS, Count, Key, Reading

_CLOCK_SET = 0.5  # seconds by which a clock moves when it is set; it moves by less than 0.5 ms/s when it is slewed
_LONGEST = 300.0  # seconds over which a rate is an average
LOST = "lost"


class Traffic(Struct, frozen=True, kw_only=True):
    """One link now. Rates in bytes per second in one direction; None: not known."""

    carrier: Carrier
    received: float | None = None
    sent: float | None = None
    risen: Mapping[str, float] = field(default_factory=dict)  # error counter -> its rise since the first reading
    rising: bool = False  # one of them rose in the last reading
    state: str | None = None  # "lost", "down", "17 of 18 links", or why the counters are not known

    @property
    def used(self) -> float | None:
        """The busier direction as a share of its expected rate."""
        pairs = ((self.received, self.carrier.expected_in), (self.sent, self.carrier.expected_out))
        return max((rate / expected for rate, expected in pairs if rate is not None and expected), default=None)

    @property
    def is_slower(self) -> bool:
        """Whether the link runs below the rate that both ends support, and not because it is idle."""
        trained, rated = self.carrier.trained, self.carrier.rated
        if self.carrier.rests or trained is None or rated is None:
            return False
        return trained < rated * 0.999  # rates may be rounded

    @property
    def has_news(self) -> bool:
        """Whether its bytes are counted, or there is an error or a fault to show."""
        return self.carrier.kind in RECEIVED or bool(self.risen) or bool(self.state) or self.is_slower


class View(Struct, frozen=True, kw_only=True):
    """All links, and what the next view needs."""

    node: str | None = None
    at: float | None = None  # seconds since 1970; None: nothing was read yet
    topology: Topology = Topology()
    links: tuple[Traffic, ...] = ()
    gpus: Mapping[str, Gpu] = field(default_factory=dict)  # by device id
    note: str | None = None  # what could not be read at all, and why
    carriers: tuple[Carrier, ...] = ()  # those that are lost included
    lost: frozenset[tuple[str, str]] = frozenset()  # (device id, kind)
    counts: Mapping[Key, Count] = field(default_factory=dict)
    rates: Mapping[Key, float] = field(default_factory=dict)
    risen: Mapping[Key, float] = field(default_factory=dict)
    ahead: float | None = None  # as in Reading


def advance(before: View, reading: Reading) -> View:
    """The view after a reading."""
    known, lost = before.carriers, before.lost
    if reading.topology is not before.topology:
        now = carriers(reading.topology)
        present = {(one.subject, one.kind) for one in now}
        gone = [one for one in known if (one.subject, one.kind) not in present]
        known = in_order((*now, *gone))
        # What could not be read is not lost.
        lost = frozenset(
            (one.subject, one.kind)
            for one in gone
            if one.kind not in reading.unread or (one.subject, one.kind) in before.lost
        )
    rises = {key: rise for key, count in reading.counts.items() if (rise := _rise(before.counts.get(key), count))}
    after = View(
        node=reading.node,
        at=reading.at,
        topology=reading.topology,
        gpus=_gpus(before, reading),
        note="; ".join(dict.fromkeys(reading.unread.values())) or None,
        carriers=known,
        lost=lost,
        counts={**before.counts, **reading.counts},
        rates=_rates(before, reading),
        risen={**before.risen, **{key: before.risen.get(key, 0.0) + rise for key, rise in rises.items()}},
        ahead=reading.ahead,
    )
    return replace(after, links=tuple(_traffic(one, after, reading, rises) for one in known))


def _rates(before: View, reading: Reading) -> Mapping[Key, float]:
    """The rate of each counter. Unknown after a reset of the counter and after the clock was set."""
    if before.ahead is not None and reading.ahead is not None and abs(reading.ahead - before.ahead) > _CLOCK_SET:
        return {}
    rates: dict[Key, float] = {}
    for key, now in reading.counts.items():
        then = before.counts.get(key)
        if then is None or reading.at - now.at > reading.lasts or not 0 <= now.at - then.at <= _LONGEST:
            continue
        if now.at == then.at:  # its source was not read since
            rates.update({key: before.rates[key]} if key in before.rates else {})
        elif now.value >= then.value:
            rates[key] = (now.value - then.value) / (now.at - then.at)
    return rates


def _rise(then: Count | None, now: Count) -> float:
    """How much a counter has risen. A counter that fell was reset: its value is the least that it rose."""
    if then is None or then.at == now.at:
        return 0.0
    return now.value if now.value < then.value else now.value - then.value


def _gpus(before: View, reading: Reading) -> Mapping[str, Gpu]:
    """The GPUs. One that was there before and is absent is lost, unless no GPU could be read. The values of a GPU that
    fails are older than its failure.
    """
    lost = None if GPU_LINKS[0] in reading.unread else LOST
    found: dict[str, Gpu] = {}
    for key, gpu in {**before.gpus, **reading.gpus}.items():
        failure = gpu.failure if key in reading.gpus else lost
        fails = key not in reading.gpus or failure is not None
        found[key] = Gpu(key=gpu.key, failure=failure) if fails else gpu
    return found


def _traffic(one: Carrier, view: View, reading: Reading, rises: Mapping[Key, float]) -> Traffic:
    keys = [(place, quantity) for place in one.counted_at for quantity in sorted(one.errors)]
    risen: dict[str, float] = {}
    for place, quantity in keys:
        if rise := view.risen.get((place, quantity)):
            risen[quantity] = risen.get(quantity, 0.0) + rise
    is_lost = (one.subject, one.kind) in view.lost
    gpu = view.gpus.get(one.subject)
    fails = is_lost or (gpu is not None and gpu.failure is not None)
    return Traffic(
        carrier=one,
        received=None if fails else _rate(one, RECEIVED, view),
        sent=None if fails else _rate(one, SENT, view),
        risen=risen,
        rising=any(key in rises for key in keys),
        state=_state(one, is_lost, reading),
    )


def _rate(one: Carrier, quantities: Mapping[str, tuple[str, ...]], view: View) -> float | None:
    """The rate of the first of these counters that the device has."""
    counted = [name for name in quantities.get(one.kind, ()) if (one.subject, name) in view.counts]
    return view.rates.get((one.subject, counted[0])) if counted else None


def _state(one: Carrier, is_lost: bool, reading: Reading) -> str | None:
    gap, state = reading.gaps.get(one.subject), reading.states.get(one.name)
    if is_lost or gap or state:
        return gap or (LOST if is_lost else state)
    if not one.down:
        return None
    return "down" if one.down == one.links else f"{one.links - one.down} of {one.links} links"
