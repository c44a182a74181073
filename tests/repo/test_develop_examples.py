"""The Python examples of docs/develop run, each in the module for which its page writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from linkgauge.models.facts import machine
from linkgauge.models.facts.machine import Nvme
from linkgauge.models.facts.records import Evidence, Flow, Observation
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.host.entries import Link
from tests.support.nodes.trees import tree

DEVELOP = Path(__file__).parents[2] / "docs/develop"
BLOCK = re.compile(r"(?:^ {8}.*\n|^\n(?= {8}|\n {8}))+", re.MULTILINE)
PYTHON = re.compile(r"^(?:class|def|from|import) |^\w+\(|^\(\"", re.MULTILINE)
MODULES = {  # the module of each block of a page, in order
    "adding-a-dump-reader.md": ("linkgauge.probes.dumps.network",),
    "adding-a-rule.md": ("linkgauge.models.rules.host.storage", "tests.support.nodes.mutation_rows"),
    "adding-a-source.md": (
        "linkgauge.models.facts.machine",
        "linkgauge.probes.system",
        "linkgauge.agent.pipeline.registry",
    ),
}


def python_blocks(page: str) -> list[str]:
    """The indented blocks of a page that are Python."""
    blocks = (dedent(block) for block in BLOCK.findall((DEVELOP / page).read_text(encoding="utf-8")))
    return [block for block in blocks if PYTHON.search(block)]


def run(page: str, number: int, **further: object) -> Mapping[str, Any]:
    """The names after a block of the page ran at the end of a copy of its module, in which `further` is defined."""
    module = MODULES[page][number]
    home = import_module(module)
    package = module if hasattr(home, "__path__") else home.__package__
    names = {**vars(home), **further, "__package__": package, "__name__": f"{package}.example"}
    exec(compile(python_blocks(page)[number], page, "exec"), names)
    return names


def test_each_block_has_a_module() -> None:
    counts = {page.name: len(found) for page in DEVELOP.glob("*.md") if (found := python_blocks(page.name))}
    assert counts == {page: len(modules) for page, modules in MODULES.items()}


def test_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    page, link = "adding-a-source.md", "sys/class/watchdog/watchdog0"
    folder = "sys/devices/pci0000:00/0000:00:1f.4/watchdog/watchdog0"
    watchdog = run(page, 0)["Watchdog"]
    monkeypatch.setattr(machine, "Watchdog", watchdog, raising=False)
    read = run(page, 1)["read_watchdogs"]
    (fact,) = read(tree({link: Link(f"../../../{folder}"), f"{folder}/timeout": "30"}))
    assert fact == watchdog(key="watchdog0", timeout=30, address="0000:00:1f.4", cites=fact.cites)
    run(page, 2, read_watchdogs=read)


def test_a_rule() -> None:
    names = run("adding-a-rule.md", 0)
    (finding,) = names["resetting"](None, Nvme(key="nvme1", model="PM9A3", state="resetting"))
    assert finding.message == "NVMe controller nvme1 (PM9A3) resets: its disk does not answer"
    assert not [*names["resetting"](None, Nvme(key="nvme1", state="live"))]
    run("adding-a-rule.md", 1)


def test_a_dump_reader() -> None:
    names = run("adding-a-dump-reader.md", 0)
    text = "mytool version 1.2\nto node2: 12 GB/s\n"
    assert re.search(names["BEGIN"], text, re.MULTILINE)
    (rate,) = names["read"](Part("f", 1, text))
    assert isinstance(rate, Observation)
    assert (rate.about, rate.value) == (Flow("tcp", ("host", "node2")), 12e9)
    assert rate.evidence == Evidence("f:2", "to node2: 12 GB/s")
