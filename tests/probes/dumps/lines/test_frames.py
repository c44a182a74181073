"""Lines of tools with prefixes of other programs: hosts, quotes, numbers, records of journals and containers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.machine import Event
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Record
from linkgauge.probes.dumps.core.other_hosts import OTHER_HOSTS
from linkgauge.probes.dumps.core.split import is_filler, split
from linkgauge.probes.dumps.host import kernel_text
from linkgauge.probes.dumps.lines.frames import strip_frames
from linkgauge.probes.dumps.registry import READERS

XID = "NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', GPU has fallen off the bus."
TIMED = f"[12345.678901] {XID}"
STAMP = 1795230000.123456
TOPO = ["\tGPU0\tGPU1\tCPU Affinity", "GPU0\t X \tNV4\t0-15", "GPU1\tNV4\t X \t0-15"]


def record(**more: object) -> dict[str, object]:
    return {
        "__REALTIME_TIMESTAMP": "1795230000123456",
        "_TRANSPORT": "kernel",
        "_HOSTNAME": "n1",
        "MESSAGE": XID,
        **more,
    }


def export(one: dict[str, object], indent: str = "") -> str:
    return "".join(f"{indent}{name}={value}\n" for name, value in one.items())


def read(text: str) -> list[Record]:
    parts = [(family, part) for family, part in split("f", text, STAMP, READERS) if family or not is_filler(part)]
    assert [family and family.name for family, _ in parts] == ["kernel_text"]
    return [one for _, part in parts for one in kernel_text.read(part)]


@pytest.mark.parametrize(
    ("text", "line", "at"),
    [
        (f"n1: {TIMED}\nn1: {TIMED}\n", 2, 12345.678901),  # pdsh, clush
        (f"n1: \nn1: May 02 10:00:00 n1 kernel: {XID}\n", 2, 0.0),
        (f"n1 | {TIMED}\nn1 | {TIMED}\n", 2, 12345.678901),  # ansible
        (f"0: {TIMED}\n0: {TIMED}\n", 2, 12345.678901),  # srun --label
        (f"> {TIMED}\n", 1, 12345.678901),
        (f"12:{TIMED}\n15:{TIMED}\n", 2, 12345.678901),  # grep -n
        (f"/var/log/kern.log:May 02 10:00:00 n1 kernel: {XID}\n", 1, 0.0),
        (f"messages-20261121:May 02 10:00:00 n1 kernel: {XID}\n", 1, 0.0),
        (json.dumps({"log": f"{TIMED}\n", "stream": "stdout", "time": "2026-11-21T10:00:00.1Z"}), 1, 12345.678901),
        (f"2026-11-21T10:00:00.123456789Z stdout F {TIMED}\n", 1, 12345.678901),
        (f"2026-11-21T10:00:00.123456789Z {TIMED}\n", 1, 12345.678901),
        (f"[pod/monitor-x7/main] {TIMED}\n", 1, 12345.678901),
        (json.dumps(record()) + "\n" + json.dumps(record(PRIORITY="4")), 2, STAMP),
        ("data: " + json.dumps(record()), 1, STAMP),
        (json.dumps(record(), indent="\t"), 5, STAMP),
        (export(record()) + "\n" + export(record()), 9, STAMP),
        ("Sat 2026-11-21 03:00:00.123456 UTC [s=0a;i=2]\n" + export(record(), "    "), 5, STAMP),
        (json.dumps({"dmesg": [{"pri": 4, "time": 12345.678901, "msg": XID}]}, indent=3), 6, 12345.678901),
    ],
)
def test_a_line_of_a_kernel_log(text: str, line: int, at: float) -> None:
    (event,) = read(text)
    assert isinstance(event, Event)
    assert event.key == "xid 79 0000:53:00.0"
    assert event.at == pytest.approx(at)
    assert event.cites["text"].source == f"f:{line}"


def test_of_several_hosts_one() -> None:
    text = "\n".join(f"{host}: {line}" for line in TOPO for host in ("n1", "n2", "n3"))
    (family, part), (others, left) = split("f", text, 0.0, READERS)
    assert (family and family.name) == "smi_topology"
    assert part.text.split("\n")[::3] == TOPO
    assert others is OTHER_HOSTS
    assert list(OTHER_HOSTS.read(left)) == [
        NotChecked(
            what="dump",
            subject="f",
            how="pass the lines of one host only",
            reason=Reason.INCOMPLETE,
            detail="lines of n2, n3 from line 1 on: linkgauge evaluates one host at a time",
        )
    ]


@pytest.mark.parametrize(
    "heading",
    ["---------------\n{}\n---------------\n", "{} | CHANGED | rc=0 >>\n", "-----------\n{} (2)\n-----------\n"],
)
def test_of_blocks_with_hosts_above_them_the_first(heading: str) -> None:
    text = "".join(
        heading.format(name) + "\n".join(TOPO) + "\n" for name in ("n1", "gpu[2-3]" if "(" in heading else "n2")
    )
    found = [(family, part) for family, part in split("f", text, 0.0, READERS) if family]
    assert [family and family.name for family, _ in found] == ["smi_topology", "other_hosts"]
    assert [line for line in found[0][1].text.split("\n") if line] == TOPO


def test_headlines_are_no_hosts() -> None:
    text = "".join(f"----------\n{name}\n----------\n{TIMED}\n" for name in ("Summary", "Details"))
    assert [family and family.name for family, _ in split("f", text, 0.0, READERS) if family] == ["kernel_text"]


def test_a_quote_in_a_letter() -> None:
    """Text that is no output is listed with its line numbers."""
    text = "\n".join(["Hello!", "", "> here it is", *(f"> {line}" for line in TOPO), "", "Any idea?"])
    found = [(family and family.name, part.first, part.last) for family, part in split("f", text, 0.0, READERS)]
    assert found == [(None, 1, "3"), ("smi_topology", 4, "8")]


def test_words_with_colons_are_no_hosts() -> None:
    """A single line shows no host prefix, and prose stays unchanged."""
    for text in ("Workaround: NCCL_P2P_DISABLE=1\n", "Q: why?\nA: no idea\nQ: so?\n", "note: x\nnote: y\n"):
        ((family, part),) = split("f", text, 0.0, READERS)
        assert (family, part.text) == (None, text)


def test_web_pages() -> None:
    ((family, part),) = split("f", "NCCL_IB_HCA=&quot;mlx5&quot;\u00a0\nNCCL_DEBUG=&lt;x&gt;", 0.0, READERS)
    assert (family and family.name, part.text) == ("environment", 'NCCL_IB_HCA="mlx5"\nNCCL_DEBUG=<x>')
    xml = '<info name="a" value="&lt;b&gt;"/>'
    assert [part.text for _, part in split("f", xml, 0.0, READERS)] == [xml]


pieces = st.sampled_from(
    [
        "n1: ",
        "n2: ",
        "> ",
        "1:",
        "2:",
        "a.log:",
        json.dumps(record()),
        '"msg": "x"',
        '"time": 1.5,',
        "\n",
        "MESSAGE=x",
        "{",
        "__REALTIME_TIMESTAMP=9999999999999999",
        "2026-11-21T10:00:00Z ",
        "Sat 2026-11-21 03:00:00 CET [s=0a;i=2]",
        XID,
    ]
)


@given(st.lists(pieces | st.text(max_size=5)).map("".join))
def test_lines_keep_their_numbers(text: str) -> None:
    lines = text.split("\n")
    for frame in strip_frames(text):
        origin = range(len(lines)) if frame.origin is None else frame.origin
        assert len(frame.text.split("\n")) == len(origin)
        assert list(origin) == sorted(origin)
        assert set(origin) <= set(range(len(lines)))


def test_a_line_that_is_a_note_stays() -> None:
    """Only notes behind other text are removed."""
    text = '  <nic>\n     # <net name="mlx5_0"/>\n  </nic>   # the first one\n'
    for frame in strip_frames(text):
        assert '# <net name="mlx5_0"/>' in frame.text


@pytest.mark.parametrize("device", ["mlx5_0", "mlx5_bond_0", "nvme0n1", "eth0", "ib0", "rdmap16s27", "bnxt_re0"])
@pytest.mark.parametrize("times", range(2, 6))
def test_a_device_in_brackets_is_no_host(device: str, times: int) -> None:
    """A heading that a damaged text repeats. The names of hosts can begin like those of devices."""
    lines = [f"[{device}]", "state = ACTIVE", f"[{device}]"] * times
    for _, part in split("text", "\n".join(lines), 0.0, READERS):
        assert part.text.split("\n") == lines[part.first - 1 : part.first - 1 + part.text.count("\n") + 1]
    for host in ("node7", "ibm-3", "eth-lab1", "bonding7"):
        framed = "\n".join(f"[{host}] {line}" for line in ("CA 'mlx5_0'", "\tPort 1:", "\t\tState: Down"))
        assert any("\tPort 1:" in frame.text.split("\n") for frame in strip_frames(framed))
