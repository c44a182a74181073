"""The report of a job whose ranks ran with the NCCL Inspector: `linkgauge diagnose --from nccl-inspector-4711/`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ...exporters.formats.json import as_json
from ...models.jobs.evaluate import evaluate_job
from ...models.jobs.node_reports import node_reports
from ...models.report import Report
from ...probes.jobs.inspector_files import read_files
from ..inputs import site_file
from ..inputs.inspector import Found, rows_of
from ..inputs.job_options import JobOptions
from .model.cluster_spec import ClusterSpec, cluster
from .output.write import write

_LONGEST = 200  # characters of the name of a file


def report_of_job(found: Found, options: JobOptions, site: str | None, ignore: Sequence[str]) -> Report:
    """The report of the job that wrote the files. Writes those of its nodes if a folder is given. Raises BadInput."""
    started = time.monotonic()
    rows, known = rows_of(options.ranks), site_file.site(site, ignore)
    log = read_files(found.files)
    if found.others:
        log.problems["other files, not of the NCCL Inspector"] += found.others
    log.unread.update(found.unread)
    hosts = {member.host for one in log.communicators.values() for member in one.members.values()}
    machines = cluster(ClusterSpec(options.machine, max(1, len(hosts)), site=site)) if options.machine else None
    report = evaluate_job(log, time.time(), rows, machines, known)
    if options.reports is not None:
        _write(options.reports, node_reports(report, log))
    return replace(report, seconds=round(time.monotonic() - started, 3))


def _write(folder: str, reports: Iterable[Report]) -> None:
    """One file for each node. The names of nodes come from the input: no name leads out of the folder."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as refused:
        raise site_file.BadInput(f"--reports {folder}: {refused.strerror}") from None
    for report in reports:
        name = re.sub(r"[^\w.-]", "_", report.node or "")[:_LONGEST].lstrip(".")
        write(as_json(report), os.path.join(folder, f"{name or '_'}.json"))
