"""Failures in the log of NCCL: warnings whose kind is known, and the first one that nothing explains."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from ....models.catalog.log_messages import KERNEL, PROGRAMS
from ....models.facts.machine import NcclFailure
from ....models.facts.records import Evidence
from ...kernel_log.messages import catalog, find_messages
from .log_text import LogText

_WARNING = re.compile(
    r"NCCL WARN [^\n]{0,300}?(?:"
    r"\b(?:ibv_reg_\w{0,9}mr\w{0,9}|fi_mr_reg\w{0,9}) failed[^\n]{0,200}?(?P<registration>Cannot allocate memory)"
    r"|(?P<shared>posix_fallocate|shared memory segment|failed to extend /dev/shm)"
    r"|\bibv_modify_qp failed with (?:error )?(?P<pair>[^\n]+)"
    r"|Got completion [^\n]{0,200}?(?P<completion>(?:status=|error )\d+)"
    r"|Cuda failure [^\n']{0,99}'(?P<cuda>[^\n']+)"
    r"|(?P<provider>NET/OFI (?:Could not find any optimal provider|Only EFA provider is supported|"
    r"No eligible providers were found|Unable to find a protocol that worked))"
    r"|(?P<connection>Connection (?:refused|reset by peer|timed out|closed by remote peer)|No route to host)"
    r")[^\n]*"
)
_ANY_WARNING = re.compile(r"NCCL WARN (?P<text>[^\n]{1,300})")
# "NCCL INFO init.cc:1393 -> 3": a function returned an error. The warning that tells why may be cut off.
_RETURNED = re.compile(r"NCCL INFO (?P<text>[\w./-]{3,60}\.(?:cc|cu|h|c):\d{1,5} -> [1-7]\b[^\n]{0,60})")
# Warnings of healthy logs: the library asks for what a virtual machine, or a host without InfiniBand, does not have.
_HARMLESS = re.compile(r"Could not find real path|KV Convert to int|libibverbs|No device found|libnccl-net|No plugin")
_KINDS = {
    "registration": "memory registration",
    "shared": "shared memory",
    "pair": "queue pair",
    "completion": "completion",
    "cuda": "CUDA",
    "connection": "connection",
    "provider": "provider",
}
_SIZE = re.compile(r"\(size (\d{1,15})\)| to (\d{1,15}) bytes")
_NO_SPACE = "No space left on device"
_MOST_WARNINGS = 64  # warnings that are compared with the catalog


def failures(log: LogText) -> Iterator[NcclFailure]:
    """One record per kind of failure, with its first line. Error and size come from the first line that has them."""
    counts, first, sizes, errors = Counter[str](), dict[str, Evidence](), dict[str, int](), dict[str, str]()
    for found in _WARNING.finditer(log.text):
        group = found.lastgroup or ""
        kind = _KINDS[group]
        counts[kind] += 1
        if kind not in first:
            first[kind] = log.cite(found)
        if group != "shared":
            errors.setdefault(kind, found[group].strip())
            continue
        if _NO_SPACE in found[0]:
            errors[kind] = _NO_SPACE
        if size := _SIZE.search(found[0]):
            sizes.setdefault(kind, int(size[1] or size[2]))
    for kind, line in first.items():
        yield NcclFailure(
            key=kind,
            error=errors.get(kind),
            size=sizes.get(kind),
            text=line.text,
            count=counts[kind],
            cites={"text": line},
        )


def unexplained(log: LogText) -> Iterator[NcclFailure]:
    """The first warning that neither a kind of failure above nor a message of the catalog explains."""
    known = {found.start() for found in _WARNING.finditer(log.text)}
    lines = [found for found in _ANY_WARNING.finditer(log.text) if found.start() not in known]
    lines = [found for found in lines if not _HARMLESS.search(found["text"])][:_MOST_WARNINGS]
    if others := _alone(log, lines):
        line = log.cite(others[0])
        text = others[0]["text"].strip()
        yield NcclFailure(key="warning", error=text, text=line.text, count=len(others), cites={"text": line})


def _alone(log: LogText, lines: Sequence[re.Match[str]]) -> Sequence[re.Match[str]]:
    """The warnings that no message of the catalog explains. Of a log without any warning: the failed calls."""
    if _ANY_WARNING.search(log.text):
        return [found for found in lines if not find_messages(found[0], catalog(*KERNEL, *PROGRAMS))]
    return list(islice(_RETURNED.finditer(log.text), _MOST_WARNINGS))
