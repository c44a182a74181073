"""What the finding codes mean: `linkgauge explain`, and the findings page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator

from ..models.catalog import Code, codes
from .terminal import hanging, wrap

WIDTH = 80

_INTRODUCTION = """\
# Findings

What `linkgauge diagnose` can say: PCIe first, then GPUs, NVLink, NICs, the host, storage and software.
`linkgauge explain CODE` prints the same for one code. Codes are never renamed or used again for something else.

- **critical**: a job placed here will fail, or lose more than a tenth of a link that its traffic uses.
- **warning**: something is wrong or will be; the job still runs.
- **info**: true and worth knowing; by design, or harmless. Info alone keeps the verdict `ok`.
- **vital**: where it was wanted and could not be judged, the verdict is `unknown`.
- **event**: the daemon says it at once. All others are states, said when they stood in two of three cycles.

A finding can be less grave than its code: links of a virtual machine that was given half a board, an error of last
week.

In the commands ADDRESS is a PCI address, GPU an index or a PCI address, NIC an RDMA device, PORT its port, NETDEV a
network device, DISK a block device, PATH a mount point, PID a process, PEER another node.
"""


def listing() -> str:
    """Every code with what it says."""
    column = max(len(name) for name in codes()) + 2
    lines = (line for name, code in codes().items() for line in hanging(f"{name:<{column}}", code.says, WIDTH))
    return "".join(f"{line}\n" for line in lines)


def explain(name: str) -> str:
    """What a code says, how to see it, what to do. KeyError: there is no such code."""
    code = codes()[name]
    lines = [*wrap(f"{name} ({_kind(code)})", WIDTH), *hanging("  ", code.says, WIDTH), "", "To see it"]
    lines += [f"  {command}" for command in code.confirm]  # never wrapped: they are there to be copied
    lines += ["", "To mend it, the cheapest step first"]
    for number, step in enumerate(code.fix, 1):
        lines += hanging(f"  {number}. ", step, WIDTH)
    lines += ["", *hanging("From: ", code.source, WIDTH)]
    return "".join(f"{line}\n" for line in lines)


def findings_page() -> str:
    """Every code in Markdown: a table, and a section for each."""
    rows = (f"| [{name}](#{name}) | {code.says} | {_kind(code)} |" for name, code in codes().items())
    table = "\n".join(("| code | it says | usual severity |", "|---|---|---|", *rows))
    sections = ("\n".join(_section(name, code)) for name, code in codes().items())
    return "\n".join((_INTRODUCTION, f"{table}\n", *sections))


def _section(name: str, code: Code) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"{code.says} *{_kind(code).capitalize()}.*\n"
    sentences = [line for line in code.confirm if line.endswith(".")]
    commands = [line for line in code.confirm if line not in sentences]
    if commands:
        yield from ("```sh", *commands, "```\n")
    yield from (f"{sentence}\n" for sentence in sentences)
    yield from (f"{number}. {step}" for number, step in enumerate(code.fix, 1))
    yield f"\nSource: {code.source}.\n"


def _kind(code: Code) -> str:
    marks = {"vital": code.vital, "event": not code.steady}
    return ", ".join((" or ".join(code.severity), *(mark for mark, holds in marks.items() if holds)))
