"""lspci in its verbosities: whole, cut, grepped, and of rubbish."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.gpu import Gpu, GpuPair
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Node, Pci
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Fact, NotChecked, Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.pci import lspci

OUTPUTS = Path(__file__).parents[3].parent / "shared/data/outputs"

ROOT = """\
40:01.1 PCI bridge: Intel Corporation Device 352a (rev 04) (prog-if 00 [Normal decode])
\tDeviceName: Root Port
\tNUMA node: 1
\tIOMMU group: 12
\tBus: primary=40, secondary=41, subordinate=41, sec-latency=0
\tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00
\t\tDevCtl:\tCorrErr+ NonFatalErr- FatalErr+ UnsupReq-
\t\t\tRlxdOrd- ExtTag+ PhantFunc- AuxPwr- NoSnoop-
\t\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes
\t\tLnkCap:\tPort #1, Speed 32GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 32GT/s (ok), Width x8 (downgraded)
\tCapabilities: [220 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-
\tKernel driver in use: pcieport
"""
GPU = """\
41:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)
\tSubsystem: NVIDIA Corporation Device [10de:16c1]
\tPhysical Slot: 7
\tNUMA node: 1
\tRegion 0: Memory at 21c042000000 (64-bit, prefetchable) [size=16M]
\tRegion 2: Memory at 21c000000000 (64-bit, prefetchable) [size=256M]
\tRegion 4: Memory at 21c044000000 (64-bit, prefetchable) [size=32M]
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq+
\t\t\tRlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop- FLReset-
\t\t\tMaxPayload 256 bytes, MaxReadReq 4096 bytes
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <4us
\t\tLnkSta:\tSpeed 32GT/s (ok), Width x8 (downgraded)
\tCapabilities: [134 v1] Physical Resizable BAR
\t\tBAR 2: current size: 256MB, supported: 64MB 128MB 256MB 64GB 128GB
\tKernel driver in use: nvidia
\tKernel modules: nvidiafb, nouveau, nvidia
"""
SLOT, BUS = "0000:40:01.1", "0000:41:00.0"
READ = [
    Pci(
        key=SLOT,
        pci_class=0x060400,
        vendor=0x8086,
        device=0x352A,
        numa=1,
        iommu_group=12,
        label="Root Port",
        parent="pci0000:40",
        speed=32e9,
        width=8,
        max_speed=32e9,
        max_width=16,
        lost=False,
        driver="pcieport",
        max_payload=256,
        max_read_request=512,
        relaxed_ordering=False,
        downgraded=("width",),
        acs=("SrcValid", "ReqRedir"),
    ),
    Pci(
        key=BUS,
        pci_class=0x030200,
        vendor=0x10DE,
        device=0x2330,
        subvendor=0x10DE,
        subdevice=0x16C1,
        name="NVIDIA H100 SXM5 80GB",
        parent=SLOT,
        speed=32e9,
        width=8,
        max_speed=32e9,
        max_width=16,
        numa=1,
        slot="7",
        driver="nvidia",
        lost=False,
        bar1=256 << 20,
        bar1_max=128 << 30,
        max_payload=256,
        max_read_request=4096,
        relaxed_ordering=True,
        downgraded=("width",),
    ),
]


def said(text: str) -> list[Record]:
    return list(lspci.read(Part("dump", 1, text)))


def plain(told: list[Record]) -> list[Record]:
    """Without where it stood."""
    return [replace(one, cites={}) if isinstance(one, Fact) else one for one in told]


def functions(text: str) -> dict[str, Pci]:
    return {one.key: one for one in said(text) if isinstance(one, Pci)}


def begins(text: str) -> bool:
    return re.search(lspci.BEGIN, text, re.MULTILINE) is not None


def test_all_of_it() -> None:
    assert plain(said(f"{ROOT}\n{GPU}")) == READ


def test_where_it_stood() -> None:
    cites = {name: cite.source for name, cite in functions(f"{ROOT}\n{GPU}")[BUS].cites.items()}
    assert cites == {
        **dict.fromkeys(("pci_class", "vendor", "device", "name"), "dump:17"),
        "subvendor": "dump:18",
        "subdevice": "dump:18",
        "slot": "dump:19",
        "numa": "dump:20",
        "bar1": "dump:22",
        **dict.fromkeys(("relaxed_ordering", "max_payload", "max_read_request"), "dump:25"),
        "max_speed": "dump:28",
        "max_width": "dump:28",
        "speed": "dump:29",
        "width": "dump:29",
        "lost": "dump:29",
        "downgraded": "dump:29",
        "bar1_max": "dump:31",
        "driver": "dump:32",
    }


def test_the_order_of_functions_does_not_matter() -> None:
    assert sorted(plain(said(f"{GPU}\n{ROOT}")), key=str) == sorted(READ, key=str)


@pytest.mark.parametrize("end", range(len(f"{ROOT}\n{GPU}".splitlines()) + 1))
def test_what_a_cut_text_says_stays_true(end: int) -> None:
    text = "\n".join(f"{ROOT}\n{GPU}".splitlines()[:end])
    for one in said(text):
        if isinstance(one, NotChecked):
            assert one.what == "Pci.width"
            continue
        assert isinstance(one, Pci)
        (whole,) = (known for known in READ if known.key == one.key)
        told = {name: getattr(one, name) for name in one.cites}
        assert told == {name: getattr(whole, name) for name in told}


@pytest.mark.parametrize("speed", ["1.2.3", ".", "16.", "9" * 400, "\u0661.\u0662.\u0663"])
def test_a_speed_that_is_no_number(speed: str) -> None:
    text = f"41:00.0 3D controller: NVIDIA Corporation Device 2330\n\t\tLnkSta:\tSpeed {speed}GT/s, Width x16, TrErr-\n"
    assert functions(text)[BUS].speed is None
    assert functions(text.replace("LnkSta", "LnkCap"))[BUS].max_speed is None


def test_a_number_that_may_be_cut_is_not_read() -> None:
    """ "Width x1" at the end of a text may have been x16."""
    text = "41:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n\t\tLnkSta:\tSpeed 32GT/s, Width x1"
    assert functions(text)[BUS].width is None
    assert functions(f"{text}\n")[BUS].width == 1
    assert functions(f"{text}6, TrErr-")[BUS].width == 16


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0000:41:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)", (0x030200, 0x10DE, 0x2330, None)),
        (
            "41:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)",
            (0x030200, 0x10DE, 0x2330, "NVIDIA H100 SXM5 80GB"),
        ),
        (
            "41:00.0 VGA compatible controller: NVIDIA Corporation AD102 [GeForce RTX 4090] (rev a1) "
            "(prog-if 00 [VGA])",
            (0x030000, 0x10DE, 0x2684, "NVIDIA GeForce RTX 4090"),
        ),
        (
            "41:00.0 VGA compatible controller: NVIDIA Corporation TU102GL [Quadro RTX 6000/8000] (rev a1)",
            (0x030000, 0x10DE, None, "NVIDIA Quadro RTX 6000/8000"),
        ),
        ("41:00.0 0302: 10de:2330 (rev a1)", (0x030200, 0x10DE, 0x2330, None)),
        (
            "41:00.0 Processing accelerators [1200]: Advanced Micro Devices, Inc. [AMD/ATI] Device [1002:74a1]",
            (0x120000, 0x1002, 0x74A1, None),
        ),
        (
            "41:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]",
            (0x020700, 0x15B3, None, "Mellanox ConnectX-7"),
        ),
        ("41:00.0 Ethernet controller: Some Maker Fast Thing", (0x020000, None, None, None)),
        ("41:00.0 Strange controller: Intel Corporation Device 09a2", (None, 0x8086, 0x09A2, None)),
    ],
)
def test_what_a_function_is(line: str, expected: tuple[int | str | None, ...]) -> None:
    assert begins(line)
    one = functions(line)[BUS]
    assert (one.pci_class, one.vendor, one.device, one.name) == expected


def test_a_domain_of_its_own() -> None:
    assert list(functions("10000:e1:00.0 Non-Volatile memory controller: Intel Corporation Device 0a54")) == [
        "10000:e1:00.0"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "41:00.0 3D controller: NVIDIA Corporation Device 2330 (rev ff) (prog-if ff)\n\t!!! Unknown header type 7f\n",
        "41:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n\tLnkSta:\tSpeed unknown, Width x63, TrErr+\n",
    ],
)
def test_a_gpu_that_answers_no_more(text: str) -> None:
    one = functions(text)[BUS]
    assert (one.lost, one.width, one.speed) == (True, None, None)
    (finding,) = findings(text)
    assert (finding.code, finding.subject, finding.severity) == ("gpu-missing", BUS, "critical")
    assert finding.evidence[0].source in ("dump:1", "dump:2")


def test_a_link_without_a_partner_and_a_virtual_function() -> None:
    text = (
        "41:00.0 Ethernet controller: {}\n\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM\n\t\tLnkSta:\tSpeed {}\n"
    )
    none = functions(text.format("Intel Corporation Device 1592", "2.5GT/s (downgraded), Width x0 (downgraded)"))
    assert (none[BUS].width, none[BUS].max_width, none[BUS].lost) == (None, 16, False)
    virtual = functions(
        text.format("Mellanox Technologies ConnectX Family mlx5Gen Virtual Function", "unknown, Width x0")
    )
    assert (virtual[BUS].width, virtual[BUS].max_width) == (None, None)


@pytest.mark.parametrize(
    ("windows", "size"),
    [
        (
            "\tMemory at b8000000 (32-bit, non-prefetchable) [size=16M]\n\tMemory at 10f0 (64-bit) [size=32G]\n",
            32 << 30,
        ),
        (
            "\tRegion 0: Memory at b80 (32-bit) [size=16M]\n\tRegion 1: Memory at <unassigned> (64-bit) [size=64G]\n",
            0,
        ),
        (
            "\tRegion 0: Memory at b8000000 (32-bit) [size=16M]\n\tRegion 3: Memory at b9000000 (64-bit) [size=32M]\n",
            None,
        ),
        ("\tRegion 0: Memory at b8000000 (32-bit) [disabled] [size=16M]\n", None),
    ],
)
def test_the_window_for_peers(windows: str, size: int | None) -> None:
    gpu = functions(f"41:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)\n{windows}")[BUS]
    other = functions(f"41:00.0 3D controller: Intel Corporation Device 0bd5\n{windows}")[BUS]
    assert (gpu.bar1, other.bar1) == (size, None)


def test_parents_where_bridges_were_not_pasted() -> None:
    """The bus of a GPU alone may be anybody's; one that has a root port is a root's."""
    assert functions(GPU)[BUS].parent is None
    assert functions(ROOT)[SLOT].parent == "pci0000:40"


def test_what_was_not_shown_is_missed() -> None:
    shut = "41:00.0 3D controller: NVIDIA Corporation Device 2330\n\tCapabilities: <access denied>\n"
    path, why = "dump", "capabilities are shown to root alone"
    assert said(shut)[1:] == [
        NotChecked(
            what="Pci.width", subject="node", reason=Reason.PERMISSION, path=path, detail=why, how="sudo lspci -vvv"
        )
    ]
    half = (
        "41:00.0 3D controller: NVIDIA Corporation Device 2330\n\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM\n"
    )
    why = "dump has what its link could do (LnkCap) and not what it is trained at (LnkSta: link status)"
    how = "sudo lspci -vv -s 0000:41:00.0"
    assert said(half)[1:] == [NotChecked(what="Pci.width", subject=BUS, reason=Reason.OTHER, detail=why, how=how)]


def test_what_grep_left() -> None:
    text = (
        "\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1\n"
        "\t\tLnkSta:\tSpeed 16GT/s, Width x16\n"
        "\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x4 (downgraded)\n"
        "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
        "\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
    )
    assert begins(text)
    assert plain(said(text)) == [
        Pci(key="dump:1", max_speed=16e9, max_width=16, speed=16e9, width=16, lost=False),
        Pci(
            key="dump:3",
            speed=8e9,
            width=4,
            lost=False,
            downgraded=("speed", "width"),
            acs=("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"),
        ),
        Pci(key="dump:5", acs=()),
    ]


def findings(text: str, *beside: Record) -> tuple[Finding, ...]:
    return evaluate(assemble([*said(text), *beside], Site(), 2e9, origin="dumps")).findings


def told(text: str, *beside: Record) -> list[tuple[str, str, str, str]]:
    return [(one.code, one.subject, one.severity, one.message) for one in findings(text, *beside)]


GUEST = Node(key="node", virtual=True)
NARROW = f"GPU {BUS} (NVIDIA H100 SXM5 80GB) runs on x8, below its own x16"


def test_a_narrow_link_of_which_one_end_is_shown() -> None:
    alone = re.sub(r"\tRegion.*\n", "", GPU)
    assert told(alone) == [("pcie-link-narrow", BUS, "critical", NARROW)]
    assert "pcie-link-narrow" not in {code for code, *_ in told(alone, GUEST)}
    two = alone + alone.replace("41:00.0", "42:00.0")
    assert [severity for _, _, severity, _ in told(two)] == ["info", "info"]
    disk = alone.replace("3D controller [0302]", "Non-Volatile memory controller [0108]")
    assert [(code, severity) for code, _, severity, _ in told(disk)] == [("storage-link-slow", "warning")]
    assert [code for code, *_ in told(f"{ROOT}\n{alone}")] == ["pcie-link-narrow"]  # both ends: the other rule's


def test_a_narrow_link_of_nobody_knows_whom() -> None:
    line = "\t\tLnkSta:\tSpeed 5GT/s (downgraded), Width x1 (downgraded)\n"
    assert told(line) == [("pcie-link-narrow", "dump:1", "critical", "a device runs on x1, below its own width")]
    assert told(line * 2) == []  # one of them may be a port with a smaller card
    assert told("\t\tLnkSta:\tSpeed 5GT/s (downgraded), Width x16 (ok)\n") == []


def test_redirects_of_nobody_knows_whom() -> None:
    on = "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
    off = on.replace("Redir+", "Redir-")
    assert [(code, subject, severity) for code, subject, severity, _ in told(on + off)] == [
        ("pcie-acs-redirect", "node", "warning")
    ]
    assert told(off) == []
    assert told(on, Gpu(key="gpu0", nvlinks=18)) == []
    assert told(on, GpuPair(key="gpu0-gpu1", a="gpu0", b="gpu1", path="NV12")) == []
    assert told(on, GUEST) == []


def switch(controls: str) -> str:
    """Two GPUs without NVLink below one switch, whose downstream ports have these controls."""
    ports = "".join(
        f"42:0{number}.0 PCI bridge: Broadcom / LSI Device c030\n\tBus: primary=42, secondary=4{3 + number}, "
        f"subordinate=4{3 + number}, sec-latency=0\n\t\tACSCtl:\t{controls}\n\n"
        f"4{3 + number}:00.0 3D controller: NVIDIA Corporation Device 26b9 (rev a1)\n\n"
        for number in (0, 1)
    )
    above = "41:00.0 PCI bridge: Broadcom / LSI Device c030\n\tBus: primary=41, secondary=42, subordinate=44\n\n"
    return f"{ROOT.replace('subordinate=41', 'subordinate=44')}\n{above}{ports}"


def test_redirects_between_peers_are_judged_as_live() -> None:
    off = "SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-"
    on = off.replace("Redir-", "Redir+")
    assert [(code, subject) for code, subject, *_ in told(switch(on))] == [("pcie-acs-redirect", BUS)]
    assert told(switch(off)) == []


words = st.sampled_from(
    [*ROOT.splitlines(keepends=True), *GPU.splitlines(keepends=True), "\n", "\t", "41:00.0 ", "LnkSta:\tSpeed ", "x16"]
    + ["Width x", "GT/s, ", "[size=", "(rev ff)", "BAR 1: ", "ACSCtl:\t", "+", "-", "\x00", "[10de:2330]", "Device "]
)


@given(st.lists(words | st.text(max_size=8), max_size=40).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in said(text):
        assert isinstance(one, (Pci, NotChecked))
        assert decode(encode(one)) == one


def others() -> Iterator[Path]:
    for path in sorted(OUTPUTS.rglob("*")) if OUTPUTS.is_dir() else ():
        if path.is_file() and path.parent.name != "lspci" and path.suffix != ".tsv":
            yield path


@pytest.mark.skipif(not OUTPUTS.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_no_other_tool_begins_so() -> None:
    assert [path.name for path in others() if begins(path.read_text(errors="replace"))] == []


@pytest.mark.skipif(not OUTPUTS.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_a_recorded_machine() -> None:
    known = functions((OUTPUTS / "lspci/gpud_lspci-vvv.txt").read_text())
    gpus = [one for one in known.values() if one.device == 0x2330]
    assert len(known) == 517
    assert {(one.speed, one.width, one.bar1, one.bar1_max, one.numa) for one in gpus} <= {
        (32e9, 16, 128 << 30, 128 << 30, 0),
        (32e9, 16, 128 << 30, 128 << 30, 1),
    }
    assert len(gpus) == 8
    assert all(one.parent for one in known.values())
