"""Read the site file and other texts of the user. A mistake in them raises BadInput.

Commands that read no machine import only this module: resolve.py takes a quarter of a second.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ...models.catalog import codes
from ...models.site.schema import Site, read_site
from ...probes.calls.bounded_read import bounded_read
from ...probes.host.texts import BIGGEST
from . import environment

SITE = "/etc/linkgauge/site.toml"


class BadInput(Exception):
    """A mistake of the user. The message says what to do."""


def site(path: str | None, ignore: Sequence[str] = (), job: str | None = None, given_by: str = "--site") -> Site:
    """Read the named site file, else the system's file if it exists, and add --ignore and --job. Raises BadInput.

    `given_by`: the option, or the file and key, that names the path.
    The variables of the file become those of this process, and so of all programs that it starts.
    """
    if path is None and os.path.exists(SITE):
        path, given_by = SITE, ""
    known = Site()
    if path is not None:
        where = f"{given_by} {path}".strip()
        try:
            known = read_site(read_text(path, given_by))
        except ValueError as wrong:
            raise BadInput(f"{where}: {wrong}") from None
        _check_codes(known.ignore, f"{where}: [ignore]")
        _check_codes(known.gate.codes or (), f"{where}: [gate]")
        _check_job(known.job, f"{where}: job", known)
        try:
            environment.add(os.environ, known.environment)
        except ValueError as wrong:  # the locale has no bytes for a letter
            raise BadInput(f"{where}: environment: {wrong}") from None
        known = _placed(known, where)
    ignored = dict(_ignored(text) for text in ignore)
    _check_codes(ignored, "--ignore")
    _check_job(job, "--job", known)
    return replace(known, ignore={**known.ignore, **ignored}, job=job or known.job)


def _placed(known: Site, where: str) -> Site:
    """The site with what the files of `places` say. A file that does not exist is a mistake of the user."""
    if not known.places:
        return known
    from .places import placed

    try:
        return placed(known, known.places)
    except OSError as error:
        raise BadInput(f"{where}: places: {error.filename}: {error.strerror}") from None
    except ValueError as wrong:
        raise BadInput(f"{where}: places: {wrong}") from None


def _check_job(text: str | None, where: str, site: Site) -> None:
    if text is None:
        return
    from ...models.training.job_spec import read_job

    try:
        read_job(text, site.network)
    except ValueError as wrong:
        raise BadInput(f"{where}: {wrong}") from None


def _ignored(text: str) -> tuple[str, str]:
    """Parse "CODE", "CODE:SUBJECT" or "CODE:SUBJECT=REASON": what to ignore, and why."""
    what, _, reason = text.partition("=")
    return what, reason or "--ignore"


def _check_codes(ignore: Iterable[str], where: str) -> None:
    for what in ignore:
        code = what.partition(":")[0]
        if code not in codes():
            raise BadInput(f"{where}: {no_code(code)}")


def no_code(code: str) -> str:
    """The error message for an unknown code, with the most similar code."""
    from difflib import get_close_matches  # imported only on an error: the import is slow

    near = get_close_matches(code, codes(), 1)
    hint = f"did you mean {near[0]!r}?" if near else "'linkgauge explain' lists them"
    return f"no finding has the code {code!r}; {hint}"


def read_text(path: str, option: str) -> str:
    """Read a plain text file of limited size, which the user wrote and `option` names. Raises BadInput."""
    where = f"{option} {path}" if option else path
    try:
        content = bounded_read(path, BIGGEST)
    except OSError as error:
        raise BadInput(f"{where}: {error.strerror}") from None
    except ValueError as wrong:
        raise BadInput(f"{where}: {wrong}") from None
    if b"\0" in content[:4096]:
        raise BadInput(f"{where}: a binary file, not text")
    return content.decode("utf-8", "replace")
