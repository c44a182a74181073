"""GPUs are followed by their PCI address when the driver numbers them anew.

The driver numbers the GPUs that it has in the order of their addresses. A GPU that goes to a guest (vfio), that is
drained or that comes back changes the numbers of all GPUs after it. Series of counters then belong to other GPUs.
Names in memory follow the GPU: "gpu5/nvlink3" becomes "gpu4/nvlink3". Names of an absent GPU wait under its address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from ...models.facts.gpu import Gpu, GpuLink, GpuPair
from ...models.facts.records import Flow, NotChecked, Observation, Record

_ABSENT = "gpu at "  # then the address or the UUID; no other name begins so


def gpu_places(records: Iterable[Record]) -> dict[str, str]:
    """The name of each GPU that waits for its number, by its number: "gpu at 0000:53:00.0"."""
    found: dict[str, str] = {}
    for one in records:
        if isinstance(one, Gpu) and (one.address or one.uuid) and one.key != one.address:
            found.setdefault(one.key, f"{_ABSENT}{one.address or one.uuid}")
    return found


def new_names(before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """The names that change, if the GPUs had the numbers `before` and have the numbers `now`.

    An absent GPU keeps its number until another one has it.
    """
    numbers = {place: key for key, place in now.items()}
    names = {key: numbers.get(place, place) for key, place in before.items() if place in numbers or key in now}
    return {old: new for old, new in (names | numbers).items() if old != new}


def waiting(observations: Iterable[Observation], places: Mapping[str, str]) -> tuple[Observation, ...]:
    """The observations under the places of their GPUs, to be stored."""
    return tuple(followed(observations, places))


def found_again(observations: Iterable[Observation], places: Mapping[str, str]) -> tuple[Observation, ...]:
    """Stored observations under the present numbers of their GPUs."""
    return tuple(followed(observations, {place: key for key, place in places.items()}))


def followed(observations: Iterable[Observation], names: Mapping[str, str]) -> Iterator[Observation]:
    """The observations under their new names."""
    for one in observations:
        about = _about(one.about, names)
        yield one if about is one.about else replace(one, about=about)


def records_followed(records: Iterable[Record], names: Mapping[str, str]) -> Iterator[Record]:
    """Records of sources that were not read again, under their new names. Those of absent GPUs are left out."""
    for one in records:
        if isinstance(one, Observation):
            yield from followed([one], names)
        elif isinstance(one, NotChecked):
            yield replace(one, subject=_name(one.subject, names))
        elif not isinstance(one, Gpu | GpuLink | GpuPair):
            yield one
        elif _ABSENT not in (moved := _fact(one, names)).key:
            yield moved


def _fact(one: Gpu | GpuLink | GpuPair, names: Mapping[str, str]) -> Gpu | GpuLink | GpuPair:
    if isinstance(one, GpuPair):
        a, b = sorted((_name(one.a or "", names), _name(one.b or "", names)), key=lambda key: (len(key), key))
        return replace(one, key=f"{a}-{b}", a=a, b=b)
    key = _name(one.key, names)
    if isinstance(one, Gpu) or one.gpu is None:
        return replace(one, key=key)
    return replace(one, key=key, gpu=_name(one.gpu, names))


def _about(about: Flow | str, names: Mapping[str, str]) -> Flow | str:
    if isinstance(about, str):
        return _name(about, names)
    ends = tuple(_name(end, names) for end in about.ends)
    beside = tuple(tuple(_name(end, names) for end in one) for one in about.beside)
    return about if (ends, beside) == (about.ends, about.beside) else replace(about, ends=ends, beside=beside)


def _name(name: str, names: Mapping[str, str]) -> str:
    """The new name of a GPU or of its link. The same object if it does not change."""
    key, slash, link = name.partition("/")
    return name if key not in names else f"{names[key]}{slash}{link}"
