"""Functions that registries name as text, so that a program imports only the modules that it runs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_ROOT = "linkgauge.probes"


def load(target: str) -> Any:
    """The attribute that "module:attribute" names, with the module relative to linkgauge.probes."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(f"{_ROOT}.{module}"), attribute)
