"""A node with eight H100 under load, read several times two seconds apart."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from math import inf

from linkgauge.agent.pipeline.run_source import collect_each
from linkgauge.agent.top.sampling import Assembler, Sample, groups
from linkgauge.models.site.schema import Site
from linkgauge.models.traffic.view import View, advance
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.synthetic.build import build
from tests.support.nodes.described import FOLDER

SECONDS = 2
_STAT = "sys/class/block/{}/stat"
# Counters at the first reading, and two seconds later. A port counts words of four bytes, a disk sectors of 512.
FIRST = {
    "gpu0": "counters = {nvlink_rx_bytes = 5_000_000_000_000, nvlink_tx_bytes = 4_000_000_000_000}",
    "gpu1": "counters = {nvlink_rx_bytes = 0, nvlink_tx_bytes = 0}",
    "mlx5_2": "counters = {port_rcv_data = 1_000, port_xmit_data = 2_000, symbol_error = 7}",
    "mlx5_3": "counters = {port_rcv_data = 9_000, port_xmit_data = 2_000}",
    "eth0": "counters = {rx_bytes = 10_000, tx_bytes = 0}",
}
SECOND = {
    "gpu0": "counters = {nvlink_rx_bytes = 5_600_000_000_000, nvlink_tx_bytes = 4_700_000_000_000}\n"
    "gpu = {clock = 1755e6, power = 690, temperature = 71, clock_reasons = ['software power cap']}",
    "gpu1": "counters = {nvlink_rx_bytes = 0, nvlink_tx_bytes = 0}\ninactive = [7]",
    "mlx5_2": "counters = {port_rcv_data = 21_000_001_000, port_xmit_data = 1_000_002_000, symbol_error = 10}",
    "mlx5_3": "counters = {port_rcv_data = 0, port_xmit_data = 3_000}",  # the first one was reset
    "mlx5_4": "up = false",
    "eth0": "counters = {rx_bytes = 37_000, tx_bytes = 0}",
    "nvme3": "width = 2\nerrors = {RxErr = 4}",
}


def described(changes: dict[str, str], after: int, sectors: tuple[int, int] = (0, 0), driver: str = "") -> Recorded:
    """The node with these changes of devices and of the driver, `after` seconds, and sectors that nvme0n1 has read and
    written.
    """
    devices = "".join(f"[device.{name}]\n{text}\n" for name, text in changes.items())
    return _built(f"{devices}[gpu]\n{driver}\n" if driver else devices, after, sectors)


@cache
def _built(further: str, after: int, sectors: tuple[int, int]) -> Recorded:
    stat = f'[files]\n"{_STAT.format("nvme0n1")}" = "9 0 {sectors[0]} 5 9 0 {sectors[1]} 5 0 0 0"\n'
    taken = f"taken = 2026-11-21T03:00:{after:02}Z\n"
    return build(taken + (FOLDER / "hgx-h100.toml").read_text() + further + stat)


def first() -> Recorded:
    return described(FIRST, 0)


def second() -> Recorded:
    return described(SECOND, SECONDS, (12_000_000, 100))


def samples(host: Recorded, ahead: float = 0.0, without: str = "") -> list[Sample]:
    """One sample of each group of sources. The group with the source `without` gives none."""
    found = []
    for group in groups(1.0):
        if without in (source.name for source, _ in group.sources):
            continue
        records = collect_each([source for source, _ in group.sources], host)
        found.append(Sample(records, host.now(), ahead))
    return found


def views(hosts: Iterable[Recorded], aheads: Iterable[float] = (), hangs_at: float = inf) -> list[View]:
    """The view after each host is read. The driver of the GPUs gives no answer from `hangs_at` on."""
    assembler, view, found = Assembler(1.0, Site()), View(), []
    ahead = iter(aheads)
    for host in hosts:
        for one in samples(host, next(ahead, 0.0), without="gpus" if host.now() >= hangs_at else ""):
            assembler.add(one)
        view = advance(view, assembler.reading())
        found.append(view)
    return found
