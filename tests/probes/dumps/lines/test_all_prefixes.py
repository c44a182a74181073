"""What programs write before each line, before outputs of several tools: the same findings as without it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

AT = 1.795e9
LINKS = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n" + "".join(
    f"\t Link {link}: {'<inactive>' if link == 5 else '26.562 GB/s'}\n" for link in range(18)
)
PORT = "CA 'mlx5_{}'\n\tPort 1:\n\t\tState: {}\n\t\tPhysical state: {}\n\t\tRate: 400\n\t\tLink layer: InfiniBand\n"
PORTS = "".join(PORT.format(at, *(("Down", "Polling") if at == 3 else ("Active", "LinkUp"))) for at in range(4))
LINK = (
    "41:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
    "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
    "\t\tLnkSta:\tSpeed 32GT/s, Width x8 (downgraded)\n"
)
OUTPUTS = {
    "nvlink": (LINKS, "nvlink-inactive"),
    "ibstat": (PORTS, "nic-port-down"),
    "lspci": (LINK, "pcie-link-narrow"),
}
PREFIXES = (
    "Nov 27 02:00:01 node7 check[4242]: ",
    "2026-11-27T02:00:01+00:00 node7 check[4242]: ",
    "2026-11-27T02:00:01.123Z ",
    "[Fri Nov 27 02:00:01 2026] ",
    "[   12.345678] ",
    "<6>",
    "# ",
    "// ",
    "| ",
    "│ ",
    "> ",
    "out> ",
    "node7|",
    "node7: ",
    "node7 | ",
    "worker-0  | ",
    "[node7] ",
    "  1: ",
    "[1,0]<stdout>: ",
    "2026-11-27T02:00:01.123456789Z stdout F ",
    "02:00:01 ",
    "INFO: ",
    "[INFO] ",
    "2026-11-27 02:00:01,123 - INFO - ",
    "I1127 02:00:01.123456  4242 check.cc:12] ",
    "2026-11-27T02:00:01Z node7 ",
    "Nov 27 02:00:01 node7 ",
    "[2026-11-27 02:00:01] node7 ",
    "node7> ",
    "check-x7 worker ",
    "(Check pid=4242, ip=10.0.0.7) ",
    "[rank0]:",
    "[default0]:",
    "+",
)


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("prefix", ["", *PREFIXES])
def test_a_prefix_hides_no_fault(prefix: str, name: str) -> None:
    text, code = OUTPUTS[name]
    framed = "".join(f"{prefix}{line}\n" for line in text.splitlines())
    report = evaluate(assemble(read_text("dump.txt", framed, AT), Site(), AT, origin="dumps"))
    assert [one.code for one in report.findings if one.severity != "info"] == [code]


def _escaped(line: str) -> str:
    return line.replace("\t", "\\t").replace('"', '\\"')


AROUND: dict[str, Callable[[str], str]] = {
    "quotation marks": lambda line: f'"{line}"',
    "logfmt": lambda line: f'time="2026-11-27T02:00:01Z" level=info msg="{_escaped(line)}"',
    "a table with one column": lambda line: f"| {line.strip()} |",
}


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("around", AROUND)
def test_what_is_around_each_line_hides_no_fault(around: str, name: str) -> None:
    text, code = OUTPUTS[name]
    framed = "".join(f"{AROUND[around](line)}\n" for line in text.splitlines())
    report = evaluate(assemble(read_text("dump.txt", framed, AT), Site(), AT, origin="dumps"))
    assert [one.code for one in report.findings if one.severity != "info"] == [code]


def test_names_and_values_in_a_table() -> None:
    rows = ("GPU|00000000:41:00.0", "Remapped Rows|", "Pending|Yes", "Remapping Failure Occurred|No")
    for heading in ("key|value", "Field|Value", "**Property**|**State**"):
        lines = [heading, "---|---", *rows]
        text = "".join(f"| {line.replace('|', ' | ')} |\n" for line in lines)
        report = evaluate(assemble(read_text("dump.txt", text, AT), Site(), AT, origin="dumps"))
        assert [one.code for one in report.findings] == ["gpu-row-remap"], text
