"""Steps of repairs: they fit to what was read, name devices of the node, and always exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from linkgauge.models.catalog import codes
from linkgauge.models.diagnosis import remedies
from linkgauge.models.diagnosis.conditions import CONDITIONS
from linkgauge.models.diagnosis.remedies import SEVERAL, filled, in_words, select
from linkgauge.models.report import Finding, Report
from tests.support.nodes.broken_nodes import BROKEN, GPU5, HGX, gpu5, kernel
from tests.support.nodes.described import node, report_of
from tests.support.screens import screen

NAMES = {
    "address": "0000:1e:00.0",
    "gpu": "0000:1e:00.0",
    "nic": "mlx5_4",
    "netdev": "ib2",
    "array": "md0",
    "watts": "700",
    "ports": "0000:1a:00.0 0000:1a:01.0",
    "driver": "580.95.05",
    "mig": "0",
    "ecc": "1",
    "persistence": "1",
    "compute_mode": "DEFAULT",
    "nccl": "2.29.3",
    "variables": "NCCL_NVLS_ENABLE=0",
}
PLACEHOLDER = re.compile(r"\{[a-z_]+\}|\b(ADDRESS|NETDEV|ARRAY|WATTS|PORT|DISK|PID)\b|-i GPU")
ALONE = (  # at most one of these holds
    {"LinkUp", "disabled", "switched off"},
    {"InfiniBand", "Ethernet"},
    {"container", "host"},
)


def worlds(code: str) -> Iterator[dict[str, bool | None]]:
    """Every combination of what can be known of the conditions of a code."""
    names = sorted({name for step in codes()[code].fix for name in (*step.when, *step.unless) if "{" not in name})
    cases = [name for name in names if name.startswith("case ")]
    free = [name for name in names if name not in cases]
    for values in product((True, False, None), repeat=len(free)):
        known = dict(zip(free, values, strict=True))
        if any(sum(known.get(name) is True for name in alone) > 1 for alone in ALONE):
            continue
        for case in cases if "case none" in cases else ("case none", *cases):
            yield {**known, **{name: name == case for name in cases}}


@pytest.mark.parametrize("code", codes())
def test_every_condition_is_known(code: str) -> None:
    for step in codes()[code].fix:
        for name in (*step.when, *step.unless):
            assert name == SEVERAL or name.startswith("case ") or name in CONDITIONS or name[1:-1] in NAMES
        assert not PLACEHOLDER.search(filled(step.do, NAMES))
        assert "{" not in in_words(step)


@pytest.mark.parametrize("code", codes())
def test_no_step_contradicts_what_is_known(code: str) -> None:
    for known in worlds(code):
        for names in ({}, NAMES):
            steps = list(select(codes()[code].fix, partial(dict.get, known), names))
            assert steps, known
            for step in steps:
                assert not any(known[name] is False for name in step.when)
                assert not any(known.get(name, name[1:-1] in names) for name in step.unless)
                assert not PLACEHOLDER.search(filled(step.do, names))


def test_every_case_is_set_by_a_rule_and_has_steps() -> None:
    models = Path(remedies.__file__).parents[1]
    text = "\n".join(path.read_text() for path in models.rglob("*.py"))
    steps = [step for code in codes().values() for step in code.fix]
    cases = {name.removeprefix("case ") for step in steps for name in (*step.when, *step.unless) if "case " in name}
    assert {case for case in cases if f'"{case}"' not in text} == set()
    assert set(re.findall(r'\bcase="([^"]+)"', text)) - cases == set()


@pytest.mark.parametrize(
    "code", [code for code in codes() if any(SEVERAL in step.unless for step in codes()[code].fix)]
)
def test_several_devices_are_never_swapped_with_their_neighbours(code: str) -> None:
    for known in worlds(code):
        if known.get(SEVERAL):
            steps = select(codes()[code].fix, partial(dict.get, known), NAMES)
            assert not [
                step.do for step in steps if re.search(r"\b[Ss]wap\b.*\b(neighbour|cable of a good port)\b", step.do)
            ]


def steps_of(report: Report, code: str) -> str:
    return " ".join(step for one in report.findings if one.code == code for step in one.steps)


def test_eight_narrow_gpus_share_a_cause() -> None:
    assert "neighbour" not in steps_of(screen("eight"), "pcie-link-narrow")
    assert "neighbour" in steps_of(screen("pcie"), "pcie-link-narrow")


@pytest.mark.parametrize(
    ("physical", "state", "advice", "never"),
    [
        ("2: Polling", "1: DOWN", "Check the cable", "subnet manager"),
        ("5: LinkUp", "2: INIT", "no subnet manager", "cable"),
        ("3: Disabled", "1: DOWN", "sudo mlxlink -d mlx5_4", "subnet manager"),
    ],
)
def test_a_port_gets_the_advice_of_its_physical_state(physical: str, state: str, advice: str, never: str) -> None:
    """Linux Documentation/ABI/stable/sysfs-class-infiniband: phys_state is 2 Polling, 3 Disabled, 5 LinkUp."""
    port = "sys/devices/pci0000:38/0000:38:01.0/0000:39:00.0/0000:3a:01.0/0000:3c:00.0/infiniband/mlx5_4/ports/1"
    further = f'[device.mlx5_4]\nup = false\n[files]\n"{port}/phys_state" = "{physical}"\n"{port}/state" = "{state}"\n'
    steps = steps_of(report_of(node("hgx-h100", further)), "nic-port-down")
    assert advice in steps
    assert never not in steps


def test_a_fabric_manager_that_runs_is_not_to_be_started() -> None:
    steps = steps_of(screen("nvlink"), "nvlink-inactive")
    assert "journalctl -u nvidia-fabricmanager" in steps
    assert "Check that the fabric manager runs" not in steps


def test_a_firmware_error_needs_no_clean_cable() -> None:
    line = "mlx5_core 0000:1c:00.0: print_health_info:424:(pid 0): Health issue observed, firmware internal error"
    steps = steps_of(report_of(node("hgx-h100", kernel(line))), "nic-errors")
    assert "Update the firmware of the NIC" in steps
    assert "dmesg -T | grep 0000:1c:00.0" in steps
    assert "cable" not in steps


def test_heat_and_a_power_brake_have_different_steps() -> None:
    brake = report_of(node("hgx-h100", HGX["power brake"][0]))
    assert "power supplies" in steps_of(brake, "gpu-throttled")
    assert "heat sink" not in steps_of(brake, "gpu-throttled")
    assert "power supplies" not in steps_of(screen("heat"), "gpu-throttled")


def test_a_command_names_the_gpu_that_it_is_for() -> None:
    report = report_of(node("hgx-h100", gpu5("gpu = {ecc_uncorrected = 2}")))
    assert f"--gpu-reset -i {GPU5}." in steps_of(report, "gpu-ecc")


def complete(one: Finding) -> bool:
    """Whether the finding has all that a message needs, without a placeholder and without a time."""
    texts = (one.device, one.fact, one.first_step, *one.steps)
    return all(texts) and not any(PLACEHOLDER.search(str(text)) for text in texts) and "Z" not in str(one.fact)[-1:]


@pytest.mark.slow
def test_findings_of_broken_nodes_are_complete() -> None:
    further = [(one.base, one.further) for one in BROKEN.values()] + [("hgx-h100", text) for text, *_ in HGX.values()]
    for base, text in further:
        for one in report_of(node(base, text)).findings:
            assert complete(one), one
            assert not re.search(r"\d{4}-\d\d-\d\dT", str(one.fact)), one.fact
