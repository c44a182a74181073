"""Words that a program searches for are no lines of a log; quoted lines are."""

from __future__ import annotations

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

AT = 1.795e9
MESSAGES = (
    "NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
    "nvme nvme0: I/O 24 QID 3 timeout, aborting",
    "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0",
)
SEARCHES = (
    'dmesg | grep -q "{}" && exit 1',
    "journalctl -k | grep -iE --count '{}'",
    "awk '/{}/ {{ n++ }} END {{ print n }}' kern.log",
    "sed -n '/{}/p' /var/log/kern.log",
    'PATTERNS = [re.compile(r"{}")]',
    'if "{}" in line:',
    "if not '{}' in text:",
    '        "pattern": "{}",',
    "  regex: '{}'",
    'strings.contains("{}")',
    '[[ $line == "{}" ]]',
    'What does "{}" mean?',
    "`{}` means that the GPU is gone",
)
QUOTES = (
    'The log says "{}"',
    "{} (see grep above)",
    "> {}",
    'it printed `{}` and "nothing else"',
    "if you see this: {}",
)


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("search", SEARCHES)
def test_a_search_is_no_event(search: str, message: str) -> None:
    report = evaluate(assemble(read_text("check.sh", search.format(message), AT), Site(), AT, origin="dumps"))
    assert (report.verdict, report.findings) == ("unknown", ())


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("quote", QUOTES)
def test_a_quoted_line_is_an_event(quote: str, message: str) -> None:
    report = evaluate(assemble(read_text("post.txt", quote.format(message), AT), Site(), AT, origin="dumps"))
    assert report.verdict in ("degraded", "failed"), quote
