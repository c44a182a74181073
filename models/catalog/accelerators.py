"""What GPUs compute, and which GPUs and NICs machine types have, from accelerators.toml."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache

import msgspec

from ..site.schema import Few, Positive, Text
from . import load


class Accelerator(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What GPUs of a kind compute in bf16, dense; FLOP in a second."""

    gpus: tuple[Text, ...]  # shell patterns of names in gpus.toml
    flops: Positive
    reached: Positive | None = None  # by the best matrix products that were measured
    domain: Few | None = None  # GPUs that NVLink joins beyond a node
    source: Text


class Fitted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What machine types do not say of themselves: which GPUs they have, and NICs where platforms.toml has none."""

    machines: tuple[Text, ...]  # shell patterns of machine types
    gpu: Text  # a name in gpus.toml
    nics: Few | None = None
    nic_rate: Positive | None = None
    mesh: bool = False  # NVLinks from each GPU to each other one, without switches
    source: Text


class Accelerators(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole of accelerators.toml."""

    accelerator: tuple[Accelerator, ...]
    fitted: tuple[Fitted, ...]


@cache
def accelerators() -> Accelerators:
    """What GPUs compute, and what machines have."""
    return load("accelerators.toml", Accelerators)


def accelerator_of(gpu: str) -> Accelerator | None:
    """The row of a GPU product; None: what it computes is not in the catalog."""
    rows = accelerators().accelerator
    return next((one for one in rows if any(fnmatchcase(gpu, name) for name in one.gpus)), None)


def fitted_of(machine: str) -> Fitted | None:
    """What a machine type has besides; None: not in the catalog."""
    rows = accelerators().fitted
    return next((one for one in rows if any(fnmatchcase(machine, name) for name in one.machines)), None)
