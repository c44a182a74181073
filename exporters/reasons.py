"""Why something could not be checked, in one of few words: a label must not have a value for each sentence."""

from __future__ import annotations

import re

# The first expression that is found in the sentence tells; `linkgauge diagnose` has the sentence itself.
_WORDS: tuple[tuple[str, str], ...] = (
    ("fault", r"fault in linkgauge"),
    ("stopped", r"no cycle (?:since|yet)"),
    ("not-measured", r"^not measured"),
    ("at-rest", r"\bat rest\b"),
    ("other-context", r"this was no job|another machine|cpuset"),
    ("no-expectation", r"nothing says what to expect|no machine type says|nothing is published"),
    ("hidden", r"hypervisor|virtual machine|container|emulated"),
    ("permission", r"permission|permitted|denied|as root|privilege"),
    ("no-answer", r"no answer|timed? ?out|hung|hang|stuck"),
    ("lost", r"\blost\b|fell off|fallen off|No such device|Unknown Error"),
    ("not-installed", r"not installed|not found|No module named|No such file|is not there|missing"),
    ("driver", r"driver|NVML|mismatch|initiali[sz]ed"),
    ("not-supported", r"not supported|not implemented|N/A"),
    ("unreadable", r"Input/output|I/O error|cannot be read|no number|not a |larger than|invalid|broken|expected"),
)
OTHER = "other"
REASONS: tuple[str, ...] = (*(word for word, _ in _WORDS), OTHER)


def reason_of(why: str) -> str:
    """The word of REASONS for a sentence that says why."""
    return next((word for word, sign in _WORDS if re.search(sign, why, re.IGNORECASE)), OTHER)
