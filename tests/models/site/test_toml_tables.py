"""Catalogs and site files with a mistake: the refusal names the file, the table and the key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models import catalog
from linkgauge.models.catalog import (
    Code,
    baseboards,
    chipsets,
    codes,
    cpus,
    gpus,
    load,
    machines,
    nics,
    packaged,
    settings,
    sxids,
    xids,
)
from linkgauge.models.site.schema import Machine, Site, read_site
from linkgauge.models.site.toml_tables import read_tables

OURS = 'name = "ours"\nsource = "the order"\nproduct = "x"\n'


class _Platforms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    machine: tuple[Machine, ...]


@pytest.mark.parametrize(
    ("below", "wrong"),
    [
        ("gpuss = 8", "machine 2 (ours): gpuss: unknown key; did you mean gpus?"),
        ("colour = 8", "machine 2 (ours): colour: unknown key"),
        ("gpus = -8", "machine 2 (ours): gpus: expected int >= 0"),
        ("gpus = 'eight'", "machine 2 (ours): gpus: expected int | null, got str"),
        ("gpus = 8.5", "machine 2 (ours): gpus: expected int | null, got float"),
        ("rdma_rate = -1.0", "machine 2 (ours): rdma_rate: expected float > 0.0"),
        ("rdma_rate = nan", "machine 2 (ours): rdma_rate: expected float > 0.0"),
        ("rdma_rate = inf", "machine 2 (ours): rdma_rate: expected float <= 1e+18"),
        ("vendor = ''", "machine 2 (ours): vendor: expected str of length >= 1"),
        ("gpu_path = 'pcie9x16'", "machine 2 (ours): gpu_path: expected str matching regex"),
        ("compute_mode = 'defualt'", "machine 2 (ours): compute_mode: invalid enum value 'defualt'"),
        ("functions = { '10de:2330' = 0 }", "machine 2 (ours): functions: 10de:2330: expected int >= 1"),
        ("functions = { H100 = 8 }", "machine 2 (ours): functions: expected str matching regex"),
        (
            "bus_bandwidth = { all_reduce = [1e9, 2e9, 3e9], broadcast = [3e9, 2e9, 4e9] }",
            "machine 2 (ours): bus_bandwidth: broadcast: low 3e+09, typical 2e+09 and high 4e+09 do not ascend",
        ),
        (
            "bus_bandwidth = { broadcast = [1e9, 2e9, 3e9], all_reduce = [1e9, -2e9, 3e9] }",
            "machine 2 (ours): bus_bandwidth: all_reduce 2: expected float > 0.0",
        ),
        ("bus_bandwidth = { all_reduce = [1e9] }", "machine 2 (ours): bus_bandwidth: all_reduce: expected array of"),
        (
            "[[machine.rates]]\nends = ['numa*', 'gpu*']\nlow = 2\ntypical = 1\nhigh = 3\nsource = 'measured'",
            "machine 2 (ours): rates 1: low 2, typical 1 and high 3 do not ascend",
        ),
        (
            "[[machine.rates]]\nends = ['numa*', 'gpu*']\nlow = 1\ntypical = 1\nhihg = 3\nsource = 'measured'",
            "machine 2 (ours): rates 1: hihg: unknown key; did you mean high?",
        ),
        (
            "[[machine.rates]]\nends = ['numa*', 'gpu*']\nlow = 1\ntypical = 1\nhigh = 3",
            "machine 2 (ours): rates 1: source: missing",
        ),
    ],
)
def test_a_mistake_in_a_machine_type(below: str, wrong: str) -> None:
    text = f"[[machine]]\n{OURS}[[machine]]\n{OURS}{below}\n"
    for read in (read_site, lambda text: read_tables(text, _Platforms)):
        with pytest.raises(ValueError, match=".") as refused:
            read(text)
        assert str(refused.value).startswith(wrong)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("fabrics = []", "fabrics: unknown key; did you mean fabric?"),
        ("fabric = 3", "fabric: expected array, got int"),
        ("fabric = [3]", "fabric 1: expected str, got int"),
        ("ignore = { 'cpu-governor' = 3 }", "ignore: cpu-governor: expected str, got int"),
        ("machine = 3", "machine: expected array, got int"),
        ("[machine]\nname = 'ours'", "machine: expected array, got object"),
        ("[[machine]]\nname = 'ours'\nproduct = 'x'", "machine 1 (ours): source: missing"),
        (
            "[[machine]]\nname = 'ours'\nproduct = 'x'\nsource = ''",
            "machine 1 (ours): source: expected str of length >= 1",
        ),
        ("[[machine]]\nsource = 'x'\nproduct = 'x'", "machine 1: name: missing"),
        (
            "[[machine]]\nname = 'ours'\nsource = 'x'\nvendor = 'x'",
            "machine 1 (ours): says nothing to recognise it by: product, instance, gpu or functions",
        ),
        ("a = " + "[" * 10_000, "nested too deeply"),
    ],
)
def test_a_mistake_in_a_site_file(text: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=".") as refused:
        read_site(text)
    assert str(refused.value) == wrong


def test_of_tables_with_names_of_their_own_the_one_that_is_wrong() -> None:
    text = packaged("codes.toml").decode()
    broken = text.replace("[nvlink-errors]\n", "[nvlink-errors]\nseverityy = 3\n")
    assert broken != text
    with pytest.raises(ValueError, match="^nvlink-errors: severityy: unknown key; did you mean severity\\?$"):
        read_tables(broken, dict[str, Code])


FILES: dict[str, Any] = {
    "platforms.toml": machines,
    "gpus.toml": gpus.products,
    "baseboards.toml": baseboards.baseboards,
    "codes.toml": codes,
    "settings.toml": settings.settings,
    "xids.toml": xids.xids,
    "sxids.toml": sxids.sxids,
    "nics.toml": nics.nics,
    "chipsets.toml": chipsets.limits,
    "cpus.toml": cpus.processors,
}


@pytest.mark.parametrize("name", FILES)
def test_the_packaged_files_are_right_and_a_typo_in_one_is_refused_by_its_name(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert FILES[name]()
    (tmp_path / name).write_bytes(packaged(name) + b'\ntypo = "x"\n')
    monkeypatch.setattr(catalog, "__path__", [str(tmp_path)])
    with pytest.raises(ValueError, match=rf"^{name}: \S.*: typo: unknown key"):
        FILES[name].__wrapped__()


def test_a_file_that_is_no_toml(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    monkeypatch.setattr(catalog, "__path__", [str(tmp_path)])
    with pytest.raises(ValueError, match="^x.toml: "):
        load("x.toml", Site)


LINES = packaged("platforms.toml").decode().splitlines()
pieces = st.sampled_from(LINES) | st.text(max_size=20) | st.sampled_from(["[[machine]]", "[", "x = nan", "gpus = -1"])


@given(st.lists(pieces, max_size=12))
def test_any_text_is_a_site_or_one_sentence(lines: list[str]) -> None:
    try:
        found: Site | str = read_site("\n".join(lines))
    except ValueError as wrong:
        found = str(wrong)
    assert isinstance(found, Site) or (found and "`" not in found)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('[environment]\nPATH = "/tmp:\\u0000"\n', "environment: PATH: "),
        ('places = ["/a", "/b\\u0000"]\n', "places 2: "),
        ('[labels]\n"ra\\u0000ck" = "r7"\n', "labels: "),
        (f'[[machine]]\n{OURS}vendor = "a\\U00000000"\n', "machine 1 (ours): vendor: "),
    ],
)
def test_a_zero_byte(text: str, where: str) -> None:
    """No path, variable or argument can have one: each call of the system with it would raise an error."""
    with pytest.raises(ValueError, match="zero byte") as wrong:
        read_site(text)
    assert str(wrong.value).startswith(f"{where}a text with a zero byte")
