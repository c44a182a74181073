"""The IOMMU's kind of domain, from a line of the kernel's log or its command line, at any place of a text.

Linux drivers/iommu/iommu.c (iommu_subsys_init) logs the kind of domain that devices get. It logs the policy of
invalidation only if their addresses are translated. Documentation/admin-guide/kernel-parameters.txt has the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....models.facts.machine import Setting
from ....models.facts.records import Record
from ..core.part import Part

# Values as in sys/kernel/iommu_groups/*/type
TRANSLATED, PASSED = "DMA", "identity"
_NEEDLES = ("efault domain", "TLB invalidation policy", "iommu.passthrough=", "iommu=", "DMA-FQ")
_LOGGED = re.compile(
    r"(?<!\w)[Dd]efault domain(?: type)?(?: is| was|:| ?=)? {0,2}[\"'`*]{0,2}"
    r"(?:(?P<translated>[Tt]ranslated)|[Pp]assthrough)(?!\w)"
    r"|DMA domain TLB invalidation policy: (?P<policy>lazy|strict) mode"
    r"|^[ \t]*[1-9]\d{0,4}[ \t]+(?P<counted>DMA-FQ)[ \t]*$"  # cat iommu_groups/*/type | sort | uniq -c
)
_PARAMETER = re.compile(
    r"(?<![\w.-])(?:iommu\.passthrough=(?:(?P<off>0|n|off)|1|y|on)|iommu=(?:pt|(?P<not>nopt)))(?![\w.-])"
)
# Prose about the command line that the machine has
IN_FORCE = re.compile(r"/proc/cmdline|[Kk]ernel command line|[Cc]ommand line:|\bcmdline\b|BOOT_IMAGE=", re.IGNORECASE)
# Prose about what could be, and what a parameter does
ADVICE = re.compile(
    r"(?<![\w-])(?:add(?:ed|ing)?|set(?!\s+via)|try|tried|use[sd]?|should|must|recommend\w*|needs?|wants?|if"
    r"|instead(?! of [0-9])|absent|missing|without|not|unless|once|when|means?|expect\w*|before|after"
    r"|GRUB_CMDLINE\w*)(?![\w-])",
    re.IGNORECASE,
)


def read_iommu(part: Part) -> Iterator[Record]:
    """One setting, from the last line that says it: a log has a line for each boot."""
    last: Setting | None = None
    for number, line in part.lines_with(_NEEDLES):
        found = _LOGGED.search(line)
        parameter = _PARAMETER.search(line) if IN_FORCE.search(line) else None
        one = found or parameter
        if one is None or len(line) > 4000 or ADVICE.search(_sentence(line, one).replace(one[0], "")):
            continue
        value = TRANSLATED if any(one.groupdict().values()) else PASSED
        last = Setting(key="iommu", value=value, cites={"value": part.cite(number, line)})
    if last:
        yield last


def _sentence(line: str, found: re.Match[str]) -> str:
    """The sentence with these words. The next one can be about what was measured."""
    end = line.find(". ", found.end())
    return line[line.rfind(". ", 0, found.start()) + 1 : end if end >= 0 else len(line)]
