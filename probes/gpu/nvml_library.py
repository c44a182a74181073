"""NVML as this program asks it: errors with their numbers, calls counted, many fields in one call.

The one importer of pynvml (the package nvidia-ml-py). Numbers of errors and fields are those of nvml.h
(https://docs.nvidia.com/deploy/nvml-api): an older package that lacks a name still asks by number.
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
VERSION_MISMATCH = 25  # of a structure that was to be filled
DEPRECATED = 26

# What a driver or a GPU says of a question that is too new, too old or not for it: no answer, and nothing is wrong.
ABSENT = frozenset({NOT_SUPPORTED, FUNCTION_NOT_FOUND, VERSION_MISMATCH, DEPRECATED})
GONE = frozenset({15, 16})  # GPU is lost; it wants a reset: no further question is answered

# nvmlValueType_t -> the member of the union that holds the value
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")

# nvmlReturn_t; all others are DRIVER
_REASONS = {
    NOT_SUPPORTED: Reason.NOT_SUPPORTED,
    FUNCTION_NOT_FOUND: Reason.NOT_SUPPORTED,
    VERSION_MISMATCH: Reason.NOT_SUPPORTED,
    DEPRECATED: Reason.NOT_SUPPORTED,
    NO_PERMISSION: Reason.PERMISSION,
    LIBRARY_NOT_FOUND: Reason.NOT_INSTALLED,
    10: Reason.NO_ANSWER,  # timeout
    15: Reason.LOST,
    16: Reason.LOST,
    999: Reason.LOST,  # "Unknown Error": most often a GPU that has left the bus
    None: Reason.UNREADABLE,
}

Field: TypeAlias = tuple[int, int]  # its number and its scope: a link, or 0


class Refused(Exception):
    """NVML gave an error. `code` is its number; None: its answer was no text."""

    def __init__(self, code: int | None, cause: object) -> None:
        super().__init__(cause)
        self.code = code

    @property
    def reason(self) -> Reason:
        """The reason, by the error number."""
        return _REASONS.get(self.code, Reason.DRIVER)

    @property
    def how(self) -> str | None:
        """What would bring the answer, where that is known."""
        return "run as root" if self.code == NO_PERMISSION else None


class Library:
    """libnvidia-ml.so.1 through pynvml. Raises ImportError where the package is not installed."""

    def __init__(self) -> None:
        import pynvml

        self._nvml = pynvml
        # Some wrappers raise this instead of FUNCTION_NOT_FOUND.
        self._older: type[Exception] = getattr(pynvml, "NVMLLibraryMismatchError", pynvml.NVMLError)
        self._lock = Lock()
        self.calls = 0
        self.answered = time.monotonic()  # when a call last came back

    def ask(self, name: str, *arguments: Any) -> Any:
        """What nvml`name` answers. Raises Refused."""
        call = getattr(self._nvml, f"nvml{name}", None)
        if call is None:
            raise Refused(FUNCTION_NOT_FOUND, f"nvidia-ml-py has no nvml{name}")
        self._count()
        try:
            return call(*arguments)
        except self._nvml.NVMLError as error:
            if error.value == FUNCTION_NOT_FOUND:
                self._count(-1)  # the driver has no such function: nothing was called
            raise Refused(error.value, error) from None
        except self._older as error:
            self._count(-1)
            raise Refused(FUNCTION_NOT_FOUND, error) from None
        except UnicodeDecodeError as error:
            raise Refused(None, f"nvml{name}: {error}") from None
        finally:
            self.answered = time.monotonic()

    def fill(self, name: str, handle: Any, filled: Any) -> Any:
        """`filled`, a number or structure of ctypes, as nvml`name` filled it. Raises Refused.

        Releases differ in whether such a call raises or returns its error: nvmlDeviceGetModuleId does either.
        """
        code = self.ask(name, handle, ctypes.byref(filled))
        if code:
            raise Refused(code, self._nvml.NVMLError(code))
        return filled

    def values(self, handle: Any, fields: Iterable[Field]) -> Mapping[Field, float | Refused]:
        """Numbers of nvml.h's "Field Value Enums", in one call. Raises Refused where nothing was answered at all."""
        wanted = list(fields)
        said = self.ask("DeviceGetFieldValues", handle, wanted)
        return {field: self._value(one) for field, one in zip(wanted, said, strict=True)}

    def processes(self, handle: Any) -> int:
        """How many processes compute on the GPU. Raises Refused."""
        try:
            said = self.ask("DeviceGetComputeRunningProcesses", handle)
        except Refused as refusal:
            if refusal.code != FUNCTION_NOT_FOUND:
                raise
            said = self.ask("DeviceGetComputeRunningProcesses_v2", handle)  # drivers before 510
        if said:
            self._count()  # it asked for their number, then for them
        return len({process.pid for process in said})

    def memory(self, handle: Any) -> Any:
        """Bytes `total`, `used` and `free`; where it can, without what the driver keeps for itself. Raises Refused."""
        second = 2 << 24 | 40  # sizeof(nvmlMemory_v2_t)
        try:
            return self.ask("DeviceGetMemoryInfo", handle, second)
        except Refused as refusal:
            if refusal.code != FUNCTION_NOT_FOUND:
                raise
            return self.ask("DeviceGetMemoryInfo", handle)

    def says(self, code: int) -> str:
        """What an error number means."""
        return str(self._nvml.NVMLError(code))

    def _value(self, said: Any) -> float | Refused:
        if said.nvmlReturn:
            # A driver that does not know a field calls it an invalid argument.
            code = NOT_SUPPORTED if said.nvmlReturn == INVALID_ARGUMENT else said.nvmlReturn
            return Refused(code, self._nvml.NVMLError(code))
        if said.valueType >= len(_MEMBERS):
            return Refused(None, f"field {said.fieldId}: a value of unknown type {said.valueType}")
        value: float = getattr(said.value, _MEMBERS[said.valueType])
        return value

    def _count(self, calls: int = 1) -> None:
        with self._lock:
            self.calls += calls
