"""A machine type as TOML, to be put into a site file."""

from __future__ import annotations

from typing import Any

import msgspec
import tomli_w

from ..models.site import Machine

FROM_NODE = """\
# A machine type for the site file (docs/site.md): what nodes of this kind should have. Read it before you trust it:
# what is wrong on the node that it was written from is wrong here too. Delete what may differ between nodes.

"""


def as_toml(machine: Machine) -> str:
    """One [[machine]] with the keys that say something, in their order."""
    said = {
        name: value for name in machine.__struct_fields__ if (value := getattr(machine, name)) not in (None, (), {})
    }
    plain: dict[str, Any] = msgspec.to_builtins(said)
    plain["rates"] = [{name: value for name, value in rate.items() if value != ""} for rate in plain.pop("rates", ())]
    if not plain["rates"]:
        del plain["rates"]
    return tomli_w.dumps({"machine": [plain]})
