"""What supports a report: values without independent evidence, versions, sources, and how to repeat it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from ... import __version__
from ...models.facts.units import as_bytes
from ...models.report import Report
from ..text.vocabulary import counted, device_in_words, listed

_MOST = 12  # names in a line
_INPUTS = {"live": "", "capture": " --from node.capture", "dumps": " --from dumps/"}


class Bare(Struct, frozen=True):
    """Devices with the same doubt."""

    what: str  # "link width of 0000:11:00.0"
    why: str


def bare(report: Report) -> Iterator[Bare]:
    """The values without independent evidence, by quantity and reason."""
    groups: dict[tuple[tuple[str, ...], str], list[str]] = {}
    for one in report.coverage.uncorroborated:
        groups.setdefault((one.quantities, one.why), []).append(one.subject)
    for (quantities, why), subjects in groups.items():
        yield Bare(f"{', '.join(quantities)}: {listed(subjects, _MOST)}", why)


def versions(report: Report) -> Iterator[str]:
    """linkgauge, the format of the JSON report, the machine type, and the firmware of the devices."""
    yield f"linkgauge {__version__}, format of the JSON report {report.schema}"
    if report.profile:
        yield f"machine type {report.profile.name}, recognised by {report.profile.matched_by}"
    found = Counter((one.kind, one.name, one.firmware) for one in report.topology.devices if one.firmware)
    for (kind, name, firmware), number in sorted(found.items()):
        yield f"firmware {firmware}: {counted(number, device_in_words(kind))}{f', {name}' if name else ''}"


def sources(report: Report) -> str:
    """ "31 sources ran in 0.8 s; 1 failed: nvml. Measurements moved 64 GB."."""
    failed = [run.name for run in report.runs if not run.ok]
    took = f" in {report.seconds:.1f} s" if report.seconds is not None else ""
    text = f"{counted(len(report.runs), 'source')} ran{took}"
    text += f"; {len(failed)} failed: {listed(failed, _MOST)}." if failed else "."
    moved = sum(run.bytes for run in report.runs)
    return text + (f" Measurements moved {as_bytes(moved)}." if moved else "")


def repeat(report: Report) -> str:
    """The command that writes this page. The name of the input is not in the report."""
    return f"linkgauge diagnose{_INPUTS[report.source]} --format html -o report.html"
