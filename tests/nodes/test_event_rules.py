"""Findings from log lines: severity, subject, and when an event is history or covered by another finding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.catalog.sxids import sxids
from linkgauge.models.catalog.xids import xids
from linkgauge.models.evaluate import apply_rules
from linkgauge.models.facts.gpu import Driver, Gpu, GpuLink
from linkgauge.models.facts.machine import Event, Net, Node, Package, Pci, Port, Rdma
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked, Observation, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.rules.core.log_history import logged
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from linkgauge.probes.kernel_log.forms import FORMS
from linkgauge.probes.kernel_log.patterns import group_events
from tests.support.nodes.event_logs import NOW, Summary, findings, log, summaries
from tests.support.nodes.fabric_ports import BRIDGE
from tests.support.nodes.fabric_ports import GPU as FUNCTION
from tests.support.nodes.fabric_ports import GPU_0 as ADDRESS
from tests.support.nodes.fabric_ports import PORT_0 as PORT

GPU = Gpu(key="gpu0", name="NVIDIA H100 PCIe", address=ADDRESS)
XID = "NVRM: Xid (PCI:0000:01:00): {}, pid=1, name=x, what it says"
LOADED = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build"
RECOVERY = "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed from 0x{} (a) to 0x{} (b)"


def xid(severity: str) -> list[Summary]:
    return [("gpu-xid", ADDRESS, severity)]


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        (13, None),
        (31, None),
        (43, None),
        (45, None),
        (48, "critical"),
        (63, "warning"),
        (74, "critical"),
        (79, "critical"),
        (92, "warning"),
        (94, "warning"),
        (95, "critical"),
        (109, "critical"),
        (119, "critical"),
        (137, None),
        (143, "critical"),
        (154, None),
        (157, "warning"),
        (172, "critical"),
        (999, "warning"),
    ],
)
def test_an_xid_is_as_grave_as_its_number(code: int, severity: str | None) -> None:
    assert summaries(BRIDGE, FUNCTION, *log(XID.format(code))) == (xid(severity) if severity else [])


@pytest.mark.parametrize("code", [code for code, one in xids().items() if one.severity not in (None, "info")])
def test_an_acceptance_clears_the_same_as_a_reset(code: int) -> None:
    """Not what only another GPU would; and nothing that was logged since, or by a clock that is not ours."""
    records = [BRIDGE, FUNCTION, *log(XID.format(code))]
    saved = [replace(one, until=NOW) if isinstance(one, Event) else one for one in records]

    def grave(what: list[Record], accepted: float) -> bool:
        found = apply_rules(assemble(what, Site(), NOW, accepted=accepted))[0]
        return any(one.severity != "info" for one in found if one.code == "gpu-xid")

    assert grave(records, NOW - 60) is (xids()[code].clears == "nothing")
    assert grave(records, NOW - 61)
    assert grave(saved, NOW)


def test_of_one_gpu_the_gravest_leads() -> None:
    lines = [XID.format(94), XID.format(48), XID.format(48), XID.format(63), XID.format(45), XID.format(13)]
    (finding,) = findings(BRIDGE, FUNCTION, *log(*lines))
    assert (finding.code, finding.severity, finding.observed) == ("gpu-xid", "critical", 48)
    assert finding.message == (
        f"the driver logged Xid 48 for {ADDRESS}, 2 times from 2027-01-15T07:58:56Z to 2027-01-15T07:58:57Z: "
        "double-bit ECC error; also Xid 63, 94"
    )
    assert [one.text for one in finding.evidence] == [XID.format(48), XID.format(63), XID.format(94)]
    assert finding.since == "2027-01-15T07:58:56Z"
    assert (finding.remedy or "").startswith("Drain")


@pytest.mark.parametrize(
    ("after", "cleared", "stays"),
    [
        ([LOADED], (48, 79), (157, 165)),
        ([RECOVERY.format(0, 1), RECOVERY.format(1, 0)], (48, 119), (79, 157)),
        ([f"vfio-pci {ADDRESS}: reset done"], (48, 119), (54, 79, 173)),
        (["vfio-pci 0000:02:00.0: reset done"], (), (48, 79)),
        ([RECOVERY.format(1, 0), RECOVERY.format(0, 2)], (48,), ()),
    ],
)
def test_what_makes_an_xid_history(after: list[str], cleared: tuple[int, ...], stays: tuple[int, ...]) -> None:
    for code in (*cleared, *stays):
        expected = "info" if code in cleared else xids()[code].severity
        assert summaries(BRIDGE, FUNCTION, *log(XID.format(code), *after)) == xid(str(expected)), code
        assert summaries(BRIDGE, FUNCTION, *log(*after, XID.format(code))) == xid(str(xids()[code].severity)), code


def test_an_old_xid_is_history() -> None:
    assert summaries(BRIDGE, FUNCTION, *log(XID.format(79), last=NOW - 90_000)) == xid("info")
    assert summaries(BRIDGE, FUNCTION, *log(XID.format(157), last=NOW - 90_000)) == xid("warning")
    (since_boot,) = findings(BRIDGE, FUNCTION, *log(XID.format(79), last=5.0))
    assert (since_boot.severity, since_boot.since) == ("critical", None)  # not known when that was


def test_what_the_driver_asks_for_now_decides() -> None:
    """Its word is of those Xids that it sets its recovery action with: 119 is none of them."""
    content, asks = replace(GPU, recovery="none"), replace(GPU, recovery="GPU reset")
    for code, severity in ((48, "info"), (95, "info"), (119, "critical"), (140, "critical")):
        assert summaries(BRIDGE, FUNCTION, content, *log(XID.format(code))) == xid(severity), code
    assert summaries(BRIDGE, FUNCTION, asks, *log(XID.format(48), LOADED)) == []  # reported as a state
    (finding,) = findings(BRIDGE, FUNCTION, replace(asks, recovery=None), *log(XID.format(48)))
    assert finding.severity == "critical"


def spread(code: int, number: int, minutes: float) -> list[Record]:
    """As many Xids, the last a minute ago."""
    times = [NOW - 60 - 60 * minutes * n / (number - 1) for n in range(number)]
    return list(group_events(((at, XID.format(code)) for at in times), "log"))


@pytest.mark.parametrize("code", [48, 62, 64, 74, 79, 94, 95, 109])
def test_a_recovery_action_of_none_excuses_one_burst(code: int) -> None:
    content = [Driver(key="nvidia", version="580.95.05"), replace(GPU, recovery="none", remap_pending=False)]
    (finding,) = findings(BRIDGE, FUNCTION, *content, *spread(code, 8, 80))
    assert finding.severity == xids()[code].severity
    assert f"Xid {code} for {ADDRESS}, 8 times from 2027-01-15T06:39:00Z to 2027-01-15T07:59:00Z: " in finding.message
    assert not (finding.remedy or "").startswith("Nothing now")
    assert summaries(BRIDGE, FUNCTION, *content, *spread(code, 2, 4)) == xid(str(xids()[code].severity))
    assert summaries(BRIDGE, FUNCTION, *content, *spread(code, 8, 2)) == xid("info")  # the lines of one fault
    assert summaries(BRIDGE, FUNCTION, *content, *spread(code, 2, 60 * 30)) == xid("info")  # one a day
    reset = group_events([(NOW - 30, f"nvidia {ADDRESS}: reset done")], "log")
    severity = "info" if code != 79 else "critical"
    assert summaries(BRIDGE, FUNCTION, *content, *spread(code, 8, 80), *reset) == xid(severity)


def test_bursts_of_several_xids_count_together() -> None:
    content = replace(GPU, recovery="none")
    lines = [(NOW - 6000 + 600 * n, XID.format(code)) for n, code in enumerate((48, 62, 74, 95, 109))]
    assert summaries(BRIDGE, FUNCTION, content, *group_events(lines, "log")) == xid("critical")
    programs = [(NOW - 6000, XID.format(48)), (NOW - 3000, XID.format(13)), (NOW - 60, XID.format(31))]
    assert summaries(BRIDGE, FUNCTION, content, *group_events(programs, "log")) == xid("info")
    other = [(at, line.replace("0000:01:00", "0000:02:00")) for at, line in lines[1:]]
    found = summaries(BRIDGE, FUNCTION, content, *group_events([lines[0], *other], "log"))
    assert ("gpu-xid", ADDRESS, "info") in found


def test_events_before_the_boot_are_history() -> None:
    booted = Node(key="node", virtual=False, booted=NOW - 3600)
    (finding,) = findings(booted, BRIDGE, FUNCTION, *log(XID.format(48), last=NOW - 3601))
    assert (finding.severity, "the node was booted 2027-01-15T07:00:00Z, after it" in finding.message) == ("info", True)
    assert summaries(booted, BRIDGE, FUNCTION, *log(XID.format(48), last=NOW - 3600)) == xid("critical")
    assert summaries(booted, BRIDGE, FUNCTION, *log(XID.format(48), last=5.0)) == xid("critical")  # counts from boot


def test_a_row_that_was_remapped_is_history() -> None:
    """The driver says itself whether a row still waits; without it, the log is all there is."""
    assert summaries(BRIDGE, FUNCTION, replace(GPU, remap_pending=False), *log(XID.format(63))) == xid("info")
    assert summaries(BRIDGE, FUNCTION, replace(GPU, remap_pending=True), *log(XID.format(63))) == xid("info")
    assert summaries(BRIDGE, FUNCTION, GPU, *log(XID.format(63))) == xid("warning")


def test_a_recovery_without_an_xid_that_asks_for_it() -> None:
    reset, reboot, none = RECOVERY.format(0, 1), RECOVERY.format(0, 2), RECOVERY.format(1, 0)
    (finding,) = findings(BRIDGE, FUNCTION, *log(XID.format(13), reset))
    assert (finding.code, finding.severity, finding.observed) == ("gpu-xid", "critical", 154)
    assert "a GPU reset" in finding.message
    assert summaries(BRIDGE, FUNCTION, *log(reboot)) == [("gpu-xid", "node", "critical")]
    assert summaries(BRIDGE, FUNCTION, *log(RECOVERY.format(0, 3))) == xid("warning")
    assert summaries(BRIDGE, FUNCTION, *log(reset, none)) == []
    assert summaries(BRIDGE, FUNCTION, *log(reset, LOADED)) == xid("info")
    assert summaries(BRIDGE, FUNCTION, replace(GPU, recovery="none"), *log(reset)) == []


def test_nvlink_5_errors_contain_their_severity() -> None:
    line = "NVRM: Xid (PCI:0000:01:00): 149, NETIR_LINK_EVT {} XC0 i0 Link {} (0x0 0x0)"
    (finding,) = findings(BRIDGE, FUNCTION, *log(line.format("Fatal", "08"), line.format("Fatal", "12")))
    assert (finding.severity, finding.observed) == ("critical", 149)
    assert ", link 8, 12, 2 times from 2027-01-15T07:58:59Z to 2027-01-15T07:59:00Z: " in finding.message
    assert summaries(BRIDGE, FUNCTION, *log(line.format("Nonfatal", "08"))) == xid("info")


def test_a_gpu_that_is_gone_is_one_finding() -> None:
    line = XID.format(79)
    aer = "pcieport 0000:00:01.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)"
    gone = [*log(f"pcieport {PORT}: pciehp: Slot(1): Link Down", aer, line, RECOVERY.format(0, 2))]
    snapshot = assemble([BRIDGE, replace(FUNCTION, lost=True), *gone], Site(), NOW)
    (finding,) = [one for one in apply_rules(snapshot)[0] if one.severity != "info"]
    assert (finding.code, finding.subject) == ("gpu-missing", ADDRESS)
    assert Evidence("log", line) in finding.evidence
    assert Evidence("log", aer) in finding.evidence
    assert summaries(BRIDGE, *gone) == [("gpu-missing", ADDRESS, "critical")]
    assert len(logged(snapshot, ADDRESS)) == 3
    dumps = summaries(*gone, origin="dumps")
    assert dumps == [("gpu-xid", ADDRESS, "critical"), ("pcie-errors", PORT, "critical")]


SWITCH = "0000:c1:00.0"
SXID = f"nvidia-nvswitch2: SXid (PCI:{SWITCH}): {{}}, {{}}, Link 33 what it says"


@pytest.mark.parametrize(
    ("code", "word", "severity"),
    [
        (12028, "Non-fatal", "warning"),
        (22013, "Non-fatal", "info"),
        (10005, "Non-fatal", None),
        (19049, "Non-fatal", "info"),
        (20034, "Fatal", "critical"),
        (23001, "Fatal", "critical"),
        (12028, "Fatal", "critical"),
        (15002, "Non-fatal", "info"),
        (15002, "Fatal", "critical"),
        (19084, "Non-fatal", "critical"),
    ],
)
def test_sxids(code: int, word: str, severity: str | None) -> None:
    line = SXID.format(code, word)
    assert summaries(*log(line)) == ([("nvswitch-error", SWITCH, severity)] if severity else [])
    assert summaries(*log(line, LOADED)) == ([("nvswitch-error", SWITCH, "info")] if severity else [])
    assert summaries(*log(line, last=NOW - 90_000)) == ([("nvswitch-error", SWITCH, "info")] if severity else [])


def test_a_gpu_of_which_the_log_alone_tells() -> None:
    failed = log(f"NVRM: GPU {ADDRESS}: RmInitAdapter failed! (0x62:0x40:2393)")
    assert summaries(*failed, origin="dumps") == [("gpu-driver-failed", ADDRESS, "critical")]
    assert summaries(*failed, GPU, origin="dumps") == summaries(*failed) == []
    off = log(f"NVRM: The NVIDIA GPU {ADDRESS}", "NVRM: fallen off the bus and is not responding to commands.")
    assert summaries(*off, origin="dumps") == [("gpu-missing", ADDRESS, "critical")]
    others = log("NVRM: The NVIDIA probe routine was not called for 1 device(s).")
    assert summaries(*others, origin="dumps") == [("gpu-driver-failed", "node", "critical")]
    assert summaries(FUNCTION, *others) == [("gpu-driver-failed", "node", "info")]
    lent = log(f"NVRM: GPU {ADDRESS} is already bound to vfio-pci.")
    assert summaries(*others, *lent, origin="dumps") == [("gpu-driver-failed", ADDRESS, "info")]


def test_a_program_of_another_version() -> None:
    (refused,) = log("NVRM: API mismatch: the client has the version 535.183.01, but")
    assert summaries(refused, origin="dumps") == [("driver-mismatch", "node", "warning")]
    assert summaries(refused, Driver(key="nvidia", failure="Driver/library version mismatch"), origin="dumps") == []


def test_sxids_of_one_switch() -> None:
    hot = f"nvidia-nvswitch2: SXid (PCI:{SWITCH}): 10004, Thermal Slowdown Engaged | Temp higher than WARN Threshold"
    cool = f"nvidia-nvswitch2: SXid (PCI:{SWITCH}): 10005, Thermal Slowdown Disengaged"
    assert summaries(*log(hot)) == [("nvswitch-error", SWITCH, "warning")]
    assert summaries(*log(hot, cool)) == [("nvswitch-error", SWITCH, "info")]
    (finding,) = findings(*log(hot, SXID.format(20034, "Fatal"), SXID.format(22013, "Non-fatal")))
    assert finding.message == f"SXid 20034 of NVSwitch {SWITCH}, link 33: an NVLink went down; also SXid 10004, 22013"
    led_to = GpuLink(key="gpu0/nvlink1", gpu="gpu0", active=True, remote=SWITCH)
    assert summaries(FUNCTION, GPU, led_to, *log(SXID.format(20034, "Fatal"))) == []  # it is missed: nvswitch.py


def test_bus_errors() -> None:
    line = f"nvidia {ADDRESS}: PCIe Bus Error: severity={{}}, type=Transaction Layer, (Receiver ID)"
    fatal, mild = line.format("Uncorrected (Fatal)"), line.format("Uncorrectable (Non-Fatal)")
    assert summaries(BRIDGE, FUNCTION, *log(fatal)) == [("pcie-errors", ADDRESS, "critical")]
    assert summaries(BRIDGE, FUNCTION, *log(mild)) == [("pcie-errors", ADDRESS, "warning")]
    assert summaries(BRIDGE, FUNCTION, *log(mild, fatal)) == [("pcie-errors", ADDRESS, "critical")]
    assert summaries(BRIDGE, FUNCTION, *log(mild, last=NOW - 90_000)) == [("pcie-errors", ADDRESS, "info")]
    assert summaries(BRIDGE, FUNCTION, *log(*[line.format("Corrected")] * 400)) == []
    assert summaries(BRIDGE, FUNCTION, *log(*[line.format("Corrected")] * 500)) == [("pcie-errors", ADDRESS, "warning")]
    counter = Observation(
        about=ADDRESS, quantity="aer_fatal", unit="count", value=0, at=NOW, evidence=Evidence("a", "")
    )
    assert summaries(BRIDGE, FUNCTION, counter, *log(fatal)) == []  # counted, and judged by the counter


def test_the_number_of_an_xid_at_the_end_of_a_cut_line() -> None:
    line = "NVRM: Xid (PCI:0000:3b:00): "
    codes = [
        getattr(event, "code", None)
        for event in log(*(f"{line}{end}" for end in ("79", "119", "13, pid=7", "11 (fault)")))
    ]
    assert codes == [79, 119, 13, 11]
    assert log(f"{line}11", line) == []
    (gap,) = read_text("log", f"[    1.500000] {line}11\n[    1.600000] {line}11\n", NOW)
    assert isinstance(gap, NotChecked)
    assert gap.why == "log:1: the line ends before or within the number of an Xid"


def test_bus_errors_without_the_lines_of_their_details() -> None:
    """The port that receives a message names its sender (drivers/pci/pcie/aer.c, aer_print_port_info)."""
    line = f"pcieport {PORT}: AER: {{}} received{{}} {ADDRESS}"
    fatal = line.format("Uncorrected (Fatal) error", ":")
    mild = line.format("Multiple Uncorrectable (Non-Fatal) error message", " from")
    assert summaries(*log(fatal), origin="dumps") == [("pcie-errors", ADDRESS, "critical")]
    assert summaries(*log(mild), origin="dumps") == [("pcie-errors", ADDRESS, "warning")]
    assert summaries(*log(line.format("Corrected error", ":")), origin="dumps") == [("pcie-errors", ADDRESS, "info")]
    detail = f"nvidia {ADDRESS}: PCIe Bus Error: severity=Corrected, type=Physical Layer"
    assert summaries(*log(fatal, detail), origin="dumps") == [("pcie-errors", ADDRESS, "info")]


def test_corrected_errors_of_a_short_log() -> None:
    """Of an excerpt, as many within minutes as an hour may have; a few say little, and are named."""
    line = f"pcieport {PORT}: PCIe Bus Error: severity=Corrected, type=Physical Layer"
    assert summaries(*log(*[line] * 300), origin="dumps") == [("pcie-errors", PORT, "warning")]
    assert summaries(*log(*[line] * 300)) == []
    assert summaries(*log(*[line] * 59), origin="dumps") == [("pcie-errors", PORT, "info")]


def test_a_link_that_went_down() -> None:
    hotplug, contained = f"pcieport {PORT}: pciehp: Slot(3): Link Down", f"pcieport {PORT}: DPC: containment event, s"
    assert summaries(BRIDGE, FUNCTION, *log(hotplug, contained)) == []  # it came up again
    assert summaries(BRIDGE, *log(hotplug)) == [("pcie-errors", PORT, "info")]
    assert summaries(BRIDGE, *log(hotplug, contained)) == [("pcie-errors", PORT, "warning")]
    assert summaries(*log(hotplug, contained)) == []  # the device below the port is unknown


def test_a_link_that_goes_down_again_and_again() -> None:
    hotplug, contained = f"pcieport {PORT}: pciehp: Slot(3): Link Down", f"pcieport {PORT}: DPC: containment event, s"
    often = group_events(((NOW - 600 * n, contained) for n in range(1, 9)), "log")
    (finding,) = findings(BRIDGE, FUNCTION, *often)
    assert (finding.code, finding.subject, finding.severity) == ("pcie-errors", PORT, "warning")
    assert "8 times from 2027-01-15T06:40:00Z to 2027-01-15T07:50:00Z, and came up again" in finding.message
    assert summaries(BRIDGE, FUNCTION, *log(*[contained] * 8)) == []  # one burst
    assert summaries(BRIDGE, FUNCTION, *log(*[hotplug] * 5)) == []  # a slot that was switched off and on
    assert summaries(BRIDGE, FUNCTION, *log(*[hotplug] * 6)) == [("pcie-errors", PORT, "warning")]


LIMITED = (
    "pci {}: 126.016 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x4 link at {} "
    "(capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)"
)


def test_a_slow_hop_that_only_the_kernel_names() -> None:
    """By design on most machines. A fault where equal devices have more, or where a text names four of 16 lanes."""
    line = LIMITED.format(ADDRESS, PORT)
    blind = replace(FUNCTION, width=None, max_width=None, speed=None, max_speed=None)
    cohort = [replace(blind, key=f"0000:0{n}:00.0", parent="pci0000:80") for n in range(2, 6)]
    assert summaries(BRIDGE, FUNCTION, *log(line)) == [("pcie-path-bottleneck", PORT, "info")]
    assert summaries(*log(line), origin="dumps") == [("pcie-path-bottleneck", PORT, "warning")]
    assert summaries(*log(line.replace("x4", "x8")), origin="dumps") == [("pcie-path-bottleneck", PORT, "info")]
    assert summaries(BRIDGE, blind, *log(line)) == [("pcie-path-bottleneck", PORT, "info")]
    (finding,) = findings(BRIDGE, blind, *cohort, *log(line))
    assert (finding.severity, finding.confidence, finding.basis) == ("critical", "likely", "kin")
    assert finding.message == (
        f"the link at {PORT} left {ADDRESS} 15.8 GB/s of 63.0 GB/s when the kernel found it; 4 equal devices have more"
    )
    alike = [LIMITED.format(one.key, f"0000:8{n}:00.0") for n, one in enumerate(cohort)]
    assert {severity for _, _, severity in summaries(BRIDGE, blind, *cohort, *log(line, *alike))} == {"info"}
    virtual = Node(key="node", virtual=True, hypervisor="KVM")
    assert summaries(virtual, BRIDGE, blind, *log(line)) == []
    nic = line.replace("pci ", "mlx5_core ")
    assert summaries(*log(nic), origin="dumps") == [("pcie-path-bottleneck", PORT, "warning")]
    assert summaries(*log(nic)) == summaries(*log(nic.replace("x4", "x16")), origin="dumps")
    assert summaries(*log(nic)) == [("pcie-path-bottleneck", PORT, "info")]


NIC = Pci(key="0000:17:00.0", parent="pci0000:10", pci_class=0x020000, vendor=0x15B3, device=0x1021)


def test_nics() -> None:
    sick = "mlx5_core 0000:17:00.0: poll_health:821:(pid 0): device's health compromised - reached miss count"
    module = "mlx5_core 0000:17:00.0: Port module event[error]: module 0, Cable error, Bad or shorted cable/module"
    assert summaries(NIC, *log(sick, module)) == [("nic-errors", NIC.key, "warning")]
    assert summaries(NIC, *log(module)) == [("nic-errors", NIC.key, "warning")]
    assert summaries(NIC, *log(module, last=NOW - 90_000)) == [("nic-errors", NIC.key, "info")]
    hot = module.replace("Bad or shorted cable/module", "High Temperature")
    assert summaries(NIC, *log(hot)) == [("nic-optics", NIC.key, "warning")]
    assert summaries(NIC, *log(hot, last=NOW - 90_000)) == [("nic-optics", NIC.key, "info")]
    assert summaries(NIC, *log(sick, hot)) == [("nic-errors", NIC.key, "warning"), ("nic-optics", NIC.key, "warning")]
    assert summaries(NIC, *log(sick, last=NOW - 90_000)) == [("nic-errors", NIC.key, "info")]
    assert summaries(BRIDGE, *log(sick)) == [("nic-missing", NIC.key, "critical")]
    assert summaries(BRIDGE, *log(sick.replace("17:00.0", "17:00.4"))) == [("nic-errors", "0000:17:00.4", "warning")]
    assert summaries(*log(sick), origin="dumps") == [("nic-errors", NIC.key, "warning")]


def test_flapping() -> None:
    line = "mlx5_core 0000:17:00.0 {}: {}"
    ib, eth = line.format("mlx5_0", "Port: 1 Link DOWN"), line.format("eth2", "Link down")
    assert summaries(NIC, *log(*[ib] * 2)) == []
    assert summaries(NIC, *log(*[ib] * 3)) == [("nic-port-flapping", "mlx5_0/1", "warning")]
    assert summaries(NIC, *log(*[ib] * 3, last=NOW - 90_000)) == [("nic-port-flapping", "mlx5_0/1", "info")]
    assert summaries(NIC, *log(*[eth] * 3)) == [("nic-port-flapping", "eth2", "warning")]
    shared = [Net(key="eth2", address=NIC.key), Port(key="mlx5_0/1", device="mlx5_0", netdev="eth2")]
    assert summaries(NIC, *shared, *log(*[eth, ib] * 3)) == [("nic-port-flapping", "mlx5_0/1", "warning")]
    assert summaries(replace(NIC, physfn="0000:17:00.1"), *log(*[eth] * 3)) == []
    slowly = list(group_events(((NOW - 3500 * n, eth) for n in range(50)), "log"))
    (finding,) = findings(NIC, *slowly)
    assert (finding.code, finding.severity, finding.observed) == ("nic-port-flapping", "warning", 25)
    assert finding.message.startswith("port eth2 went down at least 25 times within a day, 50 times from ")
    assert summaries(NIC, *slowly[:1], Node(key="node", booted=NOW + 1)) == [("nic-port-flapping", "eth2", "info")]
    plain = Net(key="eth3", link_type="ethernet")
    other = log(*["mlx4_en: eth3: Link Down"] * 3)  # of a driver that does not log the address
    assert summaries(plain, *other) == [("nic-port-flapping", "eth3", "warning")]
    rarely = list(group_events(((NOW - 6 * 3600 * n, eth) for n in range(50)), "log"))
    assert summaries(NIC, *rarely) == []


def test_a_port_that_is_down_now_is_one_finding_that_tells_how_often_it_went() -> None:
    """Where nothing says that the port is of the fabric, that it flaps is the graver."""
    line = f"mlx5_core {NIC.key} mlx5_0: Port: 1 Link DOWN"
    device = Rdma(key="mlx5_0", address=NIC.key, driver="mlx5_core")
    port = Port(key="mlx5_0/1", device="mlx5_0", state="DOWN", physical_state="LinkUp", link_layer="InfiniBand")
    (finding,) = apply_rules(assemble([NIC, device, port, *log(*[line] * 3)], Site(), NOW))[0]
    assert (finding.code, finding.severity) == ("nic-port-down", "critical")
    assert finding.message.endswith("; it went down 3 times within an hour")
    assert finding.evidence[-1] == Evidence("log", line)
    spare = replace(port, physical_state="Polling")
    assert summaries(NIC, device, spare, *log(*[line] * 3)) == [("nic-port-flapping", "mlx5_0/1", "warning")]
    old = [NIC, device, port, *log(*[line] * 3, last=NOW - 90_000)]
    codes = {one.code: one.message for one in apply_rules(assemble(old, Site(), NOW))[0]}
    assert "within an hour" not in codes["nic-port-down"]


def test_memory_and_heat() -> None:
    corrected, uncorrected = "EDAC MC0: 1 CE memory read error on DIMM", "EDAC MC0: 1 UE memory read error on DIMM"
    assert summaries(*log(*[corrected] * 49)) == []
    assert summaries(*log(*[corrected] * 50)) == [("host-memory-errors", "mc0", "warning")]
    assert summaries(*log(corrected, uncorrected)) == [("host-memory-errors", "mc0", "critical")]
    counter = Observation(about="mc0", quantity="ue_count", unit="count", value=0, at=NOW, evidence=Evidence("a", ""))
    assert summaries(counter, *log(uncorrected)) == []
    hot = "mce: CPU3: Package temperature above threshold, cpu clock throttled (total events = 1)"
    package = Package(key="package1", cpus=(2, 3))
    assert summaries(package, *log(hot)) == [("cpu-throttled", "package1", "info")]
    assert summaries(package, *log(*[hot] * 3)) == [("cpu-throttled", "package1", "warning")]
    assert summaries(*log(*[hot] * 3)) == [("cpu-throttled", "node", "warning")]
    counter = replace(counter, about="package1", quantity="throttle_time", unit="seconds")
    assert summaries(package, counter, *log(*[hot] * 3)) == []


def test_a_log_that_was_not_read_leaves_no_vital_check_open() -> None:
    lost = NotChecked(what="Event", subject="node", reason=Reason.PERMISSION, detail="Operation not permitted")
    checks = apply_rules(assemble([BRIDGE, FUNCTION, NIC, lost], Site(), NOW))[2]
    assert checks["gpu-xid"] is False
    assert not {"gpu-missing", "nic-missing", "pcie-link-narrow"} & {
        code for code, whole in checks.items() if not whole
    }


def test_a_log_that_was_not_read_is_no_gap_in_the_xids_of_no_gpu() -> None:
    """Without hardware of NVIDIA nobody hears of it; where PCI was not read either, nobody knows."""
    log, bus = (
        NotChecked(what=what, subject="node", reason=Reason.PERMISSION, detail="Operation not permitted")
        for what in ("Event", "Pci")
    )
    codes = {"gpu-xid", "nvswitch-error"}
    assert not codes & apply_rules(assemble([BRIDGE, NIC, log], Site(), NOW))[2].keys()
    others: tuple[Record, ...] = (FUNCTION, GPU, bus)
    for other in others:
        checks = apply_rules(assemble([other, log], Site(), NOW))[2]
        assert {code: checks[code] for code in codes} == dict.fromkeys(codes, False)


def test_the_catalogs() -> None:
    assert set(range(1, 174)) <= set(xids())
    assert all(row.action and row.source for row in xids().values() if row.severity)
    assert all(row.action for row in sxids().values() if row.severity)
    assert all(row.state in (None, *Gpu.__struct_fields__) for row in xids().values())
    assert all(row.ends is None or row.ends in sxids() for row in sxids().values())
    for table in (
        {number: row.codes for number, row in xids().items()},
        {number: row.codes for number, row in sxids().items()},
    ):
        assert sum(len(codes) for codes in set(table.values())) == len(table), "a number stands in two rows"


KINDS = sorted({form.kind for form in FORMS})
numbers = st.none() | st.integers(-1, 200) | st.sampled_from([12028, 20034, 10**9])
moments = st.none() | st.sampled_from([0.0, 5.0, NOW - 90_000, NOW - 60, NOW]) | st.floats(0, 1e11)
events = st.builds(
    Event,
    key=st.text(max_size=3),
    kind=st.none() | st.sampled_from(KINDS),
    code=numbers,
    subject=st.none() | st.sampled_from([ADDRESS, PORT, SWITCH, "nvme0", "sda1", "cpu3", "cpu", "mc0", "node"]),
    text=st.none() | st.text(max_size=9),
    at=moments,
    first=moments,
    fatal=st.none() | st.booleans(),
    link=numbers,
    count=st.none() | st.integers(1, 10**6),
    recent=st.none() | st.integers(1, 10**6),
    name=st.none() | st.sampled_from(["eth0", "mlx5_0"]),
    port=st.none() | st.just(PORT),
    rate=moments,
    able=moments,
)


@given(st.lists(events, max_size=12), st.sampled_from([(), (BRIDGE,), (BRIDGE, FUNCTION, GPU)]))
def test_any_events(several: list[Event], machine: tuple[Record, ...]) -> None:
    found = findings(*machine, *several)
    assert len({(one.code, one.subject) for one in found}) == len(found)
    assert all(one.message and one.evidence and one.cause for one in found)
