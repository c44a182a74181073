"""`gpu_burn`: GPUs multiply matrices and compare the results: https://github.com/wilicc/gpu-burn, gpu_burn-drv.cpp.

Each line of progress has the errors of each GPU, and "(DIED!)" for a GPU whose process ended. The last lines say which
GPUs are faulty. Errors of all GPUs are a fault of the test or of its libraries. Rates of multiplications have no fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from ....models.facts.gpu import Gpu
from ....models.facts.machine import Event
from ....models.facts.records import Evidence, Record
from ..core.part import Part

BEGIN = (
    r"^[ \t\"']*(?:[0-9]{1,3}\.[0-9]%[ \t]{1,4}proc'd: |Tested [0-9]{1,3} GPUs?:[ \t]*$|No clients are alive!"
    r"|Burning for [0-9]{1,9} seconds\.|Initialized device [0-9]{1,3} with [0-9]{1,9} MB of memory \("
    r"|GPU [0-9]{1,3}: (?:OK|FAULTY)[ \t]*$|Freed memory for dev [0-9])"
)
_VALUE = r"-?[0-9]{1,20}(?:[ \t]{1,4}\((?:WARNING|DIED)!\))?"
_PROGRESS = re.compile(rf"errors:[ \t]{{1,4}}(?P<errors>{_VALUE}(?:[ \t]{{0,4}}-[ \t]{{1,4}}{_VALUE}){{0,63}})")
_DONE = re.compile(r"(-?[0-9]{1,20})[ \t]{1,4}\([0-9]{1,12} Gflop/s\)")  # the products of each GPU
_ERRORS = re.compile(r"(?P<count>-?[0-9]{1,20})(?:[ \t]{1,4}\((?P<state>WARNING|DIED)!\))?")
_VERDICT = re.compile(r"^[ \t]*GPU (?P<gpu>[0-9]{1,3}): (?P<verdict>OK|FAULTY)[ \t]*$", re.MULTILINE)
_NAME = "gpu-burn"


class _State(Struct, frozen=True):
    """The worst state of a GPU. `text` is the part of the line about it."""

    state: str  # "OK", "WARNING", "FAULTY", "DIED"
    text: str
    where: Evidence


def read(part: Part) -> Iterator[Record]:
    """The GPUs, and an event for each GPU that computed wrong results or whose test ended early."""
    states: dict[str, _State] = {}
    texts = part.text.split("\n")
    products = cache(lambda number: _DONE.findall(texts[number]))  # a damaged line has its errors a thousand times
    for number, line in part.matches(_PROGRESS):
        done = products(number)
        for place, found in enumerate(_ERRORS.finditer(line["errors"])):
            number_of_errors = int(found["count"])
            ended = number_of_errors < 0 or done[place : place + 1] == ["-1"]  # the process of the GPU
            wrong = "DIED" if ended else "WARNING" if number_of_errors else "OK"
            _keep(states, f"gpu{place}", _State(found["state"] or wrong, found[0], part.cite(number, line[0])))
    for number, row in part.matches(_VERDICT):
        _keep(states, f"gpu{int(row['gpu'])}", _State(row["verdict"], row[0].strip(), part.cite(number, row[0])))
    yield from (Gpu(key=gpu, cites={}) for gpu in states)
    yield from _events(states)


def _keep(states: dict[str, _State], gpu: str, new: _State) -> None:
    """Keep the first line with the worst state."""
    order = ("OK", "FAULTY", "WARNING", "DIED")
    if gpu not in states or order.index(new.state) > order.index(states[gpu].state):
        states[gpu] = new


def _events(states: dict[str, _State]) -> Iterator[Event]:
    bad = {gpu: one for gpu, one in states.items() if one.state != "OK"}
    if len(bad) > 1 and len(bad) == len(states):
        first = next(iter(bad.values()))
        yield _event("test failed", "node", f"all {len(bad)} GPUs: {first.text}", first.where)
        return
    for gpu, one in bad.items():
        yield _event("test failed" if one.state == "DIED" else "wrong results", gpu, one.text, one.where)


def _event(kind: str, subject: str, text: str, where: Evidence) -> Event:
    key = f"{kind}, {_NAME}, {subject}"
    return Event(key=key, kind=kind, name=_NAME, subject=subject, text=text, cites={"text": where})
