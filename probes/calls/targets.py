"""Imports a function that a registry names as text. So a program imports only the modules that it runs."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_ROOT = "linkgauge.probes"


def load(target: str) -> Any:
    """The attribute of "module:attribute". The module is relative to linkgauge.probes."""
    module, _, attribute = target.partition(":")
    return getattr(import_module(f"{_ROOT}.{module}"), attribute)
