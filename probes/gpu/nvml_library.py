"""A wrapper of NVML: it keeps error numbers, counts calls, and reads many fields in one call.

Only this module imports pynvml (package nvidia-ml-py). Error and field numbers are those of nvml.h
(https://docs.nvidia.com/deploy/nvml-api), so that packages without a name for a field can still request it.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, TypeAlias

from ...models.facts.reason import Reason

INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
VERSION_MISMATCH = 25  # of the structure to fill
DEPRECATED = 26

# Errors for queries that this driver or GPU does not support. They are not faults.
ABSENT = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, VERSION_MISMATCH, DEPRECATED})
GONE = frozenset({15, 16})  # the GPU is lost, or it needs a reset: all further calls fail


class _Value(ctypes.Union):
    """nvmlValue_t. The type of a value (nvmlValueType_t) is the number of its member."""

    _fields_ = (
        ("dVal", ctypes.c_double),
        ("uiVal", ctypes.c_uint),
        ("ulVal", ctypes.c_ulong),
        ("ullVal", ctypes.c_ulonglong),
        ("sllVal", ctypes.c_longlong),
        ("siVal", ctypes.c_int),
        ("usVal", ctypes.c_ushort),
    )


class _FieldValue(ctypes.Structure):
    """nvmlFieldValue_t. That of pynvml reads each member in Python code, a fifth of the time of a GPU."""

    _fields_ = (
        ("fieldId", ctypes.c_uint32),
        ("scopeId", ctypes.c_uint32),
        ("timestamp", ctypes.c_int64),
        ("latencyUsec", ctypes.c_int64),
        ("valueType", ctypes.c_uint),
        ("nvmlReturn", ctypes.c_uint),
        ("value", _Value),
    )


# Reasons by nvmlReturn_t; all other errors are DRIVER
_REASONS = {
    NOT_SUPPORTED: Reason.NOT_SUPPORTED,
    FUNCTION_NOT_FOUND: Reason.NOT_SUPPORTED,
    VERSION_MISMATCH: Reason.NOT_SUPPORTED,
    DEPRECATED: Reason.NOT_SUPPORTED,
    NO_PERMISSION: Reason.PERMISSION,
    LIBRARY_NOT_FOUND: Reason.NOT_INSTALLED,
    15: Reason.LOST,
    16: Reason.LOST,
    999: Reason.LOST,  # "Unknown Error": usually a GPU that fell off the bus
    None: Reason.UNREADABLE,
}

Field: TypeAlias = tuple[int, int]  # number and scope (a link number or 0)


class NvmlError(Exception):
    """NVML returned an error. `code` is its number; None if the response cannot be decoded.

    `whole`: NVML refused a request for several values, so nothing is known about each of them.
    """

    def __init__(self, code: int | None, cause: object, whole: bool = False) -> None:
        super().__init__(cause)
        self.code = code
        self.whole = whole

    @property
    def is_absence(self) -> bool:
        """Whether this driver or GPU does not have the value."""
        return self.code in ABSENT and not (self.whole and self.code != FUNCTION_NOT_FOUND)

    @property
    def reason(self) -> Reason:
        """The reason for the error number."""
        return _REASONS.get(self.code, Reason.DRIVER)

    @property
    def how(self) -> str | None:
        """The remedy, if one is known."""
        return "run as root" if self.code == NO_PERMISSION else None


class Library:
    """libnvidia-ml.so.1 through pynvml. Raises ImportError if the package is not installed."""

    def __init__(self) -> None:
        import pynvml

        self._nvml = pynvml
        # Some wrappers raise this instead of FUNCTION_NOT_FOUND.
        self._older: type[Exception] = getattr(pynvml, "NVMLLibraryMismatchError", pynvml.NVMLError)
        self._lock = Lock()
        self.calls = 0
        self.release: int | None = None  # of the driver: 580 of "580.95.05"
        self.version = ""  # of the driver
        self.last_return = time.monotonic()  # monotonic time when the last call returned

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the result of nvml`name`. Raises NvmlError."""
        function = getattr(self._nvml, f"nvml{name}", None)
        if function is None:
            raise NvmlError(FUNCTION_NOT_FOUND, f"nvidia-ml-py has no nvml{name}")
        self._count()
        try:
            return function(*arguments)
        except self._nvml.NVMLError as error:
            if error.value == FUNCTION_NOT_FOUND:
                self._count(-1)  # the driver lacks this function, so no call was made
            raise NvmlError(error.value, error) from None
        except self._older as error:
            self._count(-1)
            raise NvmlError(FUNCTION_NOT_FOUND, error) from None
        except UnicodeDecodeError as error:
            raise NvmlError(None, f"nvml{name}: {error}") from None
        finally:
            self.last_return = time.monotonic()

    def fill(self, name: str, handle: Any, filled: Any) -> Any:
        """Let nvml`name` fill the ctypes value `filled` and return it. Raises NvmlError.

        Depending on the pynvml release such a call raises or returns its error, for example nvmlDeviceGetModuleId.
        """
        code = self.call(name, handle, ctypes.byref(filled))
        if code:
            raise NvmlError(code, self._nvml.NVMLError(code))
        return filled

    def values(self, handle: Any, fields: Iterable[Field]) -> Mapping[Field, float | NvmlError]:
        """Read fields of "Field Value Enums" (nvml.h) in one call. Raises NvmlError if the whole call fails."""
        wanted = list(fields)
        try:
            answer = self.call("DeviceGetFieldValues", handle, wanted)
        except NvmlError as refusal:
            raise NvmlError(refusal.code, refusal, whole=True) from None
        plain = (_FieldValue * len(wanted)).from_buffer(answer)
        return {field: self._value(one) for field, one in zip(wanted, plain, strict=True)}

    def processes(self, handle: Any) -> int:
        """Return the number of compute processes on the GPU. Raises NvmlError."""
        try:
            answer = self.call("DeviceGetComputeRunningProcesses", handle)
        except NvmlError as refusal:
            if refusal.code != FUNCTION_NOT_FOUND:
                raise
            answer = self.call("DeviceGetComputeRunningProcesses_v2", handle)  # drivers before 510
        if answer:
            self._count()  # pynvml makes two calls: for the number of processes, then for the list
        return len({process.pid for process in answer})

    def memory(self, handle: Any) -> Any:
        """Return the bytes `total`, `used` and `free`, without the driver's reserve if possible. Raises NvmlError."""
        second = 2 << 24 | 40  # sizeof(nvmlMemory_v2_t)
        try:
            return self.call("DeviceGetMemoryInfo", handle, second)
        except NvmlError as refusal:
            if refusal.code != FUNCTION_NOT_FOUND:
                raise
            return self.call("DeviceGetMemoryInfo", handle)

    def drain_state(self, address: str) -> int:
        """Return 1 if an operator drains the GPU at this PCI address, else 0. Raises NvmlError."""
        domain, bus, device = (int(part, 16) for part in address.partition(".")[0].split(":"))
        place = self._nvml.nvmlPciInfo_t(domain=domain, bus=bus, device=device, busId=address.encode())
        return int(self.call("DeviceQueryDrainState", place))

    def error_text(self, code: int) -> str:
        """Return the text of an error number."""
        return str(self._nvml.NVMLError(code))

    def _value(self, answer: _FieldValue) -> float | NvmlError:
        if answer.nvmlReturn:
            # A driver that does not know a field calls it an invalid argument.
            code = NOT_SUPPORTED if answer.nvmlReturn == INVALID_ARGUMENT else answer.nvmlReturn
            return NvmlError(code, self._nvml.NVMLError(code))
        if answer.valueType >= len(_Value._fields_):
            return NvmlError(None, f"field {answer.fieldId}: a value of unknown type {answer.valueType}")
        value: float = getattr(answer.value, _Value._fields_[answer.valueType][0])
        return value

    def _count(self, calls: int = 1) -> None:
        with self._lock:
            self.calls += calls
