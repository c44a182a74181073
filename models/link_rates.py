"""What a PCIe link carries, from its generation and width.

**Rated** is the line rate less its encoding: 8b/10b for 2.5 and 5 GT/s, 128b/130b for 8 to 32 GT/s (PCI Express Base
Specification 5.0, 4.2.1 and 4.2.2); 64 and 128 GT/s move 256-byte flits of which 242 bytes carry packets (6.0, 4.2.3;
the same 242/256 in hwloc's private/misc.h).

**Attainable** is what a good copy reaches: packet headers, flow control and the copy engine take the rest. Two known
formulas bracket every good measurement that we found: NCCL plans on width x {1.5, 3, 6, 12, 24, 48}/8 GB/s a lane
(src/graph/topo.cc), UCX on rated x 256*4/((256+26)*4+16) = 89.5 % of it (src/ucs/sys/topo/base/topo.c). Ours are
measured shares of the rated rate, a generation each, with their sources.
"""

from __future__ import annotations

from dataclasses import dataclass

from .units import BytesPerSecond

WIDTHS = (1, 2, 4, 8, 12, 16, 32)
_SPEEDS = (2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9, 128e9)  # transfers per second and lane; one bit each way


@dataclass(frozen=True, slots=True)
class Attainable:
    """Shares of the rated rate that a copy reaches: below `low` something is wrong; and where that was measured."""

    low: float
    typical: float
    high: float
    source: str


# GB/s measured with pinned host memory and copy engines, 64 MiB and more, over the rated 15.75, 31.5 and 63.0.
_ATTAINABLE = {
    3: Attainable(0.75, 0.79, 0.84, "12.4 / 13.2 GB/s at x16: SuperBench V100 baseline, CSCS reframe tests"),
    4: Attainable(0.79, 0.825, 0.86, "25.9-26.8 GB/s at x16: SuperBench A100, 1939 nodes; nvbandwidth README"),
    5: Attainable(0.85, 0.88, 0.897, "55.1-55.6 GB/s at x16: nvbandwidth on 8 H200 and H100; low as OCI's 52"),
}


def generation(speed: float) -> int | None:
    """The PCIe generation, 1 to 7, of a speed in transfers per second; None for any other speed."""
    return _SPEEDS.index(speed) + 1 if speed in _SPEEDS else None


def speed_of(generation: int) -> float:
    """Transfers per second and lane of a generation from 1 to 7. IndexError for any other."""
    return _SPEEDS[generation - 1] if generation > 0 else _SPEEDS[len(_SPEEDS)]


def rated(speed: float, width: int) -> BytesPerSecond:
    """Bytes per second in one direction of a link at `speed` transfers per second and `width` lanes."""
    encoding = 8 / 10 if speed < 8e9 else 128 / 130 if speed < 64e9 else 242 / 256
    return BytesPerSecond(speed * width * encoding / 8)


def attainable(generation: int) -> Attainable | None:
    """What a good copy reaches of the rated rate; None where nobody published a measurement (1, 2, 6 and 7)."""
    return _ATTAINABLE.get(generation)
