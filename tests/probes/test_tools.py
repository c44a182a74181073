"""Tools of the machine in addition to our own sources: programs on the PATH, run by real child processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.hang_guard import collect_all
from linkgauge.agent.pipeline.registry import TOOLS, measure_nothing, named
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.exporters.text.conflicts import as_conflicts
from linkgauge.models.facts.gpu import Gpu, GpuPair
from linkgauge.models.facts.records import Fact, NotChecked, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.site.schema import Site
from linkgauge.probes import live_tools as tools
from linkgauge.probes.gpu.gpus import read_gpus
from tests.support.gpu import nvml_stub
from tests.support.gpu.nvml_machine import Machine, bound, machine

STUB = (sys.executable, str(Path(nvml_stub.__file__)))
A, B = "0000:1b:00.0", "0000:43:00.0"
IBSTAT, LSTOPO, SMI = sorted(TOOLS, key=lambda tool: tool.name)
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a program on the PATH that prints a text for each of its command lines, and fails for others."""

    def write(name: str, ends: str = "echo 'unknown option' >&2; exit 3", **outputs: str) -> None:
        cases = []
        for number, (arguments, text) in enumerate(outputs.items()):
            (tmp_path / f"{name}.{number}").write_text(text)
            cases.append(f"'{arguments.replace('_', ' ')}') exec cat '{tmp_path / name}.{number}' ;;")
        program = tmp_path / "bin" / name
        program.write_text("\n".join(("#!/bin/sh", 'case "$*" in', *cases, f"*) {ends} ;;", "esac")))
        program.chmod(0o755)

    (tmp_path / "bin").mkdir()
    for helper in ("cat", "sh", "sleep"):
        (tmp_path / "bin" / helper).symlink_to(f"/bin/{helper}")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(tools, "_PATH", "")
    monkeypatch.setenv("LINKGAUGE_NVML_SECONDS", "30")
    monkeypatch.setenv("NVML_STUB", str(tmp_path / "driver.toml"))
    (tmp_path / "driver.toml").write_text("gpus = 2")
    return write


def card(bus: str, width: int, clock: int, remap: str = "No") -> str:
    """What nvidia-smi -q -x has of a GPU, as far as these tests need it."""
    return f"""\
	<gpu id="00000000:{bus}:00.0">
		<product_name>NVIDIA H100 80GB HBM3</product_name>
		<pci>
			<pci_gpu_link_info>
				<pcie_gen>
					<max_link_gen>5</max_link_gen>
					<current_link_gen>1</current_link_gen>
				</pcie_gen>
				<link_widths>
					<max_link_width>16x</max_link_width>
					<current_link_width>{width}x</current_link_width>
				</link_widths>
			</pci_gpu_link_info>
		</pci>
		<clocks>
			<sm_clock>{clock} MHz</sm_clock>
		</clocks>
		<remapped_rows>
			<remapped_row_pending>{remap}</remapped_row_pending>
		</remapped_rows>
	</gpu>
"""


def log(*cards: str) -> str:
    head = f"\t<driver_version>580.95.05</driver_version>\n\t<attached_gpus>{len(cards)}</attached_gpus>\n"
    return f'<?xml version="1.0" ?>\n<nvidia_smi_log>\n{head}{"".join(cards)}</nvidia_smi_log>\n'


MATRIX = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNODE\t0-3\t0\nGPU1\tNODE\t X \t0-3\t0\n"


def snapshot_of(said: Iterable[Record]) -> Snapshot:
    return assemble(said, Site(), 1000.0)


def test_where_the_driver_and_its_tool_disagree(install: Install) -> None:
    """A width that differs is a conflict; a clock and a speed that fell at rest are not."""
    install("nvidia-smi", **{"-q_-x": log(card("1b", 16, 345), card("43", 8, 1980))})
    snapshot = snapshot_of(collect_all([*named("gpus"), SMI], machine(bound(A, B), STUB)))
    assert [(one.kept.key, one.field, one.other.cites[one.field].source) for one in snapshot.conflicts] == [
        ("gpu1", "pcie_width", "nvidia-smi -q -x:36")
    ]
    shown = as_conflicts(snapshot, tools.NAMES)
    assert shown == (
        "1 point on which sources disagree; a stated fault is used, else the first source.\n"
        "\n"
        "pcie width of gpu1\n"
        "  used   16  (the GPUs' driver (NVML))\n"
        "  other  8  (nvidia-smi -q -x:36)\n"
        "\n"
        "not compared: nvidia-smi: nvidia-smi topo -m: unknown option\n"
        "not compared: nvidia-smi: nvidia-smi topo -p2p r: unknown option\n"
        "not compared: nvidia-smi: nvidia-smi topo -p2p w: unknown option\n"
        "not compared: nvidia-smi: nvidia-smi nvlink -s: unknown option\n"
    )


def test_a_machine_without_the_tools(install: Install) -> None:
    host = machine({})
    said = collect_all(TOOLS, host)
    assert [(one.what, one.why, one.how) for one in said if isinstance(one, NotChecked)] == [
        ("nvidia-smi", "not installed", "it comes with NVIDIA's driver"),
        ("lstopo", "not installed", "install hwloc (Debian: hwloc-nox)"),
        ("ibstat", "not installed", "install infiniband-diags"),
    ]
    assert "agree" in as_conflicts(snapshot_of(said), tools.NAMES)
    assert "--with-tools also compares" in as_conflicts(snapshot_of([]), tools.NAMES)


def test_ports_and_the_tree(install: Install) -> None:
    install("ibstat", **{"": "CA 'mlx5_0'\n\tCA type: MT4129\n\tPort 1:\n\t\tState: Active\n\t\tRate: 400\n"})
    xml = '<topology version="2.0">\n  <object type="Machine">\n    <info name="HostName" value="n1"/>\n  </object>\n'
    install("lstopo", **{"--of_xml_--filter_io:all_--disallowed": f"{xml}</topology>\n"})
    facts = [one for one in collect_all([LSTOPO, IBSTAT], machine({})) if isinstance(one, Fact)]
    assert [(one.key, {cite.source for cite in one.cites.values()}) for one in facts] == [
        ("node", {"lstopo --of xml --filter io:all --disallowed:3"}),
        ("mlx5_0", {"ibstat:2"}),
        ("mlx5_0/1", {"ibstat:3", "ibstat:4", "ibstat:5"}),
    ]


def why(host: Machine) -> list[str]:
    return [one.why for one in collect(IBSTAT, host) if isinstance(one, NotChecked)]


@pytest.mark.slow
def test_what_a_tool_does_wrong(install: Install) -> None:
    host = machine({})
    for text, told in (
        ("", "dump of ibstat: not in a known format"),
        ("rubbish", "dump of ibstat: not in a known format"),
        (
            "CA 'mlx5_0'\n\tCA type: MT1\n\tPort 1:\n\t\tRate: much\n",
            "Port.rate of mlx5_0/1: ibstat:4: 'much' is not a",
        ),
    ):
        install("ibstat", **{"": text})
        assert [one[: len(told)] for one in why(host)] == [told]
    install("ibstat", ends="exit 5")
    assert why(host) == ["ibstat: ended with 5"]
    install("ibstat", ends="kill -9 $$")
    assert why(host) == ["ibstat: ended with -9"]
    install("ibstat", ends="sleep 60")
    assert why(machine({}, seconds=1.5)) == ["no answer within 1.5 s"]


@pytest.mark.slow
def test_nvidia_smi_stands_in_where_the_library_cannot_be_used(install: Install, tmp_path: Path) -> None:
    (tmp_path / "driver.toml").write_text("returns = { nvmlInitWithFlags = 12 }")
    host = machine(bound(A, B), STUB)
    alone = [one for one in read_gpus(host) if isinstance(one, NotChecked)]
    assert [(one.what, one.subject) for one in alone] == [("Gpu", "node")]
    install("nvidia-smi", **{"-q_-x": log(card("1b", 16, 345), card("43", 8, 1980, "Yes")), "topo_-m": MATRIX})
    said = list(read_gpus(host))
    gpus = [one for one in said if isinstance(one, Gpu) and one.name]
    assert [(one.key, one.address, one.pcie_width) for one in gpus] == [("gpu0", A, 16), ("gpu1", B, 8)]
    assert [(one.key, one.path) for one in said if isinstance(one, GpuPair)] == [("gpu0-gpu1", "NODE")]
    (told,) = (one for one in said if isinstance(one, NotChecked) and one.what == "NVML")
    assert told.why == f"{alone[0].why}: nvidia-smi was asked instead"
    report = diagnose(host, named("gpus", "gpu_wiring"), measure_nothing, Site()).report
    assert [(one.code, one.subject) for one in report.findings] == [("gpu-row-remap", B), ("pcie-link-narrow", B)]
    assert any(one.what == "NVML" for one in report.not_checked)
