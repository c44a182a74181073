"""Single lines with a fact: environment variables, and versions and products as people write them.

A variable counts only if the line contains nothing but the assignment. "NCCL_P2P_DISABLE=1: works" describes an
attempt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ....models.catalog.gpus import product_of
from ....models.catalog.settings import settings
from ....models.facts.gpu import Driver, Gpu
from ....models.facts.machine import NcclFailure, Node, Setting
from ....models.facts.records import Evidence, Fact, Record
from ..core.part import Part

_MOST_GPUS = 16  # per node
_VALUE = r"(?:\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|[^\s\"';]{0,400})[ \t;]*$"
_DOTTED = r"v?[0-9]{1,4}(?:\.[0-9A-Za-z_+-]{1,60}){1,6}[ \t]*$"
# Only variables of job libraries and launchers; a list from `env` can begin with any variable.
_NAMES = r"(?:R?NCCL|FI|UCX|CUDA|NVSHMEM|OMPI)_[A-Z0-9_]{1,60}"
_ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]"
_FORMS = {
    "variable": rf"(?:(?:export|declare -x|-x|set -x) )?{_NAMES}={_VALUE}",
    "driver": rf"(?:(?:[Nn]vidia|NVIDIA) )?[Dd]river(?: [Vv]ersion)?[:=]?[ ]{{1,8}}{_DOTTED}"
    r"(?!\d|[.]\d|[ \t]{0,8}\n(?:[ \t]{0,8}\n)?[ \t]{0,8}Device \d)",  # the head of nvbandwidth
    "kernel": rf"[Kk]ernel(?: [Vv]ersion)?[:=]?[ ]{{1,8}}{_DOTTED}",
    "instance": r"[Ii]nstance(?:[ _-][Tt]ype)?[:=]?[ ]{1,8}[A-Za-z0-9]{1,20}[._][A-Za-z0-9._-]{1,60}[ \t]*$",
    "place": rf"(?:gpu|GPU)[ ]?[0-9]{{1,3}}[:=]?[ ]{{1,8}}{_ADDRESS}[ \t]*$",
    "products": r"(?:gpus?|GPUs?|GPUS)[:=][ ]{0,8}[0-9]{1,2} ?[xX] ?[A-Z][^\n]{1,80}$",
    # "all_reduce_perf: hangs between GPU 0 and 1": a person's description of a symptom without its cause.
    "hang": r"(?:\w{2,30}_perf|nccl[\w-]{0,20}|p2pBandwidthLatencyTest|torchrun|training|job|mpirun)[:=]? "
    r"[^\n]{0,100}\b(?:hangs|hanging|hung|stuck|deadlocks?|freezes)\b[^\n]{0,200}$",
    # CUDA's message on a machine without a configured NVSwitch fabric, as PyTorch, the samples or other programs print
    # it.
    "unready": r"(?:/\S{1,300}: UserWarning: CUDA init|\w{0,20}Error: |CUDA |cuda[A-Z]\w{2,40} |-> )"
    r"[^\n]{0,400}?\bsystem not yet initialized",
    # collect_env of PyTorch and vLLM. Other readers take its sections about GPUs and processors.
    "collected": r"Collecting environment information\.\.\.|PyTorch version: [^\n]*|Versions of relevant libraries:$",
    "software": r"(?:cuda|nccl|ofed|os)(?: host)?[:=]?[ ]{1,8}[\w.-]{0,40}[ -]?v?[0-9]{1,4}\.[0-9][^\n]{0,80}$",
}
BEGIN = rf"^[ \t]*(?:{'|'.join(_FORMS.values())})"
_ALL = re.compile("^[ \t]*(?:" + "|".join(f"(?P<{name}>{form})" for name, form in _FORMS.items()) + ")", re.MULTILINE)
_ASSIGNED = re.compile(r"([A-Z][A-Z0-9_]{1,80})=[\"']?([^\"'\n]*)[\"']?$")
_DIGITS = re.compile(r"[0-9][\w.+-]*")


def read(part: Part) -> Iterator[Record]:
    """One fact per line: settings, driver version, kernel, machine type, GPUs."""
    for line, found in part.matches(_ALL):
        text = found[found.lastgroup or 0]
        first = found.start(found.lastgroup or 0)
        cite = part.cite(line + part.text.count("\n", found.start(), first), text)
        yield from _READERS[found.lastgroup or ""](text.strip(), cite)


def variable(text: str, cite: Evidence) -> Iterator[Fact]:
    """A setting, if the catalog has a row for the variable."""
    if found := _ASSIGNED.search(text.rstrip(" \t;")):
        row = settings().get(found[1])
        if row and not row.paths and found[2]:
            yield Setting(key=found[1], value=found[2], cites={"value": cite})


def _hang(text: str, cite: Evidence) -> Iterator[Fact]:
    yield NcclFailure(key="hang", error=text, text=text, cites={"text": cite})


def _unready(text: str, cite: Evidence) -> Iterator[Fact]:
    yield NcclFailure(key="CUDA", error="system not yet initialized", text=cite.text, cites={"text": cite})


def _driver(text: str, cite: Evidence) -> Iterator[Fact]:
    version = _last(text)
    # NVIDIA's version format; amdgpu has a different one
    if re.fullmatch(r"[0-9]{3}\.[0-9]{1,3}(?:\.[0-9]{1,3})?", version):
        yield Driver(key="nvidia", version=version, cites={"version": cite})


def _kernel(text: str, cite: Evidence) -> Iterator[Fact]:
    yield Node(key="node", kernel=_last(text), cites={"kernel": cite})


def _instance(text: str, cite: Evidence) -> Iterator[Fact]:
    yield Node(key="node", instance=re.split(r"[ :=]+", text)[-1], cites={"instance": cite})


def _place(text: str, cite: Evidence) -> Iterator[Fact]:
    if found := re.search(r"([0-9]{1,3})[:= ]{1,9}([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])", text):
        address = f"{int(found[2], 16):04x}:{found[3].lower()}"
        yield Gpu(key=f"gpu{int(found[1])}", address=address, cites={"address": cite})


def _products(text: str, cite: Evidence) -> Iterator[Fact]:
    """A `Gpu` for each of "8x A100 SXM4 80GB".

    None for products outside the catalog, as even their number is uncertain.
    """
    found = re.search(r"([0-9]{1,2}) ?[xX] ?(.*)", text)
    if found and product_of(Gpu(key="", name=found[2]), {}) and int(found[1]) <= _MOST_GPUS:
        for number in range(int(found[1])):
            yield Gpu(key=f"gpu{number}", name=found[2], cites={"name": cite})


def _nothing(text: str, cite: Evidence) -> Iterator[Fact]:
    """Known lines without use for a rule."""
    return iter(())


def _last(text: str) -> str:
    found = _DIGITS.findall(text)
    return str(found[-1]) if found else ""


_READERS: Mapping[str, Callable[[str, Evidence], Iterator[Fact]]] = {
    "variable": variable,
    "driver": _driver,
    "kernel": _kernel,
    "instance": _instance,
    "place": _place,
    "products": _products,
    "hang": _hang,
    "unready": _unready,
    "software": _nothing,
    "collected": _nothing,
}
