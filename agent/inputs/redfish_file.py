"""The file that says how to reach the management controller: url, user, password, ca_file."""

from __future__ import annotations

from ...models.site.toml_tables import read_tables
from ...probes.redfish import Controller
from .site_file import BadInput, read_text


def read_controller(path: str, given_by: str) -> Controller:
    """Read the file. `given_by` names the option or key in messages. Raises BadInput."""
    try:
        return read_tables(read_text(path, given_by), Controller)
    except ValueError as wrong:
        raise BadInput(f"{given_by} {path}: {wrong}") from None
