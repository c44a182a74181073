"""Not-checked entries as sources write them for files."""

from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked


def refused(what: str, subject: str, path: str) -> NotChecked:
    """The file that this user may not read."""
    return NotChecked(
        what=what, subject=subject, reason=Reason.PERMISSION, path=path, detail="Permission denied", how="run as root"
    )


def unreadable(what: str, subject: str, path: str, detail: str = "Input/output error") -> NotChecked:
    """The file that gives an error, or a text without a value."""
    return NotChecked(what=what, subject=subject, reason=Reason.UNREADABLE, path=path, detail=detail)
