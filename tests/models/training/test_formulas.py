"""The formulas by name: each public function of the models is used by a command, and each parameter is described."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from linkgauge.agent.cli.main import main
from linkgauge.models.training.formulas import FORMULAS, PARAMETERS, computed, text_of

ROOT = Path(__file__).parents[3]
MODELS = (
    "bandwidth/collectives",
    "bandwidth/message_times",
    "bandwidth/network_tiers",
    "training/cluster_fabric",
    "training/collective_time",
    "training/roofline",
    "training/transformer_sizes",
)


def run(*words: str) -> str:
    done = CliRunner().invoke(main, ["formula", *words], prog_name="linkgauge")
    assert done.exit_code == 0, done.output
    return done.output


def used(tree: ast.AST) -> set[str]:
    """The names that code reads. A definition is no use."""
    names = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}
    return names | {one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute)}


def test_no_public_function_has_only_tests_as_callers() -> None:
    files = [file for folder in ("agent", "exporters", "models", "probes") for file in (ROOT / folder).rglob("*.py")]
    texts = {file: file.read_text() for file in files}
    unused = []
    for name in MODELS:
        public = {
            one.name
            for one in ast.parse(texts[ROOT / f"models/{name}.py"]).body
            if isinstance(one, ast.FunctionDef) and not one.name.startswith("_")
        }
        near = [file for file, text in texts.items() if any(function in text for function in public)]
        found = set[str]().union(*(used(ast.parse(texts[file])) for file in near))
        unused += sorted(public - found - set(FORMULAS))
    assert unused == []


def test_each_formula_and_each_parameter_is_described() -> None:
    listing = run()
    for name, function in FORMULAS.items():
        assert f"{name} (" in listing
        assert text_of(name).endswith((".", ":"))
        assert set(inspect.signature(function).parameters) <= set(PARAMETERS), name
    parameters = {key for function in FORMULAS.values() for key in inspect.signature(function).parameters}
    assert set(PARAMETERS) == parameters


def test_a_machine_gives_rates_and_numbers_may_have_prefixes() -> None:
    known = json.loads(run("critical_tokens", "--machine", "nvidia-dgx-h100", "--level", "node", "--format", "json"))
    assert known["given"] == {"flops": 989e12, "rate": 450e9, "experts": 1, "active": 1, "stages": 1}
    text = run("critical_tokens", "flops=990T", "rate=400G", "experts=128", "active=4")
    assert text.splitlines()[0] == "critical_tokens 79200 tokens of a GPU"
    assert computed("send_receive", {"size": "64Mi", "rate": "1e9"}, {}).values == (67108864 / 1e9,)
    assert computed("torus_bisection", {"shape": "4x4", "rate": "128G"}, {}).values == (4 * 2 * 128e9,)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("critical_token",), "no formula is called 'critical_token'; did you mean 'critical_tokens'?"),
        (("critical_tokens",), "critical_tokens needs flops=... (compute rate of a GPU, FLOP/s); rate=..."),
        (("critical_tokens",), "or --machine nvidia-dgx-h100"),
        (("bubble", "stages"), "'stages': write a parameter and its value: rate=400G"),
        (("bubble", "depth=3"), "depth is no parameter of bubble; write stages, micro_batches, interleave"),
        (("bubble", "stages=many"), "stages=many: not a number: write 4096, 990T, 450G, 64Mi or 4e6"),
        (("intensity", "flops=1", "memory_rate=0"), "numbers must be above 0"),
        (("bus_bandwidth", "op=sum", "ranks=8", "size=1", "seconds=1"), "no value for these parameters"),
        (("bubble", "--machine", "dgx"), "no machine type is called 'dgx'"),
    ],
)
def test_messages_name_the_remedy(words: tuple[str, ...], says: str) -> None:
    done = CliRunner().invoke(main, ["formula", *words], prog_name="linkgauge")
    assert done.exit_code == 64
    assert says in " ".join(done.output.split())
