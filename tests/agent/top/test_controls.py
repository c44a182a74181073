"""Keys of the live view, and that names of devices cannot write to the terminal."""

from __future__ import annotations

import os
import pty
import tty
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.top.controls import Controls, pressed
from linkgauge.agent.top.frame import frame
from linkgauge.agent.top.screen import Screen
from linkgauge.exporters.text.terminal import cells
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.graph.topology import Device, Link, Topology
from linkgauge.models.traffic.carriers import ORDER, Carrier
from linkgauge.models.traffic.selection import ORDERS, Choice
from linkgauge.models.traffic.view import Traffic, View

HOSTILE = st.one_of(
    st.text(max_size=30),
    st.sampled_from(
        ["\x1b[2J", "\x1b]0;owned\x07", "\u202egpu0", "</svg><script>", "x" * 300, "a\nb", "\x9b31m", "界" * 40]
    ),
)
RATES = st.none() | st.floats(0, 1e13)
LINKS = st.builds(
    Traffic,
    carrier=st.builds(
        Carrier,
        subject=HOSTILE,
        kind=st.sampled_from(ORDER),
        name=HOSTILE,
        product=HOSTILE,
        expected_in=RATES,
        rated=RATES,
    ),
    received=RATES,
    sent=RATES,
    risen=st.dictionaries(HOSTILE, st.floats(1, 1e15), max_size=2),
    state=st.none() | HOSTILE,
)
GPUS = st.builds(Gpu, key=HOSTILE, failure=st.none() | HOSTILE, clock_reasons=st.none() | st.tuples(HOSTILE))


@given(
    node=HOSTILE,
    note=st.none() | HOSTILE,
    links=st.lists(LINKS, max_size=6),
    gpus=st.lists(GPUS, max_size=2),
    controls=st.builds(
        Controls,
        choice=st.builds(Choice, order=st.sampled_from(ORDERS), text=st.just("") | HOSTILE, every=st.booleans()),
        typing=st.booleans(),
        as_tree=st.booleans(),
        first=st.integers(0, 50),
    ),
    width=st.integers(20, 130),
    height=st.integers(3, 20),
)
def test_every_name_stays_text_within_its_line(
    node: str,
    note: str | None,
    links: list[Traffic],
    gpus: list[Gpu],
    controls: Controls,
    width: int,
    height: int,
) -> None:
    subjects = [one.carrier.subject for one in links]
    topology = Topology(
        (Device("numa0", "numa"), Device("0000:01:00.0", "upstream-port", node)),
        tuple(Link(f"{number}", "0000:01:00.0", subject, "pcie") for number, subject in enumerate(subjects[1:])),
    )
    view = View(
        node=node,
        note=note,
        links=tuple(links),
        topology=topology,
        gpus={f"{n}": gpu for n, gpu in enumerate(gpus)},
        at=1.0,
    )
    lines = frame(view, controls, width, height, colour=False)
    assert len(lines) == height
    assert all(line.isprintable() and cells(line) <= width for line in lines)


def test_a_line_names_what_is_lost_below_the_screen() -> None:
    carriers = tuple(Carrier(subject=f"mlx5_{n}/1", kind="port", name=f"mlx5_{n}/1") for n in range(40))
    view = View(
        node="a",
        links=tuple(Traffic(carrier=one) for one in carriers),
        gpus={"0000:01:00.0": Gpu(key="gpu5", failure="GPU is lost"), "0000:02:00.0": Gpu(key="gpu6")},
        carriers=carriers,
        lost=frozenset({("mlx5_39/1", "port")}),
        at=1.0,
    )
    lines = frame(view, Controls(), 100, 10, colour=False)
    assert lines[:2] == [
        "linkgauge top  a  00:00:01 UTC  sorted by name  lines 1-7 of 44",
        "LOST: gpu5, mlx5_39/1",
    ]
    assert frame(view, Controls(), 100, 60, colour=False)[0] == "linkgauge top  a  00:00:01 UTC  sorted by name"


@pytest.mark.parametrize(
    ("keys", "controls"),
    [
        (["q"], Controls(ended=True)),
        (["p"], Controls(paused=True)),
        ([" ", "p"], Controls()),
        (["t", "s"], Controls(choice=Choice(order="used"))),
        (["s"] * 5, Controls()),
        (["a", "g", "t"], Controls(choice=Choice(every=True), gpus=False, as_tree=True)),
        (["down", "j", "page down", "up", "k"], Controls(first=10)),
        (["page up", "down", "home"], Controls()),
        (["/", "q", "\x1b", "x", "backspace", "enter", "p"], Controls(choice=Choice(text="q"), paused=True)),
        (["/", "a", "escape"], Controls()),
        (["/", "a", "enter", "escape"], Controls()),
        (["/", *"x" * 60], Controls(typing=True, choice=Choice(text="x" * 40))),
        (["z", "\t", "enter"], Controls()),
    ],
)
def test_keys(keys: list[str], controls: Controls) -> None:
    now = Controls()
    for key in keys:
        now = pressed(now, key)
    assert now == controls


@contextmanager
def terminal() -> Iterator[tuple[int, Screen]]:
    """The keyboard of a terminal, and a screen on it."""
    keyboard, inside = pty.openpty()
    try:
        tty.setcbreak(inside)
        yield keyboard, Screen(inside, inside)
    finally:
        os.close(keyboard)
        os.close(inside)


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"q", ["q"]),
        (b"\x1b[A", ["up"]),
        (b"\x1bOB", ["down"]),
        (b"\x1b[6~", ["page down"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[A\x1b[A\x1b[B", ["up", "up", "down"]),
        (b"\x1b[200~", []),
        ("é\x7f\n".encode(), ["é", "backspace", "enter"]),
    ],
)
def test_bytes_of_keys(sent: bytes, keys: list[str]) -> None:
    with terminal() as (keyboard, screen):
        os.write(keyboard, sent)
        assert screen.pressed() == keys


def test_only_changed_lines_are_written() -> None:
    with terminal() as (keyboard, screen):
        screen.draw(["one", "two"])
        screen.draw(["one", "three"])
        written = b""
        while not written.endswith(b"three"):
            written += os.read(keyboard, 1 << 12)
        assert written == b"\x1b[1;1H\x1b[Kone\x1b[2;1H\x1b[Ktwo\x1b[2;1H\x1b[Kthree"
