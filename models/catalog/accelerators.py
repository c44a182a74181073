"""Compute rates of GPUs, and the GPUs and NICs of machine types, from accelerators.toml."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

import msgspec

from ..site.schema import Few, Positive, Text
from . import load


class Accelerator(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Dense compute rates of some GPU products in bf16, fp8 and fp4, in FLOP per second."""

    gpus: tuple[Text, ...]  # shell patterns of names in gpus.toml
    flops: Positive
    fp8: Positive | None = None
    fp4: Positive | None = None
    reached: Positive | None = None  # rate of the best measured matrix products
    memory: Few | None = None  # nominal bytes, if gpus.toml has none
    domain: Few | None = None  # number of GPUs in an NVLink domain of several nodes
    source: Text

    @property
    def low(self) -> dict[str, float]:
        """The rates of the precisions below bf16 that it has."""
        return {name: rate for name, rate in (("fp8", self.fp8), ("fp4", self.fp4)) if rate}


class Fitted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The GPUs of machine types, and their NICs if platforms.toml has none."""

    machines: tuple[Text, ...]  # shell patterns of machine types
    gpu: Text  # a name in gpus.toml
    nics: Few | None = None
    nic_rate: Positive | None = None
    gpus: Few | None = None  # if platforms.toml has no number
    mesh: bool = False  # NVLinks connect each two GPUs directly, without switches
    cube: bool = False  # links connect neighbours in a hypercube
    source: Text


class Accelerators(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole of accelerators.toml."""

    accelerator: tuple[Accelerator, ...]
    fitted: tuple[Fitted, ...]


@cache
def accelerators() -> Accelerators:
    """Compute rates and machine equipment."""
    return load("accelerators.toml", Accelerators)


def accelerator_of(gpu: str) -> Accelerator | None:
    """The row of a GPU product; None: its compute rate is not in the catalog."""
    rows = accelerators().accelerator
    return next((one for one in rows if any(fnmatchcase(gpu, name) for name in one.gpus)), None)


def fitted_of(machine: str) -> Fitted | None:
    """The equipment of a machine type; None: not in the catalog."""
    rows = accelerators().fitted
    return next((one for one in rows if any(fnmatchcase(machine, name) for name in one.machines)), None)
