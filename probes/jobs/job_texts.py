"""The Prometheus texts that the jobs of this node rewrite: the bus bandwidth inside the node, for the service."""

from __future__ import annotations

from collections.abc import Iterator

from ...models.facts.records import Evidence, Flow, Observation, Record
from ...models.facts.units import as_gigabytes
from ...models.jobs.log import Communicator, JobLog, Kind
from ...models.jobs.rates import bus_rate
from ..host.host import Host, Unreadable
from .inspector_metrics import read_metrics

QUANTITY = "job_bus_bandwidth"
_NEW = 120.0  # seconds after the last change; the Inspector rewrites its texts every 30 s or more
_MOST_FILES, _MOST = 64, 64  # texts, and observations of one call
_PREFIX = "GPU-"  # NVML's names of GPUs begin with it, those in the names of the files do not


class JobTexts:
    """A source. It remembers when each text changed: the texts of a job that ended stay in the folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder.strip("/")
        self._seen: dict[str, tuple[int, float | None]] = {}  # name -> hash of the text, time of its last change

    def __call__(self, host: Host) -> Iterator[Record]:
        """An observation for each communicator all of whose ranks run on this node."""
        log, now = JobLog(), host.now()
        try:
            names = [name for name in host.list(self._folder) if name.endswith(".prom")][:_MOST_FILES]
            texts = {name: host.read(f"{self._folder}/{name}") for name in names}
        except Unreadable as refusal:
            yield refusal.missed("job", "node", self._folder)
            return
        self._seen = {name: self._changed(name, text or "", now) for name, text in texts.items()}
        for name, text in texts.items():
            changed = self._seen[name][1]
            if text and changed is not None and now - changed <= _NEW:
                read_metrics(name, text.encode().splitlines(), log)
        yield from list(_observations(log, now, self._folder))[:_MOST]

    def _changed(self, name: str, text: str, now: float) -> tuple[int, float | None]:
        """The text's hash, and when it changed. None: not since the service runs, so its age is not known."""
        before = self._seen.get(name)
        if before is None:
            return hash(text), None
        return before if before[0] == hash(text) else (hash(text), now)


def _observations(log: JobLog, now: float, folder: str) -> Iterator[Observation]:
    """One for each set of GPUs, operation and size: the highest rate of the groups that have these GPUs."""
    found: dict[Flow, tuple[float, str]] = {}
    for one in log.communicators.values():
        whole = len(one.members) == one.n_ranks and one.n_nodes == 1 and not one.inconsistent
        for kind in sorted({kind for member in one.members.values() for kind in member.series}) if whole else ():
            if kind.peer < 0 and kind.op not in ("send", "recv") and (rate := _rate(one, kind)) is not None:
                gpus = sorted(_PREFIX + member.process.removeprefix(_PREFIX) for member in one.members.values())
                flow = Flow(kind.op, tuple(gpus), kind.size)
                found[flow] = max(found.get(flow, (0.0, "")), (rate, one.id))
    for flow, (rate, name) in found.items():
        yield Observation(
            about=flow,
            quantity=QUANTITY,
            unit="bytes_per_second",
            value=rate,
            at=now,
            busy=True,
            evidence=Evidence(folder, f"{name}: {flow.op} {as_gigabytes(rate)}"),
        )


def _rate(one: Communicator, kind: Kind) -> float | None:
    """The bus bandwidth of the rank that waited least. None: a rank has no value."""
    times = [time for member in one.members.values() if kind in member.series for time in member.series[kind].times]
    return bus_rate(kind.op, one.n_ranks, kind.size, min(times) / 1e6) if len(times) == one.n_ranks else None
