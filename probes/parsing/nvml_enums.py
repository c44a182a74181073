"""What NVML's numbers mean (nvml.h, as nvidia-ml-py has it), in the words of models/facts/gpu.py."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ...models.facts.pcie_rates import speed_of
from .parsers import shown

GRAPHICS, SM, MEMORY = range(3)  # nvmlClockType_t
# nvmlClocksEventReasons, a bit each. The older names of the same bits go on with board limit and reliability.
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
RECOVERY: Mapping[int, str] = {
    0: "none",
    1: "GPU reset",
    2: "node reboot",
    3: "drain P2P",
    4: "drain and reset",
    5: "recover IMEX domain",
    6: "bus reset",
    7: "system reboot",
}
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
    """The word for a number. ValueError for one that is newer than the table."""
    if number not in words:
        raise ValueError(f"{number} is none of {', '.join(map(str, words))}")
    return words[number]


def hertz(megahertz: int) -> float:
    """A clock in hertz."""
    return megahertz * 1e6


def clock_reasons(bits: int) -> tuple[str, ...]:
    """Why the clocks are no higher, of nvmlDeviceGetCurrentClocksEventReasons."""
    return tuple(word for place, word in enumerate(_REASONS) if bits >> place & 1)


def pcie_speed(generation: int) -> float | None:
    """Transfers per second and lane of a PCIe generation; None for 0, which a GPU without a link says."""
    try:
        return speed_of(generation) if generation else None
    except IndexError:
        raise ValueError(f"{generation} is no PCIe generation") from None


def pci_address(bus_id: str | bytes) -> str | None:
    """ "00000000:1B:00.0", whose domain has 8 digits, as sysfs writes it; None for the address of nothing."""
    text = bus_id.decode("ascii", "replace") if isinstance(bus_id, bytes) else bus_id  # nvidia-ml-py has given both
    match = _BUS_ID.fullmatch(text)
    if not match:
        raise ValueError(f"{shown(text)} is no PCI address")
    domain = int(match[1], 16)
    nothing = domain == 0xFFFFFFFF or (domain, match[2], match[3]) == (0, "00", "00")
    return None if nothing else f"{domain:04x}:{match[2]}:{match[3]}.{match[4]}".lower()


def members(words: Iterable[int]) -> tuple[int, ...]:
    """The numbers whose bits are set in an array of 64-bit words: CPUs, NUMA nodes."""
    return tuple(64 * at + bit for at, word in enumerate(words) for bit in range(64) if word >> bit & 1)


def nvlink_generation(version: int, speed: float | None) -> int | None:
    """NVLink's generation from nvmlNvlinkVersion_t, which counts 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0, 6.0; None for 0.

    Drivers say 5.0 of an H100, and the numbers were not documented for long (open-mpi/hwloc#658). So where links are
    faster than the 25.8 GB/s of generation 2 and 3, their speed decides: 26.6, 53.1 and more are 4, 5 and 6.
    """
    for generation, slowest in ((6, 80e9), (5, 40e9), (4, 26e9)):
        if speed and speed > slowest:
            return generation
    return (None, 1, 2, 2, 3, 3, 4, 5, 6)[version] if version <= 8 else None


def nvlink_rate(speed: float, generation: int | None) -> float:
    """Bytes per second that a link carries, of those that it signals: less 64b/66b, since NVLink 4 less its FEC.

    26.5625 GB/s of an H100 are 25 (NVIDIA H100 architecture whitepaper), 53.125 of a B200 are 50. The driver cuts off
    half a megabyte, and an A100's 25 are 25.
    """
    share = 1.0 if generation == 3 else 64 / 66 if (generation or 0) < 3 else 16 / 17
    return round(speed * share / 1e7) * 1e7


def bit_error_rate(field: int) -> float:
    """A mantissa in bits 8 to 11, and below it a negative exponent of ten (NVML_NVLINK_BER_* of nvml.h).

    15 x 10^-254 and 15 x 10^-255 are what firmware says where no error was seen.
    """
    return float(f"{field >> 8 & 0xF}e-{field & 0xFF}")
