"""Cells and rows of benchmarks whose number is not in the form that the tool prints: each one is read or is a gap."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

NVBANDWIDTH = """\
nvbandwidth Version: v0.5

Device 0: NVIDIA H100 80GB HBM3 (00000000:19:00)
Device 1: NVIDIA H100 80GB HBM3 (00000000:3b:00)
Device 2: NVIDIA H100 80GB HBM3 (00000000:4b:00)

Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2
 0       N/A    390.12    390.10
 1    390.21       N/A    {}
 2    389.99    391.11       N/A

SUM device_to_device_memcpy_read_ce 771.12
"""
P2P = """\
[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]
Device: 0, NVIDIA A100-SXM4-80GB, pciBusID: 7, pciDeviceID: 0, pciDomainID:0
Device: 1, NVIDIA A100-SXM4-80GB, pciBusID: b, pciDeviceID: 0, pciDomainID:0
Device: 2, NVIDIA A100-SXM4-80GB, pciBusID: 48, pciDeviceID: 0, pciDomainID:0
Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)
   D\\D     0      1      2
     0 1532.66 274.11 273.99
     1 273.88 1533.10 {}
     2 274.02 274.20 1530.01
"""
ROCM = """\
	RocmBandwidthTest Version: 2.6.0

	Device: 0,  AMD EPYC 9654 96-Core Processor
	Device: 1,  AMD Instinct MI300X,  GPU-1,  0c:0.0
	Device: 2,  AMD Instinct MI300X,  GPU-2,  22:0.0

	Unidirectional copy peak bandwidth GB/s

	D/D       0           1           2

	0         N/A         55.812      55.901
	1         55.811      900.12      {}
	2         55.801      48.990      901.2
"""
TRANSFER = """\
Bytes Per Direction 268435456
Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
 SRC+EXE\\DST    CPU 00    GPU 00    GPU 01
  CPU 00  ->      N/A     55.81     55.90
  GPU 00  ->    55.81       N/A     {}
  GPU 01  ->    55.80     48.99       N/A
"""
CUDA = """\
[CUDA Bandwidth Test] - Starting...
 Device 0: NVIDIA H100 80GB HBM3
 Quick Mode

 Host to Device Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)	Bandwidth(GB/s)
   32000000			{}

 Device to Host Bandwidth, 1 Device(s)
 PINNED Memory Transfers
   Transfer Size (Bytes)	Bandwidth(GB/s)
   32000000			55.3

Result = PASS
"""


@pytest.mark.parametrize("text", [NVBANDWIDTH, P2P, ROCM, TRANSFER, CUDA])
@pytest.mark.parametrize("cell", ["12", "1.2e+01", "1,212.00", "12,34"])
def test_a_number_in_another_form_is_a_gap(text: str, cell: str) -> None:
    report = report_of(text.format(cell))
    unread = [one for one in report.not_checked if (one.what, one.subject) == ("rate of copy", "node")]
    assert (report.verdict, len(unread)) == ("unknown", 1)


def test_a_matrix_that_a_person_rounded_is_read() -> None:
    text = NVBANDWIDTH.format("12")
    for old, new in ((".12", ""), (".10", ""), (".21", ""), (".99", ""), (".11", "")):
        text = text.replace(old, new)
    assert [(one.code, one.subject) for one in report_of(text).findings] == [("bandwidth-low", "gpu2-gpu1")]
