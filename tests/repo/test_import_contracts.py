"""Each import contract of pyproject.toml holds, and one further import in the wrong direction breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from itertools import permutations
from typing import Any

import grimp
import msgspec
import pytest
from importlinter.configuration import configure
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.layers import LayersContract

from tests.support.paths import ROOT

configure()  # contracts time themselves by a clock that import-linter sets up here

_CLASSES = {"layers": LayersContract, "forbidden": ForbiddenContract}
_SETTINGS = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes(), type=dict)["tool"]["importlinter"]
_CONTRACTS = _SETTINGS["contracts"]


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph(_SETTINGS["root_package"], include_external_packages=True, cache_dir=None)


def _holds(contract: dict[str, Any], importer: str = "", imported: str = "") -> bool:
    graph = _graph()
    if importer:
        graph = deepcopy(graph)
        graph.add_import(importer=importer, imported=imported)
    options = {key: value for key, value in contract.items() if key not in ("name", "type")}
    session = {"root_packages": [_SETTINGS["root_package"]], "include_external_packages": "True"}
    kind = _CLASSES[contract["type"]]
    return kind(contract["name"], session, options).check(graph, verbose=False).kept


def _forbidden_imports(contract: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """One import for each pair that the contract forbids: (importer, imported)."""
    if contract["type"] == "forbidden":
        for importer in contract["source_modules"]:
            yield from ((importer, imported) for imported in contract["forbidden_modules"])
        return
    for container in contract.get("containers", [""]):
        layers = [
            [f"{container}.{name.strip()}".lstrip(".") for name in layer.split("|")] for layer in contract["layers"]
        ]
        for siblings in layers:
            yield from permutations(siblings, 2)
        for upper, lower in zip(layers, layers[1:], strict=False):
            yield from ((below, above) for below in lower for above in upper)


_BREAKS = [(contract, *pair) for contract in _CONTRACTS for pair in _forbidden_imports(contract)]


@pytest.mark.parametrize("contract", _CONTRACTS, ids=lambda contract: contract["name"])
def test_contract_holds(contract: dict[str, Any]) -> None:
    assert _holds(contract)


@pytest.mark.parametrize(
    ("contract", "importer", "imported"),
    _BREAKS,
    ids=[f"{importer}->{imported}".replace("linkgauge.", "") for _, importer, imported in _BREAKS],
)
def test_contract_can_fail(contract: dict[str, Any], importer: str, imported: str) -> None:
    assert not _holds(contract, importer, imported)
