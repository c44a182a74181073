"""Evidence for the sizes, limits and clocks of GPUs: the product, and equal GPUs of the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from ...catalog.gpus import Product
from ...facts.gpu import Gpu
from ...facts.units import as_bytes, as_megahertz
from ...inventory.cohorts import strict_majority
from ...inventory.snapshot import Snapshot, once_per_snapshot
from ...report import COHORT, Finding
from ..core.claims import Claim, Support
from ..core.gpus import gpu_evidence, gpu_name, gpu_product, gpus_by_name, place_of, subject_of
from ..core.rule import Rule
from .clocks import lowered

# The driver shows a little less memory than the data sheet. ECC of GDDR memory takes 1/16 of it (NVIDIA A10 and T4).
_MEMORY_SHOWN = 0.9
_ALIKE = 0.99  # equal GPUs show equal values, apart from rounding


class _Row(Struct, frozen=True):
    """One value of a GPU: the field of the record, the finding code, and what the product has at least."""

    field: str
    quantity: str
    code: str
    unit: str
    word: Callable[[float], str]
    cause: str
    of_product: Callable[[Product], float | None] = lambda product: None


def _watts(value: float) -> str:
    return f"{value:.0f} W"


_MEMORY = _Row(
    "memory",
    "memory size",
    "gpu-memory-low",
    "bytes",
    as_bytes,
    "memory that failed its test at start, ECC or MIG settings, or a board of another variant",
    lambda product: product.memory and _MEMORY_SHOWN * product.memory,
)
_LOWER = "a board of another variant, other firmware (VBIOS), or a limit that the management controller set"
_POWER = _Row("power_limit", "power limit", "gpu-clocks-limited", "watts", _watts, _LOWER)
_CLOCK = _Row("clock_max", "highest SM clock", "gpu-clocks-limited", "hertz", as_megahertz, _LOWER)
_MEMORY_CLOCK = _Row("memory_clock_max", "highest memory clock", "gpu-clocks-limited", "hertz", as_megahertz, _LOWER)
# GPUs with HBM have ECC, and it is on from the factory (nvidia-smi -q of V100, A100, H100). state.py reports ECC.
_ECC = _Row("ecc", "ECC mode", "gpu-mode", "", str, "", lambda product: 1 if product.memory_kind == "hbm" else None)
_SLICE = "the host sets the memory of a slice of a GPU (vGPU)"
_REPORTED = (_MEMORY, _POWER, _CLOCK, _MEMORY_CLOCK)
_ROWS = (*_REPORTED, _ECC)


def gpu_claims(snapshot: Snapshot) -> Iterator[Claim]:
    """The claims of all GPUs."""
    yield from _claims(snapshot).values()


@once_per_snapshot
def _claims(snapshot: Snapshot) -> Mapping[tuple[str, str], Claim]:
    """The claims by GPU and field."""
    usual = {row.field: _usual(snapshot, row) for row in _ROWS}
    return {
        (gpu.key, row.field): claim
        for gpu in snapshot.of(Gpu).values()
        for row in _ROWS
        if (claim := _claim(snapshot, gpu, row, usual[row.field].get(gpu.name)))
    }


def _claim(snapshot: Snapshot, gpu: Gpu, row: _Row, usual: Support | None) -> Claim | None:
    """The claim of one value. None: not read. The host of a slice of a GPU sets its values: nothing supports them."""
    value = getattr(gpu, row.field)
    if value is None:
        return None
    if gpu.virtualization == "vGPU":
        bare = Claim(group="states", subject=subject_of(gpu), quantity=row.quantity, observed=value, doubt=_SLICE)
        return bare if row is _MEMORY else None
    supports = [usual] if usual else []
    product = gpu_product(snapshot, gpu)
    if product and (least := row.of_product(product)):
        supports.insert(0, Support("product", least, f"{product.name} ({product.source})"))
    supports.sort(key=lambda one: -one.least)
    return Claim(
        group="states", subject=subject_of(gpu), quantity=row.quantity, observed=value, supports=tuple(supports)
    )


def _usual(snapshot: Snapshot, row: _Row) -> Mapping[str | None, Support]:
    """The value of most GPUs of each product name. If the text names no product, its GPUs are alike (gpu_cohort)."""
    found: dict[str | None, Support] = {}
    named = gpus_by_name(snapshot)
    for name, cohort in named.items():
        values = [getattr(one, row.field) for one in cohort]
        most = strict_majority(values)
        if (name or named.keys() == {None}) and most is not None:
            source = f"{values.count(most)} of {len(cohort)} equal GPUs have {row.word(most)}"
            found[name] = Support("cohort", _ALIKE * most, source)
    return found


def _rule(row: _Row) -> Rule:
    """The rule that reports a value below its evidence."""

    def evaluate(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
        claim = None if row is _POWER and lowered(gpu) else _claims(snapshot).get((gpu.key, row.field))
        if claim is None or (against := claim.contradicted) is None:
            return
        yield Finding(
            code=row.code,
            severity="warning",
            confidence="likely" if against.by == "cohort" else "certain",
            subject=claim.subject,
            subject_name=gpu_name(snapshot, gpu),
            message=f"{gpu_name(snapshot, gpu)}: its {row.quantity} is {row.word(claim.observed)}, "
            f"below {row.word(against.least)}; {against.source}",
            expected=against.least,
            observed=claim.observed,
            unit=row.unit,
            basis=COHORT if against.by == "cohort" else "capability",
            expected_source=against.source,
            cause=row.cause,
            location=place_of(snapshot, gpu),
            evidence=gpu_evidence(gpu, row.field),
        )

    def where(snapshot: Snapshot, gpu: Gpu) -> bool:
        claim = _claims(snapshot).get((gpu.key, row.field))
        return snapshot.origin != "dumps" or bool(claim and claim.supports)

    return Rule(row.code, Gpu, (row.field,), evaluate, where)


RULES = tuple(_rule(row) for row in _REPORTED)
