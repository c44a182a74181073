"""The output of scontrol about nodes: of Slurm 22.05, and any other text."""

from __future__ import annotations

import string

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.slurm.scontrol import Node, parse_nodes

# Of a slurmctld with SLURM_TIME_FORMAT=%s, shortened in the middle.
PRINTED = """\
NodeName=gpu-1 Arch=x86_64 CoresPerSocket=1 
   CPUAlloc=0 CPUEfctv=1 CPUTot=1 CPULoad=3.07
   AvailableFeatures=(null)
   NodeAddr=127.0.0.1 NodeHostName=localhost Port=16818 Version=22.05.8
   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=all 
   BootTime=1795296644 SlurmdStartTime=1795322978
   ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s
   Reason=linkgauge: pcie-link-narrow 0000:53:00.0 [root@1795323053]
   Comment=spare [of rack 7]

NodeName=gpu-2 Arch=x86_64 CoresPerSocket=1 
   State=DOWN*+DRAIN+NOT_RESPONDING ThreadsPerCore=1 TmpDisk=0
   Reason=a fan [x@y] [slurm@2026-11-22T04:50:01]
   Extra=linkgauge: gpu-missing node

NodeName=gpu-3 CoresPerSocket=1 
   State=MIXED ThreadsPerCore=1 TmpDisk=0

"""  # noqa: W291


def test_the_nodes_of_a_real_one() -> None:
    one, two, three = parse_nodes(PRINTED)
    assert one == Node(
        name="gpu-1",
        state="IDLE+DRAIN",
        reason="linkgauge: pcie-link-narrow 0000:53:00.0",
        since=1795323053.0,
        notes={"Comment": "spare [of rack 7]"},
    )
    assert (one.ours, one.out, one.asking, one.free_note) == (True, True, False, "Extra")
    assert (two.reason, two.since) == ("a fan [x@y] [slurm@2026-11-22T04:50:01]", None)
    assert (two.ours, two.out, two.asking, two.free_note) == (False, True, True, "Comment")
    assert three == Node(name="gpu-3", state="MIXED", notes={})
    assert (three.ours, three.out, three.asking, three.free_note) == (False, False, False, "Comment")


@given(st.text())
def test_any_text_is_read_or_passed_over(text: str) -> None:
    assert all(one.name and one.state for one in parse_nodes(text))


@given(st.lists(st.text(string.printable), max_size=20))
def test_any_lines_behind_a_name_are_no_further_node(lines: list[str]) -> None:
    text = "NodeName=n\n   State=IDLE X=1\n" + "".join(f"   {' '.join(line.split())}\n" for line in lines)
    assert [one.name for one in parse_nodes(text)] == ["n"]


_words = st.text(string.ascii_letters + "0-:.@[", min_size=1, max_size=12)


@given(st.lists(st.tuples(_words, st.lists(_words, min_size=1), st.integers(0, 10**11), st.lists(_words)), max_size=4))
def test_what_is_printed_is_read(nodes: list[tuple[str, list[str], int, list[str]]]) -> None:
    text = "".join(
        f"NodeName={name} Arch=x\n   State=IDLE Owner=N/A\n   Reason={' '.join(reason)} [root@{at}]\n"
        + (f"   Comment={' '.join(note)}\n" if note else "")
        + "\n"
        for name, reason, at, note in nodes
    )
    assert [(one.name, one.reason, one.since, dict(one.notes)) for one in parse_nodes(text)] == [
        (name, " ".join(reason), float(at), {"Comment": " ".join(note)} if note else {})
        for name, reason, at, note in nodes
    ]
