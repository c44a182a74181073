"""A log in one input with a capture: the states of the capture end only what was logged before them."""

from __future__ import annotations

from linkgauge.models.facts.gpu import Driver, Gpu
from tests.support.nodes.event_logs import NOW, log, summaries

ADDRESS = "0000:01:00.0"
GPU = Gpu(key="gpu0", name="NVIDIA H100 80GB HBM3", address=ADDRESS, recovery="none")
DRIVER = Driver(key="nvidia", version="580.95.05")
XID = "NVRM: Xid (PCI:0000:01:00): 79, pid=1, name=x, what it says"


def severities(last: float) -> list[str]:
    return [severity for _, _, severity in summaries(DRIVER, GPU, *log(XID, last=last), origin="capture")]


def test_a_log_beside_a_capture_may_be_newer() -> None:
    assert severities(NOW - 60) == ["info"]
    assert severities(NOW + 60) == ["critical"]
    assert severities(812.0) == ["critical"]  # since a boot at an unknown time
