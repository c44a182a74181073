from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.models.facts.machine import Net
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import NotChecked, Observation, Record
from linkgauge.probes.capture.recorder import Recording
from linkgauge.probes.host.entries import UNASKED, UNLISTED, Entry, Folder, Link, UnreadableFile
from linkgauge.probes.host.host import Host, Unreadable
from linkgauge.probes.host.live import Live
from linkgauge.probes.host.recorded import Recorded, dump, parse
from linkgauge.probes.pcie.pci import read_pci
from linkgauge.probes.synthetic.build import build
from tests.support.nodes.trees import write as write_tree

Answer = str | list[str] | tuple[int | None, str] | None


def answers(host: Host, questions: list[tuple[str, str]]) -> list[Answer]:
    """The answer of the host to each pair of operation (read, list or resolve) and path."""
    return [answer(getattr(host, verb), path) for verb, path in questions]


def answer(question: Callable[[str], str | list[str] | None], path: str) -> Answer:
    try:
        return question(path)
    except Unreadable as refusal:
        return (refusal.code, refusal.why)


names = st.sampled_from(["a", "b", "c", "d", "é x"])
paths = st.lists(names | st.sampled_from(["..", "."]), min_size=1, max_size=5).map("/".join)
asked_paths = st.lists(names, max_size=5).map("/".join)
questions = st.lists(st.tuples(st.sampled_from(["read", "list", "resolve"]), asked_paths), max_size=12)
leaves = st.sampled_from(["", "text", "two\nlines"]) | paths.map(Link) | paths.map(lambda path: Link(f"/{path}"))
trees = st.dictionaries(names, st.recursive(leaves, lambda below: st.dictionaries(names, below, max_size=3)))


def write(tree: object, path: Path) -> None:
    """The tree as files, folders (dictionaries) and symbolic links under a path."""
    if isinstance(tree, dict):
        path.mkdir(exist_ok=True)
        for name, below in tree.items():
            write(below, path / name)
    elif isinstance(tree, Link):
        path.symlink_to(str(tree.target))
    else:
        path.write_text(str(tree))


@given(trees, questions)
def test_a_record_answers_what_was_asked_as_the_machine_did(tree: object, asked: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        write(tree, Path(root))
        live = Live(root)
        recording = Recording(live)
        said = answers(live, asked)
        assert answers(recording, asked) == said
        record = recording.recorded()
        assert answers(record, asked) == said
        assert parse(dump(record)) == record


def grown(path: str, tree: object) -> Iterator[tuple[str, Entry]]:
    """The entries of a tree: folders are dictionaries, "?" among their names is one that was not listed."""
    if isinstance(tree, dict):
        yield path, UNLISTED if "?" in tree else Folder(UnreadableFile(13, "shut")) if "!" in tree else Folder()
        for name, below in tree.items():
            if name not in "?!":
                yield from grown(f"{path}/{name}" if path else name, below)
    else:
        assert isinstance(tree, str | Link | UnreadableFile)
        yield path, tree


refusing = leaves | st.sampled_from(
    [UNASKED, Link(""), UnreadableFile(13, "Permission denied"), Link(UnreadableFile(5, "broken"))]
)
marked = names | st.sampled_from(["?", "!"])
machines = st.dictionaries(marked, st.recursive(refusing, lambda below: st.dictionaries(marked, below, max_size=3)))


@given(machines, questions)
def test_a_record_refuses_what_the_machine_refused(tree: object, asked: list[tuple[str, str]]) -> None:
    machine = Recorded(0, dict(grown("", tree)))
    recording = Recording(machine)
    said = answers(machine, asked)
    assert answers(recording, asked) == said
    assert answers(recording.recorded(), asked) == said


def test_links_and_unasked_neighbours_are_kept_and_nothing_else(tmp_path: Path) -> None:
    card = tmp_path / "sys/devices/pci0000:00/0000:00:02.0"
    card.mkdir(parents=True)
    (card / "class").write_text("0x030000\n")
    (card / "config").write_bytes(bytes(256))
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices/0000:00:02.0").symlink_to("../../../devices/pci0000:00/0000:00:02.0")
    recording = Recording(Live(str(tmp_path)))
    recording.list("sys/bus/pci/devices")
    recording.read("sys/bus/pci/devices/0000:00:02.0/class")
    recording.read("sys/bus/pci/devices/0000:00:02.0/label")
    recording.list("sys/devices/pci0000:00/0000:00:02.0")
    assert recording.recorded().entries == {
        "sys/bus/pci/devices": Folder(),
        "sys/bus/pci/devices/0000:00:02.0": Link("/sys/devices/pci0000:00/0000:00:02.0"),
        "sys/devices/pci0000:00/0000:00:02.0": Folder(),
        "sys/devices/pci0000:00/0000:00:02.0/class": "0x030000",
        "sys/devices/pci0000:00/0000:00:02.0/config": UNASKED,
    }


def test_the_folder_of_a_process_is_everybody_s(tmp_path: Path) -> None:
    (tmp_path / "proc/4711").mkdir(parents=True)
    (tmp_path / "proc/4711/mounts").write_text("proc /proc proc rw 0 0\n")
    (tmp_path / "proc/self").symlink_to("4711")
    (tmp_path / "proc/mounts").symlink_to("self/mounts")
    recording = Recording(Live(str(tmp_path)))
    recording.read("proc/mounts")
    record = recording.recorded()
    assert record.entries == {
        "proc/mounts": Link("/proc/self/mounts"),
        "proc/self/mounts": "proc /proc proc rw 0 0",
    }
    assert record.read("proc/mounts") == record.read("proc/self/mounts") == "proc /proc proc rw 0 0"


def test_all_sources_say_of_a_record_what_they_said_of_the_machine(tmp_path: Path) -> None:
    write_tree(tmp_path, build((Path(__file__).parents[2] / "nodes/server-raid.toml").read_text()).entries)
    recording = Recording(Live(str(tmp_path)))
    said = [untimed(one) for reader in SOURCES for one in reader.read(recording)]
    record = parse(dump(recording.recorded()))
    assert [untimed(one) for reader in SOURCES for one in reader.read(record)] == said
    assert [untimed(one) for reader in SOURCES for one in reader.read(Live(str(tmp_path)))] == said
    assert len(said) > 100


def untimed(said: Record) -> Record:
    return replace(said, at=0.0) if isinstance(said, Observation) else said


PCI_IDS = """\
#	List of PCI ID's
1000  Broadcom / LSI
	0001  53c810
	c030  PEX890xx PCIe Gen 5 Switch
10de  NVIDIA Corporation
# a comment
	2330  GH100 [H100 SXM5 80GB]
		10de 16c1  H100 SXM5
		1d9b 0003  another board
	2331  GH100 [H100 PCIe]
		10de 16c1  not this one
C 03  Display controller
	00  VGA compatible controller
"""


def test_pci_ids_are_cut_down_to_the_devices_that_are_there() -> None:
    card = "sys/devices/pci0000:00/0000:00:02.0"
    ids = {
        "class": "0x030200",
        "vendor": "0x10de",
        "device": "0x2330",
        "subsystem_vendor": "0x10de",
        "subsystem_device": "0x16c1",
    }
    entries: dict[str, Entry] = {f"{card}/{name}": text for name, text in ids.items()}
    entries |= {"sys/bus/pci/devices": Folder(), "sys/bus/pci/devices/0000:00:02.0": Link(f"/{card}")}
    entries |= {"usr/share/misc/pci.ids": Link("../hwdata/pci.ids"), "usr/share/hwdata/pci.ids": PCI_IDS}
    machine = Recorded(0, entries)
    recording = Recording(machine)
    said = list(read_pci(recording))
    record = recording.recorded()
    assert record.read("usr/share/misc/pci.ids") == (
        "# The part of pci.ids that is about this machine\n"
        "10de  NVIDIA Corporation\n"
        "\t2330  GH100 [H100 SXM5 80GB]\n"
        "\t\t10de 16c1  H100 SXM5"
    )
    assert list(read_pci(record)) == said == list(read_pci(machine))


class Talking(Recorded):
    """A machine whose calls give another answer each time."""

    asked = 0

    def call(self, what: str, *args: str, deadline: float) -> Iterator[Record]:
        self.asked += 1
        yield NotChecked(what=what, subject=" ".join(args), reason=Reason.OTHER, detail=str(self.asked))
        yield Net(key="eth0", max_speed=deadline)


def test_a_measurement_that_runs_again_adds_its_results() -> None:
    recording = Recording(Talking(7, {}))
    said = [one for _ in range(3) for one in recording.call("peer_copy", "quick", "gpu0>gpu1", deadline=1)]
    record = parse(dump(recording.recorded()))
    assert list(record.call("peer_copy", "quick", "gpu0>gpu1", deadline=1)) == said


def test_a_call_is_kept_as_it_was_answered_last_and_as_far_as_it_was_heard() -> None:
    recording = Recording(Talking(7, {}))
    for deadline in (1, 2):
        list(recording.call("ethtool", "eth0", deadline=deadline))
    next(recording.call("ethtool", "eth1", deadline=3))
    record = recording.recorded()
    assert list(record.call("ethtool", "eth0", deadline=1)) == [
        NotChecked(what="ethtool", subject="eth0", reason=Reason.OTHER, detail="2"),
        Net(key="eth0", max_speed=2.0),
    ]
    assert list(record.call("ethtool", "eth1", deadline=1)) == [
        NotChecked(what="ethtool", subject="eth1", reason=Reason.OTHER, detail="3")
    ]
    assert (record.taken, recording.now(), recording.origin, record.origin) == (7, 7, "capture", "capture")
