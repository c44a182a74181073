"""NVIDIA GPUs and their driver: it is bound, answers, lists all its GPUs, and has the version of its library."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.gpu import Driver, Gpu
from ...facts.machine import Node, Numa, Pci, Setting
from ...facts.pci_classes import NVIDIA, kind_of
from ...facts.reason import Reason
from ...facts.records import Evidence, NotChecked
from ...inventory.snapshot import Snapshot
from ...report import Finding
from ..core.gpus import bound_gpus, driver_was_queried, gpu_evidence, gpu_name, is_lost, place_of, subject_of
from ..core.log_history import events_about, logged
from ..core.rule import Rule
from ..core.wording import cited, function_name, gap, location, missed
from ..pcie.not_responding import is_gpu
from .missing import gone

UPDATED = "the library was updated and the module that is loaded was not, or the other way round"
_CAUSES = (  # a word in NVML's error, the cause, the case
    ("mismatch", UPDATED, "updated library"),
    ("not loaded", "the module is not loaded, or belongs to another kernel", "not loaded"),
    # NVML_ERROR_RESET_REQUIRED: "GPU requires restart"
    ("requires re", "the GPU needs a reset after an error; the kernel log says which", "reset required"),
)
_HANGS = "the driver hangs, most often on a GPU that does not answer it"
ONE_GPU = "one GPU"


def is_nvidia(snapshot: Snapshot, function: Pci) -> bool:
    """Select NVIDIA GPUs that answer, and functions whose class or vendor was not read."""
    return (function.vendor in (None, NVIDIA) and is_gpu(snapshot, function)) and not function.lost


def without_driver(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """No NVIDIA driver is bound to the GPU, so no job can use it."""
    unknown = function.driver is None and (snapshot.origin == "dumps" or missed(snapshot, "Pci.driver", function.key))
    if function.driver == "nvidia" or unknown or function in bound_gpus(snapshot):
        return
    lent = "vfio" in (function.driver or "")  # on Grace: nvgrace-gpu-vfio-pci (dra-driver-nvidia-gpu#1268)
    bound = f"is bound to {function.driver}" if function.driver else "has no driver"
    yield Finding(
        code="gpu-driver-failed",
        severity="info" if lent else "warning" if function.driver else "critical",
        subject=function.key,
        subject_name=function_name(snapshot, function),
        message=f"{function_name(snapshot, function)} {bound}" + (": lent to a virtual machine" if lent else ""),
        expected="nvidia",
        observed=function.driver or "none",
        cause="handed through to a guest" if lent else "the driver is not loaded, failed to start, or another holds it",
        case="lent" if lent else ONE_GPU if bound_gpus(snapshot) and not function.driver else None,
        location=location(function),
        evidence=(function.cites.get("vendor", Evidence("driver", bound)),),
    )


def was_queried(snapshot: Snapshot, driver: Driver) -> bool:
    """Select drivers that answered or failed. A driver that is only listed as loaded may or may not work."""
    return driver.failure is not None or driver.gpus is not None


def broken(snapshot: Snapshot, driver: Driver) -> Iterator[Finding]:
    """The driver is bound and cannot be used."""
    bound = bound_gpus(snapshot)
    if driver.failure is None or (snapshot.of(Pci) and not bound):
        return
    number = f"the {len(bound)} GPUs" if len(bound) > 1 else "the GPU"
    yield Finding(
        code="gpu-driver-failed",
        severity="critical",
        subject="node",
        message=f"the {driver.key} driver is bound to {number} and cannot be used: {driver.failure}",
        expected="a driver that answers",
        observed=driver.failure,
        cause=_cause(driver),
        case=_case(driver),
        evidence=(driver.cites.get("failure", Evidence("nvmlInit", driver.failure)),),
    )


def _cause(broken: Driver | Gpu) -> str:
    if broken.failure_reason is Reason.NO_ANSWER:
        return _HANGS
    known = (cause for word, cause, _ in _CAUSES if word in str(broken.failure).lower())
    return next(known, "the driver failed to start; the kernel log says why")


def _case(broken: Driver | Gpu) -> str | None:
    if broken.failure_reason is Reason.NO_ANSWER:
        return "hangs"
    return next((case for word, _, case in _CAUSES if word in str(broken.failure).lower()), None)


def unusable(snapshot: Snapshot, gpu: Gpu) -> Iterator[Finding]:
    """The driver works and one of its GPUs does not. Lost GPUs belong to missing.py."""
    if gpu.failure is None or is_lost(gpu) or gpu.address in gone(snapshot):
        return
    yield Finding(
        code="gpu-driver-failed",
        severity="critical",
        subject=subject_of(gpu),
        subject_name=gpu_name(snapshot, gpu),
        message=f"{gpu_name(snapshot, gpu)} cannot be used: {gpu.failure}",
        expected="an answer",
        observed=gpu.failure,
        cause=_cause(gpu),
        case=_case(gpu) or ONE_GPU,
        location=place_of(snapshot, gpu),
        evidence=(*gpu_evidence(gpu, "failure"), *logged(snapshot, gpu.address or "")),
    )


def is_bound(snapshot: Snapshot, function: Pci) -> bool:
    """Select NVIDIA GPUs that are bound to a driver that answered."""
    driver = snapshot.of(Driver).get("nvidia")
    answered = driver is not None and driver.failure is None and driver.gpus is not None
    return answered and not function.lost and kind_of(function) == "gpu" and function in bound_gpus(snapshot)


def unlisted(snapshot: Snapshot, function: Pci) -> Iterator[Finding | NotChecked]:
    """The driver is bound to the GPU and does not list it, because the GPU failed to start.

    The driver also does not list GPUs that this process may not open. In containers and jobs that is no fault.
    """
    alone = not _confined(snapshot)
    if function not in _absent(snapshot) or (not alone and (snapshot.of(Gpu) or was_listed(snapshot, function))):
        return
    if function.drained:
        yield _drained(snapshot, function)
        return
    node = snapshot.of(Node).get("node")
    if not alone or node is None or node.container is None or _bound(snapshot):
        unsure = "the driver holds it and does not list it; this process may not have access to it"
        yield from gap(
            snapshot, "Gpu", function.key, Reason.HIDDEN, unsure, "look from the host itself, outside of containers"
        )
        return
    named_by_log = bool(events_about(snapshot, function.key, "xid", "gpu init failed"))
    yield Finding(
        code="gpu-driver-failed",
        severity="critical",
        confidence="certain" if named_by_log else "likely",
        subject=function.key,
        subject_name=function_name(snapshot, function),
        message=f"{function_name(snapshot, function)} is bound to the driver, which does not list it: "
        f"{len(bound_gpus(snapshot)) - len(_absent(snapshot))} of {len(bound_gpus(snapshot))} GPUs can be used",
        expected="listed",
        observed="not listed",
        cause="the GPU failed to start; the kernel log says why (NVRM, RmInitAdapter)",
        case=ONE_GPU,
        location=location(function),
        evidence=(function.cites.get("driver", Evidence("driver", "nvidia")), *logged(snapshot, function.key)),
    )


def was_listed(snapshot: Snapshot, function: Pci) -> bool:
    """Select GPUs in a container that the driver listed before to this service."""
    return function.key in snapshot.listed and _confined(snapshot) and is_bound(snapshot, function)


def dropped(snapshot: Snapshot, function: Pci) -> Iterator[Finding]:
    """The driver lists a GPU no more to a service in a container, whose GPUs stay the same while it runs."""
    if function.drained or function not in _absent(snapshot):
        return
    yield Finding(
        code="gpu-missing",
        severity="critical",
        confidence="likely",
        subject=function.key,
        subject_name=function_name(snapshot, function),
        message=f"{function_name(snapshot, function)} is not listed by its driver any more; this service saw it before",
        expected="listed",
        observed="not listed",
        basis="baseline",
        expected_source="earlier cycles of this service",
        cause="the GPU failed, and its driver gave it up; the host's kernel log says why",
        location=location(function),
        evidence=(function.cites.get("driver", Evidence("driver", "nvidia")), *logged(snapshot, function.key)),
    )


def listed_gpus(snapshot: Snapshot) -> frozenset[str]:
    """The addresses of the GPUs that a driver lists."""
    return frozenset(gpu.address for gpu in snapshot.of(Gpu).values() if gpu.address)


def _drained(snapshot: Snapshot, function: Pci) -> Finding:
    """An operator drains the GPU: it is no fault that the driver does not list it."""
    return Finding(
        code="gpu-driver-failed",
        severity="info",
        subject=function.key,
        subject_name=function_name(snapshot, function),
        message=f"{function_name(snapshot, function)} is drained: its driver shows it to no new process",
        expected="listed",
        observed="drained",
        cause="an operator drained it",
        case="drained",
        location=location(function),
        evidence=(function.cites.get("drained", Evidence("driver", "drained")),),
    )


def _absent(snapshot: Snapshot) -> list[Pci]:
    """The functions that the driver is bound to and does not list.

    Empty if the driver lists as many GPUs as it is bound to, whatever addresses it gives them, or if one of the listed
    GPUs has no address or may not be opened: it may be any of these functions.
    """
    gpus, driver = snapshot.of(Gpu).values(), snapshot.of(Driver).get("nvidia")
    if driver is not None and (driver.gpus or 0) >= len(bound_gpus(snapshot)):
        return []
    known = {gpu.address for gpu in gpus}
    absent = [f for f in bound_gpus(snapshot) if f.key not in known and not missed(snapshot, "Gpu", f.key)]
    refused = {one.subject for one in snapshot.not_checked if one.what == "Gpu"} - {f.key for f in bound_gpus(snapshot)}
    unplaced = None in known or refused - {gpu.key for gpu in gpus}
    return [] if unplaced else absent


def _confined(snapshot: Snapshot) -> bool:
    """Whether this process may lack access to some devices: it is in a container or in a job's control group."""
    node = snapshot.of(Node).get("node")
    return snapshot.context == "job" or bool(node and node.container)


def _bound(snapshot: Snapshot) -> bool:
    """Whether this process may not run on all CPUs. A scheduler that binds CPUs also restricts GPUs."""
    allowed = snapshot.of(Setting).get("cpus_allowed")
    parts = [part.split("-") for part in (allowed.value or "").split(",")] if allowed else []
    cpus = {cpu for numa in snapshot.of(Numa).values() for cpu in numa.cpus or ()}
    if not parts or not cpus or not all(end.isdecimal() and len(end) < 7 for part in parts for end in part):
        return False
    return sum(int(part[-1]) - int(part[0]) + 1 for part in parts) < len(cpus)


def has_some_gpus(snapshot: Snapshot, node: Node) -> bool:
    """Select containers and jobs that have access to some of the machine's GPUs, not to all."""
    return _confined(snapshot) and bool(snapshot.of(Gpu) and _absent(snapshot))


def accessible(snapshot: Snapshot, node: Node) -> Iterator[Finding]:
    """The number of GPUs that this container or job may use. The others are not checked, which is no fault."""
    number, absent = len(bound_gpus(snapshot)), [one for one in _absent(snapshot) if one.key not in snapshot.listed]
    if not absent:
        return
    yield Finding(
        code="gpu-driver-failed",
        severity="info",
        subject="node",
        message=f"this {'container' if node.container else 'job'} was given {number - len(absent)} of {number} GPUs "
        "of the machine; the others were not judged",
        expected=number,
        observed=number - len(absent),
        unit="gpus",
        cause="the others belong to somebody else; or they failed to start, which shows on the host",
        case="part of a machine",
        evidence=(Evidence("PCI functions", ", ".join(function.key for function in absent)),),
    )


def differs(snapshot: Snapshot, driver: Driver) -> Iterator[Finding]:
    """Module and library have different versions and still work together. The next update may break this."""
    if driver.version == driver.library or driver.failure:
        return
    yield Finding(
        code="driver-mismatch",
        severity="warning",
        subject="node",
        message=f"the {driver.key} module is version {driver.version}, its library {driver.library}",
        expected=driver.version,
        observed=driver.library,
        cause=UPDATED,
        evidence=cited(driver, "version", "library") or (Evidence("nvmlSystemGetDriverVersion", str(driver.library)),),
    )


def has_two_versions(snapshot: Snapshot, driver: Driver) -> bool:
    """Select drivers whose two versions are in two lines. One line cannot show that they differ."""
    cites = driver.cites
    return snapshot.origin != "dumps" or driver.version is None or cites.get("version") != cites.get("library")


RULES = (
    Rule("gpu-driver-failed", Pci, ("pci_class", "vendor", "driver?"), without_driver, is_nvidia),
    Rule("gpu-driver-failed", Driver, (), broken, was_queried),
    Rule("gpu-driver-failed", Gpu, (), unusable, driver_was_queried),
    Rule("gpu-driver-failed", Pci, ("driver", "Gpu", "Driver"), unlisted, is_bound),
    Rule("gpu-missing", Pci, ("driver?", "Gpu?", "Driver?"), dropped, was_listed),
    Rule("gpu-driver-failed", Node, (), accessible, has_some_gpus),
    Rule("driver-mismatch", Driver, ("version", "library"), differs, has_two_versions),
)
