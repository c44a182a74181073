"""The meaning of NVML's numbers (nvml.h, nvidia-ml-py), in the words of models/facts/gpu.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ...models.facts.pcie_rates import speed_of
from .parsers import shown

GRAPHICS, SM, MEMORY = range(3)  # nvmlClockType_t
# nvmlClocksEventReasons, one bit each. The older names of the same bits continue with board limit and reliability.
_REASONS = (
    "idle",
    "application clocks",
    "software power cap",
    "hardware slowdown",
    "sync boost",
    "software thermal slowdown",
    "hardware thermal slowdown",
    "hardware power brake",
    "display clocks",
)
COMPUTE_MODES: Mapping[int, str] = {0: "default", 2: "prohibited", 3: "exclusive process"}
VIRTUALIZATION: Mapping[int, str] = {0: "none", 1: "passthrough", 2: "vGPU", 3: "host vGPU", 4: "host vSGA"}
ENDS: Mapping[int, str] = {0: "gpu", 1: "cpu", 2: "switch"}  # nvmlIntNvLinkDeviceType_t; 1 is IBM's POWER
P2P: Mapping[int, str] = {
    0: "ok",
    1: "chipset not supported",
    2: "GPU not supported",
    3: "topology not supported",
    4: "disabled by registry",
    5: "not supported",
    6: "unknown",
}
PATHS: Mapping[int, str] = {0: "INTERNAL", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}

_BUS_ID = re.compile(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])")


def meaning(words: Mapping[int, str], number: int) -> str:
    """The word for a number. Raises ValueError for a number that the table does not have."""
    if number not in words:
        raise ValueError(f"{number} is none of {', '.join(map(str, words))}")
    return words[number]


def hertz(megahertz: int) -> float:
    """A clock in hertz."""
    return megahertz * 1e6


def clock_reasons(bits: int) -> tuple[str, ...]:
    """The reasons that limit the clocks, from the bits of nvmlDeviceGetCurrentClocksEventReasons."""
    return tuple(word for place, word in enumerate(_REASONS) if bits >> place & 1)


def pcie_speed(generation: int) -> float | None:
    """Transfers per second and lane of a PCIe generation. None for 0, which means that there is no link."""
    try:
        return speed_of(generation) if generation else None
    except IndexError:
        raise ValueError(f"{generation} is no PCIe generation") from None


def pci_address(bus_id: str | bytes) -> str | None:
    """ "00000000:1B:00.0" (domain of 8 digits) in the form of sysfs: "0000:1b:00.0". None for a null address."""
    text = bus_id.decode("ascii", "replace") if isinstance(bus_id, bytes) else bus_id  # depends on the nvidia-ml-py
    match = _BUS_ID.fullmatch(text)
    if not match:
        raise ValueError(f"{shown(text)} is no PCI address")
    domain = int(match[1], 16)
    nothing = domain == 0xFFFFFFFF or (domain, match[2], match[3]) == (0, "00", "00")
    return None if nothing else f"{domain:04x}:{match[2]}:{match[3]}.{match[4]}".lower()


def members(words: Iterable[int]) -> tuple[int, ...]:
    """The numbers of the bits that are set in an array of 64-bit words: CPUs, NUMA nodes."""
    return tuple(64 * at + bit for at, word in enumerate(words) for bit in range(64) if word >> bit & 1)


# GB/s of a link, as nvidia-smi prints them: 14.062 for an RTX A6000, 19.375 for a P100. Half and a quarter of them are
# those of links with fewer lanes.
_NVLINK_SPEEDS = (14.0625, 16.0, 19.375, 20.0, 25.0, 25.78125, 26.5625, 28.125, 40.0, 50.0, 53.125, 100.0, 106.25)
_SPEEDS_OF = {  # of a generation
    2: (20.0, 25.0, 25.78125),
    3: (14.0625, 25.0, 25.78125),
    4: (25.0, 26.5625),
    5: (50.0, 53.125),
    6: (100.0, 106.25),
}
_SHARES = (1.0, 0.5, 0.25)
_CUT = 0.0011  # the tool cuts the number after three digits


def is_nvlink_speed(gigabytes: float, generation: int | None) -> bool:
    """Whether a link of this generation can have this speed, in GB/s. None: of any generation."""
    speeds = _SPEEDS_OF.get(generation or 0, _NVLINK_SPEEDS)
    return any(abs(gigabytes - speed * share) < _CUT for speed in speeds for share in _SHARES)


def nvlink_generation(version: int, speed: float | None) -> int | None:
    """NVLink's generation from nvmlNvlinkVersion_t: 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0, 6.0. None for 0.

    Drivers report 5.0 for an H100, and the numbers were undocumented for years (open-mpi/hwloc#658). Therefore the
    speed (bytes per second) decides if it is above the 25.8 GB/s of generations 2 and 3: 26.6, 53.1 and more are
    generations 4, 5 and 6.
    """
    for generation, slowest in ((6, 80e9), (5, 40e9), (4, 26e9)):
        if speed and speed > slowest:
            return generation
    return (None, 1, 2, 2, 3, 3, 4, 5, 6)[version] if version <= 8 else None


def nvlink_rate(speed: float, generation: int | None) -> float:
    """The data rate of a link from its signal rate, both in bytes per second.

    The encoding takes the rest: 64b/66b, and since NVLink 4 also forward error correction. 26.5625 GB/s of an H100
    give 25 (NVIDIA H100 architecture whitepaper), 53.125 of a B200 give 50. An A100 reports its data rate of 25. The
    driver rounds down by half a megabyte.
    """
    share = 1.0 if generation == 3 else 64 / 66 if (generation or 0) < 3 else 16 / 17
    return round(speed * share / 1e7) * 1e7


def bit_error_rate(field: int) -> float:
    """A bit error rate: mantissa in bits 8 to 11, negative exponent of ten in bits 0 to 7 (NVML_NVLINK_BER_*, nvml.h).

    Firmware reports 15 x 10^-254 or 15 x 10^-255 if it has seen no error.
    """
    return float(f"{field >> 8 & 0xF}e-{field & 0xFF}")
