"""Values of GPUs for the live view: as those of nvml.py, with a fifth of its calls, from a stub of the driver."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.reason import Reason
from linkgauge.probes.gpu.nvml import state
from linkgauge.probes.gpu.nvml_live import values
from tests.support.gpu.nvml_answers import called, of, seen

FIELDS = ("key", "address", "clock", "memory_clock", "clock_reasons", "temperature", "power", "power_limit")
TRAFFIC = '[fields]\n"138.4294967295" = 7\n"139.4294967295" = 9\n'
MOST_CALLS = 12  # of one GPU


def test_the_values_are_those_of_the_complete_look(driver: Callable[[str], Path]) -> None:
    file = driver(TRAFFIC)
    said = list(values())
    calls = called(file).total()
    every = list(state())
    assert of(said, Gpu) == [Gpu(**{name: getattr(one, name) for name in FIELDS}) for one in of(every, Gpu)]
    known = seen(every)
    counted = ("nvlink_tx_bytes", "nvlink_rx_bytes")
    assert seen(said) == {key: value for key, value in known.items() if key[1] in counted}
    assert seen(said)["gpu7", "nvlink_rx_bytes"] == 9 * 1024
    assert calls <= 8 * MOST_CALLS < called(file).total() / 3


def test_a_lost_gpu_and_one_without_nvlinks(driver: Callable[[str], Path]) -> None:
    driver("gpus = 2\nlinks = 0\n[gpu.1]\nlost_after = 0\n")
    healthy, lost = of(list(values()), Gpu)
    assert (healthy.key, healthy.clock, healthy.failure) == ("gpu0", 345e6, None)
    assert lost == Gpu(key="gpu1", failure="GPU is lost", failure_reason=Reason.LOST)


@pytest.mark.parametrize("text", ["gpus = 0", "[returns]\nnvmlInitWithFlags = 9"])
def test_no_gpus_no_values(driver: Callable[[str], Path], text: str) -> None:
    driver(text)
    assert list(values()) == []
