"""Links above a GPU, read while bytes move."""

from __future__ import annotations

import pytest

from linkgauge.models.facts.records import Evidence, Observation
from linkgauge.probes.host.entries import Entry, Link, UnreadableFile
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.measure.gpu.link_sampling import LinkSampling
from tests.support.nodes.trees import tree

ROOT, SWITCH, PORT, GPU = "0000:18:01.0", "0000:19:00.0", "0000:1a:00.0", "0000:1b:00.0"
FOLDERS = [f"sys/devices/pci0000:18/{'/'.join((ROOT, SWITCH, PORT, GPU)[:depth])}" for depth in range(1, 5)]


def machine(speeds: list[str], most: list[str] | None = None, **more: Entry) -> Recorded:
    """Root port, upstream port, downstream port and GPU, with what they run at and what they can do."""
    entries: dict[str, Entry] = {f"sys/bus/pci/devices/{GPU}": Link(f"/{FOLDERS[3]}")}
    for folder, speed, fastest in zip(FOLDERS, speeds, most or ["32.0 GT/s PCIe"] * 4, strict=True):
        entries[f"{folder}/current_link_speed"] = speed
        entries[f"{folder}/max_link_speed"] = fastest
        entries[f"{folder}/current_link_width"] = "16"
    return tree({**entries, **{f"{FOLDERS[3]}/{name}": entry for name, entry in more.items()}})


FAST, SLOW = "32.0 GT/s PCIe", "2.5 GT/s PCIe"


@pytest.mark.parametrize(
    ("speeds", "most", "awake"),
    [
        ([FAST] * 4, [FAST] * 4, True),
        ([FAST, FAST, SLOW, SLOW], [FAST] * 4, False),
        ([SLOW, SLOW, FAST, FAST], [FAST] * 4, False),  # the uplink alone
        ([FAST, FAST, "16.0 GT/s PCIe", "16.0 GT/s PCIe"], [FAST, FAST, FAST, "16.0 GT/s PCIe"], True),  # built so
        (["Unknown"] * 4, ["Unknown"] * 4, True),  # nobody says: nobody waits
        (["rubbish"] * 4, [FAST] * 4, True),
    ],
)
def test_awake_is_as_fast_as_both_ends_can(speeds: list[str], most: list[str], awake: bool) -> None:
    assert LinkSampling(machine(speeds, most), "gpu0", GPU).awake() is awake


def test_speed_and_width_of_each_hop() -> None:
    host = machine([FAST, FAST, SLOW, SLOW])
    seen = [one for one in LinkSampling(host, "gpu0", GPU).sample("copies of 64 MiB") if isinstance(one, Observation)]
    assert [(one.about, one.quantity, one.value) for one in seen if one.quantity == "link_speed"] == [
        (ROOT, "link_speed", 32e9),
        (SWITCH, "link_speed", 32e9),
        (PORT, "link_speed", 2.5e9),
        (GPU, "link_speed", 2.5e9),
    ]
    assert {(one.about, one.value) for one in seen if one.quantity == "link_width"} == {
        (address, 16.0) for address in (ROOT, SWITCH, PORT, GPU)
    }
    (last,) = (one for one in seen if one.about == GPU and one.quantity == "link_speed")
    assert last == Observation(
        about=GPU,
        quantity="link_speed",
        unit="transfers_per_second",
        value=2.5e9,
        at=last.at,
        busy=True,
        evidence=Evidence(f"{FOLDERS[3]}/current_link_speed", "2.5 GT/s, copies of 64 MiB"),
    )


def test_what_cannot_be_read_is_left_to_the_reader_of_functions() -> None:
    refused = machine([FAST] * 4, current_link_speed=UnreadableFile(5, "Input/output error"), current_link_width="63")
    sampling = LinkSampling(refused, "gpu0", GPU)
    assert {one.about for one in sampling.sample("x") if isinstance(one, Observation)} == {ROOT, SWITCH, PORT}
    assert sampling.awake()
    assert list(LinkSampling(tree({}), "gpu0", GPU).sample("x")) == []
