"""The one table of rules: what is judged, over which things, from which fields."""

from __future__ import annotations

from . import gpu, host, lost, nic, pcie, storage
from .rule import Rule

RULES: tuple[Rule, ...] = (*pcie.RULES, *lost.RULES, *gpu.RULES, *nic.RULES, *host.RULES, *storage.RULES)

__all__ = ["RULES", "Rule"]
