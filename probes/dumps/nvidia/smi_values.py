"""Values as nvidia-smi prints them, and those that it could not read. The parsers raise ValueError, with a reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from ....models.facts.reason import Reason
from ....models.facts.records import NotChecked
from ....models.facts.units import MIB
from ...parsing.nvml_enums import clock_reasons, hertz, pcie_speed
from ...parsing.parsers import count, hexadecimal, pcie_width, shown, word
from ..core.part import Part

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


# nvmlErrorString() in the place of a value, and "access blocked". "N/A" and "Not Supported" are answers: these are not.
# The status of the fabric has errors as values, and the names of processes of other users are always refused.
_ERROR = (
    r"\[?(?:Unknown Error|Insufficient Permissions|(?:GPU )?[Aa]ccess [Bb]locked[ \w]{0,40}|ERR!|Corrupted infoROM"
    r"|Insufficient External Power|Insufficient Resources|Timeout|Driver Not Loaded|Interrupt Request Issue"
    r"|In use by another client|Internal Error|Failure)\]?"
)
_CELL = re.compile(_ERROR)
_OTHERS = ("Name", "process_name", "Status", "status", "fabric.status")


def refused_lines(part: Part) -> Iterator[NotChecked]:
    """One gap for all refused values of `nvidia-smi -q`, as text or XML."""
    named = ((number, *_named_value(line.strip())) for number, line in part.lines())
    refused = ((number, name) for number, name, value in named if value and _CELL.fullmatch(value))
    yield from _gap(part, [(number, name) for number, name in refused if name not in _OTHERS])


def _named_value(line: str) -> tuple[str, str]:
    """The name and the value of "Name : value" or "<name>value</name>"."""
    if line.startswith("<"):
        name, _, rest = line[1:].partition(">")
        return name, rest.removesuffix(f"</{name}>")
    name, _, value = line.partition(":")
    return name.rstrip(), value.strip()


def refused_cells(part: Part, number: int, values: Mapping[str, str]) -> Iterator[NotChecked]:
    """One gap for all refused values of a line of CSV."""
    yield from _gap(
        part, [(number, name) for name, cell in values.items() if _CELL.fullmatch(cell) and name not in _OTHERS]
    )


def _gap(part: Part, found: list[tuple[int, str]]) -> Iterator[NotChecked]:
    if found:
        number, name = found[0]
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        yield NotChecked(
            what="Gpu.readings",
            subject="node",
            reason=Reason.INCOMPLETE,
            path=part.where(number),
            detail=f"the driver gives an error instead of a value: {name}{more}",
            how="run nvidia-smi as root, outside of a container; dmesg | grep NVRM",
        )
