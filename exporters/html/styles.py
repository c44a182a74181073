"""The styles and the script of a page, and the Content-Security-Policy that allows these two and nothing else."""

from __future__ import annotations

import os
from base64 import b64encode
from functools import cache
from hashlib import sha256

from ..drawing.palette import DARK, LIGHT, variables
from ..drawing.svg import LIMITS, svg_rules


@cache
def styles() -> str:
    """The only style sheet of a page."""
    light = f":root {{ color-scheme: light dark; {variables(LIGHT)} }}\n"
    dark = f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}\n"
    return light + dark + _read("report.css") + svg_rules() + "".join(map(_shown, LIMITS))


def _shown(width: int) -> str:
    """The rules of two pictures: windows of this width and paper have the wide one, narrower windows the other one."""
    wide, narrow = f".from{width}", f".below{width}"
    return (
        f"@media print, (min-width: {width}px) {{ {narrow} {{ display: none; }} }}\n"
        f"@media screen and (max-width: {width - 1}px) {{ {wide} {{ display: none; }} }}\n"
    )


@cache
def script() -> str:
    """The only script of a page."""
    return _read("report.js")


@cache
def policy() -> str:
    """The Content-Security-Policy: no image, no connection; one style sheet and one script, named by their hashes."""
    allowed = f"style-src '{_hash(styles())}'; script-src '{_hash(script())}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _read(name: str) -> str:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
