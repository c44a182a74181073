"""Texts of tools and logs that say in words that something is broken: the finding of each.

The formats are those of the named programs. The values are invented.
"""

from __future__ import annotations

import pytest

from linkgauge.probes.dumps.read import recognise
from tests.support.texts import report_of

NO_LINKS = "NVML: Unable to retrieve NVLink information as all links are inActive\n"
UP = "".join(f"\t Link {number}: 26.562 GB/s\n" for number in range(18))


def judged(text: str) -> tuple[str, list[tuple[str, ...]]]:
    """The verdict of a text, and the findings without those that are for information."""
    report = report_of(text)
    found = [one for one in report.findings if one.severity != "info"]
    return report.verdict, [(one.severity, one.code, one.subject) for one in found]


def gpu(number: int, name: str) -> str:
    return f"GPU {number}: {name} (UUID: GPU-11111111-2222-3333-4444-55555555555{number})\n"


def states(*rows: str) -> str:
    """`dcgmi nvlink --link-status`: a row of letters per GPU (dcgmi/Nvlink.cpp of DCGM)."""
    gpus = "".join(f"    gpuId {number}:\n        {' '.join(row)}\n" for number, row in enumerate(rows))
    key = "\nKey: Up=U, Down=D, Disabled=X, Not Supported=_\n"
    head = "+----------------------+\n|  NvLink Link Status  |\n+----------------------+\n"
    return f"{head}GPUs:\n{gpus}NvSwitches:\n    No NvSwitches found.\n{key}"


NVLINKS = {
    # An excerpt with GPU 2 is of a node with three GPUs or more; one with GPU 0 can be of a guest with one GPU.
    "no link of a third GPU": (gpu(2, "NVIDIA B200") + NO_LINKS, "failed", [("critical", "nvlink-inactive", "gpu2")]),
    "no link of the only GPU": (gpu(0, "NVIDIA B200") + NO_LINKS, "unknown", []),
    "no link of one of two": (
        gpu(0, "NVIDIA H100 80GB HBM3") + UP + gpu(1, "NVIDIA H100 80GB HBM3") + NO_LINKS.replace("NVLink", "Nvlink"),
        "failed",
        [("critical", "nvlink-inactive", "gpu1")],
    ),
    "no link of a card": (gpu(3, "NVIDIA A100-PCIE-40GB") + NO_LINKS, "ok", []),  # most such cards have no bridge
    "no link of nobody knows whom": (NO_LINKS, "unknown", []),
    "DCGM, all down": (
        states("D" * 18, "D" * 18),
        "degraded",
        [("warning", "nvlink-inactive", "gpu0"), ("warning", "nvlink-inactive", "gpu1")],
    ),
    "DCGM, one down": (
        states("U" * 18, "U" * 7 + "D" + "U" * 10),
        "degraded",
        [("warning", "nvlink-inactive", "gpu1")],
    ),
    "DCGM, one of three bridges": (states("UUUU" + "D" * 8, "UUUU" + "D" * 8), "ok", []),
    "DCGM, all switched off": (states("X" * 18, "X" * 18), "unknown", []),
    "DCGM, one GPU": (states("D" * 18), "unknown", []),
}


@pytest.mark.parametrize("name", NVLINKS)
def test_nvlinks(name: str) -> None:
    text, verdict, found = NVLINKS[name]
    assert judged(text) == (verdict, found)


CE = "EDAC MC0: {} CE error on CPU#0Channel#2_DIMM#0 (channel:2 slot:0 page:0x0 offset:0x0 grain:8 syndrome:0x0)"
LOGS = {
    # The driver ends the programs of a GPU after an error, and names the error.
    "Xid 45 after 149": (
        "NVRM: Xid (PCI:0000:5d:00): 45, pid=71, name=train, Ch 00000003 caused by previous Xid 149\n",
        "failed",
        [("critical", "gpu-xid", "0000:5d:00.0")],
    ),
    "Xid 45 after an error of the program": (
        "NVRM: Xid (PCI:0000:5d:00): 45, pid=71, name=train, Ch 00000003 caused by previous Xid 43\n",
        "ok",
        [],
    ),
    "Xid with a damaged address": (
        "NVRM: Xid (PCI:000:5D:00): 79, GPU has fallen off the bus.\n",
        "failed",
        [("critical", "gpu-xid", "PCI:000:5D:00")],
    ),
    "a GPU of a driver of 2014": (
        "[   49.3] NVRM: GPU at 0000:02:00.0 has fallen off the bus.\n",
        "failed",
        [("critical", "gpu-missing", "0000:02:00.0")],
    ),
    "a GPU without an address": (
        "nvidia: GPU has fallen off the bus\n",
        "failed",
        [("critical", "gpu-missing", "node")],
    ),
    "a handle with a damaged address": (
        "Unable to determine the device handle for GPU 000:3A:80.0: Unknown Error\n",
        "failed",
        [("critical", "gpu-driver-failed", "gpu")],
    ),
    "a handle with a UUID": (
        "Unable to determine the device handle for GPU5: GPU-11111111-2222: Unknown Error\n",
        "failed",
        [("critical", "gpu-driver-failed", "gpu5")],
    ),
    "no GPU that the driver can use": ("No devices were found\n", "unknown", []),
    "a slot whose card is gone": (
        "".join(f"pcieport 0000:16:01.0: pciehp: Slot(12): {what}\n" for what in ("Link Down", "Card not present")),
        "degraded",
        [("warning", "pcie-errors", "0000:16:01.0")],
    ),
    "a contained error": (
        "pcieport 0000:16:01.0: DPC: containment event, status:0x1f01 source:0x0000\n",
        "degraded",
        [("warning", "pcie-errors", "0000:16:01.0")],
    ),
    # Corrected errors of memory: their number in an hour, in an excerpt their rate.
    "errors of memory at a high rate": (
        f"May  7 06:45:12 n1 kernel: [8690.5] {CE.format(4)}\nMay  7 06:45:19 n1 kernel: [8697.1] {CE.format(7)}\n",
        "degraded",
        [("warning", "host-memory-errors", "mc0")],
    ),
    "errors of memory in half a day": (
        f"[   90.529877] {CE.format(4)}\n[43290.529877] {CE.format(7)}\n",
        "ok",
        [],
    ),
    "many errors of memory without times": (
        f"{CE.format(66)}\n",
        "degraded",
        [("warning", "host-memory-errors", "mc0")],
    ),
    "a page with an error": (
        'EDAC MC1: UE page 0x3d4f2, offset 0x7c0, grain 128, row 5, labels ":": amd64_edac\n',
        "failed",
        [("critical", "host-memory-errors", "mc1")],
    ),
}
DOWN, UP_AGAIN = "NIC Link is Down", "NIC Link is Up 10 Gbps, Flow Control: RX/TX"


def of_port(driver: str, *lines: tuple[float, str]) -> str:
    return "".join(f"[{at:12.6f}] {driver} {text}\n" for at, text in lines)


PORTS = {
    "down and up twice": (
        of_port("e1000e: eth0", (86400, DOWN), (86402, UP_AGAIN), (86414, DOWN), (86433, UP_AGAIN)),
        "degraded",
        [("warning", "nic-port-flapping", "eth0")],
    ),
    "down and up twice while the machine boots": (
        of_port("ixgbe 0000:3b:00.0 ens3f0:", (12, UP_AGAIN), (13, DOWN), (14, UP_AGAIN), (15, DOWN), (17, UP_AGAIN)),
        "ok",
        [],
    ),
    "down and up once": (of_port("bnx2: eth1", (86400, DOWN), (86402, UP_AGAIN)), "ok", []),
    "down at last": (
        of_port("atlantic 0000:01:00.0 enp1s0: atlantic:", (9, "link change old 0 new 10000"))
        + of_port("atlantic 0000:01:00.0 enp1s0: atlantic:", (86400, "link change old 10000 new 0")),
        "degraded",
        [("warning", "nic-port-down", "enp1s0")],
    ),
    "down while running": (
        of_port("tg3 0000:03:00.0: eth0:", (86400, "Link is down")),
        "degraded",
        [("warning", "nic-port-down", "eth0")],
    ),
    "down while the machine boots": (of_port("mlx5_core 0000:18:00.0 ens1f0np0:", (9, "Link down")), "ok", []),
}


@pytest.mark.parametrize("name", [*LOGS, *PORTS])
def test_logs(name: str) -> None:
    text, verdict, found = (LOGS | PORTS)[name]
    assert judged(text) == (verdict, found)


def ibstat(physical: str, lid: int) -> str:
    """`ibstat` of a port that is down (infiniband-diags, ibstat.c)."""
    port = f"\t\tState: Down\n\t\tPhysical state: {physical}\n\t\tBase lid: {lid}\n\t\tLink layer: InfiniBand\n"
    return f"CA 'mlx5_4'\n\tCA type: MT4129\n\tPort 1:\n{port}"


@pytest.mark.parametrize(
    ("physical", "lid", "verdict", "severity"),
    [
        ("Polling", 412, "degraded", "warning"),
        ("Polling", 65535, "degraded", "warning"),
        ("Disabled", 412, "unknown", ""),
    ],
)
def test_the_only_port_of_a_text(physical: str, lid: int, verdict: str, severity: str) -> None:
    """A text that shows only one port asks about it. One was switched off."""
    found = [(severity, "nic-port-down", "mlx5_4/1")] if severity else []
    assert judged(ibstat(physical, lid)) == (verdict, found)


BUS = "pcieport 0000:00:1d.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("".join(f"[{3 + number / 1000:12.6f}] {BUS}\n" for number in range(3)), "ok"),
        ("".join(f"[{3 + number:12.6f}] {BUS}\n" for number in range(200)), "degraded"),
        (f"{BUS}\n" * 40, "ok"),
        (f"{BUS}\n" * 900, "degraded"),
    ],
    ids=["a few", "many in minutes", "some without times", "many without times"],
)
def test_corrected_errors_of_a_bus(text: str, verdict: str) -> None:
    """Their rate decides: a few errors while a link trains cost no bandwidth."""
    assert judged(text)[0] == verdict


ARRAY = "md1 : active raid1 sdb3[2](F) sda3[0]\n      1948488512 blocks super 1.0 [2/1] [U_]\n"
MARGINS = {"cat -n": "{:6}\t", "less -N": "{:7} ", "a web page": "{:4} | ", "an editor": "{:3}  "}


@pytest.mark.parametrize("margin", MARGINS)
def test_numbered_lines(margin: str) -> None:
    lines = ARRAY.splitlines()
    text = "".join(f"{MARGINS[margin].format(number)}{line}\n" for number, line in enumerate(lines, 40))
    assert judged(text) == ("failed", [("critical", "storage-degraded", "md1")])


def test_numbered_lines_of_a_log() -> None:
    """Without a blank before the brackets. The log has no fault, and its format is known."""
    line = "[   22.325345] mlx5_core 0000:63:00.0: firmware version: 28.36.1010"
    text = "".join(f"{number}{line}\n" for number in (1700, 1701, 1706))
    assert recognise(text)
    assert judged(text) == ("unknown", [])


def dcgm_health(number: int, links: range) -> str:
    """`dcgmi health -c` of one GPU (dcgmi/Health.cpp of DCGM)."""
    rows = "".join(f"|                  | GPU {number}'s NvLink link {link} is currently down. |\n" for link in links)
    return f"| Overall Health   | Failure |\n| -> {number}     | Failure |\n|    -> NVLINK system | Failure |\n{rows}"


@pytest.mark.parametrize(
    ("name", "links", "verdict", "severity"),
    [
        ("", range(12), "degraded", "warning"),  # a card without a bridge, or a GPU whose board failed
        ("", range(18), "degraded", "warning"),
        ("", range(7, 8), "failed", "critical"),
        ("", range(4, 8), "failed", "critical"),  # one of two bridges
        ("NVIDIA A100-PCIE-40GB", range(12), "unknown", None),
        ("NVIDIA A100 80GB PCIe", range(12), "unknown", None),
        ("NVIDIA H100 80GB HBM3", range(18), "failed", "critical"),
    ],
)
def test_links_that_dcgm_calls_down(name: str, links: range, verdict: str, severity: str | None) -> None:
    listed = "".join(gpu(number, name) for number in range(2)) + "\n" if name else ""
    found = judged(listed + dcgm_health(0, links))
    assert found == (verdict, [(severity, "nvlink-inactive", "gpu0")] if severity else [])


FULL = (
    "touch: cannot touch 'run.log': No space left on device",
    "cp: error writing '/data/a.bin': No space left on device",
    "-bash: echo: write error: No space left on device",
    "tar: weights.bin: Cannot write: No space left on device",
    'rsync: write failed on "/data/a.bin": No space left on device (28)',
    "OSError: [Errno 28] No space left on device: '/data/step_20.pt'",
    "Error: write /var/lib/containerd/tmp/layer: no space left on device",
    "Error: ENOSPC: no space left on device, write",
)
NOT_FULL = (
    "bash: echo: write /sys/fs/cgroup/cpuset/tasks: no space left on device",
    "inotify_add_watch(/tmp) failed: No space left on device",
)
DF = (
    "Filesystem      Size  Used Avail Use% Mounted on\n/dev/nvme0n1p2  440G  120G  298G  29% /\n"
    "/dev/gpfs1      1.9P  1.7P  190T  91% /work\n"
)


@pytest.mark.parametrize("line", FULL)
@pytest.mark.parametrize("text", ["{}\n", "{}\n\n$ df -h\n" + DF, "$ df -h\n" + DF + "$ make\n{}\n", "> {}\n\n" + DF])
def test_a_write_that_finds_no_space(text: str, line: str) -> None:
    assert judged(text.format(line)) == ("degraded", [("warning", "storage-full", "node")])


@pytest.mark.parametrize("line", NOT_FULL)
def test_other_limits_with_the_same_word(line: str) -> None:
    assert [found for found in judged(line + "\n")[1] if found[1] == "storage-full"] == []
