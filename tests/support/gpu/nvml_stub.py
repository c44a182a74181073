"""A driver for tests: replaces libnvidia-ml.so.1 below the real pynvml and follows a file.

`python tests/support/gpu/nvml_stub.py CALL` answers one call (probes/calls/entrypoint.py) with it. The stub reads the
TOML file of $NVML_STUB again when it has changed, so a test can break something at run time. It appends the name of
each called function to the file's name + ".log".

    gpus = 8                                  # 0: none; [0, 2]: these, which the driver numbers as 0 and 1
    missing = ["nvmlDeviceGetModuleId"]       # functions that this driver does not have
    device = "/nowhere"                       # replaces /dev/nvidiactl; default: the file itself, which opens
    buses = [0x1B, 0x43]                      # PCI buses of the GPUs
    switch = 5                                # PCI bus of the first of four NVSwitches
    drained = [0x43]                          # buses of GPUs that are drained; "gpus" does not contain them
    [gpu.3]                                   # one GPU; takes precedence over values of all GPUs
    lost_after = 7                            # number of calls for it before GPU_IS_LOST
    links = 12
    down = [4]
    cut = [2]                                 # links that are disabled in the factory
    sums = false                              # no sums of all links; "zero" or "first": these values instead of them
    refused = [300]                           # field numbers for which the whole request is refused ...
    refusal = 2                               # ... with this error
    [returns]                                 # errors by function; "*": all others; "hang" never returns
    nvmlInitWithFlags = 9
    [answers]                                 # numbers and texts; "hex ff" is an invalid UTF-8 byte
    nvmlSystemGetDriverVersion = "570.10"
    [fields]                                  # field values, with a scope as "number.scope"; "error 4" is an error
    "161.7" = 5
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref, c_void_p, cast, memmove
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import Any
from weakref import finalize

import msgspec

NOT_SUPPORTED, INVALID_ARGUMENT, NOT_FOUND, INSUFFICIENT_SIZE, GPU_IS_LOST, MISMATCH = 3, 2, 6, 7, 15, 25
MIB = 1 << 20
SAME_TIME = 20_000_000  # nanoseconds; a file system counts the times of files in steps of up to 10 ms
ALL_LINKS, OF_LINKS = 0xFFFFFFFF, range(201, 251)  # counters of NVLink 5, with a sum of all links as their scope
# PCI buses of the GPUs; 4 NVSwitches are at 05:00.0 to 08:00.0
BUSES: tuple[int, ...] = (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)

# The answers of an H100 SXM, with values of `nvidia-smi -q`. In a table, the key is the second argument.
ANSWERS: Mapping[str, Any] = {
    "nvmlSystemGetDriverVersion": "580.95.05",
    "nvmlSystemGetNVMLVersion": "13.580.95.05",
    "nvmlSystemGetCudaDriverVersion": 13000,
    "nvmlDeviceGetName": "NVIDIA H100 80GB HBM3",
    "nvmlDeviceGetVbiosVersion": "96.00.99.00.01",
    "nvmlDeviceGetBoardPartNumber": "692-2G520-0200-000",
    "nvmlDeviceGetVirtualizationMode": 0,
    "nvmlDeviceGetCurrPcieLinkGeneration": 5,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": 5,
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetComputeMode": 0,
    "nvmlDeviceGetClockInfo": {"1": 345, "2": 2619},
    "nvmlDeviceGetMaxClockInfo": {"1": 1980, "2": 2619},
    "nvmlDeviceGetApplicationsClock": 1980,
    "nvmlDeviceGetDefaultApplicationsClock": 1980,
    "nvmlDeviceGetCurrentClocksEventReasons": 1,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 1,
    "nvmlDeviceGetTemperature": 34,
    "nvmlDeviceGetNvLinkRemoteDeviceType": 2,
    "nvmlDeviceGetNvLinkVersion": 7,
    "nvmlDeviceGetPowerUsage": 70_500,
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 700_000,
    "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetMaxMigDeviceCount": 7,
    "nvmlDeviceGetP2PStatus": 0,
}
FIELDS: Mapping[str, Any] = {
    **dict.fromkeys(("3", "4", "5", "6", "74", "75", "94", "142", "143", "144", "145", "230", "269", "270", "271"), 0),
    "1": 1,
    "2": 1,
    "186": 70_500,
    "189": 700_000,
    "190": 700_000,
    "161": 0,
    "162": 0,
    "163": 0,
    "171": 1,
}
REST: Mapping[str, Any] = {
    "gpus": 8,
    "buses": BUSES,
    "drained": [],
    "switch": 5,
    "missing": [],
    "lost_after": 1 << 30,
    "links": 18,
    "down": [],
    "cut": [],
    "speed": 26562,
    "version": 7,
    "c2c": 0,
    "mig": 0,
    "instances": [],
    "processes": [],
    "fabric": {"state": 3},
    "fabric_version": 3,
    "sram": 0,
    "sram_counts": {},
    "sums": True,
    "rows": [0, 0, 0, 0],
    "full_banks": 0,
    "refused": [],
    "refusal": INVALID_ARGUMENT,
    "returns": {},
    "answers": ANSWERS,
    "fields": FIELDS,
}


class Driver:
    """The library, as ctypes.CDLL returns it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = os.open(f"{path}.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        finalize(self, os.close, self._log)
        self._version: tuple[int, int] | None = None
        self._content = ""
        self._calls_of: Counter[int] = Counter()
        self.asked: list[tuple[int, list[tuple[int, int]]]] = []  # field values: GPU, then number and scope of each

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith("nvml") or name in self.setting("missing"):
            raise AttributeError(name)
        if name not in FUNCTIONS and name.removesuffix("_v2") not in self.setting("answers"):
            raise AttributeError(name)
        return lambda *arguments: self._call(name, *arguments)

    def setting(self, key: str, gpu: int | None = None) -> Any:
        """The value in the file, for this GPU or for all. Tables are merged."""
        return merged(self._text(), key, gpu)

    def _text(self) -> str:
        """The file, read again after a test has written it. A file system may give two writes the same time."""
        stat = os.stat(self._path)
        version = (stat.st_mtime_ns, stat.st_size)
        if version != self._version:
            self._content = self._path.read_text()
            self._version = version if time.time_ns() - stat.st_mtime_ns > SAME_TIME else None
        return self._content

    def present(self) -> Sequence[int]:
        """The GPUs that the driver has now. All other data name a GPU by its place in the list of all GPUs."""
        gpus = self.setting("gpus")
        return range(gpus) if isinstance(gpus, int) else gpus

    def _call(self, name: str, *arguments: Any) -> int:
        os.write(self._log, f"{name}\n".encode())
        gpu = number_of(name, arguments)
        if gpu is not None:
            self._calls_of[gpu] += 1
            if self._calls_of[gpu] > self.setting("lost_after", gpu):
                return GPU_IS_LOST
        returns = self.setting("returns", gpu)
        result = returns.get(name, returns.get("*", 0) if gpu is not None else 0)
        if result == "hang":
            Event().wait()
        if result:
            return int(result)
        function: Callable[..., Any] = FUNCTIONS.get(name, answer)
        code: int = function(self, gpu, name, *arguments)
        return code


@lru_cache(maxsize=10_000)
def merged(text: str, key: str, gpu: int | None) -> Any:
    """The value of a setting in the text of a file. Nobody changes it."""
    file = parsed(text)
    places = (REST, file, file.get("gpu", {}).get(str(gpu), {}))
    if isinstance(REST[key], Mapping) and key != "fabric":
        return {name: value for place in places for name, value in place.get(key, {}).items()}
    return next(place[key] for place in reversed(places) if key in place)


@lru_cache(maxsize=8)
def parsed(text: str) -> Mapping[str, Any]:
    """The content of the file."""
    return msgspec.toml.decode(text, type=dict[str, Any])


def number_of(name: str, arguments: tuple[Any, ...]) -> int | None:
    """The GPU of a call. Its handle points to its number + 1."""
    if name == "nvmlDeviceGetHandleByIndex_v2":
        return int(arguments[0].value)
    if name.startswith("nvmlDeviceGet") and name != "nvmlDeviceGetCount_v2":
        return int(cast(arguments[0], c_void_p).value or 0) - 1
    return None


def answer(driver: Driver, gpu: int | None, name: str, *arguments: Any) -> int:
    """A function of ANSWERS that returns one number or text."""
    value = driver.setting("answers", gpu)[name.removesuffix("_v2")]
    if isinstance(value, Mapping):
        value = value[str(arguments[1].value)]
    if isinstance(value, str):
        arguments[-2].value = bytes.fromhex(value[4:]) if value.startswith("hex ") else value.encode()
    else:
        arguments[-1]._obj.value = value
    return 0


def point(pointer: Any, number: int) -> int:
    """Set a handle."""
    memmove(byref(pointer), byref(c_void_p(number)), 8)
    return 0


def fill(filled: Any, **values: Any) -> int:
    """Set the fields of a structure."""
    for name, value in values.items():
        setattr(filled, name, value)
    return 0


def init(driver: Driver, gpu: None, name: str, flags: Any) -> int:
    return 0


def error_string(driver: Driver, gpu: None, name: str, number: int) -> bytes:
    return f"Error {number}".encode()


def count(driver: Driver, gpu: None, name: str, number: Any) -> int:
    return fill(number._obj, value=len(driver.present()))


def handle(driver: Driver, gpu: int, name: str, index: Any, pointer: Any) -> int:
    present = driver.present()
    return point(pointer._obj, present[gpu] + 1) if gpu < len(present) else INVALID_ARGUMENT


def uuid(driver: Driver, gpu: int, name: str, device: Any, text: Any, size: Any) -> int:
    return fill(text, value=f"GPU-a1b2c3d4-0000-1111-2222-00000000000{gpu}".encode())


def pci_info(driver: Driver, gpu: int, name: str, device: Any, info: Any) -> int:
    return fill(info._obj, busId=f"00000000:{driver.setting('buses')[gpu]:02X}:00.0".encode())


def drain_state(driver: Driver, gpu: None, name: str, place: Any, state: Any) -> int:
    return fill(state._obj, value=int(place.contents.bus in driver.setting("drained")))


def temperature(driver: Driver, gpu: int, name: str, device: Any, result: Any) -> int:
    return fill(result._obj, temperature=driver.setting("answers", gpu)["nvmlDeviceGetTemperature"])


def memory(driver: Driver, gpu: int, name: str, device: Any, result: Any) -> int:
    return fill(result._obj, total=81559 * MIB, used=1 * MIB)


def bar1(driver: Driver, gpu: int, name: str, device: Any, result: Any) -> int:
    return fill(result._obj, bar1Total=131072 * MIB, bar1Used=1 * MIB)


def ecc_mode(driver: Driver, gpu: int, name: str, device: Any, now: Any, pending: Any) -> int:
    return fill(now._obj, value=1) or fill(pending._obj, value=1)


def mig_mode(driver: Driver, gpu: int, name: str, device: Any, now: Any, pending: Any) -> int:
    return fill(now._obj, value=driver.setting("mig", gpu)) or fill(pending._obj, value=0)


def instance(driver: Driver, gpu: int, name: str, device: Any, index: Any, pointer: Any) -> int:
    return point(pointer._obj, 1000) if index.value in driver.setting("instances", gpu) else NOT_FOUND


def processes(driver: Driver, gpu: int, name: str, device: Any, number: Any, result: Any) -> int:
    pids = driver.setting("processes", gpu)
    if len(pids) > number._obj.value:
        return fill(number._obj, value=len(pids)) or INSUFFICIENT_SIZE
    for pid, process in zip(pids, result or (), strict=False):
        fill(process, pid=pid, usedGpuMemory=500 * MIB)
    return fill(number._obj, value=len(pids))


def fabric(driver: Driver, gpu: int, name: str, device: Any, result: Any) -> int:
    if getattr(result._obj, "version", 0) >> 24 > driver.setting("fabric_version", gpu):
        return MISMATCH
    table = dict(driver.setting("fabric", gpu))
    result._obj.uuid[:] = bytes.fromhex(table.pop("cluster", "00" * 16))
    return fill(result._obj, **table)


def sram(driver: Driver, gpu: int, name: str, device: Any, result: Any) -> int:
    for place, value in driver.setting("sram_counts", gpu).items():
        result._obj.counts[int(place)] = value
    return fill(result._obj, too_many=driver.setting("sram", gpu))


def remapped_rows(driver: Driver, gpu: int, name: str, device: Any, *counts: Any) -> int:
    return max(fill(one._obj, value=number) for one, number in zip(counts, driver.setting("rows", gpu), strict=True))


def row_histogram(driver: Driver, gpu: int, name: str, device: Any, banks: Any) -> int:
    return fill(banks._obj, none=driver.setting("full_banks", gpu))


def link_state(driver: Driver, gpu: int, name: str, device: Any, link: int, active: Any) -> int:
    if link >= driver.setting("links", gpu):
        return INVALID_ARGUMENT if driver.setting("links", gpu) else NOT_SUPPORTED
    if link in driver.setting("cut", gpu):
        return NOT_SUPPORTED
    return fill(active._obj, value=int(link not in driver.setting("down", gpu)))


def far_end(driver: Driver, gpu: int, name: str, device: Any, link: int, info: Any) -> int:
    return fill(info._obj, busId=f"00000000:{driver.setting('switch') + link % 4:02X}:00.0".encode())


def module_id(driver: Driver, gpu: int, name: str, device: Any, number: Any) -> int:
    return fill(number._obj, value=gpu + 1)


def cpus(driver: Driver, gpu: int, name: str, device: Any, size: int, words: Any) -> int:
    words._obj[gpu // 4] = 0xFFFF
    return 0


def nodes(driver: Driver, gpu: int, name: str, device: Any, size: int, words: Any, scope: Any) -> int:
    words._obj[0] = 1 << gpu // 4
    return 0


def ancestor(driver: Driver, gpu: int, name: str, device: Any, other: Any, level: Any) -> int:
    return fill(level._obj, value=40 if gpu // 4 == (number_of(name, (other,)) or 0) // 4 else 50)


def field_values(driver: Driver, gpu: int, name: str, device: Any, number: Any, values: Any) -> int:
    driver.asked.append((gpu, [(value.fieldId, value.scopeId) for value in values._obj]))
    answers, speed = driver.setting("fields", gpu), driver.setting("speed", gpu)
    links = driver.setting("links", gpu) - len(driver.setting("cut", gpu))
    answers = {"90": speed, "91": links, "170": driver.setting("c2c", gpu), "172": 44712, **answers}
    if any(value.fieldId in driver.setting("refused", gpu) for value in values._obj):
        return int(driver.setting("refusal", gpu))
    for value in values._obj:
        up = value.scopeId not in driver.setting("down", gpu)
        of_link = {164: speed if up else 0, 166: driver.setting("version", gpu) if up else 0}
        default = answers.get(f"{value.fieldId}", of_link.get(value.fieldId, f"error {NOT_SUPPORTED}"))
        found = answers.get(f"{value.fieldId}.{value.scopeId}", default)
        if value.scopeId == ALL_LINKS and value.fieldId in OF_LINKS:
            found = summed(answers, value.fieldId, links, driver.setting("sums", gpu))
        if isinstance(found, str):
            value.nvmlReturn = int(found.removeprefix("error "))
        else:
            value.valueType, value.value.ullVal = 3, found
    return 0


def summed(answers: Mapping[str, Any], number: int, links: int, sums: bool | str) -> Any:
    """The sum of a counter of all links, or the error of one of them. Without sums, what the driver gives instead."""
    default = answers.get(f"{number}", f"error {NOT_SUPPORTED}")
    each = [answers.get(f"{number}.{link}", default) for link in range(links)]
    if sums is not True:
        return {"zero": 0, "first": each[0]}.get(str(sums), f"error {NOT_SUPPORTED}")
    return next((one for one in each if isinstance(one, str)), None) or sum(each)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "nvmlInitWithFlags": init,
    "nvmlErrorString": error_string,
    "nvmlDeviceGetCount_v2": count,
    "nvmlDeviceGetHandleByIndex_v2": handle,
    "nvmlDeviceGetUUID": uuid,
    "nvmlDeviceGetPciInfo_v3": pci_info,
    "nvmlDeviceQueryDrainState": drain_state,
    "nvmlDeviceGetTemperatureV": temperature,
    "nvmlDeviceGetMemoryInfo": memory,
    "nvmlDeviceGetMemoryInfo_v2": memory,
    "nvmlDeviceGetBAR1MemoryInfo": bar1,
    "nvmlDeviceGetEccMode": ecc_mode,
    "nvmlDeviceGetMigMode": mig_mode,
    "nvmlDeviceGetMigDeviceHandleByIndex": instance,
    "nvmlDeviceGetComputeRunningProcesses_v3": processes,
    "nvmlDeviceGetComputeRunningProcesses_v2": processes,
    "nvmlDeviceGetGpuFabricInfoV": fabric,
    "nvmlDeviceGetGpuFabricInfo": fabric,
    "nvmlDeviceGetSramEccErrorStatus": sram,
    "nvmlDeviceGetRemappedRows": remapped_rows,
    "nvmlDeviceGetRowRemapperHistogram": row_histogram,
    "nvmlDeviceGetNvLinkState": link_state,
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": far_end,
    "nvmlDeviceGetModuleId": module_id,
    "nvmlDeviceGetCpuAffinity": cpus,
    "nvmlDeviceGetMemoryAffinity": nodes,
    "nvmlDeviceGetTopologyCommonAncestor": ancestor,
    "nvmlDeviceGetFieldValues": field_values,
}


def install(path: Path) -> None:
    """Install the stub where pynvml keeps its library."""
    import pynvml

    pynvml.nvmlLib = Driver(path)


if __name__ == "__main__":
    from linkgauge.probes.calls import entrypoint as calls
    from linkgauge.probes.gpu import nvml_threads

    file = Path(os.environ["NVML_STUB"])
    nvml_threads.CONTROL = parsed(file.read_text()).get("device", str(file))
    install(file)
    calls.main()
