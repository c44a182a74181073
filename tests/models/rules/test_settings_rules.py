"""Rules about the host around the GPUs, on facts alone: faults, normal states, and limits of jobs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.catalog.settings import settings
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Mount, Node, Numa, Nvme, Package, Pci, Port, Rdma, Setting
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Context, Finding, Report
from linkgauge.models.rules.core.wording import location
from linkgauge.models.rules.host.job_limits import NOT_A_JOB
from linkgauge.models.site.schema import Site

NOW = 2e9
METAL, GUEST = Node(key="node", virtual=False, booted=NOW - 1e5), Node(key="node", virtual=True, booted=NOW - 1e5)
XEON = Package(key="package0", vendor="GenuineIntel", cpus=(0,))
GRACE = Package(key="package0", vendor="ARM", cpus=(0,))
H100, GEFORCE, PLAIN = 0x2330, 0x2684, 0x9999  # the last one is in no catalog
UP, DOWN_1, DOWN_2 = "0000:17:00.0", "0000:18:00.0", "0000:18:01.0"
GPU_1, GPU_2, NIC = "0000:19:00.0", "0000:1a:00.0", "0000:1b:00.0"
ON = ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")
CITE = Evidence("config", "ACSCtl 0x001d")


def report(*records: Record, context: Context = "host", past: tuple[Observation, ...] = ()) -> Report:
    return evaluate(assemble(records, Site(), NOW, past=past, context=context))


CODES = frozenset(
    {
        "gdr-disabled",
        "gds-unavailable",
        "iommu-translation",
        "cpu-governor",
        "memlock-low",
        "shm-small",
        "pcie-acs-redirect",
        "pcie-path-bottleneck",
        "numa-memory-missing",
        "cpu-throttled",
        "host-memory-errors",
    }
)


def findings(*records: Record, **options: Any) -> list[Finding]:
    """The findings with the codes of this file."""
    return [one for one in report(*records, **options).findings if one.code in CODES]


def summaries(*records: Record, **options: Any) -> list[tuple[str, str, str]]:
    return [(one.code, one.subject, one.severity) for one in findings(*records, **options)]


def port(address: str, parent: str, acs: tuple[str, ...] | None = ()) -> Pci:
    return Pci(key=address, parent=parent, pci_class=0x060400, vendor=0x10B5, acs=acs, cites={"acs": CITE})


def gpu(address: str, parent: str, device: int = PLAIN, **fields: Any) -> Pci:
    names = {GEFORCE: "NVIDIA AD102 [GeForce RTX 4090]"}
    given = {"vendor": 0x10DE, "device": device, "driver": "nvidia", "name": names.get(device), **fields}
    return Pci(key=address, parent=parent, pci_class=0x030200, **given)


def nic(
    address: str, parent: str, driver: str = "mlx5_core", layer: str = "InfiniBand", rate: float = 50e9
) -> list[Record]:
    return [
        Pci(key=address, parent=parent, pci_class=0x020700, vendor=0x15B3, device=0x1021),
        Rdma(key="mlx5_0", address=address, driver=driver),
        Port(key="mlx5_0/1", device="mlx5_0", link_layer=layer, rate=rate, state="ACTIVE", physical_state="LinkUp"),
    ]


def below_a_switch(
    *things: Record, acs: tuple[str, ...] | None = ON, second: tuple[str, ...] | None = None
) -> list[Record]:
    """A root port, a switch with two downstream ports, and the devices below them."""
    root = port("0000:16:01.0", "pci0000:16")
    return [root, port(UP, root.key, None), port(DOWN_1, UP, acs), port(DOWN_2, UP, second or acs), *things]


PAIR = (gpu(GPU_1, DOWN_1), gpu(GPU_2, DOWN_2))
REDIRECTED = [("pcie-acs-redirect", UP, "warning")]


@pytest.mark.parametrize(
    ("node", "things", "expected"),
    [
        (METAL, PAIR, REDIRECTED),
        (METAL, (gpu(GPU_1, DOWN_1), *nic(NIC, DOWN_2)), REDIRECTED),
        (METAL, (gpu(GPU_1, DOWN_1, H100), *nic(NIC, DOWN_2)), REDIRECTED),  # NVLink does not lead to a NIC
        (METAL, (gpu(GPU_1, DOWN_1, H100), gpu(GPU_2, DOWN_2, H100)), []),  # NVLink does not go this way
        (METAL, (gpu(GPU_1, DOWN_1, GEFORCE), gpu(GPU_2, DOWN_2, GEFORCE)), []),  # they may not in any case
        (METAL, (gpu(GPU_1, DOWN_1, driver="vfio-pci"), gpu(GPU_2, DOWN_2, driver="vfio-pci")), []),
        (METAL, (gpu(GPU_1, DOWN_1), *nic(NIC, DOWN_2, layer="Ethernet", rate=3.125e9)), []),  # for management
        (METAL, (gpu(GPU_1, DOWN_1), *nic(NIC, "pci0000:80")), []),  # no switch in common
        (METAL, (gpu(GPU_1, DOWN_1),), []),
        (GUEST, PAIR, []),  # there ACS keeps guests apart
    ],
)
def test_redirected_peers(node: Node, things: tuple[Record, ...], expected: list[tuple[str, str, str]]) -> None:
    assert summaries(node, *below_a_switch(*things)) == expected
    assert summaries(node, *below_a_switch(*things, acs=("SrcValid", "UpstreamFwd"))) == []
    assert summaries(node, *below_a_switch(*things, acs=None)) == []


def test_redirection_names_its_ports() -> None:
    (found,) = findings(METAL, *below_a_switch(*PAIR, second=("SrcValid",)))
    assert f"for port in {DOWN_1}; do sudo setpci -s $port ECAP_ACS+6.w=0000; done." in found.steps[1]
    assert found.message == (
        f"what GPU {GPU_1} and GPU {GPU_2} send each other goes up to the root complex: ReqRedir and CmpltRedir are "
        f"on at {DOWN_1}"
    )
    assert found.evidence == (CITE,)


def test_gpus_on_separate_root_ports_meet_at_the_root_complex_in_any_case() -> None:
    ports = [port(f"0000:{n}0:01.0", f"pci0000:{n}0", ON) for n in (4, 6)]
    cards = [gpu(f"0000:{n}1:00.0", f"0000:{n}0:01.0") for n in (4, 6)]
    assert summaries(METAL, *ports, *cards) == []
    # Root ports of one root complex share a bridge, and no port.
    ports = [port(f"0000:40:0{n}.0", "pci0000:40", ON) for n in (1, 2)]
    cards = [gpu(f"0000:4{n}:00.0", f"0000:40:0{n}.0") for n in (1, 2)]
    assert summaries(METAL, *ports, *cards) == []


def test_the_common_port_and_those_above_it_do_not_redirect() -> None:
    """Two switches below one port of a third: only the ports below the third's port are between the GPUs."""
    common, uplinks = "0000:17:00.0", ("0000:18:00.0", "0000:1c:00.0")
    ports = [port("0000:16:01.0", "pci0000:16", ON), port(common, "0000:16:01.0", ON)]
    ports += [port(f"0000:17:0{n}.0", common, ()) for n in (1, 2)]
    below = [port(uplinks[n], f"0000:17:0{n + 1}.0", None) for n in (0, 1)]
    leaves = [port(f"0000:{bus}:00.0", uplink, ()) for bus, uplink in zip(("19", "1d"), uplinks, strict=True)]
    cards = [gpu("0000:1a:00.0", "0000:19:00.0"), gpu("0000:1e:00.0", "0000:1d:00.0")]
    assert summaries(METAL, *ports, *below, *leaves, *cards) == []
    (found,) = findings(METAL, *ports, *below, port("0000:19:00.0", uplinks[0], ON), leaves[1], *cards)
    assert found.message.endswith("on at 0000:19:00.0")


def test_unreadable_access_control_is_not_judged() -> None:
    lost = NotChecked(
        what="Pci.acs", subject="node", reason=Reason.PERMISSION, detail="users see 64 bytes", how="run as root"
    )
    assert report(METAL, *below_a_switch(*PAIR, acs=None), lost).checks["pcie-acs-redirect"] is False
    assert report(METAL, *below_a_switch(*PAIR, acs=())).checks["pcie-acs-redirect"] is True
    assert "pcie-acs-redirect" not in report(METAL, *below_a_switch(*PAIR, acs=None)).checks


def alike(*requests: int | None, payload: int = 256) -> list[Pci]:
    return [
        gpu(f"0000:{n}9:00.0", "pci0000:00", max_payload=payload, max_read_request=request)
        for n, request in enumerate(requests, 1)
    ]


@pytest.mark.parametrize(
    ("requests", "odd"),
    [
        ((512, 512, 128), ["0000:39:00.0"]),
        ((512, 512, 512, 4096), []),  # more than the others is no loss
        ((512, 128), []),  # of two different values, neither is known to be wrong
        ((512, 512, 128, 128), []),
        ((512, 256, 128), []),
        ((512, 512, None), []),
    ],
)
def test_one_function_that_asks_for_less(requests: tuple[int | None, ...], odd: list[str]) -> None:
    assert summaries(METAL, *alike(*requests)) == [("pcie-path-bottleneck", address, "info") for address in odd]


def test_functions_of_other_products_are_not_compared() -> None:
    others = [replace(one, device=0x1234) for one in alike(512, 512)]
    assert summaries(METAL, *others, replace(alike(128)[0], key="0000:99:00.0")) == []


def values(**known: str | None) -> list[Setting]:
    return [Setting(key=name, value=value) for name, value in known.items()]


FULL = (METAL, XEON, gpu(GPU_1, "pci0000:00", H100), *nic(NIC, "pci0000:00"), Nvme(key="nvme0"))
OPEN, CLOSED = "Open Kernel Module", "x86_64 Kernel Module"
GOVERNOR = [("cpu-governor", "node", "info")]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"peer_memory": "none", "kernel_module": CLOSED}, [("gdr-disabled", "node", "critical")]),
        ({"peer_memory": "none", "kernel_module": OPEN}, []),  # dma-buf
        ({"peer_memory": "none", "kernel_module": None}, []),  # not known
        ({"peer_memory": "nvidia_peermem", "kernel_module": CLOSED}, []),
        ({"gds_module": "none", "gds_library": "cufile.json"}, [("gds-unavailable", "node", "info")]),
        ({"gds_module": "none", "gds_library": "none"}, []),  # no row wants this value
        ({"gds_module": "nvidia_fs", "gds_library": "cufile.json"}, []),
        ({"iommu": "DMA-FQ"}, [("iommu-translation", "node", "warning")]),
        ({"iommu": "identity, DMA"}, [("iommu-translation", "node", "warning")]),
        ({"iommu": "identity"}, []),
        ({"scaling_driver": "acpi-cpufreq", "scaling_governor": "performance, powersave"}, GOVERNOR),
        ({"scaling_driver": "acpi-cpufreq", "scaling_governor": "schedutil"}, []),
        ({"scaling_driver": "intel_pstate", "scaling_governor": "powersave"}, []),
        ({"scaling_driver": "amd-pstate-epp", "energy_preference": "balance_power"}, GOVERNOR),
        ({"scaling_driver": "intel_pstate", "energy_preference": "balance_performance"}, []),
        ({"idle_latency": "0, 1, 290"}, []),
        ({"idle_latency": "0, 1, 800", "scaling_governor": "powersave"}, GOVERNOR),  # one finding for both
        ({"numa_balancing": "1"}, []),  # Intel with NVIDIA
        ({"transparent_hugepage": "never", "huge_pages": "0"}, []),
        ({"memlock_slurmd": "8388608"}, [("memlock-low", "node", "critical")]),
        ({"memlock_slurmd": "unlimited"}, []),
        ({"no_such_row": "1"}, []),
    ],
)
def test_values(known: dict[str, str | None], expected: list[tuple[str, str, str]]) -> None:
    assert summaries(*FULL, *values(**known)) == expected


def test_a_finding_says_both_values() -> None:
    (found,) = findings(*FULL, *values(idle_latency="2, 800", scaling_governor="powersave"))
    assert found.message == (
        "the CPU frequency governor is powersave: processors stay slow, or speed up late; processors may sleep so "
        "deeply that waking takes 800 microseconds, many times what a message over RDMA takes"
    )
    (found,) = findings(*FULL, *values(memlock_slurmd="8388608"))
    assert (found.expected, found.observed, found.unit) == ("unlimited", 8388608, "bytes")
    assert "8.39 MB" in found.message


@pytest.mark.parametrize(
    ("machine", "known"),
    [
        ((GUEST, *FULL[1:]), {"iommu": "DMA"}),  # the host's matter
        ((METAL, GRACE, *FULL[2:]), {"iommu": "DMA"}),  # ATS
        ((METAL, XEON, gpu(GPU_1, "pci0000:00", H100), gpu(GPU_2, "pci0000:00", H100)), {"iommu": "DMA"}),  # NVLink
        ((METAL, XEON, gpu(GPU_1, "pci0000:00")), {"iommu": "DMA"}),  # no peer
        (
            (METAL, XEON, gpu(GPU_1, "pci0000:00", GEFORCE), *nic(NIC, "pci0000:00")),
            {"peer_memory": "none", "kernel_module": CLOSED, "iommu": "DMA"},
        ),
        (
            (METAL, XEON, gpu(GPU_1, "pci0000:00"), *nic(NIC, "pci0000:00", "efa", "Unspecified", 12.5e9)),
            {"peer_memory": "none", "kernel_module": CLOSED},
        ),
        (
            (METAL, XEON, gpu(GPU_1, "pci0000:00"), *nic(NIC, "pci0000:00", layer="Ethernet", rate=3.125e9)),
            {"peer_memory": "none", "kernel_module": CLOSED, "iommu": "DMA"},
        ),
        ((METAL, XEON), {"scaling_governor": "powersave", "scaling_driver": "acpi-cpufreq", "numa_balancing": "1"}),
    ],
)
def test_machines_that_want_it_so(machine: tuple[Record, ...], known: dict[str, str]) -> None:
    assert summaries(*machine, *values(**known)) == []


@pytest.mark.parametrize(("vendor", "package", "count"), [(0x1002, XEON, 1), (0x10DE, GRACE, 1), (0x10DE, XEON, 0)])
def test_balancing_where_gpu_makers_warn_of_it(vendor: int, package: Package, count: int) -> None:
    card = replace(gpu(GPU_1, "pci0000:00"), vendor=vendor)
    assert summaries(METAL, package, card, *values(numa_balancing="1")) == GOVERNOR * count
    assert summaries(METAL, package, card, *values(numa_balancing="0")) == []


def test_plain_gpus_side_by_side_want_no_translation() -> None:
    pair = (gpu(GPU_1, "pci0000:00"), gpu(GPU_2, "pci0000:80"))
    assert summaries(METAL, XEON, *pair, *values(iommu="DMA")) == [("iommu-translation", "node", "warning")]


LOW = [("memlock-low", "node", "critical")]


@pytest.mark.parametrize(
    ("limit", "locks", "expected"),
    [
        ("8388608", "0", LOW),
        ("67108864", None, LOW),
        ("unlimited", "0", []),
        ("8589934592", "0", []),
        ("65536", "1", []),
    ],
)
def test_locked_memory_of_a_job(limit: str, locks: str | None, expected: list[tuple[str, str, str]]) -> None:
    known = values(memlock=limit, locks_memory=locks)
    assert summaries(*FULL, *known, context="job") == expected
    assert summaries(*FULL, *known) == []
    assert summaries(METAL, XEON, *known, context="job") == []  # no RDMA


@pytest.mark.parametrize(
    ("nodes", "filter_", "nice", "expected"),
    [
        (2, "2", "0", GOVERNOR),
        (2, "2", "1", []),
        (2, "0", "0", []),  # no filter: a user may set the policy of its own memory
        (2, None, "0", []),
        (1, "2", "0", []),
    ],
)
def test_a_container_that_cannot_place_memory(
    nodes: int, filter_: str | None, nice: str, expected: list[tuple[str, str, str]]
) -> None:
    numa = [Numa(key=f"numa{n}", cpus=(n,)) for n in range(nodes)]
    known = values(seccomp=filter_, sets_memory_policy=nice)
    assert summaries(*FULL, *numa, *known, context="job") == expected
    assert summaries(*FULL, *numa, *known) == []


def test_outside_of_a_job_its_limits_are_one_gap() -> None:
    """In a container, linkgauge sees its own shared memory."""
    shm = Mount(key="/dev/shm", size=1 << 26)
    inside = [replace(one, container="docker") if isinstance(one, Node) else one for one in FULL]
    seen = report(*inside, gpu(GPU_2, "pci0000:80", H100), *values(memlock="8388608", locks_memory="0"), shm)
    assert [gap for gap in seen.not_checked if gap.what == NOT_A_JOB.what] == [NOT_A_JOB]
    assert (seen.checks["memlock-low"], seen.checks["shm-small"]) == (False, False)
    assert seen.context == "host"


@pytest.mark.parametrize(
    ("size", "cards", "expected"),
    [
        (1 << 26, 2, [("shm-small", "node", "critical")]),
        (1 << 30, 2, []),
        (1 << 26, 1, []),
        (None, 2, []),
    ],
)
def test_shared_memory_of_a_job(size: int | None, cards: int, expected: list[tuple[str, str, str]]) -> None:
    """A host too: its jobs without containers use its shared memory."""
    things = [gpu(address, "pci0000:00", GEFORCE) for address in (GPU_1, GPU_2)[:cards]]
    assert summaries(METAL, *things, Mount(key="/dev/shm", size=size), context="job") == expected
    host = replace(METAL, container="")
    assert summaries(host, *things, Mount(key="/dev/shm", size=size)) == expected


def test_the_limit_that_slurmd_hands_on_is_that_of_jobs() -> None:
    """The limit of this process says nothing then."""
    known = values(memlock="8388608", locks_memory="0", memlock_slurmd="unlimited")
    seen = report(*FULL, *known)
    assert [gap for gap in seen.not_checked if gap.what == NOT_A_JOB.what] == []
    assert seen.checks["memlock-low"] is True
    assert summaries(*FULL, *values(memlock="unlimited", memlock_slurmd="8388608")) == LOW


@pytest.mark.parametrize(
    ("allowed", "context", "expected"),
    [
        ("0", "job", [("numa-memory-missing", "numa1", "warning")]),
        ("0-1", "job", []),
        ("0", "host", []),
        ("rubbish", "job", []),
        (None, "job", []),
    ],
)
def test_a_cpuset_that_hides_memory(
    allowed: str | None, context: Context, expected: list[tuple[str, str, str]]
) -> None:
    nodes = [Numa(key=f"numa{n}", cpus=(n,), memory=1 << 36) for n in range(3)]
    cards = [gpu(GPU_1, "pci0000:00", numa=0), gpu(GPU_2, "pci0000:80", numa=1), gpu(NIC, "pci0000:c0", numa=2)]
    drivers = [Gpu(key="gpu0", address=GPU_1), Gpu(key="gpu1", address=GPU_2)]  # the third one is not the job's
    assert summaries(METAL, *nodes, *cards, *drivers, *values(mems_allowed=allowed), context=context) == expected


def seen(about: str, quantity: str, value: float, ago: float = 0) -> Observation:
    return Observation(
        about=about, quantity=quantity, unit="count", value=value, at=NOW - ago, evidence=Evidence("file", f"{value}")
    )


@pytest.mark.parametrize(
    ("now", "before", "found"),
    [
        (0, None, False),
        (1001, None, True),  # of 100,000 s since boot
        (999, None, False),
        (1001, 1000, False),  # long ago
        (1007, 1000, True),  # of the last 600 s
        (5, 1000, False),  # counted anew
    ],
)
def test_a_package_that_is_held_back(now: float, before: float | None, found: bool) -> None:
    past = (seen("package0", "throttle_time", before, 600),) if before is not None else ()
    assert summaries(METAL, XEON, seen("package0", "throttle_time", now), past=past) == (
        [("cpu-throttled", "package0", "warning")] if found else []
    )


def test_a_machine_that_just_booted_is_hot_for_a_moment() -> None:
    assert summaries(replace(METAL, booted=NOW - 300), XEON, seen("package0", "throttle_time", 59)) == []


ERRORS = "host-memory-errors"


@pytest.mark.parametrize(
    ("corrected", "uncorrected", "before", "expected"),
    [
        (0, 0, None, []),
        (0, 1, None, [(ERRORS, "mc0", "critical")]),
        (60, 0, None, [(ERRORS, "mc0", "warning")]),  # in a day and four hours
        (49, 0, None, []),
        (1060, 0, 1000, [(ERRORS, "mc0", "warning")]),
        (1040, 0, 1000, []),
        (60, 0, 1000, []),
    ],
)
def test_errors_of_memory(
    corrected: int, uncorrected: int, before: int | None, expected: list[tuple[str, str, str]]
) -> None:
    past = (seen("mc0", "ce_count", before, 3600),) if before is not None else ()
    counts = (seen("mc0", "ce_count", corrected), seen("mc0", "ue_count", uncorrected), seen("mc1", "ue_count", 0))
    assert summaries(METAL, *counts, past=past) == expected


def test_counters_that_were_refused_are_gaps() -> None:
    lost = NotChecked(what="Node.edac", subject="mc0", reason=Reason.PERMISSION, detail="Permission denied")
    hot = NotChecked(
        what="Package.throttle_time", subject="package0", reason=Reason.PERMISSION, detail="Permission denied"
    )
    checks = report(METAL, XEON, lost, hot).checks
    assert (checks[ERRORS], checks["cpu-throttled"]) == (False, False)
    assert report(METAL, XEON).checks.keys().isdisjoint((ERRORS, "cpu-throttled"))


def test_the_place_of_a_gpu() -> None:
    card = gpu(GPU_1, "pci0000:00", slot="5")
    snapshot = assemble((card, Gpu(key="gpu0", address=GPU_1, module_id=3)), Site(), NOW)
    assert location(card, snapshot) == {"slot": "5", "label": None, "module_id": 3}
    assert location(replace(card, key=GPU_2, slot=None), snapshot) == {}
    assert location(card) == {"slot": "5", "label": None}


@given(st.dictionaries(st.sampled_from(sorted(settings())), st.none() | st.text(max_size=20) | st.text("0123, DMA-FQ")))
def test_any_values(known: dict[str, str | None]) -> None:
    """An absent value is neither a fault nor ok, and a rule accepts any value."""
    for context in ("host", "job"):
        seen = report(*FULL, *values(**known), context=context)
        evaluated = {settings()[name].code for name, value in known.items() if value is not None}
        assert {one.code for one in seen.findings if one.code in CODES} <= evaluated
