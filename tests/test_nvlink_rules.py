"""NVLinks, their fabric, its switches and manager, and peers: healthy machines that look odd, and what is broken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.assemble import assemble
from linkgauge.models.catalog.gpus import products
from linkgauge.models.facts import Node, Pci, Service
from linkgauge.models.gpu_facts import Driver, Gpu, GpuLink, GpuPair
from linkgauge.models.judge import judge
from linkgauge.models.report import Context, Finding, Report
from linkgauge.models.said import Evidence, Fact, NotChecked, Observation, Said
from linkgauge.models.site import Site

NOW = 2e9
HERE = Evidence("here", "x")
MINE = {
    "nvlink-inactive",
    "nvlink-errors",
    "nvlink-fabric-incomplete",
    "fabric-manager-down",
    "nvswitch-error",
    "imex-not-ready",
    "p2p-disabled",
    "driver-mismatch",
}
BARE = Node(key="node", virtual=False, booted=NOW - 86400, container="")
GUEST = replace(BARE, virtual=True)
H100, H200, A100, V100, B200, GB200, GH200 = 0x2330, 0x2335, 0x20B2, 0x1DB5, 0x2901, 0x2941, 0x2342
A100_PCIE, H100_NVL, RTX_3090, T4 = 0x20F1, 0x2321, 0x2204, 0x1EB8
SWITCHES = {A100: (0x1AF1, 6), H100: (0x22A3, 4), H200: (0x22A3, 4)}
MANAGER = "nvidia-fabricmanager"


def report_of(said: Iterable[Said], past: Iterable[Observation] = (), context: Context = "host") -> Report:
    return judge(replace(assemble(said, Site(), NOW, past=past), context=context))


def findings(said: Iterable[Said], past: Iterable[Observation] = (), context: Context = "host") -> list[Finding]:
    return [one for one in report_of(said, past, context).findings if one.code in MINE]


def told(said: Iterable[Said], **more: Any) -> list[tuple[str, str, str]]:
    return [(one.code, one.subject, one.severity) for one in findings(said, **more)]


def address(gpu: int) -> str:
    return f"0000:{0x10 + gpu:02x}:00.0"


def switch(number: int) -> str:
    return f"0000:{0xD0 + number:02x}:00.0"


def function(gpu: int, device: int) -> Pci:
    return Pci(
        key=address(gpu),
        parent=f"pci0000:{0x10 + gpu:02x}",
        pci_class=0x030200,
        vendor=0x10DE,
        device=device,
        driver="nvidia",
        lost=False,
    )


def links_of(device: int) -> int:
    return next(one.links for one in products() if f"10de:{device:04x}" in one.ids)


def machine(device: int, count: int = 8, node: Node = BARE, hidden: bool = False, **fields: Any) -> list[Said]:
    """A healthy machine whose GPUs hang on switches; `fields` are of each GPU. Its switches may be hidden."""
    number, switches = SWITCHES.get(device, (0, 0))
    hidden = hidden or not switches
    said: list[Said] = [node]
    for one in range(0 if hidden else switches):
        said.append(Pci(key=switch(one), parent="pci0000:d0", pci_class=0x068000, vendor=0x10DE, device=number))
    usual: dict[str, Any] = {"nvlinks": links_of(device)}
    if device not in (A100, V100):
        usual |= {"fabric_state": "completed", "fabric_status": "Success"}
    for gpu in range(count):
        cites = dict.fromkeys(("nvlinks", "fabric_state", "fabric_status", "fabric_faults"), HERE)
        said.append(function(gpu, device))
        said.append(Gpu(key=f"gpu{gpu}", name=f"{device:x}", address=address(gpu), cites=cites, **{**usual, **fields}))
        for link in range(links_of(device)):
            remote = None if hidden else switch(link % switches)
            said.append(nvlink(gpu, link, remote=remote, remote_kind="switch"))
    return said


def nvlink(gpu: int, number: int, **fields: Any) -> GpuLink:
    told: dict[str, Any] = {
        "gpu": f"gpu{gpu}",
        "kind": "nvlink",
        "active": True,
        "cites": {"active": HERE, "remote": HERE},
    }
    return GpuLink(key=f"gpu{gpu}/nvlink{number}", **{**told, **fields})


def cards(device: int, active: Iterable[int], node: Node = BARE) -> list[Said]:
    """PCIe cards with so many active NVLinks over bridges; nothing said link by link."""
    said: list[Said] = [node]
    for gpu, links in enumerate(active):
        said += [function(gpu, device), Gpu(key=f"gpu{gpu}", name=f"{device:x}", address=address(gpu), nvlinks=links)]
    return said


def but(said: Iterable[Said], key: str, **fields: Any) -> list[Said]:
    """The same, with fields of the fact of that key changed."""
    return [replace(one, **fields) if isinstance(one, Fact) and one.key == key else one for one in said]


def cut(said: Iterable[Said], gpu: int, *numbers: int) -> list[Said]:
    """The same, with NVLinks of a GPU inactive: such a one shows no other end."""
    said = list(said)
    for number in numbers:
        said = but(said, f"gpu{gpu}/nvlink{number}", active=False, remote=None, remote_kind=None)
    up = sum(1 for one in said if isinstance(one, GpuLink) and one.gpu == f"gpu{gpu}" and one.active)
    return but(said, f"gpu{gpu}", nvlinks=up)


def pairs(count: int, **fields: str) -> list[GpuPair]:
    usual: dict[str, Any] = {"read": "ok", "write": "ok", "nvlink": "ok", "path": "SYS", **fields}
    return [GpuPair(key=f"gpu{a}-gpu{b}", a=f"gpu{a}", b=f"gpu{b}", **usual) for b in range(count) for a in range(b)]


def service(name: str, running: bool, version: str | None = None) -> Service:
    return Service(key=name, running=running, version=version, cites={"running": HERE, "version": HERE})


HEALTHY = {
    "8 H100": machine(H100),
    "8 H100 in a container": machine(H100, hidden=True),
    "8 H100 with peers": [*machine(H100), *pairs(8)],
    "8 A100": [*machine(A100), service(MANAGER, True, "1"), Driver(key="nvidia", version="1")],
    "8 B200 without a manager that systemd knows": [*machine(B200), service(MANAGER, False)],
    "4 GB200": [*machine(GB200, 4, fabric_cluster="c1", fabric_faults=()), service(MANAGER, False)],
    "one GH200": machine(GH200, 1, nvlinks=0, fabric_state="not supported", fabric_status=None),
    "one H100 of eight": machine(H100, 1, GUEST, hidden=True, nvlinks=0, fabric_state="not supported"),
    "4 A100 in pairs": [*cards(A100_PCIE, [12, 12, 12, 12]), *pairs(4, nvlink="not supported")],
    "2 A100 without a bridge": cards(A100_PCIE, [0, 0]),
    "a bridge on two of four": cards(H100_NVL, [12, 12, 0, 0]),
    "2 RTX without peers": [*cards(RTX_3090, [0, 0]), *pairs(2, read="chipset not supported", nvlink="not supported")],
    "MIG": machine(H100, mig=True, nvlinks=0, fabric_state="not started"),
    "T4 in a guest": [*cards(T4, [0, 0], GUEST), *pairs(2, read="chipset not supported", path="PHB")],
    "cards that no catalog knows": cards(0x1234, [0, 0, 2, 2]),
    "three of them, of which two have a bridge": cards(0x1234, [2, 2, 0]),
    "sockets": [*cards(T4, [0, 0]), *pairs(2, read="topology not supported", nvlink="not supported")],
}


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_machines_are_told_nothing(name: str) -> None:
    assert told(HEALTHY[name]) == []


def test_hosts_without_the_service_are_told_that_nothing_is_known() -> None:
    """The manager may run in a container of its own, and an A100's driver says nothing of its fabric."""
    assert told([*machine(A100), service(MANAGER, False)]) == [("fabric-manager-down", MANAGER, "info")]


def test_one_link_of_eighteen() -> None:
    (finding,) = findings(cut(machine(H100), 3, 7))
    assert finding.evidence == (HERE, HERE)
    assert finding.expected_source is not None
    assert finding.expected_source.startswith("H100 SXM5 80GB has 18 NVLinks (")
    assert replace(finding, evidence=(), expected_source=None, remedy=None, impact={}) == Finding(
        code="nvlink-inactive",
        severity="critical",
        subject=address(3),
        subject_name="GPU gpu3",
        message="GPU gpu3 has 1 of 18 NVLinks inactive: link 7; 25.0 GB/s of 450.0 GB/s each way are lost",
        expected=18,
        observed=17,
        unit="links",
        basis="capability",
        cause="the link did not train, or was shut down after errors: the GPU, the board, or the other end",
        limits={"gpu3/nvlink7": 0.0},
    )
    slower = pytest.approx(18 / 17, abs=1e-3)
    assert finding.impact == {"all_reduce": slower, "alltoall": slower}


def test_a_gpu_that_lost_all_its_links_is_one_finding() -> None:
    """That it has not joined its fabric follows."""
    dark = but(cut(machine(B200), 4, *range(18)), "gpu4", fabric_state="in progress", fabric_status=None)
    (finding,) = findings(dark)
    assert (finding.code, finding.severity, finding.subject, finding.observed) == (
        "nvlink-inactive",
        "critical",
        address(4),
        0,
    )
    assert finding.explains == (f"nvlink-fabric-incomplete:{address(4)}",)
    assert finding.cause is not None
    assert finding.cause.startswith("it is cut off from its switches")


def test_a_switch_that_all_gpus_lost() -> None:
    said = machine(H100, 4)
    for gpu in range(4):
        said = cut(said, gpu, 2, 6, 10, 14)
    found = findings(said)
    assert [one.observed for one in found] == [14, 14, 14, 14]
    assert found[0].cause == (
        f"all its links to NVSwitch {switch(2)} are gone, as are those of gpu1, gpu2, gpu3: the switch itself"
    )
    assert findings(cut(machine(H100), 0, 2, 6, 10, 14))[0].cause == f"all its links to NVSwitch {switch(2)} are gone"


def test_ports_that_a_card_never_uses_are_not_named() -> None:
    """An H100 NVL shows 18 links, of which 12 go to its bridges."""
    said = cards(H100_NVL, [12, 10])
    used = [number for number in range(18) if number % 6 < 4]
    links = [nvlink(gpu, n, active=n in used and (gpu, n) not in {(1, 0), (1, 1)}) for gpu in (0, 1) for n in range(18)]
    (finding,) = findings([*said, *links])
    assert (finding.severity, finding.expected, finding.observed) == ("critical", 12, 10)
    assert "2 of 12 NVLinks inactive: links 0, 1;" in finding.message


@pytest.mark.parametrize(
    ("said", "severity", "subjects"),
    [
        (cards(A100_PCIE, [12, 12, 8, 12]), "critical", [2]),
        (cards(A100_PCIE, [8, 8, 0, 0]), "warning", [0, 1]),  # two bridges of three, perhaps on purpose
        (cards(0x1234, [4, 4, 4, 3]), "warning", [3]),
        (cards(V100, [4, 4, 5, 5], GUEST), "info", [0, 1, 2, 3]),  # half a board: the other half is another guest's
        (cards(V100, [2, 2], GUEST), "info", [0, 1]),
        (cards(V100, [4, 4, 5, 5]), "critical", [0, 1, 2, 3]),
        (cards(V100, [0, 0], GUEST), "warning", [0, 1]),
        (machine(A100, 2, GUEST, nvlinks=10), "warning", [0, 1]),  # its switches are there
        (machine(H100, 4, GUEST, hidden=True, nvlinks=17), "warning", [0, 1, 2, 3]),
        (cards(V100, [6, 6, 6, 4], GUEST), "critical", [3]),
        (cards(V100, [4]), "critical", [0]),
        (machine(H200, 8, GUEST, nvlinks=17), "critical", list(range(8))),
        (machine(H100, hidden=True, nvlinks=0), "critical", list(range(8))),
    ],
)
def test_fewer_links_than_there_should_be(said: list[Said], severity: str, subjects: list[int]) -> None:
    expected = [("nvlink-inactive", address(gpu), severity) for gpu in subjects]
    assert told(said) == expected


def test_links_that_nobody_could_count_are_never_ok() -> None:
    refused = NotChecked(what="Gpu.nvlinks", subject="gpu3", why="NVML: Unknown Error")
    report = report_of([*but(machine(H100), "gpu3", nvlinks=None), refused])
    assert report.checks["nvlink-inactive"] is False
    assert report.verdict == "unknown"
    assert [one for one in report.findings if one.code in MINE] == []
    other = report_of([*cards(T4, [0, 0]), replace(refused, subject="gpu1")])
    assert "nvlink-inactive" not in other.checks  # a T4 has none


@given(device=st.sampled_from([A100, H100, H200, V100, B200, GB200]), lost=st.integers(0, 17), gpu=st.integers(0, 3))
def test_a_further_link_lost_never_makes_it_better(device: int, lost: int, gpu: int) -> None:
    grave = {None: 0, "info": 1, "warning": 2, "critical": 3}
    total = links_of(device)
    lost = min(lost, total - 1)

    def severity(count: int) -> int:
        found = findings(cut(machine(device, 4), gpu, *range(count)))
        assert {one.subject for one in found} <= {address(gpu)}
        return max((grave[one.severity] for one in found), default=0)

    assert severity(lost) <= severity(lost + 1)
    assert severity(lost + 1) == 3


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["nvlinks", "fabric_state", "fabric_status", "fabric_faults", "name", "address", "mig"]),
            st.integers(0, 7),
        ),
        max_size=6,
    )
)
def test_what_was_not_said_is_no_finding(unsaid: list[tuple[str, int]]) -> None:
    said = [*machine(H100), *pairs(8)]
    for field, gpu in unsaid:
        said = but(said, f"gpu{gpu}", **{field: None})
    assert told(said) == []


def counter(about: str, quantity: str, value: float, at: float = NOW) -> Observation:
    unit = "ratio" if quantity.endswith("ber") else "count"
    return Observation(
        about=about, quantity=quantity, unit=unit, value=value, at=at, evidence=Evidence("nvml", f"{value}")
    )


def test_recoveries_that_go_on() -> None:
    past = [counter("gpu3", "nvlink_recovery", 2, NOW - 60), counter("gpu3/nvlink4", "nvlink_recovery", 2, NOW - 60)]
    now = [
        counter("gpu3", "nvlink_recovery", 5),
        counter("gpu3/nvlink4", "nvlink_recovery", 2),
        counter("gpu3/nvlink7", "nvlink_recovery", 3),
        counter("gpu2", "nvlink_recovery", 0),
    ]
    (finding,) = findings([*machine(H100), *now], past)
    assert replace(finding, remedy=None) == Finding(
        code="nvlink-errors",
        severity="warning",
        subject=address(3),
        subject_name="GPU gpu3",
        message="GPU gpu3: 3 link recoveries in 60 s on link 7",
        observed=3,
        unit="count",
        cause="the signal of these links: the seating of the GPU, a bridge or cable, or the other end",
        evidence=(Evidence("nvml", "2"), Evidence("nvml", "5")),
    )
    assert told([*machine(H100), *past]) == []  # two in a day


@pytest.mark.parametrize(
    ("quantity", "value", "before", "found"),
    [
        ("nvlink_replay", 5, 5, False),
        ("nvlink_replay", 3, 5, False),  # counted anew since a reset
        ("nvlink_replay", 6, 5, True),
        ("nvlink_crc", 500, 0, False),  # 8 a second
        ("nvlink_crc", 60_000, 0, True),
        ("nvlink_symbol_errors", 1, 0, True),
        ("nvlink_recovery", 7, None, False),  # since boot, a day ago
        ("nvlink_recovery", 24, None, False),
        ("nvlink_recovery", 25, None, True),
        ("nvlink_crc", 1e6, None, False),
        ("nvlink_crc", 1e7, None, True),
        ("nvlink_recovery", 0, None, False),
    ],
)
def test_when_counters_are_too_high(quantity: str, value: float, before: float | None, found: bool) -> None:
    past = [] if before is None else [counter("gpu0", quantity, before, NOW - 60)]
    expected = [("nvlink-errors", address(0), "warning")] if found else []
    assert told([*machine(B200), counter("gpu0", quantity, value)], past=past) == expected


def test_bit_errors_that_are_left_behind_error_correction() -> None:
    good = [counter("gpu0/nvlink3", "nvlink_effective_ber", 1.5e-254), counter("gpu0/nvlink3", "nvlink_raw_ber", 1e-7)]
    assert told([*machine(B200), *good]) == []
    (finding,) = findings([*machine(B200), *good, counter("gpu0/nvlink5", "nvlink_effective_ber", 2e-12)])
    assert finding.message == "GPU gpu0: an effective bit error rate of 2.0e-12 on link 5, above 1e-12"
    report = report_of(machine(B200))
    assert "nvlink-errors" not in report.checks  # nobody counted
    unsaid = NotChecked(what="Gpu.nvlink_errors", subject="gpu3", why="Unknown Error")
    assert report_of([*machine(B200), *good, unsaid]).checks["nvlink-errors"] is False


@pytest.mark.parametrize(
    ("fields", "severity", "words"),
    [
        ({"fabric_state": "in progress"}, "critical", "state in progress, it waits for the fabric manager"),
        ({"fabric_state": "not started"}, "critical", "state not started"),
        ({"fabric_state": "not supported"}, "critical", "its driver found no NVSwitch"),
        ({"fabric_status": "Insufficient Resources"}, "critical", "state completed, status Insufficient Resources"),
        ({"fabric_faults": ("degraded bandwidth",)}, "critical", "not healthy: degraded bandwidth"),
        ({"fabric_faults": ("route recovery",)}, "warning", "not healthy: route recovery"),
        ({"fabric_faults": ()}, None, ""),
    ],
)
def test_a_gpu_that_is_not_in_its_fabric(fields: dict[str, object], severity: str | None, words: str) -> None:
    found = findings(but(machine(H100), "gpu5", **fields))
    assert [(one.code, one.subject, one.severity) for one in found] == (
        [("nvlink-fabric-incomplete", address(5), severity)] if severity else []
    )
    assert all(words in one.message and one.evidence for one in found)


def test_where_not_supported_is_normal_and_where_it_is_not() -> None:
    """A driver joins no fabric where it sees no switch: boards of four whose GPUs are joined directly have none."""
    plain: dict[str, Any] = {"fabric_state": "not supported", "fabric_status": None}
    tray = [("nvlink-fabric-incomplete", address(gpu), "critical") for gpu in range(4)]
    assert told(machine(GB200, 4, **plain)) == tray
    mesh = [one for one in machine(H100, 4, hidden=True, **plain) if not isinstance(one, GpuLink)]
    assert told(mesh) == []
    assert told([*mesh, *(nvlink(gpu, n, remote_kind="gpu") for gpu in range(4) for n in range(18))]) == []
    assert len(told(machine(H200, 8, hidden=True, **plain))) == 8
    named = [Gpu(key="gpu0", fabric_state="completed", fabric_status="Insufficient Resources")]  # a dump's excerpt
    assert told(named) == [("nvlink-fabric-incomplete", "gpu0", "critical")]


def test_a_fabric_takes_its_time_after_boot() -> None:
    young = replace(BARE, booted=NOW - 120)
    assert {one[2] for one in told(machine(H100, node=young, fabric_state="in progress"))} == {"warning"}


def test_a_manager_that_does_not_run_is_one_finding() -> None:
    said = machine(H100, fabric_state="in progress", fabric_status=None)
    assert len(told(said)) == 8
    (finding,) = findings([*said, service(MANAGER, False, "550.1"), Driver(key="nvidia", version="550.1")])
    assert replace(finding, remedy=None) == Finding(
        code="fabric-manager-down",
        severity="critical",
        subject=MANAGER,
        message=f"the service {MANAGER} does not run, and 8 of 8 GPUs have not joined their NVLink fabric "
        "(in progress)",
        expected="running",
        observed="not running",
        cause="it was not started, or it failed: its journal says why",
        explains=tuple(f"nvlink-fabric-incomplete:{address(gpu)}" for gpu in range(8)),
        evidence=(HERE,) * 9,
    )
    (finding,) = findings([*said, service(MANAGER, False, "550.1"), Driver(key="nvidia", version="550.2")])
    assert finding.cause == "the fabric manager is version 550.1, the driver 550.2: they must be the same"
    running = told([*said, service(MANAGER, True)])
    assert {one[0] for one in running} == {"nvlink-fabric-incomplete"}


def test_links_of_an_a100_that_its_manager_did_not_bring_up() -> None:
    said = machine(A100)
    for gpu in range(8):
        said = cut(said, gpu, *range(12))
    assert {one[0] for one in told(said)} == {"nvlink-inactive"}
    (finding,) = findings([*said, service(MANAGER, False)])
    assert (finding.code, finding.severity, finding.confidence) == ("fabric-manager-down", "critical", "likely")
    assert finding.message == f"the service {MANAGER} does not run, and no NVLink of 8 of 8 GPUs is up"
    assert finding.explains == tuple(f"nvlink-inactive:{address(gpu)}" for gpu in range(8))


def test_managers_that_are_not_of_this_node() -> None:
    """Of a rack it runs on the switch trays, of a guest without switches on its host; RTX cards need none."""
    for said in (
        machine(GB200, 4, fabric_state="in progress"),
        machine(H100, node=GUEST, hidden=True, fabric_state="in progress"),
    ):
        assert {one[0] for one in told([*said, service(MANAGER, False)])} == {"nvlink-fabric-incomplete"}
    other = [service(MANAGER, False, "1"), Driver(key="nvidia", version="2")]
    assert told([*cards(RTX_3090, [0, 0]), *other]) == []


def test_a_manager_of_another_version_than_the_driver() -> None:
    said = [*machine(A100), service(MANAGER, True, "535.1"), Driver(key="nvidia", version="535.2")]
    assert told(said) == [("driver-mismatch", MANAGER, "warning")]


@pytest.mark.parametrize(("context", "severity"), [("host", "info"), ("job", "critical")])
def test_memory_exchange(context: Context, severity: str) -> None:
    said = [*machine(GB200, 4, fabric_cluster="c1"), service("nvidia-imex", False)]
    assert told(said, context=context) == [("imex-not-ready", "nvidia-imex", severity)]
    assert told([*machine(GB200, 4, fabric_cluster="c1"), service("nvidia-imex", True)]) == []
    assert told([*machine(B200, fabric_cluster="c1"), service("nvidia-imex", False)]) == []


def test_switches_that_are_missing() -> None:
    gone = [one for one in machine(H100) if getattr(one, "key", None) != switch(3)]
    (finding,) = findings(gone)
    assert (finding.code, finding.subject, finding.severity) == ("nvswitch-error", switch(3), "critical")
    assert finding.message == f"NVSwitch {switch(3)} is not on the bus, and 32 NVLinks lead to it"
    uncounted = [one for one in gone if not isinstance(one, GpuLink)]
    (finding,) = findings(uncounted)
    assert (finding.subject, finding.expected, finding.observed, finding.basis) == ("node", 4, 3, "capability")
    assert told(but(gone, "node", virtual=True)) == []  # a guest was given a part
    assert told(but(gone, "node", container="docker")) == []
    fell = but(machine(H100), switch(3), lost=True)
    assert told(fell) == [("nvswitch-error", switch(3), "critical")]


def test_peers_that_a_setting_forbids_are_one_finding() -> None:
    (finding,) = findings([*cards(A100_PCIE, [0] * 8), *pairs(8, read="disabled by registry")])
    assert replace(finding, remedy=None) == Finding(
        code="p2p-disabled",
        severity="critical",
        subject="node",
        subject_name="gpu0-gpu1, gpu0-gpu2, gpu1-gpu2, gpu0-gpu3 and 24 more",
        message="peer access is disabled by a setting of the driver (registry key): 28 of 28 pairs of GPUs "
        "(gpu0-gpu1, gpu0-gpu2, gpu1-gpu2, gpu0-gpu3 and 24 more)",
        expected="ok",
        observed="disabled by registry",
        cause="NVreg_RegistryDwords or another option of the nvidia module, in /etc/modprobe.d",
        evidence=(Evidence("gpu0-gpu1 read", "disabled by registry"),),
    )


def test_nvlink_that_joins_and_cannot_be_used() -> None:
    said = [*machine(H100), *but(pairs(8), "gpu2-gpu5", nvlink="not supported")]
    assert told(said) == [("p2p-disabled", "gpu2-gpu5", "critical")]
    alone = [replace(one, nvlink="not supported") if "gpu3" in one.key else one for one in pairs(8)]
    assert told([*machine(H100), *alone]) == [("p2p-disabled", "gpu3", "critical")]
    lost = cut(machine(H100), 3, *range(18))
    assert [one[0] for one in told([*lost, *alone])] == ["nvlink-inactive"]  # which says enough
    bridged = [
        *cards(A100_PCIE, [12, 12]),
        nvlink(0, 0, remote=address(1), remote_kind="gpu"),
        *pairs(2, nvlink="not supported"),
    ]
    assert told(bridged) == [("p2p-disabled", "gpu0-gpu1", "critical")]


def test_peers_over_pcie() -> None:
    below = pairs(2, read="chipset not supported", nvlink="not supported", path="PIX")
    assert told([*cards(T4, [0, 0]), *below]) == [("p2p-disabled", "gpu0-gpu1", "warning")]
    assert told([*cards(T4, [0, 0], GUEST), *below]) == []
    assert told([*cards(RTX_3090, [0, 0]), *below]) == []
    odd = [replace(one, read="not supported") if "gpu3" in one.key else one for one in pairs(6, nvlink="not supported")]
    assert told([*cards(T4, [0] * 6), *odd]) == [("p2p-disabled", "gpu3", "warning")]


def test_a_driver_that_nobody_asked_is_a_gap() -> None:
    def gaps(*said: Said) -> list[str]:
        return [one.what for one in report_of([BARE, *said]).not_checked]

    assert gaps(function(0, H100)) == ["Gpu"]
    assert gaps(function(0, H100), Driver(key="nvidia", failure="no answer within 5 s")) == []
    assert gaps(function(0, H100), Gpu(key="gpu0", address=address(0))) == []
    assert gaps(replace(function(0, H100), driver="vfio-pci")) == []
    refused = NotChecked(what="Gpu", subject="node", why="pynvml is not installed")
    assert gaps(function(0, H100), refused) == ["Gpu"]
