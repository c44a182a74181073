"""Devices that lspci shows, and that cannot work: no driver, no lanes, no memory, errors, and links that it hides."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

GPU = """\
19:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
	Subsystem: NVIDIA Corporation Device [10de:16c1]
	Control: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+
	NUMA node: 0
	Region 0: Memory at 214042000000 (64-bit, prefetchable) [size=16M]
	Region 2: Memory at 210000000000 (64-bit, prefetchable) [size=128G]
	Capabilities: [60] Express (v2) Endpoint, MSI 00
		DevSta:	CorrErr- NonFatalErr- FatalErr- UnsupReq- AuxPwr- TransPend-
		LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <4us
		LnkSta:	Speed 32GT/s, Width x16
	Kernel driver in use: nvidia
	Kernel modules: nouveau, nvidia_drm, nvidia
"""
NIC = (
    GPU.replace("3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)", "Infiniband")
    .replace("Infiniband", "Infiniband controller [0207]: Mellanox Technologies MT2910 Family [ConnectX-7] [15b3:1021]")
    .replace("in use: nvidia", "in use: mlx5_core")
    .replace("nouveau, nvidia_drm, nvidia", "mlx5_core")
    .replace("	Region 2: Memory at 210000000000 (64-bit, prefetchable) [size=128G]\n", "")
)
AMD = (
    GPU.replace(
        "3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)",
        "Processing accelerators [1200]: Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram [Instinct MI300X] "
        "[1002:74a1]",
    )
    .replace("in use: nvidia", "in use: amdgpu")
    .replace("nouveau, nvidia_drm, nvidia", "amdgpu")
)
PORT = """\
16:01.0 PCI bridge [0604]: Intel Corporation Device [8086:352a] (rev 04) (prog-if 00 [Normal decode])
	Bus: primary=16, secondary=17, subordinate=17, sec-latency=0
	Capabilities: [40] Express (v2) Root Port (Slot+), MSI 00
		LnkCap:	Port #1, Speed 32GT/s, Width x16, ASPM not supported
		LnkSta:	Speed 2.5GT/s, Width x0
		SltSta:	Status: AttnBtn- PowerFlt- MRL- CmdCplt- PresDet{} Interlock-
	Kernel driver in use: pcieport
"""
DENIED = (
    GPU[: GPU.index("	Capabilities")] + "	Capabilities: <access denied>\n" + GPU[GPU.index("	Kernel driver") :]
)
AT = "0000:19:00.0"


def without(line: str, text: str) -> str:
    return "".join(one for one in text.splitlines(keepends=True) if line not in one)


@pytest.mark.parametrize(
    ("text", "verdict", "expected"),
    [
        (GPU, "ok", []),
        (NIC, "ok", []),
        (AMD, "ok", []),
        (without("in use", GPU).replace("BusMaster+", "BusMaster-"), "failed", [("gpu-driver-failed", "critical", AT)]),
        (without("in use", GPU), "unknown", []),  # the line may be lost
        (without("Kernel", GPU), "ok", []),
        ("".join(without("in use", GPU).splitlines(keepends=True)[::12]), "unknown", []),  # a search for two words
        (GPU.replace("in use: nvidia", "in use: vfio-pci"), "ok", [("gpu-driver-failed", "info", AT)]),
        (without("in use", NIC).replace("BusMaster+", "BusMaster-"), "degraded", [("nic-missing", "warning", AT)]),
        (without("in use", NIC), "unknown", []),
        (without("in use", AMD), "unknown", []),
        *((text.replace("LnkSta:	Speed 32GT/s, Width x16", "LnkSta:	Speed 2.5GT/s, Width x0"), "unknown", [])
          for text in (GPU, NIC, AMD)),
        (PORT.format("+") + GPU, "unknown", []),
        (PORT.format("-") + GPU, "ok", []),  # an empty slot
        (GPU.replace("Mem+", "Mem-"), "unknown", []),
        (NIC.replace("prefetchable) [size", "prefetchable) [disabled] [size"), "unknown", []),
        (GPU.replace("Mem+", "Mem-").replace("in use: nvidia", "in use: vfio-pci"), "ok",
         [("gpu-driver-failed", "info", AT)]),
        (GPU.replace("CorrErr-", "CorrErr+").replace("UnsupReq-", "UnsupReq+"), "ok", []),
        (GPU.replace(" FatalErr-", " FatalErr+"), "unknown", [("pcie-errors", "info", AT)]),
        (GPU.replace("NonFatalErr-", "NonFatalErr+"), "unknown", [("pcie-errors", "info", AT)]),
        (GPU.replace("NonFatalErr-", "NonFatalErr+").replace("UnsupReq-", "UnsupReq+"), "ok", []),
        (GPU.replace("Width x16", "Width x8"), "degraded", [("pcie-link-narrow", "warning", AT)]),
        (GPU.replace("32GT/s", "16GT/s"), "degraded", [("pcie-link-slow", "warning", AT)]),
        (AMD.replace("32GT/s", "16GT/s"), "degraded", [("pcie-link-slow", "warning", AT)]),
        (GPU.replace("size=128G", "size=256M"), "degraded", [("pcie-bar1-small", "warning", AT)]),
        (GPU.replace("210000000000", "<ignored>"), "degraded", [("pcie-bar1-small", "warning", AT)]),
        (DENIED, "unknown", []),
        (without("in use", DENIED), "unknown", []),
        (without("in use", DENIED).replace("BusMaster+", "BusMaster-"), "failed",
         [("gpu-driver-failed", "critical", AT)]),
    ],
)  # fmt: skip
def test_devices_that_cannot_work(text: str, verdict: str, expected: list[tuple[str, str, str]]) -> None:
    assert (report_of(text).verdict, found_in(text)) == (verdict, expected)
