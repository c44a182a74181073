"""TCP rate to another machine with an iperf3 server, over the interface of the route to it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from msgspec.structs import replace

from ....models.facts.reason import Reason
from ....models.facts.records import Evidence, Flow, NotChecked, Observation, Record
from ....models.facts.units import GIB, MIB
from ...dumps.benchmarks import iperf
from ...dumps.core.part import Part
from ..external_tools import ToolFailed, absent, found, run, version
from .addresses import interface_of

PORT = 5201  # iperf3's default
_STREAMS = 4  # one stream is limited by its window on long or fast paths, and by its processor
_FIRST = 16 * MIB  # bytes of the first run, which estimates the rate
_SECONDS = 2.0
_MOST = 20 * GIB  # bytes sent at most
_TRIES, _PAUSE = 5, 0.5  # tries, seconds: a server accepts one client at a time, and needs a moment after each
_BUSY = ("the server is busy", "control message")


def rate(peer: str, deadline: float, watch: Callable[[], None] | None = None) -> Iterator[Record]:
    """Yield the received bytes per second. The flow ends at the interface of the kernel's route to the peer."""
    program = found("iperf3")
    if program is None:
        yield absent("iperf3", "port_loopback", peer)
        return
    address, _, port = peer.partition(":") if peer.count(":") == 1 else (peer, "", "")
    command = [program, "-c", address, "-p", port or str(PORT), "-P", str(_STREAMS), "--json"]
    try:
        _, first = _run_once(program, [*command, "-n", str(_FIRST)], deadline, None)
        most = min(_MOST, max(_FIRST, int(_SECONDS * first.value)))
        local_address, result = _run_once(program, [*command, "-n", str(most)], deadline, watch)
    except ToolFailed as failed:
        how = f"run iperf3 -s on {address}"
        yield NotChecked(what="port_loopback", subject=peer, reason=failed.reason, detail=str(failed), how=how)
        return
    interface = interface_of(local_address)
    if interface == "lo":
        yield NotChecked(
            what="port_loopback",
            subject=peer,
            reason=Reason.OTHER,
            detail="it is this machine: nothing went over a wire",
        )
        return
    text = f"{version(program)}: {_STREAMS} streams to {peer}, {most / MIB:.0f} MiB; {result.evidence.text}"
    evidence = Evidence("iperf3", text)
    yield replace(result, about=Flow("tcp", ("host", interface or "network")), evidence=evidence)
    yield Observation(
        about=interface or "network",
        quantity="bytes_moved",
        unit="bytes",
        value=float(_FIRST + most),
        at=result.at,
        evidence=evidence,
    )


def _run_once(
    program: str, command: list[str], deadline: float, watch: Callable[[], None] | None
) -> tuple[str, Observation]:
    """Return the local address of the connection and the received rate. Raises ToolFailed."""
    for _ in range(_TRIES):
        text = run(command, deadline, watch=watch, ends_with=(0, 1))
        rates = [one for one in iperf.read(Part("iperf3", 1, text, time.time())) if isinstance(one, Observation)]
        if rates or not any(word in _error(text) for word in _BUSY):
            break
        time.sleep(_PAUSE)
    if not rates:
        raise ToolFailed(f"iperf3: {_error(text)}")
    with suppress(ValueError, LookupError, TypeError):
        return str(json.loads(text)["start"]["connected"][0]["local_host"]), rates[0]
    return "", rates[0]


def _error(text: str) -> str:
    with suppress(ValueError, LookupError, TypeError):
        return str(json.loads(text)["error"])[:200]
    return "its output contains no result"
