"""Lines of known drivers and programs with a word for a fault, in words that no other message knows.

The words for faults are those of the drivers. Lines of healthy machines contain some of them.
"""

from __future__ import annotations

import pytest

from linkgauge.models.catalog.log_messages import KERNEL, PROGRAMS, UNEXPLAINED, Message, entries, message
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Event
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text
from linkgauge.probes.kernel_log.forms import FORMS
from linkgauge.probes.kernel_log.messages import catalog, find_messages
from linkgauge.probes.kernel_log.patterns import events_in

KNOWN, OTHERS = catalog(*KERNEL, *PROGRAMS), catalog(*UNEXPLAINED)
ROWS = [message(entry.name) for entry in entries(*UNEXPLAINED)]
AT = 1795230000.0


def judged(*lines: str) -> Report:
    records = list(read_text("log.txt", "".join(f"{line}\n" for line in lines), AT))
    return evaluate(assemble(records, Site(), AT, origin="dumps"))


def subject(row: Message) -> str:
    (found,) = find_messages(row.example, OTHERS)
    return found.subject


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_example_belongs_to_its_row_alone(row: Message) -> None:
    assert {one.name for one in find_messages(row.example, OTHERS)} == {row.name}
    assert find_messages(row.example, KNOWN) == []
    assert [form.kind for form in FORMS if form.pattern.search(row.example)] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_it_is_reported_and_not_ok(row: Message) -> None:
    report = judged(f"Nov  2 10:00:00 node7 kernel: [ 1234.567890] {row.example}", "what came after it")
    (found,) = report.findings
    assert (found.code, found.subject, found.case) == (row.code, subject(row), "unexplained")
    assert (found.severity, report.verdict) in (("info", "unknown"), ("warning", "degraded"))


def test_it_makes_a_verdict_unknown_that_would_be_ok() -> None:
    corrected = "pcieport 0000:00:1c.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
    unexplained = "mlx5_core 0000:18:00.0: mlx5_irq_table_create:633:(pid 812): failed to create the table"
    assert judged(corrected).verdict == "ok"
    assert judged(corrected, unexplained).verdict == "unknown"


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("the table of flows could not be created", "info"),
        ("Non-fatal error of the table of flows", "info"),
        ("FATAL hardware state, failed to go on", "warning"),
        ("firmware is not responding", "warning"),
        ("Unrecoverable Error detected", "warning"),
    ],
)
def test_words_for_a_failure_of_hardware_are_a_warning(text: str, severity: str) -> None:
    assert [one.severity for one in judged(f"mlx5_core 0000:18:00.0: {text}").findings] == [severity]


def test_a_symptom_in_unknown_words_is_none_beside_a_fault_with_a_name() -> None:
    symptom = "n1:4711:4790 [3] NCCL WARN the proxy cannot reach its peer"
    fault = "ena 0000:00:05.0 eth0: Keep alive watchdog timeout."
    assert [one.code for one in judged(symptom).findings] == ["not-enough-evidence"]
    report = judged(symptom, fault)
    assert [(one.severity, one.code) for one in report.findings] == [("warning", "nic-errors")]
    assert report.verdict == "degraded"


def test_a_fault_with_a_name_stands_for_other_lines_about_the_same_device() -> None:
    named = "mlx5_core 0000:18:00.0: handle_hca_cap failed"
    other = "mlx5_core 0000:18:00.0: mlx5_irq_table_create:633:(pid 812): failed to create the table"
    (found,) = [one for one in judged(named, other).findings if one.severity != "info"]
    assert (found.code, found.subject, found.case) == ("nic-missing", "0000:18:00.0", None)


def test_a_machine_shows_its_own_state() -> None:
    """The log of a running machine is not searched for them: many lines of healthy machines have such words."""
    lines = [(AT, row.example) for row in ROWS]
    assert [event.name for _, event in events_in(lines)] == []


BENIGN = """\
nvme nvme0: Shutdown timeout set to 10 seconds
nvme nvme0: failed to set APST feature (2)
nvme nvme0: missing or invalid SUBNQN field.
nvme nvme0: failed to allocate host memory buffer.
megaraid_sas 0000:82:00.0: FW provided TM TaskAbort/Reset timeout: 0 secs/0 secs
megaraid_sas 0000:82:00.0: Online Controller Reset(OCR): Disabled
mpt3sas_cm0: Overriding NVDATA EEDPTagMode setting from 0 to 1
pcieport 10000:00:02.0: can't derive routing for PCI INT A
pcieport 0000:00:1c.0: DPC: error containment capabilities: Int Msg #0, RPExt+ PoisonedTLP+ SwTrigger+ DL_ActiveErr+
pci 0000:3b:00.0: BAR 6: failed to assign [mem size 0x00080000 pref]
pci 0000:3b:00.0: BAR 13: failed to assign [io  size 0x1000]
pcieport 0000:7b:02.0: BAR 15: failed to assign [mem size 0x00200000 64bit pref]
sd 6:0:0:0: [sda] Asking for cache data failed
sd 6:0:0:0: [sda] Assuming drive cache: write through
ata1.00: failed to enable AA (error_mask=0x1)
ata1.00: READ LOG DMA EXT failed, trying PIO
ata1: failed to resume link (SControl 0)
EXT4-fs (nvme0n1p3): mounted filesystem with ordered data mode. Opts: errors=remount-ro. Quota mode: none.
EXT4-fs (sdb): VFS: Can't find ext4 filesystem
EXT4-fs (sda1): couldn't mount as ext3 due to feature incompatibilities
BTRFS info (device sda3): bdev /dev/sda3 errs: wr 0, rd 0, flush 0, corrupt 0, gen 0
md127: detected capacity change from 0 to 1875374080
ib_core: module verification failed: signature and/or required key missing - tainting kernel
infiniband rdmap0s29: ib_query_port failed (-19)
NVRM: failed to register with the ACPI subsystem!
NVRM: nvAssertOkFailedNoLog: Assertion failed: Call not supported [NV_ERR_NOT_SUPPORTED] (0x00000056) returned
nvidia-uvm: Loaded the UVM driver, major device number 511.
ice 0000:17:00.0: DCB init failed, continuing with default configuration
i40e 0000:3d:00.0: Query for DCB configuration failed, err I40E_ERR_NOT_READY aq_err OK
bnxt_en 0000:5e:00.0: Unable do read adapter's DSN
DMAR: IOMMU feature fl1gp_support inconsistent
AMD-Vi: Unable to read/write to IOMMU perf counter.
EDAC sbridge: Couldn't find mci handler
EDAC amd64: ECC disabled in the BIOS or no ECC capability, module will not load.
amdgpu 0000:c1:00.0: amdgpu: psp gfx command LOAD_TA(0x1) failed and response status is (0x7)
[drm:dm_helpers_parse_edid_caps [amdgpu]] *ERROR* Couldn't read SADs: -2
usb 1-1: device descriptor read/64, error -110
ipmi_si: probe of dmi-ipmi-si.0 failed with error -6
iwlwifi 0000:04:00.0: Error sending STATISTICS_CMD: time out after 2000ms.
n1:4711:4790 [3] NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v8 symbol.
n1:4711:4790 [3] NCCL INFO NET/OFI Unable to find a protocol that worked. Failing initialization.
n1:4711:4790 [3] NCCL INFO Failed to open libibverbs.so[.1]
[1767000000.1] [node7:4711:0] parser.c:2048 UCX  WARN  unused environment variable: UCX_DIR (maybe: UCX_TLS?)
""".splitlines()


@pytest.mark.parametrize("line", BENIGN)
def test_a_line_of_a_healthy_machine_is_no_fault(line: str) -> None:
    events = [one for one in read_text("log.txt", f"{line}\n", AT) if isinstance(one, Event)]
    assert [one.name for one in events] == []
