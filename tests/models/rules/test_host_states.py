"""States of the host: offline processors, read-only file systems, limits that services hand on, IOMMUs of guests."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linkgauge.models.catalog import codes
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Event, Mount, Node, Package, Setting
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Site
from linkgauge.probes.storage.mounts import read_mounts
from linkgauge.probes.system.node import read_node
from linkgauge.probes.system.settings import read_settings
from tests.support.nodes.trees import tree
from tests.support.texts import report_of

METAL = Node(key="node", virtual=False, present_cpus=16, smt="on")


def found(*records: Record) -> list[Finding]:
    return list(evaluate(assemble(records, Site(), 1000.0)).findings)


def packages(*counts: tuple[int, int]) -> list[Package]:
    """Packages with so many online CPUs and cores."""
    return [
        Package(key=f"package{number}", cpus=tuple(range(100 * number, 100 * number + cpus)), cores=cores)
        for number, (cpus, cores) in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("node", "counts", "subjects"),
    [
        (METAL, ((8, 4), (8, 4)), []),
        (METAL, ((8, 4), (7, 4)), ["package1 info"]),
        (METAL, ((8, 4), (4, 2)), ["package1"]),
        (METAL, ((4, 2), (4, 2)), ["package0", "package1"]),
        (METAL, ((8, 4), (5, 4)), ["package1 info"]),
        (replace(METAL, smt="off"), ((4, 4), (4, 4)), []),
        (replace(METAL, smt="off"), ((4, 4), (2, 2)), ["package1"]),
        (replace(METAL, smt=None), ((4, 4), (4, 4)), []),
        (METAL, ((4, 4), (4, 4)), []),
        (replace(METAL, smt="notsupported"), ((8, 8), (4, 4)), ["package1"]),
        (replace(METAL, smt="notsupported"), ((4, 4), (4, 4)), ["package0", "package1"]),
        (replace(METAL, virtual=True), ((2, 1), (2, 1)), []),
        (replace(METAL, present_cpus=None), ((8, 4), (4, 2)), []),
    ],
)
def test_offline_processors(node: Node, counts: tuple[tuple[int, int], ...], subjects: list[str]) -> None:
    findings = found(node, *packages(*counts))
    assert [(one.code, one.severity, one.subject) for one in findings] == [
        ("cpu-missing", subject[9:] or "warning", subject[:8]) for subject in subjects
    ]


@pytest.mark.parametrize(
    ("node", "cpus", "listed"),
    [
        (METAL, 8, False),
        (replace(METAL, virtual=True), 8, False),
        (replace(METAL, virtual=True), 7, True),
        (replace(METAL, present_cpus=None), 8, True),
    ],
)
def test_numbers_of_online_processors_without_evidence(node: Node, cpus: int, listed: bool) -> None:
    coverage = evaluate(assemble([node, *packages((8, 4), (cpus, 4))], Site(), 1000.0)).coverage
    assert any("number of online CPUs" in one.quantities for one in coverage.uncorroborated) == listed


def test_the_processors_that_are_present() -> None:
    cpus = "sys/devices/system/cpu"
    (node,) = (
        one
        for one in read_node(tree({f"{cpus}/present": "0-15", f"{cpus}/smt/control": "forceoff"}))
        if isinstance(one, Node)
    )
    assert (node.present_cpus, node.smt) == (16, "forceoff")


MOUNTS = "/dev/sda1 / ext4 rw 0 0\n/dev/sdb1 /scratch ext4 ro,relatime 0 0\n/dev/sdc1 /usr ext4 ro,relatime 0 0"
MOUNT_INFO = (
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
    "23 22 8:17 / /scratch rw,relatime shared:2 - ext4 /dev/sdb1 ro,errors=remount-ro\n"
    "24 22 8:33 / /usr ro,relatime shared:3 - ext4 /dev/sdc1 ro"
)


def mounts(info: str = MOUNT_INFO) -> list[Mount]:
    host = tree({"proc/1/mounts": MOUNTS, "proc/1/mountinfo": info})
    return [one for one in read_mounts(host) if isinstance(one, Mount)]


def test_a_file_system_that_the_kernel_made_read_only() -> None:
    assert [(one.key, one.stopped) for one in mounts()] == [("/", None), ("/scratch", True), ("/usr", False)]
    (finding,) = found(*mounts())
    assert (finding.code, finding.severity, finding.subject) == ("storage-degraded", "critical", "/scratch")


def test_a_file_system_that_the_log_and_the_mount_report_is_one_finding() -> None:
    event = Event(key="x", kind="file system stopped", subject="sdb1", at=990.0, count=1, text="EXT4-fs (sdb1)")
    (finding,) = found(*mounts(), event)
    assert finding.subject == "sdb1"


@pytest.mark.parametrize("info", ["", "rubbish", "1 2 3 - - -", " - "])
def test_a_read_only_file_system_without_a_reason_is_no_fault(info: str) -> None:
    assert found(*mounts(info)) == []


def limits(size: str) -> str:
    return f"Limit                     Soft Limit           Units\nMax locked memory         {size}              bytes"


def test_limits_that_services_hand_on_to_jobs() -> None:
    """On a host, too. Each service has its own process."""
    group = "sys/fs/cgroup/system.slice"
    host = tree(
        {
            "sys/class/infiniband/mlx5_0/device": "",
            f"{group}/slurmd.service/cgroup.procs": "100\n101",
            f"{group}/containerd.service/cgroup.procs": "200",
            f"{group}/crio.service/cgroup.procs": "",
            "proc/100/limits": limits("unlimited"),
            "proc/200/limits": limits("8388608"),
        }
    )
    settings = [one for one in read_settings(host) if isinstance(one, Setting)]
    values = {one.key: one.value for one in settings if one.key.startswith("memlock_")}
    assert values == {"memlock_slurmd": "unlimited", "memlock_containerd": "8388608"}


def lscpu(present: int, offline: str) -> str:
    return f"CPU(s):                  {present}\nOff-line CPU(s) list:    {offline}\nThread(s) per core:      1\n"


@pytest.mark.parametrize(
    ("text", "observed"), [(lscpu(96, "41-47"), 89), (lscpu(128, "64-127"), 64), (lscpu(240, "8-239"), 8)]
)
def test_offline_cpus_of_a_text_are_information(text: str, observed: int) -> None:
    report = report_of(text)
    assert report.verdict == "unknown"
    found = [(one.code, one.severity, one.observed) for one in report.findings]
    assert found == [("not-enough-evidence", "info", observed)]


def test_reports_of_outputs_use_codes_that_their_readers_know() -> None:
    newer = {name for name, code in codes().items() if code.of_outputs}
    assert newer == {"gpu-memory-low", "nvlink-slow", "firmware-mixed", "storage-missing", "cpu-missing"}
    assert {codes()[name].of_outputs for name in newer} <= codes().keys() - newer


def test_a_stopped_fabric_manager_of_an_unknown_machine_is_information_and_a_gap() -> None:
    state = "● nvidia-fabricmanager.service - NVIDIA fabric manager service\n     Active: failed (Result: exit-code)\n"
    report = report_of(state)
    assert [(one.code, one.severity) for one in report.findings] == [("fabric-manager-down", "info")]
    assert report.verdict == "unknown"
