"""`linkgauge top` on a described node that is read twice: whole outputs, lost devices, a driver without an answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from linkgauge.agent.top.controls import Controls
from linkgauge.agent.top.frame import frame
from linkgauge.exporters.traffic.json import as_json
from linkgauge.exporters.traffic.tables import as_text
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.traffic.selection import Choice, selected
from linkgauge.models.traffic.view import Traffic, View
from tests.support.nodes.described import ALL, node
from tests.support.traffic_nodes import SECOND, SECONDS, described, first, second, views

GOLDEN = Path(__file__).parents[2] / "golden" / "top"


@pytest.fixture(scope="module")
def busy() -> View:
    """Two readings of a node with traffic, a port that went down, and rising errors."""
    return views([first(), second()])[-1]


def link(view: View, name: str, kind: str) -> Traffic:
    return next(one for one in view.links if (one.carrier.name, one.carrier.kind) == (name, kind))


def test_the_table(busy: View, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / "table.txt", as_text(busy, Choice(), 98, False))


def test_the_json(busy: View, golden: Callable[[Path, str], None]) -> None:
    line = as_json(busy, Choice(every=True))
    assert line.count("\n") == 1
    golden(GOLDEN / "view.json", msgspec.json.format(line, indent=1).replace("\n\n", "\n"))


@pytest.mark.parametrize(
    ("name", "controls", "width", "height"),
    [
        ("tree", Controls(as_tree=True, choice=Choice(every=True)), 110, 70),
        ("small", Controls(choice=Choice(order="used"), gpus=False), 60, 8),
        ("filter", Controls(choice=Choice(text="connectx-7"), typing=True), 98, 30),
        ("scrolled", Controls(first=1000, paused=True), 98, 12),
    ],
)
def test_the_screen(
    name: str, controls: Controls, width: int, height: int, busy: View, golden: Callable[[Path, str], None]
) -> None:
    lines = frame(busy, controls, width, height, colour=False)
    assert (len(lines), max(map(len, lines)) <= width) == (height, True)
    golden(GOLDEN / f"screen_{name}.txt", "".join(f"{line}\n" for line in lines))


def test_colour_changes_no_text(busy: View) -> None:
    plain, coloured = (frame(busy, Controls(), 98, 60, colour) for colour in (False, True))
    assert [line.removeprefix("\x1b[1m").removesuffix("\x1b[0m") for line in coloured[:1]] == plain[:1]
    rising = next(line for line in coloured if "mlx5_2/1" in line)
    assert (rising.startswith("\x1b[1;31m"), rising.endswith("+3 symbol_error\x1b[0m")) == (True, True)


def test_without_a_second_reading_nothing_is_known() -> None:
    (view,) = views([first()])
    assert {(one.received, one.sent, one.used) for one in view.links} == {(None, None, None)}
    assert {one.risen == {} for one in view.links} == {True}
    assert "0 B/s" not in as_text(view, Choice(every=True), 98, False)


def test_a_reset_counter_is_unknown_and_errors_after_a_reset_count() -> None:
    third = {**SECOND, "mlx5_2": SECOND["mlx5_2"].replace("symbol_error = 10", "symbol_error = 2")}
    *_, view, last = views([first(), second(), described(third, 2 * SECONDS)])
    assert (link(view, "mlx5_3/1", "port").received, link(view, "mlx5_3/1", "port").sent) == (None, 2000.0)
    assert (link(last, "mlx5_2/1", "port").risen, link(last, "mlx5_2/1", "port").rising) == (
        {"symbol_error": 5.0},
        True,
    )


def test_a_clock_that_was_set_gives_no_rates() -> None:
    *_, view = views([first(), second()], aheads=(0.0, 1.0))
    assert {one.received for one in view.links} == {None}
    assert link(view, "mlx5_2/1", "port").risen == {"symbol_error": 3.0}


def test_a_lost_gpu_and_one_that_comes_back() -> None:
    lost = described({**SECOND, "gpu1": "lost = true"}, SECONDS)
    back = described(SECOND, 2 * SECONDS)
    again = described(SECOND, 3 * SECONDS)
    _, gone, returned, last = views([first(), lost, back, again])
    assert [(one.state, one.received) for one in gone.links if one.carrier.name == "gpu1"][0] == ("GPU is lost", None)
    assert [gpu for gpu in gone.gpus.values() if gpu.failure] == [Gpu(key="gpu1", failure="GPU is lost")]
    assert link(gone, "gpu0", "nvlink").received == 300e9
    assert link(returned, "gpu1", "nvlink").state == "17 of 18 links"
    assert link(last, "gpu1", "nvlink").received == 0.0


def test_devices_that_vanish_stay_as_lost() -> None:
    gone = described({**SECOND, "gpu3": "gone = true", "mlx5_9": "gone = true"}, SECONDS)
    before, view = views([first(), gone])
    lost = [(one.carrier.name, one.carrier.kind) for one in view.links if one.state == "lost"]
    assert lost == [
        ("gpu3", "nvlink"), ("mlx5_9/1", "port"), ("ib7", "net"), ("gpu3", "pcie"), ("mlx5_9", "pcie"),
    ]  # fmt: skip
    assert [(one.carrier.subject, one.carrier.kind) for one in before.links] == [
        (one.carrier.subject, one.carrier.kind) for one in view.links
    ]
    assert {gpu.key for gpu in view.gpus.values() if gpu.failure} == {"gpu3"}
    lines = frame(view, Controls(as_tree=True, gpus=False), 98, 100, colour=False)
    assert [line.split()[0] for line in lines[lines.index("elsewhere") + 1 :] if line][:-1] == [
        *("gpu3", "mlx5_9/1", "ib7", "gpu3", "mlx5_9"),
    ]


@pytest.mark.parametrize(
    ("driver", "note"),
    [
        ('error = "no answer within 40 s"', "GPU driver: no answer within 40 s"),
        ('missing = "libnvidia-ml.so.1: not found"', "libnvidia-ml.so.1: not found"),
    ],
)
def test_a_driver_that_cannot_be_asked(driver: str, note: str) -> None:
    """Its GPUs are not lost, their traffic is not known, and the network goes on."""
    silent = described(SECOND, SECONDS, driver=driver)
    _, view = views([first(), silent])
    assert view.note == note
    assert {(one.received, one.state) for one in view.links if one.carrier.kind == "nvlink"} == {(None, None)}
    assert {(gpu.clock, gpu.failure) for gpu in view.gpus.values()} == {(None, None)}
    assert link(view, "mlx5_2/1", "port").received == 42e9


def test_values_without_a_new_answer_are_unknown_after_some_seconds() -> None:
    hosts = [first(), second(), described(SECOND, 8), described(SECOND, 30)]
    *_, soon, late = views(hosts, hangs_at=hosts[2].now())
    assert (link(soon, "gpu0", "nvlink").received, soon.gpus["0000:1b:00.0"].clock) == (300e9, 1755e6)
    assert (link(late, "gpu0", "nvlink").received, late.gpus["0000:1b:00.0"].clock) == (None, None)
    assert (link(late, "gpu0", "nvlink").state, late.gpus["0000:1b:00.0"].failure) == (None, None)


@pytest.mark.parametrize("name", ALL)
def test_a_healthy_node_has_no_marked_link(name: str) -> None:
    """Links of GPUs that are slower at rest are no news. Ports without a cable have a state."""
    (view,) = views([node(name)])
    marked = [(one.carrier.name, one.carrier.kind, one.state) for one in view.links if one.state or one.is_slower]
    assert [one for one in marked if one[1] not in ("port", "net")] == []


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (Choice(order="used", text="port"), ["mlx5_2/1", "mlx5_3/1", "mlx5_0/1"]),
        (Choice(order="in", text="NVMe0n"), ["nvme0n1"]),
        (Choice(order="out", text="nvlink"), ["gpu0", "gpu1", "gpu2"]),
        (Choice(order="errors", text="Samsung NVMe", every=True), ["nvme3", "nvme0", "nvme1"]),
        (Choice(text="nothing has this name"), []),
    ],
)
def test_order_and_filter(choice: Choice, names: list[str], busy: View) -> None:
    assert [one.carrier.name for one in selected(busy.links, choice)][:3] == names
