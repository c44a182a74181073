"""Findings from outputs of tools together with facts of other sources. The samples have findings of outputs alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.cli.main import main
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu, GpuPair
from linkgauge.models.facts.machine import HostBridge, Node, Numa, Pci
from linkgauge.models.facts.network_paths import NodePair
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from tests.support.dump_samples import SAMPLES, text_of
from tests.support.samples import read

AT = 1795230000.0


def sample(name: str) -> str:
    return text_of(SAMPLES / name)


def report_on(*records: Record) -> Report:
    return evaluate(assemble(records, Site(), AT, origin="dumps"))


def codes(*records: Record) -> list[str]:
    return [one.code for one in report_on(*records).findings]


def test_a_manager_that_refuses_the_driver_beside_gpus() -> None:
    """GPUs that need no manager give no finding."""
    log = read("fabric_log", sample("nvidia/fabric_log/log.txt"))
    log = [one for one in log if getattr(one, "kind", "") != "sxid"]
    assert "driver-mismatch" in codes(*log)
    assert codes(*log, Gpu(key="gpu0", name="NVIDIA GeForce RTX 4090")) == []
    assert codes(*log, Gpu(key="gpu0", name="NVIDIA H100 80GB HBM3"))[0] == "driver-mismatch"


NEW_JSON = sample("nvidia/dcgm_diag/new_json.json")


@pytest.mark.parametrize(
    ("text", "verdict", "codes"),
    [
        (sample("nvidia/dcgm_diag/new.txt"), "FAILED", 2),
        (NEW_JSON.replace("GPU 1's NvLink link 4 is currently down", "Detected XID 79 for GPU 1"), "FAILED", 2),
        (
            sample("nvidia/dcgm_diag/old.txt")
            .replace("Fail - GPU", "Pass - GPU")
            .replace("| Warning  ", "| Info     "),
            "DEGRADED",  # the diagnosis requires persistence mode
            0,
        ),
    ],
)
def test_what_failed_is_a_symptom(tmp_path: Path, text: str, verdict: str, codes: int) -> None:
    """A node that failed another tool's test is not healthy, also without another finding."""
    (tmp_path / "diag.txt").write_text(text)
    asked = ["diagnose", "--from", str(tmp_path / "diag.txt")]
    assert CliRunner().invoke(main, asked).output.startswith(verdict)
    found = json.loads(CliRunner().invoke(main, [*asked, "--format", "json"]).output)["findings"]
    assert [one["code"] for one in found].count("not-enough-evidence") == codes


GUEST = Node(key="node", virtual=True)
BUS = "0000:41:00.0"


def test_a_narrow_link_of_which_one_end_is_shown() -> None:
    gpu = "".join(line for line in sample("pci/lspci/gpu.txt").splitlines(keepends=True) if "Region" not in line)
    (finding,) = report_on(*read("lspci", gpu)).findings
    assert finding.message == f"GPU {BUS} (NVIDIA H100 SXM5 80GB) runs on x8, below its own x16"
    assert "pcie-link-narrow" not in codes(*read("lspci", gpu), GUEST)


def test_a_narrow_link_of_nobody_knows_whom() -> None:
    (finding,) = report_on(*read("lspci", "\t\tLnkSta:\tSpeed 5GT/s (downgraded), Width x1 (downgraded)\n")).findings
    assert finding.message == "a device runs on x1, below its own width"


@pytest.mark.parametrize("state", ["(rev ff) (prog-if ff)", "(rev a1)\n\tLnkSta:\tSpeed unknown, Width x63, TrErr+"])
def test_a_gpu_that_answers_no_more(state: str) -> None:
    text = f"41:00.0 3D controller: NVIDIA Corporation Device 2330 {state}\n"
    (finding,) = report_on(*read("lspci", text)).findings
    assert (finding.code, finding.evidence[0].source in ("log:1", "log:2")) == ("gpu-missing", True)


def test_redirects_of_nobody_knows_whom() -> None:
    on = read("lspci", "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n")
    assert codes(*on) == ["pcie-acs-redirect"]
    assert codes(*on, Gpu(key="gpu0", nvlinks=18)) == []
    assert codes(*on, GpuPair(key="gpu0-gpu1", a="gpu0", b="gpu1", path="NV12")) == []
    assert codes(*on, GUEST) == []


def test_the_host_is_the_memory_near_the_gpu() -> None:
    """On two sockets, each GPU's copies are expected over its own links."""
    nvbandwidth = read("nvbandwidth", sample("benchmarks/nvbandwidth/text.txt"))
    places = [(0, "0000:17:00.0", "0000:18:00.0"), (1, "0001:29:00.0", "0001:2a:00.0")]
    facts: list[Record] = []
    for numa, root, gpu in places:
        bridge = f"pci{root[:7]}"
        facts += [
            Numa(key=f"numa{numa}", cpus=(numa,)),
            HostBridge(key=bridge, numa=numa),
            Pci(key=root, parent=bridge, pci_class=0x060400, speed=32e9, width=16, max_speed=32e9, max_width=16),
            Pci(
                key=gpu,
                parent=root,
                pci_class=0x030200,
                vendor=0x10DE,
                device=0x2335,
                speed=32e9,
                width=16,
                max_speed=32e9,
                max_width=16,
            ),
        ]
    levels = {
        level.ends: level for level in report_on(*nvbandwidth, *facts).levels if not level.beside and level.op == "copy"
    }
    for number, (_, root, gpu) in enumerate(places):
        (expected,) = levels["host", f"gpu{number}"].expected
        assert (expected.basis, expected.bottleneck) == ("capability", f"{root}>{gpu}")
    assert not report_on(*nvbandwidth, *facts).findings


def report_of(*rows: tuple[str, str, float]) -> Report:
    facts = [NodePair(key=f"{a}-{b}", a=a, b=b, rate=rate * 1e9) for a, b, rate in rows]
    return report_on(*facts)


@pytest.mark.parametrize(
    ("rows", "slow", "open_pairs"),
    [
        ([("a", "b", 88), ("b", "c", 44), ("c", "d", 44), ("d", "a", 88)], ["c"], []),
        ([("a", "b", 88), ("b", "c", 86), ("c", "d", 85), ("d", "a", 88)], [], []),
        ([("a", "b", 88), ("c", "d", 44)], [], ["c-d"]),  # one of the two; it is not known which
        ([("a", "b", 88), ("b", "c", 44)], [], ["b-c"]),  # the path between them may be slow
        ([("a", "b", 44), ("b", "c", 44), ("c", "a", 44)], [], []),  # all are equal, so none differs
        ([("a", "b", 88), ("b", "c", 44), ("c", "d", 44), ("d", "a", 88), ("e", "f", 45)], ["c"], ["e-f"]),
    ],
)
def test_who_is_the_slow_one(rows: list[tuple[str, str, float]], slow: list[str], open_pairs: list[str]) -> None:
    told = report_of(*rows)
    assert [(one.code, one.severity, one.subject) for one in told.findings] == [
        ("node-slow", "critical", n) for n in slow
    ]
    assert [one.subject for one in told.not_checked] == open_pairs


def test_the_message() -> None:
    (one,) = report_of(("a", "b", 88.1), ("b", "c", 44.2), ("c", "d", 44.05), ("d", "a", 87.9)).findings
    assert one.message == (
        "c is slow with each of its 2 partners (44.2 GB/s with b, 44.0 GB/s with d); with others these reach 88.0 GB/s"
    )


@given(st.permutations([("a", "b", 88.0), ("b", "c", 44.0), ("c", "d", 43.0), ("d", "a", 88.0), ("a", "e", 86.0)]))
def test_the_order_of_pairs_changes_nothing(rows: list[tuple[str, str, float]]) -> None:
    assert [one.subject for one in report_of(*rows).findings] == ["c"]
