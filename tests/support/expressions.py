"""The texts that a regular expression can match."""

from __future__ import annotations

from typing import Any


def variants(parsed: Any) -> list[str]:
    """Each form of the texts that a parsed expression matches, with a zero byte for everything that can vary."""
    forms = [""]
    for operation, argument in parsed:
        forms = [form + more for form in forms for more in _variants(str(operation), argument)]
    return list(dict.fromkeys(forms))


def _variants(operation: str, argument: Any) -> list[str]:
    if operation == "LITERAL":
        return [chr(argument)]
    if operation == "SUBPATTERN":
        return variants(argument[3])
    if operation == "BRANCH":
        return [form for branch in argument[1] for form in variants(branch)]
    if operation in ("MAX_REPEAT", "MIN_REPEAT"):
        least, _, inner = argument
        return [f"{form}\0" for form in variants(inner)] if least else ["\0"]
    return [""] if operation in ("AT", "ASSERT", "ASSERT_NOT") else ["\0"]
