"""The report of a job whose ranks ran with the NCCL Inspector: `linkgauge diagnose --from nccl-inspector-4711/`."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec.structs import replace

from ...models.jobs.evaluate import evaluate_job
from ...models.report import Report
from ...probes.jobs.inspector_files import read_files
from ..inputs import site_file
from ..inputs.inspector import Found, rows_of
from .model.where import Where, cluster


def report_of_job(
    found: Found, ranks: str | None, machine: str | None, site: str | None, ignore: Sequence[str]
) -> Report:
    """The report of the job that wrote the files. Raises BadInput.

    `ranks`: the file with the table of ranks. `machine`: the type of its machines.
    """
    started = time.monotonic()
    rows, known = rows_of(ranks), site_file.site(site, ignore)
    log = read_files(found.files)
    if found.others:
        log.problems["other files, not of the NCCL Inspector"] += found.others
    hosts = {member.host for one in log.communicators.values() for member in one.members.values()}
    machines = cluster(Where(machine, max(1, len(hosts)), site=site)) if machine else None
    report = evaluate_job(log, time.time(), rows, machines, known)
    return replace(report, seconds=round(time.monotonic() - started, 3))
