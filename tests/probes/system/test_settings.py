"""Settings of a machine: the value of each row, refused files, and a complete catalog of rows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.catalog import codes
from linkgauge.models.catalog.settings import Row, settings
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Setting
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Record
from linkgauge.models.rules.host.settings import CONDITIONS
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.host.entries import Entry, Link, UnreadableFile
from linkgauge.probes.system.settings import read_settings, status_lines
from tests.support.nodes.trees import tree

CPU = "sys/devices/system/cpu"
FREQUENCY, IDLE = f"{CPU}/cpu0/cpufreq", f"{CPU}/cpu0/cpuidle"
GROUPS, HUGE = "sys/kernel/iommu_groups", "sys/kernel/mm/transparent_hugepage"
VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\nGCC version:"
LIMIT = "Max locked memory         8388608              unlimited            bytes"
LIMITS = f"Limit                     Soft Limit           Hard Limit           Units\n{LIMIT}"
STATUS = (
    "Name:\tbash\nCapEff:\t00000000a80425fb\nCapBnd:\t00000000a8842dfb\nSeccomp:\t2\n"
    "Cpus_allowed_list:\t0-55\nMems_allowed_list:\t0"
)
GPUS = {f"sys/bus/pci/drivers/nvidia/0000:{bus}:00.0": Link(f"../../../../devices/{bus}") for bus in ("17", "31")}
FILES: dict[str, Entry] = {
    **GPUS,
    **{f"sys/bus/pci/devices/0000:{bus}:00.0": Link(f"../../../devices/{bus}") for bus in ("17", "31")},
    **{f"sys/devices/{bus}/iommu_group": Link(f"../../kernel/iommu_groups/{bus}") for bus in ("17", "31", "18")},
    "sys/class/infiniband/mlx5_0/device": Link("../../../devices/18"),
    "sys/class/nvme/nvme0/model": "disk",
    f"{GROUPS}/17/type": "identity",
    f"{GROUPS}/31/type": "identity",
    f"{GROUPS}/18/type": "DMA-FQ",
    "proc/driver/nvidia/version": VERSION,
    "sys/module/nvidia/version": "535.129.03",
    "etc/cufile.json": "{}",
    f"{CPU}/online": "0-3",
    **{f"{CPU}/cpu{n}/topology/physical_package_id": str(n % 2) for n in range(4)},
    **{f"{CPU}/cpu{n}/topology/package_cpus_list": f"{n % 2},{n % 2 + 2}" for n in range(4)},
    **{f"{CPU}/cpu{n}/cpufreq/scaling_driver": "acpi-cpufreq" for n in range(4)},
    f"{FREQUENCY}/scaling_governor": "performance",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave",
    f"{IDLE}/state0/latency": "0",
    f"{IDLE}/state0/disable": "0",
    f"{IDLE}/state1/latency": "2",
    f"{IDLE}/state1/disable": "0",
    f"{IDLE}/state2/latency": "800",
    f"{IDLE}/state2/disable": "1",
    f"{HUGE}/enabled": "always [madvise] never",
    "proc/sys/vm/nr_hugepages": "0",
    "proc/sys/kernel/numa_balancing": "1",
    "proc/self/limits": LIMITS,
    "proc/self/status": STATUS,
    "sys/fs/cgroup/system.slice/slurmd.service/cgroup.procs": "4711\n4712",
    "proc/4711/limits": LIMITS.replace("8388608  ", "unlimited"),
}


def setting(name: str, value: str, path: str, text: str | None = None) -> Setting:
    return Setting(key=name, value=value, cites={"value": Evidence(path, value if text is None else text)})


def said(files: dict[str, Entry]) -> list[Record]:
    return list(read_settings(tree(files)))


def test_every_row() -> None:
    """Parts that differ are all named; sleep states that are switched off do not count."""
    version = VERSION.partition("\n")[0]
    assert said(FILES) == [
        setting("kernel_module", "x86_64 Kernel Module", "proc/driver/nvidia/version", version),
        setting("peer_memory", "none", "sys/module/nvidia_peermem", "not there"),
        setting("gds_library", "cufile.json", "etc/cufile.json"),
        setting("gds_module", "none", "sys/module/nvidia_fs", "not there"),
        setting("iommu", "identity, DMA-FQ", f"{GROUPS}/17/type", "identity"),
        setting("iommu_guest", "identity, DMA-FQ", f"{GROUPS}/17/type", "identity"),
        setting("scaling_driver", "acpi-cpufreq", f"{FREQUENCY}/scaling_driver"),
        setting("scaling_governor", "performance, powersave", f"{FREQUENCY}/scaling_governor", "performance"),
        setting("idle_latency", "0, 2", f"{IDLE}/state0/latency", "0"),
        setting("numa_balancing", "1", "proc/sys/kernel/numa_balancing"),
        setting("transparent_hugepage", "madvise", f"{HUGE}/enabled", "always [madvise] never"),
        setting("huge_pages", "0", "proc/sys/vm/nr_hugepages"),
        setting("locks_memory", "0", "proc/self/status", "CapEff:\t00000000a80425fb"),
        setting("seccomp", "2", "proc/self/status", "Seccomp:\t2"),
        setting("sets_memory_policy", "1", "proc/self/status", "CapBnd:\t00000000a8842dfb"),
        setting("memlock", "8388608", "proc/self/limits", LIMIT),
        setting("memlock_slurmd", "unlimited", "proc/4711/limits", LIMIT.replace("8388608  ", "unlimited")),
        setting("cpus_allowed", "0-55", "proc/self/status", "Cpus_allowed_list:\t0-55"),
        setting("mems_allowed", "0", "proc/self/status", "Mems_allowed_list:\t0"),
    ]


def test_a_machine_without_gpus_and_rdma_is_asked_nothing() -> None:
    without = {path: entry for path, entry in FILES.items() if "nvidia/0000" not in path and "infiniband" not in path}
    host = Recording(tree(without))
    assert list(read_settings(host)) == []
    assert [path for path, entry in host.recorded().entries.items() if isinstance(entry, str)] == []


def test_hundreds_of_cpus_are_a_few_reads() -> None:
    many = {
        path.replace("cpu0", f"cpu{n}"): entry
        for n in range(200)
        for path, entry in FILES.items()
        if "cpu0/cpufreq" in path
    }
    topology = {
        f"{CPU}/cpu{n}/topology/{name}": text
        for n in range(200)
        for name, text in (("physical_package_id", "0"), ("package_cpus_list", "0-199"))
    }
    host = Recording(tree({**FILES, **many, **topology, f"{CPU}/online": "0-199"}))
    list(read_settings(host))
    files = [path for path, entry in host.recorded().entries.items() if isinstance(entry, str) and "/cpu" in path]
    assert len(files) < 20


def test_modules_that_are_loaded() -> None:
    files = {**FILES, "sys/module/nv_peer_mem/refcnt": "0", "sys/module/nvidia_fs/refcnt": "0"}
    values = {one.key: one.value for one in said(files) if isinstance(one, Setting)}
    assert (values["peer_memory"], values["gds_module"]) == ("nv_peer_mem", "nvidia_fs")


def test_the_open_kernel_module() -> None:
    text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build"
    assert setting("kernel_module", "Open Kernel Module", "proc/driver/nvidia/version", text) in said(
        {**FILES, "proc/driver/nvidia/version": text}
    )


def test_what_would_not_say_hides_nothing_else() -> None:
    refused: dict[str, Entry] = {
        "proc/driver/nvidia/version": UnreadableFile(13, "Permission denied"),
        f"{GROUPS}/17/type": UnreadableFile(5, "broken"),
        "proc/sys/vm/nr_hugepages": "many",
        "proc/self/limits": "Limit",
        "proc/self/status": "CapEff:\txyz",
    }
    told = said({**FILES, **refused})
    assert [one for one in told if isinstance(one, NotChecked)] == [
        missed("kernel_module", "proc/driver/nvidia/version", "Permission denied", "run as root", Reason.PERMISSION),
        missed("iommu", f"{GROUPS}/17/type", "broken"),
        missed("iommu_guest", f"{GROUPS}/17/type", "broken"),
        missed("huge_pages", "proc/sys/vm/nr_hugepages", "'many' is not a number"),
        missed("locks_memory", "proc/self/status", "'0xxyz' is not a hexadecimal number"),
        missed("memlock", "proc/self/limits", "has no Max locked memory"),
        missed("cpus_allowed", "proc/self/status", "has no Cpus_allowed_list"),
        missed("mems_allowed", "proc/self/status", "has no Mems_allowed_list"),
    ]
    values = {one.key: one.value for one in told if isinstance(one, Setting)}
    assert values["iommu"] == "identity, DMA-FQ"
    assert values["kernel_module"] is values["memlock"] is None
    optional = ("seccomp", "sets_memory_policy")
    assert list(values) == [one.key for one in said(FILES) if isinstance(one, Setting) and one.key not in optional]


def missed(name: str, path: str, detail: str, how: str | None = None, reason: Reason = Reason.UNREADABLE) -> NotChecked:
    return NotChecked(what="Setting.value", subject=name, reason=reason, path=path, detail=detail, how=how)


def test_a_record_keeps_of_a_process_what_is_read() -> None:
    files = {path: entry for path, entry in FILES.items() if path != "proc/self/status"}
    host = Recording(tree({**files, "proc/self/status": f"{STATUS}\nSeccomp_filters:\t1\nUid:\t1000\nGroups:\t27"}))
    told = list(read_settings(host))
    assert host.recorded().entries["proc/self/status"] == STATUS.partition("\n")[2]
    assert list(read_settings(host.recorded())) == told
    assert status_lines("Uid:\t0") == ""


texts = (
    st.sampled_from(["identity", "[x]", "Open Kernel Module", "Max locked memory  1", "CapEff: ff", "0-3", "-1", "1,2"])
    | st.text(max_size=30)
    | st.text("Max locked memoryCpEf:[] \t\n019", max_size=40)
)
TEXTS = sorted(path for path, entry in FILES.items() if isinstance(entry, str))


@given(st.dictionaries(st.sampled_from(TEXTS), texts, max_size=8))
def test_any_text_in_any_file(changed: dict[str, str]) -> None:
    told = said({**FILES, **changed})
    assert all(decode(encode(one)) == one for one in told)
    assert {one.key for one in told if isinstance(one, Setting)} <= settings().keys()


@pytest.mark.parametrize("name", settings())
def test_a_row_of_the_catalog_is_whole(name: str) -> None:
    row = settings()[name]
    assert row.source
    assert {name for one in row.where for name in one.split("|")} <= CONDITIONS.keys()
    assert {*row.only, *row.unless} <= settings().keys()
    assert bool(row.entry) == (row.read in ("entry", "bit", "match"))
    assert any("{process}" in path for path in row.paths[:1]) == bool(row.service)
    assert bool(row.paths) == (row.read not in ("variable", "tool"))
    ways = evaluated_by(row)
    if row.code is None:
        assert (ways, row.says) == (0, "")
    else:
        assert row.severity in codes()[row.code].severity
        assert ways == 1
        assert row.cause
        assert row.says.format(value="7")


def evaluated_by(row: Row) -> int:
    """The number of conditions of the row: patterns of good or bad values, or numbers."""
    return sum((bool(row.wanted), bool(row.unwanted), row.more_than is not None or row.at_most is not None))
