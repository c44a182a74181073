"""Values as nvidia-smi prints them. The parsers raise ValueError, with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ....models.facts.units import MIB
from ...parsing.nvml_enums import clock_reasons, hertz, pcie_speed
from ...parsing.parsers import count, hexadecimal, pcie_width, shown, word

_YES, _NO = ("yes", "enabled", "active", "on", "true", "1"), ("no", "disabled", "not active", "off", "false", "0")
_COMPUTE = {
    "default": "default",
    "prohibited": "prohibited",
    "exclusiveprocess": "exclusive process",
    "eprocess": "exclusive process",
    "exclusivethread": "exclusive process",  # the name since CUDA 8
}
_RECOVERY = {
    "none": "none",
    "reset": "GPU reset",
    "gpureset": "GPU reset",
    "reboot": "node reboot",
    "nodereboot": "node reboot",
    "drainp2p": "drain P2P",
    "drainandreset": "drain and reset",
    "recoverimexdomain": "recover IMEX domain",
    "busreset": "bus reset",
    "systemreboot": "system reboot",
}
_VIRTUAL = {
    "none": "none",
    "passthrough": "passthrough",
    "vgpu": "vGPU",
    "hostvgpu": "host vGPU",
    "hostvsga": "host vSGA",
}
_FABRIC = {"notstarted": "not started", "inprogress": "in progress", "completed": "completed"}


def flag(text: str) -> bool:
    """True for "Enabled", "Yes", "Active"; False for their opposites."""
    plain = text.strip("[] ").lower()
    if plain not in (*_YES, *_NO):
        raise ValueError(f"{shown(text)} is neither yes nor no")
    return plain in _YES


def number(text: str) -> float:
    """The number in "588.39 W", "59 C", "1980 MHz", "81559 MiB", "16x"."""
    found = re.fullmatch(r"(-?[0-9]{1,12}(?:\.[0-9]{1,6})?) ?(?:[A-Za-z%]{0,4})", text)
    if not found:
        raise ValueError(f"{shown(text)} is not a number")
    return float(found[1])


def share(text: str) -> float:
    """The share of "99 %"."""
    return number(text) / 100


def banks(text: str) -> int:
    """The number of "1 bank(s)"."""
    return int(number(text.removesuffix("bank(s)").strip()))


def size(text: str) -> int:
    """The bytes of "81559 MiB"."""
    return int(number(text)) * MIB


def clock(text: str) -> float:
    """The hertz of "1980 MHz"."""
    return hertz(int(number(text)))


def lanes(text: str) -> int | None:
    """The lanes of "16x"."""
    return pcie_width(text.rstrip("x"))


def link_speed(text: str) -> float | None:
    """The speed in GT/s of a PCIe generation."""
    return pcie_speed(count(text))


def clock_event_reasons(text: str) -> tuple[str, ...]:
    """The reasons of the bits in a hexadecimal number. nvidia-smi prints 16 digits; with fewer, bits are lost."""
    bits = hexadecimal(text)
    if len(text) != len("0x0000000000000000"):
        raise ValueError(f"{shown(text)} does not have 16 digits")
    return clock_reasons(bits)


def performance_state(text: str) -> int:
    """A performance state, "P0" to "P15"."""
    found = re.fullmatch(r"P([0-9]|1[0-5])", text)
    if not found:
        raise ValueError(f"{shown(text)} is not a performance state")
    return int(found[1])


def cluster_uuid(text: str) -> str | None:
    """A UUID. None if all digits are zero."""
    return word(text) if text.strip("0-") else None


def _meaning(words: Mapping[str, str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        plain = re.sub(r"[^a-z0-9]", "", text.lower())
        if plain not in words:
            raise ValueError(f"{shown(text)} is none of {', '.join(words)}")
        return words[plain]

    return read


compute_mode = _meaning(_COMPUTE)
recovery_action = _meaning(_RECOVERY)
virtualization_mode = _meaning(_VIRTUAL)
fabric_state = _meaning(_FABRIC)


# The texts of nvmlErrorString() of NVML, in lower case. Another text is a damaged one.
_STATUSES = frozenset(
    {
        *("success", "uninitialized", "invalid argument", "not supported", "insufficient permissions", "not found"),
        *("already initialized", "insufficient size", "insufficient external power", "driver not loaded", "timeout"),
        *("interrupt request issue", "nvml shared library not found", "function not found", "corrupted inforom"),
        *("gpu is lost", "gpu requires reset", "in use by another client", "driver/library version mismatch"),
        *("gpu access blocked by the operating system", "insufficient memory", "no data", "insufficient resources"),
        *("requested vgpu operation is not available because ecc is enabled", "unknown error", "internal error"),
        *("the required frequency is not supported", "argument version mismatch", "not ready", "gpu not found"),
        *("deprecated", "invalid state", "reset type not supported", "failure", "in use", "operation timed out"),
    }
)


def nvml_status(text: str) -> str:
    """The result of an operation, in NVML's words."""
    if text.lower() not in _STATUSES:
        raise ValueError(f"{shown(text)} is no status of NVML")
    return text
