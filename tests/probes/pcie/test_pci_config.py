"""Configuration spaces typed in byte by byte, and what lspci makes of the same bytes."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Pci
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, NotChecked
from linkgauge.probes.host.entries import Link
from linkgauge.probes.pcie.config_space import capabilities, capabilities_of, read_pci_config
from linkgauge.probes.pcie.links import DEVICES
from tests.support.nodes.trees import tree

LSPCI = shutil.which("lspci") or "/usr/bin/lspci"
PATH = f"{DEVICES}/0000:17:00.0/config"
SHUT = NotChecked(
    what="Pci.acs",
    subject="node",
    how="run as root",
    reason=Reason.PERMISSION,
    detail="the kernel shows users only 64 bytes of configuration space; ACS of ports (redirection of peer traffic), "
    "payload sizes and read request sizes are hidden",
)


@dataclass(frozen=True)
class Space:
    """A function: its class, Device Control and ACS Control registers (None: no such capability)."""

    pci_class: int = 0x060400
    control: int | None = 0x2910
    acs: int | None = 0
    size: int = 4096
    vendor: int = 0x10B5

    def bytes(self) -> bytes:
        config = bytearray(self.size)
        struct.pack_into("<HHHHI", config, 0, self.vendor, 0x9797, 0x0406, 0x0010, self.pci_class << 8)
        config[0x0E] = 0x01 if self.pci_class == 0x060400 else 0x00
        if self.size <= 64:
            return bytes(config)
        config[0x34] = 0x40
        config[0x40:0x42] = bytes((0x01, 0x68 if self.control is not None else 0))  # power management comes first
        if self.control is not None:
            port = 6 if self.pci_class == 0x060400 else 0  # a downstream port, or an endpoint
            struct.pack_into("<BBHIH", config, 0x68, 0x10, 0, port << 4 | 2, 0, self.control)
        if self.size > 256:
            struct.pack_into("<I", config, 0x100, 0x0001 | 2 << 16 | (0x1CC << 20 if self.acs is not None else 0))
        if self.size > 256 and self.acs is not None:
            struct.pack_into("<IHH", config, 0x1CC, 0x000D | 1 << 16, 0x007F, self.acs)
        return bytes(config)


def fact(control: int, payload: int | None, request: int | None, relaxed: bool) -> Pci:
    cites = {"max_payload": Evidence(PATH, f"DevCtl {control:#06x}")}
    return Pci(key="0000:17:00.0", max_payload=payload, max_read_request=request, relaxed_ordering=relaxed, cites=cites)


@pytest.mark.parametrize(
    ("control", "payload", "read", "relaxed"),
    [
        (0x2910, 128, 512, True),
        (0x5920, 256, 4096, False),
        (0x5970, 1024, 4096, True),
        (0x0000, 128, 128, False),
        (0x60C0, None, None, False),  # 6 is reserved
    ],
)
def test_device_control(control: int, payload: int | None, read: int | None, relaxed: bool) -> None:
    config = Space(control=control, acs=None).bytes()
    assert capabilities_of("0000:17:00.0", config, PATH) == fact(control, payload, read, relaxed)


def acs_of(space: Space) -> tuple[str, ...] | None:
    said = capabilities_of("0000:17:00.0", space.bytes(), PATH)
    assert said
    return said.acs


def test_access_control() -> None:
    every = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
    assert acs_of(Space(acs=0x001D)) == ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")
    assert acs_of(Space(acs=0xFFFF)) == every
    assert acs_of(Space(acs=0)) == ()
    assert acs_of(Space(acs=None)) is None
    assert acs_of(Space(acs=0x001D, size=256)) is None  # a kernel that reaches no further


def test_no_pci_express() -> None:
    assert capabilities_of("0000:17:00.0", Space(control=None).bytes(), PATH) is None


def devices(root: Path, spaces: dict[str, bytes]) -> None:
    for address, config in spaces.items():
        (root / DEVICES / address).mkdir(parents=True)
        (root / DEVICES / address / "config").write_bytes(config)


def test_a_machine_seen_by_root(tmp_path: Path) -> None:
    """Bridges and devices that move bytes are read. Sleeping, lost and other devices are not."""
    gpu, sound = Space(0x030200, control=0x2930, acs=None, vendor=0x10DE), Space(0x040300, vendor=0x10DE)
    devices(
        tmp_path,
        {
            "0000:16:01.0": Space(acs=0x1D).bytes(),
            "0000:17:00.0": gpu.bytes(),
            "0000:17:00.1": sound.bytes(),
            "0000:18:00.0": b"\xff" * 4096,
            "0000:19:00.0": gpu.bytes(),
            "0000:20:00.0": b"",
            "rubbish": gpu.bytes(),
        },
    )
    (tmp_path / DEVICES / "0000:19:00.0/power_state").write_text("D3cold\n")
    (tmp_path / DEVICES / "0000:21:00.0/config").mkdir(parents=True)
    port = f"{DEVICES}/0000:16:01.0/config"
    assert list(capabilities(str(tmp_path))) == [
        Pci(
            key="0000:16:01.0",
            max_payload=128,
            max_read_request=512,
            relaxed_ordering=True,
            acs=("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"),
            cites={
                "max_payload": Evidence(port, "DevCtl 0x2910"),
                "acs": Evidence(port, "ACSCtl 0x001d: SrcValid ReqRedir CmpltRedir UpstreamFwd"),
            },
        ),
        fact(0x2930, 256, 512, True),
        NotChecked(
            what="Pci.acs",
            subject="0000:21:00.0",
            reason=Reason.UNREADABLE,
            path=f"{DEVICES}/0000:21:00.0/config",
            detail="Is a directory",
        ),
    ]


def test_a_machine_seen_by_a_user(tmp_path: Path) -> None:
    """One gap for all: the kernel shows users 64 bytes."""
    devices(tmp_path, {f"0000:1{n}:00.0": Space(0x020700).bytes()[:64] for n in range(3)})
    assert list(capabilities(str(tmp_path))) == [SHUT]
    assert list(capabilities(str(tmp_path / "nowhere"))) == []


def test_only_peers_are_worth_the_question() -> None:
    first, second = ("sys/bus/pci/drivers/nvidia/0000:17:00.0", "sys/bus/pci/drivers/nvidia/0000:31:00.0")
    nic = "sys/class/infiniband/mlx5_0"
    calls: dict[tuple[str, ...], tuple[str, ...]] = {("pci_config",): (encode(SHUT),)}
    for links, said in (((first, second), [SHUT]), ((first, nic), [SHUT]), ((first,), []), ((nic,), [])):
        assert list(read_pci_config(tree(dict.fromkeys(links, Link("")), calls))) == said


@given(st.binary(max_size=300) | st.binary(min_size=4096, max_size=4096))
def test_any_bytes(config: bytes) -> None:
    said = capabilities_of("0000:17:00.0", config, PATH)
    assert said is None or decode(encode(said)) == said
    with TemporaryDirectory() as root:
        devices(Path(root), {"0000:17:00.0": config})
        for one in capabilities(root):
            assert decode(encode(one)) == one


registers = st.integers(0, 0xFFFF)


@pytest.mark.skipif(not Path(LSPCI).exists(), reason="needs lspci (package pciutils)")
@settings(max_examples=12)
@given(st.sampled_from((0x060400, 0x030200, 0x020700)), registers.filter(lambda n: n >> 5 & 7 < 6), registers)
def test_the_same_as_lspci(pci_class: int, control: int, acs: int) -> None:
    """It reads a dump of bytes as it would read a device."""
    control &= 0x8FFF | (control >> 12 & 7) % 6 << 12
    config = Space(pci_class, control, acs).bytes()
    said = capabilities_of("0000:17:00.0", config, PATH)
    assert said
    lines = (f"{at:03x}: {config[at : at + 16].hex(' ')}" for at in range(0, len(config), 16))
    with TemporaryDirectory() as folder:
        (Path(folder) / "dump").write_text("17:00.0 Device\n" + "\n".join(lines) + "\n\n")
        told = subprocess.run(
            [LSPCI, "-F", f"{folder}/dump", "-vvv"], capture_output=True, text=True, check=True
        ).stdout
    found = re.search(r"MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes", told)
    assert found
    assert (int(found[1]), int(found[2])) == (said.max_payload, said.max_read_request)
    assert said.relaxed_ordering == ("RlxdOrd+" in told)
    switches = re.search(r"ACSCtl:\s(.*)", told)
    assert switches
    assert said.acs == tuple(name[:-1] for name in switches[1].split() if name.endswith("+"))
