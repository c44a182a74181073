"""The answers of the driver of a described node about its GPUs."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.gpu import Driver, Gpu, GpuLink, GpuPair
from linkgauge.models.facts.machine import Service
from linkgauge.models.facts.merge import merge
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Observation, Record
from linkgauge.probes.capture.anonymize import scrub
from linkgauge.probes.host.recorded import Recorded, dump, parse
from linkgauge.probes.pcie.bars import read_pci_windows
from linkgauge.probes.synthetic.build import build
from linkgauge.probes.system.services import read_services
from tests.support.nodes.described import EACH, node

SMALL = """
[cpu]
cores = 1
threads = 1
[[root]]
bus = [0x50]
numa = 0
ports = ["a100-pcie", "a100-pcie"]
"""
# gpu2 of hgx-h100.
AT_REST = Gpu(
    key="gpu2",
    name="NVIDIA H100 80GB HBM3",
    uuid="GPU-00000000-0000-4000-8000-000000000003",
    address="0000:3b:00.0",
    board_part="692-2G520-0200-000",
    module_id=3,
    vbios="96.00.A5.00.01",
    recovery="none",
    virtualization="none",
    pcie_speed=32e9,
    pcie_width=16,
    pcie_max_speed=32e9,
    pcie_max_width=16,
    pcie_own_max_speed=32e9,
    performance_state=0,
    clock=345e6,
    clock_max=1980e6,
    memory_clock=2619e6,
    memory_clock_max=2619e6,
    application_clock=1980e6,
    application_clock_default=1980e6,
    clock_reasons=("idle",),
    power=70.0,
    power_limit=700.0,
    power_limit_default=700.0,
    temperature=34.0,
    memory=80 << 30,
    memory_used=1 << 20,
    bar1=128 << 30,
    ecc=True,
    ecc_pending=True,
    ecc_corrected=0,
    ecc_uncorrected=0,
    ecc_corrected_lifetime=0,
    ecc_uncorrected_lifetime=0,
    sram_threshold=False,
    remapped_correctable=0,
    remapped_uncorrectable=0,
    remap_pending=False,
    remap_failed=False,
    nvlinks=18,
    nvlinks_present=18,
    nvlink_rate=25e9,
    fabric_state="completed",
    fabric_status="Success",
    fabric_clique=0,
    mig=False,
    mig_instances=0,
    persistence=True,
    compute_mode="default",
    processes=0,
    cpus=(*range(56), *range(112, 168)),
    numa=0,
)


def state(machine: Recorded) -> list[Record]:
    return list(machine.call("nvml", deadline=1))


def wiring(machine: Recorded) -> list[Record]:
    return list(machine.call("nvml_wiring", deadline=1))


def facts(machine: Recorded, kind: type[Fact]) -> dict[str, Fact]:
    both = (*state(machine), *wiring(machine))
    merged, conflicts = merge(one for one in both if isinstance(one, Fact))
    assert conflicts == ()
    return dict(merged.get(kind, {}))


def gpu(machine: Recorded, key: str) -> Gpu:
    found = facts(machine, Gpu)[key]
    assert isinstance(found, Gpu)
    return found


def observed(machine: Recorded) -> dict[tuple[object, str], float]:
    return {(one.about, one.quantity): one.value for one in state(machine) if isinstance(one, Observation)}


def test_a_gpu_at_rest_is_described_whole() -> None:
    assert gpu(node("hgx-h100"), "gpu2") == AT_REST


def test_what_a_gpu_does_not_have_is_not_said() -> None:
    said = gpu(node("desktop"), "gpu0")
    absent = {"ecc", "application_clock", "mig", "nvlinks", "fabric_state", "remap_pending", "module_id", "c2c_links"}
    assert {name for name in absent if getattr(said, name) is not None} == set()
    guest = gpu(node("vgpu"), "gpu0")
    assert (guest.virtualization, guest.power, guest.temperature, guest.pcie_width) == ("vGPU", None, None, None)
    assert {name for _, name in observed(node("vgpu"))} == {"ecc_corrected", "ecc_uncorrected", "processes"}


def test_the_driver_says_its_versions_and_how_many_it_lists() -> None:
    driver = Driver(key="nvidia", library="570.124.06", nvml="12.570.124.06", cuda="12.8", gpus=1)
    assert facts(node("container"), Driver) == {"nvidia": driver}
    assert node("container").read("sys/module/nvidia/version") == "570.124.06"
    assert gpu(node("container"), "gpu0").address == "0000:3d:00.0"
    assert gpu(node("container"), "gpu0").module_id == 4


@pytest.mark.parametrize(
    ("name", "links"),
    [
        (
            "hgx-h100",
            {
                ("switch", "0000:d9:00.0"): 40,
                ("switch", "0000:da:00.0"): 40,
                ("switch", "0000:db:00.0"): 32,
                ("switch", "0000:dc:00.0"): 32,
            },
        ),
        ("hgx-a100", {("switch", f"0000:c{bus}:00.0"): 16 for bus in range(1, 7)}),
        ("hgx-b200", {("switch", None): 144}),
        ("vm-h100", {("switch", None): 144}),
        ("gb200-tray", {("switch", None): 72, ("cpu", None): 20}),
        ("gh200", {(None, None): 18, ("cpu", None): 10}),
        (
            "a100-pcie",
            {("gpu", address): 12 for address in ("0000:21:00.0", "0000:22:00.0", "0000:a1:00.0", "0000:a2:00.0")},
        ),
        ("a100-pcie-bare", {(None, None): 24}),
        (
            "gh200-quad",
            {
                ("gpu", "0009:01:00.0"): 18,
                ("gpu", "0019:01:00.0"): 18,
                ("gpu", "0029:01:00.0"): 18,
                ("gpu", "0039:01:00.0"): 18,
                ("cpu", None): 40,
            },
        ),
        ("perlmutter", {("gpu", f"0000:{bus}:00.0"): 12 for bus in ("03", "41", "82", "c1")}),
        (
            "p5-tree",
            {
                ("switch", "0000:cf:00.0"): 40,
                ("switch", "0000:d0:00.0"): 40,
                ("switch", "0000:d1:00.0"): 32,
                ("switch", "0000:d2:00.0"): 32,
            },
        ),
        ("p5-slice", {(None, None): 18}),
        ("rtx4090-pair", {}),
    ],
)
def test_links_lead_where_the_machine_is_joined(name: str, links: dict[tuple[str | None, str | None], int]) -> None:
    said = facts(node(name), GpuLink).values()
    assert Counter((link.remote_kind, link.remote) for link in said if isinstance(link, GpuLink)) == links
    active = Counter(link.gpu for link in said if isinstance(link, GpuLink) and link.active and link.kind == "nvlink")
    gpus = facts(node(name), Gpu).values()
    assert {one.key: one.nvlinks or 0 for one in gpus if isinstance(one, Gpu)} == {
        one.key: active[one.key] for one in gpus
    }


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("hgx-h100", {("ok", "ok", "PIX"): 4, ("ok", "ok", "NODE"): 8, ("ok", "ok", "SYS"): 16}),
        ("vm-h100", {("ok", "ok", "PHB"): 12, ("ok", "ok", "SYS"): 16}),
        (
            "h100-mig",
            {
                ("not supported", "not supported", "PIX"): 4,
                ("not supported", "not supported", "NODE"): 8,
                ("not supported", "not supported", "SYS"): 16,
            },
        ),
        ("a100-pcie", {("ok", "ok", "PHB"): 2, ("ok", "not supported", "SYS"): 4}),
        ("rtx4090-pair", {("chipset not supported", "not supported", "NODE"): 1}),
        ("gb200-tray", {("ok", "ok", "NODE"): 2, ("ok", "ok", "SYS"): 4}),
        ("gh200-quad", {("ok", "ok", "SYS"): 6}),
        ("perlmutter", {("ok", "ok", "SYS"): 6}),
        ("t4", {}),
    ],
)
def test_pairs_reach_each_other_as_the_machine_is_built(name: str, pairs: dict[tuple[str, str, str], int]) -> None:
    said = facts(node(name), GpuPair).values()
    assert Counter((pair.read, pair.nvlink, pair.path) for pair in said if isinstance(pair, GpuPair)) == pairs


def test_fields_links_and_counters_can_be_changed() -> None:
    machine = build(f"""{SMALL}
[gpu.every]
compute_mode = "prohibited"
[device.gpu0]
peers = ["gpu1"]
inactive = [7, 11]
gpu = {{clock_reasons = ["software power cap"], clock = 900_000_000, temperature = 70, ecc_corrected = 5}}
counters = {{pcie_replay = 2, "nvlink3.nvlink_crc" = 4, nvlink_crc = 1}}
""")
    said = gpu(machine, "gpu0")
    assert (said.clock_reasons, said.clock, said.temperature) == (("software power cap",), 900e6, 70.0)
    assert (said.nvlinks, said.nvlinks_present, said.compute_mode) == (10, 12, "prohibited")
    assert (gpu(machine, "gpu1").nvlinks, gpu(machine, "gpu1").compute_mode) == (12, "prohibited")
    assert facts(machine, GpuLink)["gpu0/nvlink7"] == GpuLink(
        key="gpu0/nvlink7", gpu="gpu0", kind="nvlink", active=False
    )
    assert facts(machine, GpuLink)["gpu0/nvlink8"] == GpuLink(
        key="gpu0/nvlink8",
        gpu="gpu0",
        kind="nvlink",
        active=True,
        version=3,
        speed=25e9,
        remote="0000:52:00.0",
        remote_kind="gpu",
    )
    assert {about: value for about, value in observed(machine).items() if value} == {
        ("gpu0", "pcie_replay"): 2,
        ("gpu0", "nvlink_crc"): 5,
        ("gpu0/nvlink3", "nvlink_crc"): 4,
        ("gpu0", "ecc_corrected"): 5,
    }


def test_zeros_are_counted_too_and_blackwell_counts_others() -> None:
    always = {
        "processes",
        "pcie_replay",
        "ecc_corrected",
        "ecc_uncorrected",
        "clocks_sw_power",
        "clocks_sw_thermal",
        "clocks_hw_thermal",
        "clocks_hw_power_brake",
    }
    hopper, blackwell = observed(node("hgx-h100")), observed(node("hgx-b200"))
    assert {name for about, name in hopper if about == "gpu0"} == always | {
        "nvlink_replay",
        "nvlink_recovery",
        "nvlink_crc",
    }
    assert {name for about, name in blackwell if about == "gpu0"} == always | {
        "nvlink_recovery",
        "nvlink_recovery_failed",
        "nvlink_symbol_errors",
        "nvlink_effective_errors",
    }
    assert {name for about, name in blackwell if about == "gpu0/nvlink3"} == {"nvlink_effective_ber"}


def test_a_driver_that_fails_and_one_that_we_cannot_ask() -> None:
    failed = build(f'{SMALL}[gpu]\nerror = "Driver/library version mismatch"')
    assert state(failed) == [Driver(key="nvidia", failure="Driver/library version mismatch")]
    assert wiring(failed) == [
        NotChecked(what="GpuPair", subject="node", reason=Reason.DRIVER, detail="Driver/library version mismatch")
    ]
    unasked = build(f'{SMALL}[gpu]\nmissing = "no libnvidia-ml.so.1"')
    assert state(unasked) == [
        NotChecked(what="Gpu", subject="node", reason=Reason.NOT_INSTALLED, detail="no libnvidia-ml.so.1")
    ]


def test_a_gpu_that_answers_nothing_is_known_by_that_alone() -> None:
    machine = build(f'{SMALL}[device.gpu0]\nfailure = "no answer within 5 s"\n[device.gpu1]\nlost = true')
    assert state(machine)[1:] == [
        Gpu(
            key="gpu0",
            address="0000:51:00.0",
            failure="no answer within 5 s",
            failure_reason=Reason.NO_ANSWER,
        ),
        Gpu(key="gpu1", address="0000:52:00.0", failure="GPU is lost"),
    ]
    assert {(one.what, one.subject) for one in wiring(machine) if isinstance(one, NotChecked)} == {
        (what, key) for what in ("GpuLink.remote", "GpuPair") for key in ("gpu0", "gpu1")
    }


def test_a_gpu_that_is_gone_leaves_its_port_empty_and_the_others_their_names() -> None:
    machine = build(f"{SMALL}[device.gpu0]\ngone = true\n[device.gpu1]\nwidth = 8")
    assert machine.list("sys/bus/pci/devices") == ["0000:50:01.0", "0000:50:02.0", "0000:52:00.0"]
    port = "sys/bus/pci/devices/0000:50:01.0"
    assert [machine.read(f"{port}/{name}") for name in ("current_link_speed", "current_link_width")] == [
        "2.5 GT/s PCIe",
        "0",
    ]
    assert {key: (one.address, one.pcie_width) for key, one in facts(machine, Gpu).items() if isinstance(one, Gpu)} == {
        "gpu0": ("0000:52:00.0", 8)
    }


def test_no_driver_no_call() -> None:
    assert build(f'{SMALL}[device.gpu0]\ndriver = ""\n[device.gpu1]\ndriver = "vfio-pci"').calls == {("link_load",): ()}


def test_windows_are_those_of_the_model_or_smaller() -> None:
    machine = build(f"{SMALL}[device.gpu1]\nbar1 = {256 << 20}")
    windows = {one.key: (one.bar1, one.bar1_max) for one in read_pci_windows(machine)}  # type: ignore[union-attr]
    assert windows == {"0000:51:00.0": (128 << 30, 128 << 30), "0000:52:00.0": (256 << 20, 128 << 30)}
    assert (gpu(machine, "gpu0").bar1, gpu(machine, "gpu1").bar1) == (128 << 30, 256 << 20)


def test_services_run_and_say_their_version() -> None:
    manager = Evidence("/usr/bin/nv-fabricmanager", "Fabric Manager version is : 570.124.06")
    said = [one for one in read_services(node("hgx-h100")) if isinstance(one, Service)]
    first, *others, last = said
    assert (first.key, first.running, last.version, last.cites) == (
        "nvidia-fabricmanager",
        True,
        "570.124.06",
        {"version": manager},
    )
    assert [one.running for one in others] == [False, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[device.gpu0]\ngpu = {watts = 3}", "gpu: a GPU has no field watts"),
        ("[gpu]\nunsaid = ['cites']", "gpu: a GPU has no field cites"),
        ("[gpu.every]\nnvlinks = 'many'", "gpu: Expected `int | null`, got `str` - at `$.nvlinks`"),
        ("[device.gpu0]\ninactive = [12]", "0000:51:00.0: has no NVLinks 12"),
        ("[device.gpu0]\npeers = ['gpu2']", "peers: no GPU that the driver shows is called gpu2"),
        ("[device.gpu0]\ncounters = {nvlink_crc = 1, rx = 2}", "0000:51:00.0: a GPU like this has no counter rx"),
        ("[device.'gpu0.port']\ngone = true", "device 'gpu0.port' is a port: take away what hangs on it"),
    ],
)
def test_what_no_gpu_has_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=".") as raised:
        build(f"{SMALL}{text}")
    assert message in str(raised.value)


@pytest.mark.parametrize("name", EACH)
def test_answers_are_kept_and_identify_nobody(name: str) -> None:
    machine = node(name)
    assert parse(dump(machine)) == machine
    assert scrub(machine).calls == machine.calls


CHANGES = st.sampled_from(
    [
        "gpu = {power = 3}",
        "gpu = {nvlinks = 3, fabric_state = 'in progress'}",
        "inactive = [0]",
        "gone = true",
        "unlisted = true",
        'failure = "x"',
        "lost = true",
        'driver = ""',
        "bar1 = 0",
        "counters = {pcie_replay = 1}",
        'peers = ["gpu0"]',
        "width = 0",
    ]
)
NODE_CHANGES = st.sampled_from(
    ['error = "x"', 'missing = "x"', 'p2p = "unknown"', "every = {ecc = false}", 'unsaid = ["memory"]']
)
GPUS = st.lists(st.sampled_from(["a100", "a100-pcie", "b200", "gh200", "rtx4090", "t4", "nvswitch3"]), max_size=4)


@given(GPUS, st.lists(CHANGES, max_size=3, unique_by=lambda line: line.split()[0]), st.lists(NODE_CHANGES, max_size=1))
def test_any_change_is_answered_or_refused(models: list[str], changes: list[str], further: list[str]) -> None:
    lines = ["[[root]]", "bus = [0]", f"ports = {models}", "[gpu]", *further, "[device.gpu0]", *changes]
    try:
        machine = build("\n".join(lines))
    except ValueError as refused:
        if not str(refused):
            raise
        return
    said = [one for call in machine.calls for one in machine.call(*call, deadline=1)]
    gpus = {one.key for one in said if isinstance(one, Gpu)}
    assert {end for one in said if isinstance(one, GpuPair) for end in (one.a, one.b)} <= gpus
    assert all(str(one.about).partition("/")[0] in gpus for one in said if isinstance(one, Observation))
