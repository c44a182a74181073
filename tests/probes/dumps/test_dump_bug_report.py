"""nvidia-bug-report.log: its sections are found, each by its own reader, and dumps of bytes are passed over."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.inputs.resolve import given as input_of
from linkgauge.agent.pipeline.diagnose import look
from linkgauge.models.facts.gpu import Driver, Gpu
from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Event, Node, Pci, Service, Setting
from linkgauge.models.facts.records import Evidence
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.core.split import means_nothing, split
from linkgauge.probes.dumps.nvidia import bug_report
from linkgauge.probes.dumps.registry import READERS

EDGE = "_" * 44 + "\n\n"
UUID = "GPU-01234567-89ab-cdef-0123-456789abcdef"
INFORMATION = f"""\
Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 18
GPU UUID: \t {UUID}
Video BIOS: \t 96.00.89.00.01
Bus Type: \t PCIe
Bus Location: \t 0000:1b:00.0
Device Minor: \t 0
GPU Excluded:\t No
"""
LOST = INFORMATION.replace(UUID, "GPU-????????-????-????").replace("96.00.89.00.01", "??.??.??").replace("1b:", "43:")
BYTES = "".join(f"{row:02x}: " + " ".join(["ff", "0a"] * 8) + "\n" for row in range(0, 256, 16))


def command(line: str, output: str) -> str:
    return f"{EDGE}{line}\n\n{output}\n"


def file(path: str, content: str) -> str:
    return f"{EDGE}*** {path}\n*** ls: -r--r--r-- 1 root root 0 2026-11-21 10:11:12.000000000 +0000 {path}\n{content}\n"


SECTIONS = (
    (
        "bug_report host_text",
        f"{EDGE}Start of NVIDIA bug report log file.  Please include this file, along\nwith a description.\n\n"
        "nvidia-bug-report.sh Version: 34275571\n\nDate: Sat Nov 21 10:11:12 UTC 2026\n"
        "uname: Linux gpu01 6.8.0-45-generic #45-Ubuntu SMP x86_64 GNU/Linux\ncommand line flags: \n\n",
    ),
    ("bug_report", file("/etc/issue", "Ubuntu 24.04 LTS \\n \\l\n")),
    ("bug_report", f"{EDGE}*** /var/log/nvidia-installer.log does not exist\n\n"),
    (
        "bug_report fabric_log",
        file(
            "/var/log/fabricmanager.log",
            "[Nov 21 2026 09:00:01] [INFO] [tid 2841] Successfully configured all the "
            "available NVSwitches to route GPU NVLink traffic.\n",
        ),
    ),
    (
        "bug_report lspci",
        command(
            '/usr/bin/lspci -d "10de:*" -v -xxx',
            "1b:00.0 3D controller: NVIDIA Corporation GH100 (rev a1)\n"
            f"\tFlags: bus master, fast devsel, latency 0, IRQ 18\n\tKernel driver in use: nvidia\n{BYTES}",
        ),
    ),
    ("bug_report lspci_tree", command("/usr/bin/lspci -t", "-[0000:1a]-+-00.0\n           \\-01.0-[1b]----00.0\n")),
    ("bug_report cpu_text", command("/sbin/dmidecode", "# dmidecode 3.5\nSystem Information\n\tManufacturer: A.\n")),
    (
        "bug_report kernel_text",
        f"{EDGE}Scanning kernel log files for NVIDIA kernel messages:\n\n  journalctl -b -0:\nNov 21 09:30:00 gpu01 "
        "kernel: NVRM: Xid (PCI:0000:43:00): 79, pid=1, GPU has fallen off the bus.\n\n",
    ),
    ("bug_report kernel_text", f"{EDGE}dmesg:\n\n[    0.000000] Linux version 6.8.0-45-generic (b@b)\n"),
    ("bug_report", f"{EDGE}Using built-in specs.\nCOLLECT_GCC=gcc\ngcc version 13.2.0\n"),
    ("bug_report", f"{EDGE}xset -q:\n\nxset:  unable to open display\n"),
    ("bug_report host_text", file("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=UUID=1 ro iommu=pt\n")),
    ("bug_report cpu_text", file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Big\nphysical id\t: 0\n")),
    ("bug_report", file("/proc/interrupts", "            CPU0\n 125:      12345   IR-PCI-MSI 1-edge      nvidia\n")),
    ("bug_report host_text", file("/proc/modules", "nvidia_peermem 16384 0 - Live 0x0000000000000000 (OE)\n")),
    (
        "bug_report",
        file(
            "/proc/driver/nvidia/./version",
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 "
            "22:23:56 UTC 2024\nGCC version:  gcc version 13.2.0\n",
        ),
    ),
    ("bug_report", file("/proc/driver/nvidia/./gpus/0000:1b:00.0/information", INFORMATION)),
    ("bug_report", file("/proc/driver/nvidia/./gpus/0000:43:00.0/information", LOST)),
    (
        "bug_report smi_query",
        command(
            "/usr/bin/nvidia-smi --query",
            "\n==============NVSMI LOG==============\n\nDriver Version       "
            "                     : 550.54.15\n\nAttached GPUs                             : 1\nGPU "
            "00000000:1B:00.0\n    Product Name                          : NVIDIA H100 80GB HBM3\n",
        ),
    ),
    (
        "bug_report smi_topology",
        command("/usr/bin/nvidia-smi topo -m", "\tGPU0\tNIC0\tCPU Affinity\nGPU0\t X \tPIX\t0-1\nNIC0\tPIX\t X \t\n"),
    ),
    ("bug_report smi_nvlink", command("/bin/nvidia-smi nvlink -s", f"GPU 0: H100 (UUID: {UUID})\n Link 0: 25 GB/s")),
    ("bug_report", command("/usr/bin/nvidia-debugdump -D", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIj\n" * 50)),
    ("", f"{EDGE}\n"),
    ("bug_report", "End of NVIDIA bug report log file.\n"),
)
TEXT = "".join(text for _, text in SECTIONS)


def test_each_section_is_found() -> None:
    """And nothing is left over but lines between them."""
    found = list(split("log", TEXT, 0.0, READERS))
    assert [family.name for family, _ in found if family] == " ".join(names for names, _ in SECTIONS).split()
    assert all(means_nothing(part) for family, part in found if family is None)


@pytest.mark.parametrize("packed", [False, True])
def test_what_a_whole_report_says(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / ("nvidia-bug-report.log.gz" if packed else "nvidia-bug-report.log")
    path.write_bytes(gzip.compress(TEXT.encode()) if packed else TEXT.encode())
    source = input_of([str(path)])
    snapshot = look(source.host, source.readers, Site())
    node, gpu = snapshot.of(Node)["node"], snapshot.of(Gpu)["gpu0"]
    assert (node.hostname, node.kernel, node.vendor) == ("gpu01", "6.8.0-45-generic", "A.")
    assert (gpu.address, gpu.uuid, gpu.vbios) == ("0000:1b:00.0", UUID, "96.00.89.00.01")
    assert snapshot.of(Pci)["0000:1b:00.0"].driver == "nvidia"
    assert snapshot.of(Pci)["0000:1b:00.0"].parent == "0000:1a:01.0"
    assert [event.code for event in snapshot.of(Event).values() if event.kind == "xid"] == [79]
    assert {key: fact.value for key, fact in snapshot.of(Setting).items()} == {
        "iommu": "identity",
        "peer_memory": "nvidia_peermem",
    }
    assert snapshot.of(Service)["nvidia-fabricmanager"].running
    assert not snapshot.not_checked


def test_what_the_driver_says_of_itself_and_of_gpus() -> None:
    version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    told = list(bug_report.read(Part("p", 1, version + INFORMATION + LOST)))
    cite = Evidence("p:1", version.partition("  Rel")[0])
    assert told[0] == Driver(key="nvidia", version="580.65.06", cites={"version": cite})
    here = {
        "name": Evidence("p:2", "Model: \t\t NVIDIA H100 80GB HBM3"),
        "uuid": Evidence("p:4", f"GPU UUID: \t {UUID}"),
        "vbios": Evidence("p:5", "Video BIOS: \t 96.00.89.00.01"),
        "address": Evidence("p:7", "Bus Location: \t 0000:1b:00.0"),
    }
    name = "NVIDIA H100 80GB HBM3"
    assert told[1] == Gpu(
        key="0000:1b:00.0", name=name, uuid=UUID, vbios="96.00.89.00.01", address="0000:1b:00.0", cites=here
    )
    assert isinstance(told[2], Gpu)
    assert (told[2].key, told[2].uuid, told[2].vbios) == ("0000:43:00.0", None, None)


def test_a_version_is_on_its_own_line() -> None:
    assert list(bug_report.read(Part("f", 1, "NVRM version: NVIDIA UNIX x86_64 Kernel Module\n550.54.14\n"))) == []


def test_a_report_that_was_cut() -> None:
    for end in range(0, len(TEXT), 97):
        for family, part in split("log", TEXT[:end], 0.0, READERS):
            for one in family.read(part) if family else ():
                assert decode(encode(one)) == one


@pytest.mark.parametrize(
    "line", ["dmesg: read kernel buffer failed", "*** error", "/usr/bin/ld: cannot find -lcuda", "Model: x"]
)
def test_what_is_none(line: str) -> None:
    assert not re.search(bug_report.BEGIN, line, re.MULTILINE)


lines = st.sampled_from(
    [*INFORMATION.splitlines(), *LOST.splitlines(), "NVRM version: NVIDIA UNIX 1.2", "Bus Location: x"]
)


@given(st.lists(lines | st.text(max_size=9)).map("\n".join))
def test_any_text(text: str) -> None:
    for one in bug_report.read(Part("f", 1, text)):
        assert decode(encode(one)) == one
