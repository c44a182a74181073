"""How links above a device are trained while its bytes move: the fastest of several looks."""

from __future__ import annotations

from pathlib import Path

from linkgauge.models.facts.records import Evidence, Observation
from linkgauge.probes.host.live import Live
from linkgauge.probes.pcie.speed_samples import LinkSamples

FOLDER = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1"
PORT, DISK = (f"sys/devices/pci0000:00/0000:00:01.0{part}/current_link_speed" for part in ("", "/0000:01:00.0"))


def test_a_link_that_wakes_up(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / DISK).write_text("16.0 GT/s PCIe\n")
    samples = LinkSamples(Live(str(tmp_path)), FOLDER)
    for speed in ("2.5", "16.0", "2.5", "2.5", "Unknown"):
        assert list(samples.observations("x")) == []  # too few looks
        (tmp_path / PORT).write_text(f"{speed} GT/s PCIe\n")
        samples.sample()
    said = [one for one in samples.observations("7000 MB/s from nvme0n1") if isinstance(one, Observation)]
    assert [(one.about, one.quantity, one.value, one.busy) for one in said] == [
        ("0000:00:01.0", "link_speed", 16e9, True),
        ("0000:01:00.0", "link_speed", 16e9, True),
    ]
    assert said[0].evidence == Evidence(PORT, "16 GT/s, 7000 MB/s from nvme0n1")


def test_what_is_on_no_bus(tmp_path: Path) -> None:
    samples = LinkSamples(Live(str(tmp_path)), "")
    for _ in range(9):
        samples.sample()
    assert list(samples.observations("x")) == []
