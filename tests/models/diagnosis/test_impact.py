"""The cost of each kind of fault: a factor, that a job cannot run, or that nobody knows; and of two faults at once."""

from __future__ import annotations

from itertools import combinations

import pytest

from linkgauge.agent.pipeline.hang_guard import collect_all
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.exporters.text.cost import cost
from linkgauge.exporters.text.terminal import painter
from linkgauge.models.diagnosis.impact import FABRIC, weigh
from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding, Report
from linkgauge.models.site.schema import Site
from tests.support.nodes.broken_nodes import BROKEN, HGX, gpu5, setting
from tests.support.nodes.described import node

JOB = "llama3-70b,tp=8,dp=64,tokens=4M"
EVEN = {"all_reduce": 1.0, "alltoall": 1.0}
X8 = "[device.gpu1]\nwidth = 8"
# The rates behind the factors: PCIe 5.0 x16 and the uplink of two GPUs 63 GB/s, x8 31.5 GB/s, a port 50 GB/s.
DOWN = setting("sys/class/infiniband/mlx5_2/ports/1/state", "1: DOWN") + (
    "\n'sys/class/infiniband/mlx5_2/ports/1/phys_state' = '2: Polling'"
)
HALF = setting("sys/class/infiniband/mlx5_2/ports/1/rate", "200 Gb/sec (2X NDR)")
FAULTS = {
    "gpu x8": (X8, "slower", {**EVEN, FABRIC: 1.587}),  # 50 / 31.5
    "port down": (DOWN, "slower", {**EVEN, FABRIC: 2.0}),  # two GPUs share a port
    "port at half rate": (HALF, "slower", {**EVEN, FABRIC: 2.0}),  # 50 / 25
    "NIC absent": ("[device.mlx5_2]\ngone = true", "slower", {**EVEN, FABRIC: 2.0}),
    "uplink x8": ("[device.'0000:19:00.0']\nwidth = 8", "slower", {**EVEN, FABRIC: 1.0, "copy@host": 2.0}),
    "one NVLink": ("[device.gpu3]\ninactive = [7]", "slower", {"all_reduce": 1.059, "alltoall": 1.059, FABRIC: 1.0}),
    "disk x2": ("[device.nvme0]\nwidth = 2", "slower", {**EVEN, FABRIC: 1.0, "read@storage": 1.067}),  # 8 / 7.5
    "NVSwitch absent": (
        HGX["an NVSwitch that is gone"][0],
        "slower",
        {"all_reduce": 1.333, "alltoall": 1.333, FABRIC: 1.0},
    ),
    "ACS": (HGX["access control"][0], "slower", {**EVEN, FABRIC: 1.587}),  # both cross the uplink: 50 / (63 / 2)
    "IOMMU": (HGX["IOMMU"][0], "slower", {**EVEN, FABRIC: 1.587}),
    "no GPUDirect RDMA": (HGX["no way past the processor"][0], "slower", {**EVEN, FABRIC: 1.587}),
    "clock": (HGX["clocks lowered"][0], "slower", {"compute": 1.65}),  # 1980 / 1200 MHz
    "hot": (BROKEN["too hot"].further, "slower", {"compute": 2.0}),  # nvml.h: by a factor of 2 or more
    "hot under load": (BROKEN["too hot"].further + "\nprocesses = 1", "slower", {"compute": 3.3}),  # 1980 / 600 MHz
    "warm at times": (HGX["warm for hours"][0], "unknown", {}),
    "power limit": (HGX["power limit lowered"][0], "unknown", {}),
    "GPU absent": (BROKEN["gone"].further, "cannot run", {}),
    "GPU lost": (BROKEN["lost"].further, "cannot run", {}),
    "GPU hangs": (HGX["it hangs"][0], "cannot run", {}),
    "outside the fabric": (HGX["left out of its fabric"][0], "cannot run", {}),
    "in a faulty fabric": (HGX["its fabric is not healthy"][0], "unknown", {}),
    "no fabric manager": (BROKEN["no fabric manager"].further, "cannot run", {}),
    "ECC": (HGX["uncorrected errors"][0], "unknown", {}),
    "port flaps": (HGX["a port that comes and goes"][0], "unknown", {}),
    "only informs": (HGX["one that left nothing behind"][0], "none", {}),
}


def report_of(text: str) -> Report:
    described = node("hgx-h100", f"\n{text}\n")
    records = collect_all(SOURCES, described)
    return evaluate(assemble(records, Site(job=JOB), described.now(), origin="capture"))


def serious(report: Report) -> list[Finding]:
    return [one for one in report.findings if one.severity != "info"]


@pytest.mark.parametrize("fault", FAULTS)
def test_single_faults(fault: str) -> None:
    text, cost, factors = FAULTS[fault]
    report = report_of(text)
    assert (report.cost, dict(report.impact)) == (cost, factors)
    assert {one.cost for one in serious(report)} <= {cost}
    training = report.training
    assert training is not None
    assert (training.slower is None, training.gpu_hours_a_day is None) == (cost in ("cannot run", "unknown"),) * 2


PAIRS = list(combinations(("gpu x8", "port at half rate", "one NVLink", "hot under load", "uplink x8", "disk x2"), 2))


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_the_cost_of_a_finding_does_not_depend_on_others(pair: tuple[str, str]) -> None:
    texts = [FAULTS[fault][0] for fault in pair]
    alone = {(one.code, one.subject): (one.cost, one.impact) for text in texts for one in serious(report_of(text))}
    together = {(one.code, one.subject): (one.cost, one.impact) for one in serious(report_of("\n".join(texts)))}
    assert together == alone


def test_a_narrow_gpu_beside_a_slow_port_still_has_its_cost() -> None:
    report = report_of(f"{X8}\n{HALF}")
    assert {one.code: (one.cost, one.impact[FABRIC]) for one in serious(report)} == {
        "pcie-link-narrow": ("slower", 1.587),
        "nic-rate-low": ("slower", 2.0),
    }
    assert report.impact[FABRIC] == 2.0


def test_a_known_factor_beside_an_unknown_cost_is_a_lower_bound() -> None:
    report = report_of(f"{X8}\n{gpu5('gpu = {ecc_uncorrected = 2}')}")
    assert {one.code: one.cost for one in serious(report)} == {"pcie-link-narrow": "slower", "gpu-ecc": "unknown"}
    assert report.cost == "slower"


def cost_of(finding: Finding) -> str:
    snapshot = assemble(collect_all(SOURCES, node("hgx-h100", "")), Site(), 1000, origin="capture")
    return weigh(snapshot, [finding])[1].cost


def test_what_no_operation_uses_is_not_known() -> None:
    """A port of no GPU; a link that no flow crosses."""
    port = Finding(code="nic-port-down", severity="critical", subject="mlx5_0/1", message="down")
    link = Finding(code="pcie-link-narrow", severity="critical", subject="0:1", message="narrow", limits={"0:1": 1e9})
    assert (cost_of(port), cost_of(link)) == ("unknown", "unknown")


def words(*faults: str) -> str:
    report = report_of("\n".join(FAULTS[fault][0] for fault in faults))
    return " ".join(" ".join(line.split()) for line in cost(report, painter(False)))


def test_the_cost_for_a_job_in_words() -> None:
    about = f"COST {JOB} on 512 GPUs"
    assert words("GPU lost") == f"{about} cannot run with all GPUs of this node: gpu-missing 0000:3e:00.0"
    assert words("ECC").endswith("s; how much longer it takes is not known: gpu-ecc 0000:9e:00.0")
    assert "takes at least 5.1 % longer" in words("gpu x8", "ECC")
    assert "not known: the cost of gpu-ecc 0000:9e:00.0" in words("gpu x8", "ECC")
    longer = [
        fault for fault, (_, kind, _) in FAULTS.items() if kind != "none" and fault not in ("uplink x8", "disk x2")
    ]
    assert [fault for fault in longer if "no finding makes it longer" in words(fault)] == []
    assert words("uplink x8").endswith(
        "longer copies to host memory take 2 times as long; all_reduce and alltoall inside the node and "
        "all_reduce over the fabric are not slower"
    )
