from __future__ import annotations

import errno
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.machine import Net
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Observation
from linkgauge.probes.host.entries import NOT_RECORDED, UNASKED, UNLISTED, Entry, Folder, Link, UnreadableFile
from linkgauge.probes.host.host import Unreadable
from linkgauge.probes.host.recorded import Recorded, dump, parse

CAPTURE = """\
linkgauge capture 1
taken 2026-11-21T03:00:00Z

[sys/bus/pci/devices]
0000:51:00.0 -> ../../../devices/pci0000:50/0000:51:00.0
0000:ff:00.0 ->

[sys/bus/pci/drivers/nvidia] ?

[sys/devices/pci0000:50/0000:51:00.0]
"bad name" = x
class = 0x030200
driver -> ../../../bus/pci/drivers/nvidia
enable = ""
label ! 13 Permission denied
loop -> loop
msi_irqs ?
power -> ! 5 Input/output error
quoted = "\\"a\\""
resource:
| 0x1	0x2
|
|"at the end "
rom ! - gone mad

[sys/devices/pci0000:50/empty]

[sys/devices/shut] ! 13 Permission denied

@ ethtool eth0 "eth 1"
["Net",{"key":"eth0","max_speed":50000000000.0}]

@ link_load

end 34
"""
CARD = "sys/devices/pci0000:50/0000:51:00.0"
ENTRIES: dict[str, Entry] = {
    "sys/bus/pci/devices": Folder(),
    "sys/bus/pci/devices/0000:51:00.0": Link("../../../devices/pci0000:50/0000:51:00.0"),
    "sys/bus/pci/devices/0000:ff:00.0": Link(""),
    "sys/bus/pci/drivers/nvidia": UNLISTED,
    CARD: Folder(),
    f"{CARD}/bad name": "x",
    f"{CARD}/class": "0x030200",
    f"{CARD}/driver": Link("../../../bus/pci/drivers/nvidia"),
    f"{CARD}/enable": "",
    f"{CARD}/label": UnreadableFile(13, "Permission denied"),
    f"{CARD}/loop": Link("loop"),
    f"{CARD}/msi_irqs": UNASKED,
    f"{CARD}/power": Link(UnreadableFile(5, "Input/output error")),
    f"{CARD}/quoted": '"a"',
    f"{CARD}/resource": "0x1\t0x2\n\nat the end ",
    f"{CARD}/rom": UnreadableFile(None, "gone mad"),
    "sys/devices/pci0000:50/empty": Folder(),
    "sys/devices/shut": Folder(UnreadableFile(13, "Permission denied")),
}
CALLS = {
    ("ethtool", "eth0", "eth 1"): ('["Net",{"key":"eth0","max_speed":50000000000.0}]',),
    ("link_load",): (),
}
MACHINE = Recorded(1795230000, ENTRIES, CALLS)


def test_the_text_of_a_machine_is_as_documented() -> None:
    assert parse(CAPTURE) == MACHINE
    assert dump(MACHINE) == CAPTURE


def test_text_links_and_folders_are_found_under_any_of_their_names() -> None:
    by_bus = "sys/bus/pci/devices/0000:51:00.0"
    assert MACHINE.read(f"{by_bus}/class") == "0x030200"
    assert MACHINE.read(f"/{by_bus}//../0000:51:00.0/./enable") == ""
    assert MACHINE.resolve(f"{by_bus}/driver") == "sys/bus/pci/drivers/nvidia"
    assert MACHINE.resolve(f"{by_bus}/..") == "sys/devices/pci0000:50"
    assert MACHINE.list("sys/devices/pci0000:50/empty") == []
    assert MACHINE.list("sys/bus/pci/devices") == ["0000:51:00.0", "0000:ff:00.0"]
    assert "msi_irqs" in MACHINE.list(by_bus)
    assert MACHINE.now() == 1795230000


@pytest.mark.parametrize(
    "path", ["sys/bus/pci/devices/0000:ff:00.0", f"{CARD}/nothing", f"{CARD}/class/below", "sys/class/net/eth0"]
)
def test_what_was_not_here_is_not_here(path: str) -> None:
    assert (MACHINE.read(path), MACHINE.list(path), MACHINE.resolve(path)) == (None, [], None)


@pytest.mark.parametrize(
    ("question", "path", "code", "why"),
    [
        ("read", f"{CARD}/label", errno.EACCES, "Permission denied"),
        ("read", f"{CARD}/rom", None, "gone mad"),
        ("read", CARD, errno.EISDIR, "Is a directory"),
        ("read", f"{CARD}/msi_irqs", None, NOT_RECORDED.why),
        ("read", f"{CARD}/msi_irqs/27/below", None, NOT_RECORDED.why),
        ("read", "sys/bus/pci", None, NOT_RECORDED.why),
        ("list", f"{CARD}/msi_irqs", None, NOT_RECORDED.why),
        ("list", "sys/bus/pci", None, NOT_RECORDED.why),
        ("list", "", None, NOT_RECORDED.why),
        ("list", "sys/devices/shut", errno.EACCES, "Permission denied"),
        ("resolve", f"{CARD}/msi_irqs", None, NOT_RECORDED.why),
        ("resolve", f"{CARD}/power/wakeup", errno.EIO, "Input/output error"),
        ("resolve", f"{CARD}/loop", errno.ELOOP, "Too many levels of symbolic links"),
    ],
)
def test_what_would_not_say_will_not_say_again(question: str, path: str, code: int | None, why: str) -> None:
    with pytest.raises(Unreadable) as raised:
        getattr(MACHINE, question)(path)
    assert (raised.value.code, raised.value.why) == (code, why)


def test_calls_answer_as_they_did_and_others_are_not_checked() -> None:
    assert list(MACHINE.call("ethtool", "eth0", "eth 1", deadline=1)) == [Net(key="eth0", max_speed=50e9)]
    assert list(MACHINE.call("link_load", deadline=1)) == []
    assert list(MACHINE.call("ethtool", "eth0", deadline=1)) == [
        NotChecked(what="Net.max_speed", subject="node", reason=Reason.OTHER, detail="was not recorded")
    ]


def capture(*lines: str) -> str:
    head = ["linkgauge capture 1", "taken 2026-11-21T03:00:00Z", *lines]
    return "\n".join((*head, f"end {len(head)}"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: a capture starts with 'linkgauge capture 1', not with ''"),
        ("\x7fELF\0\1", "line 1: a capture starts with 'linkgauge capture 1', not with '\\x7fELF\\x00\\x01'"),
        ("linkgauge capture 2\nend 1", "line 1: this is capture format 2, and only format 1 is known here"),
        ("linkgauge capture 1\nend 1", "line 2: 'taken' and a time are missing"),
        ("linkgauge capture 1\ntaken today\nend 2", "line 2: 'taken today' is not 'taken' and a time like 2026-"),
        ("linkgauge capture 1\ntaken 2026-02-30T00:00:00Z\nend 2", "line 2: day"),
        (CAPTURE[: len(CAPTURE) // 2], "the capture was cut: it stops at "),
        (CAPTURE.replace("\n\n", "\n", 1), "line 34: 'end 34', but there are 33 lines above it"),
        (capture("a = b"), "line 3: 'a = b' is in no folder"),
        (capture("| more"), "line 3: '| more' continues no file"),
        (capture("[a", ""), "line 3: '[a' is not a folder"),
        (capture("[a] what"), "line 3: '[a] what' is not a folder"),
        (capture("[a]", "b % c"), "line 4: 'b % c' is neither a file nor a link"),
        (capture("[a]", "b ="), "line 4: '= ' does not describe a file"),
        (capture("[a]", "b = 1", "b ?"), "line 5: 'a/b' is there twice"),
        (capture("[a]", '".." = 1'), "line 4: '..' is not a name"),
        (capture("[a]", 'b = "x'), "line 4: '\"x' is not a JSON string"),
        (capture("[a]", "b ! denied"), "line 4: 'denied' is not an error number and a reason"),
        (capture("@ ethtool", '["Nut",{}]'), "line 4: no kind of fact is called 'Nut'"),
        (capture("@ ethtool", "eth0"), "line 4: JSON is malformed"),
        (capture("@ ethtool", '["Net",{"key":' + "[" * 100_000), "line 4: is nested too deeply"),
        (capture("@ a  b"), "line 3: '@ a  b' is not a call"),
    ],
)
def test_a_text_that_is_no_capture_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^line \d+: ") as raised:
        parse(text)
    assert message in str(raised.value)


texts = st.text() | st.from_regex(r"\A[ \t\"0-9a-zé!?\n|-]{0,12}\Z")
names = texts.filter(lambda name: "/" not in name and name not in ("", ".", ".."))
refusals = st.builds(UnreadableFile, st.none() | st.integers(1, 200), texts)
leaves = texts | refusals | st.builds(Link, texts | refusals) | st.just(UNASKED)
trees = st.recursive(leaves, lambda below: st.dictionaries(names, below, max_size=4), max_leaves=20)


@st.composite
def machines(draw: st.DrawFn) -> Recorded:
    entries: dict[str, Entry] = {}

    def grow(path: str, tree: object) -> None:
        if not isinstance(tree, dict):
            entries[path] = tree  # type: ignore[assignment]
            return
        entries[path] = draw(st.builds(Folder, st.none() | refusals | st.just(NOT_RECORDED)))
        for name, below in tree.items():
            grow(f"{path}/{name}" if path else name, below)

    grow("", draw(st.dictionaries(names, trees, max_size=4)))
    said = '["NotChecked",{"what":"Net","subject":"eth0","why":"é"}]'
    calls = draw(st.dictionaries(st.lists(texts, min_size=1).map(tuple), st.lists(st.just(said)).map(tuple)))
    return Recorded(draw(st.integers(0, 2**37)), entries, calls)


@given(machines())
def test_parsing_gives_again_what_was_dumped(machine: Recorded) -> None:
    text = dump(machine)
    assert parse(text) == machine
    assert dump(parse(text)) == text
    text.encode()


@given(machines(), st.lists(texts))
def test_any_question_has_an_answer(machine: Recorded, path: list[str]) -> None:
    for question in (machine.read, machine.list, machine.resolve):
        with suppress(Unreadable):
            question("/".join(path))


def parsed(text: str) -> Recorded | None:
    """The capture, or None if the text is refused with its line."""
    try:
        return parse(text)
    except ValueError as wrong:
        if not str(wrong).startswith("line "):
            raise
        return None


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    lines = text.split("\n")
    for whole in (text, capture(*lines), capture("[a]", *lines), capture("@ a", *lines), capture("[a]", "b:", *lines)):
        machine = parsed(whole)
        assert machine is None or parse(dump(machine)) == machine


@given(st.data())
def test_a_damaged_capture_is_parsed_or_refused(data: st.DataObject) -> None:
    lines = CAPTURE.split("\n")[:-2]
    line = data.draw(st.integers(0, len(lines) - 1))
    start = data.draw(st.integers(0, len(lines[line])))
    damage = data.draw(st.text() | st.sampled_from(list('"[]|@!?=:>-\\ ')))
    lines[line] = lines[line][:start] + damage + lines[line][start + data.draw(st.integers(0, 3)) :]
    machine = parsed("\n".join((*lines, f"end {len(lines)}")))
    assert machine is None or parse(dump(machine)) == machine


def test_observations_keep_their_evidence() -> None:
    line = (
        '["Observation",{"about":"0000:53:00.0","quantity":"link_speed","unit":"transfers_per_second","value":8e9,'
        '"at":1.0,"busy":true,"evidence":{"source":"x","text":"8.0 GT/s PCIe"}}]'
    )
    (said,) = parse(capture("@ link_load", line)).call("link_load", deadline=1)
    assert isinstance(said, Observation)
    assert (said.value, said.busy, said.evidence.text) == (8e9, True, "8.0 GT/s PCIe")
