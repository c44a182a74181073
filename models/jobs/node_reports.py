"""The reports of the nodes of a job: the part of the job's report that is about one node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from msgspec.structs import replace

from ..diagnosis.verdict import verdict
from ..report import Finding, Job, Report, worst_cost
from .log import JobLog


def node_reports(report: Report, log: JobLog) -> Iterator[Report]:
    """One report for each node with ranks: findings about its parts, and the rates of its communicators."""
    on_host, processes = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for name, one in log.communicators.items():
        for member in one.members.values():
            on_host[member.host].add(name)
            processes[member.host].add(member.process)
    for host in sorted(on_host):
        yield _of_node(report, host, on_host[host], len(processes[host]))


def _of_node(report: Report, host: str, communicators: Collection[str], processes: int) -> Report:
    findings = tuple(one for one in report.findings if host in _nodes(one))
    gaps = tuple(one for one in report.not_checked if one.subject in communicators or one.subject in _OF_ALL)
    job = _job(report.job, communicators, processes) if report.job else None
    checks = {
        "bandwidth-low": any(one.expected for one in job.rates) if job else False,
        "node-slow": report.checks.get("node-slow", False),
    }
    return replace(
        report,
        node=host,
        findings=findings,
        not_checked=gaps,
        checks=checks,
        verdict=verdict(findings, checks, "dumps", unread=gaps),
        cost=worst_cost(findings),
        job=job,
    )


_OF_ALL = ("lines", "clocks", "rates")  # subjects of what concerns the whole job


def _nodes(one: Finding) -> Collection[str]:
    """The nodes whose parts the finding names."""
    return {name.partition("/")[0] for name in (one.subject, *one.candidates)}


def _job(job: Job, communicators: Collection[str], processes: int) -> Job:
    rates = tuple(one for one in job.rates if one.communicator in communicators)
    return replace(job, gpus=processes, nodes=1, communicators=len(communicators), rates=rates)
