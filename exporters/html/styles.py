"""The styles of a page, and the Content-Security-Policy that allows these styles and nothing else."""

from __future__ import annotations

import os
from base64 import b64encode
from functools import cache
from hashlib import sha256

from ..drawing.palette import DARK, LIGHT, variables
from ..drawing.svg import svg_rules

_FILE = "report.css"


@cache
def styles() -> str:
    """The only style sheet of a page."""
    with open(os.path.join(os.path.dirname(__file__), _FILE), encoding="utf-8") as file:
        rules = file.read()
    light = f":root {{ color-scheme: light dark; {variables(LIGHT)} }}\n"
    dark = f"@media (prefers-color-scheme: dark) {{ :root {{ {variables(DARK)} }} }}\n"
    return light + dark + rules + svg_rules()


@cache
def policy() -> str:
    """The Content-Security-Policy: no script, no image, no connection, and one style sheet, named by its hash."""
    digest = b64encode(sha256(styles().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
