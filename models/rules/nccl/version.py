"""NCCL versions with known faults on these GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from ...catalog.nccl import Fault, faults
from ...facts.gpu import Gpu
from ...facts.machine import Nccl, Setting
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.gpus import gpu_product
from ..core.rule import Rule
from ..core.wording import cited


def faulty(snapshot: Snapshot, library: Nccl) -> Iterator[Finding]:
    """One finding for all known faults of the NCCL version that this machine shows."""
    known = _known(snapshot, library)
    if not known:
        return
    better = [one.fixed for one in known if one.fixed]
    fixed = f"; NCCL {better[-1]} does not have it" if better else ""
    yield Finding(
        code="nccl-version",
        severity="warning",
        confidence="likely",
        subject="node",
        subject_name=f"NCCL {library.version}",
        fact=f"NCCL {library.version} has a known fault on this hardware",
        message=f"NCCL {library.version} is known for a fault on this hardware: "
        f"{'; '.join(one.says for one in known)}{fixed}",
        expected=better[-1] if better else "another version",
        observed=library.version,
        expected_source="; ".join(one.source for one in known),
        cause="a fault of this version of the library",
        evidence=cited(library, "version"),
    )


def _known(snapshot: Snapshot, library: Nccl) -> list[Fault]:
    """The faults of this version that apply."""
    return [one for one in faults() if one.has(library.version or "") and _shows(snapshot, library, one)]


def _shows(snapshot: Snapshot, library: Nccl, fault: Fault) -> bool:
    """Whether the fault applies to this machine and this job. It does not if the GPUs, ranks or network are unknown."""
    gpus = snapshot.of(Gpu).values()
    several = library.ranks is not None and library.ranks > len(gpus) > 0
    over = fault.network is None or fnmatchcase(library.network or "", fault.network)
    variables = {name: snapshot.of(Setting).get(name) for name in fault.unless}
    avoided = any(one and fnmatchcase(one.value or "", fault.unless[name]) for name, one in variables.items())
    names = {name for gpu in gpus for name in _names(snapshot, gpu)}
    here = any(fnmatchcase(name, pattern) for name in names for pattern in fault.gpus)
    return here and over and not avoided and (several or not fault.across)


def _names(snapshot: Snapshot, gpu: Gpu) -> Iterator[str]:
    """The name from the driver (or the key), and the other names of the product in the catalog."""
    known = gpu_product(snapshot, gpu)
    yield gpu.name or gpu.key
    yield from known.called if known else ()


def repair(snapshot: Snapshot) -> tuple[str | None, str | None]:
    """The oldest version of NCCL without the known faults, and the variables that avoid them until then."""
    known = [one for library in snapshot.of(Nccl).values() for one in _known(snapshot, library)]
    fixed = [one.fixed for one in known]
    variables = " and ".join(one.workaround for one in known if "=" in one.workaround)
    return (fixed[-1] if known and all(fixed) else None), variables or None


RULES = (Rule("nccl-version", Nccl, ("version",), faulty),)
