"""A driver for the tests: stands in the place of libnvidia-ml.so.1 below the real pynvml, and does as a file says.

`python tests/support/nvml_stub.py CALL` answers one call (probes/calls/entrypoint.py) with it.
The TOML file of $NVML_STUB is read anew at
each function, so that a test can break something while it runs; what is called is appended to the file's name + ".log".

    gpus = 8                                  # 0: none
    missing = ["nvmlDeviceGetModuleId"]       # functions that this driver does not have
    device = "/nowhere"                       # in the place of /dev/nvidiactl; the file itself is one that opens
    [gpu.3]                                   # of one GPU, before what is said of all
    lost_after = 7                            # calls on it, then GPU_IS_LOST
    links = 12
    down = [4]
    cut = [2]                                 # links that were cut off in the factory
    [returns]                                 # errors by function; "*": all others; "hang" never returns
    nvmlInitWithFlags = 9
    [answers]                                 # numbers and texts; "hex ff" is a byte that is none
    nvmlSystemGetDriverVersion = "570.10"
    [fields]                                  # field values, with a scope as "number.scope"; "error 4" is one
    "161.7" = 5
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from ctypes import byref, c_void_p, cast, memmove
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import Any

import msgspec

NOT_SUPPORTED, INVALID_ARGUMENT, NOT_FOUND, INSUFFICIENT_SIZE, GPU_IS_LOST, MISMATCH = 3, 2, 6, 7, 15, 25
MIB = 1 << 20
BUSES = (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)  # of the GPUs; 4 NVSwitches are at 05:00.0 to 08:00.0

# What an H100 SXM says: the values are those of `nvidia-smi -q`. A table has the answer by the second argument.
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
    **dict.fromkeys(("3", "4", "5", "6", "74", "94", "142", "143", "144", "145", "230", "269", "270", "271"), 0),
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
    "rows": [0, 0, 0, 0],
    "returns": {},
    "answers": ANSWERS,
    "fields": FIELDS,
}


class Driver:
    """The library, as ctypes.CDLL would give it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._asked: Counter[int] = Counter()

    def __getattr__(self, name: str) -> Callable[..., int]:
        if not name.startswith("nvml") or name in self.said("missing"):
            raise AttributeError(name)
        if name not in FUNCTIONS and name.removesuffix("_v2") not in self.said("answers"):
            raise AttributeError(name)
        return lambda *given: self._call(name, *given)

    def said(self, key: str, gpu: int | None = None) -> Any:
        """What the file says, of this GPU or of all; tables add up."""
        file = parsed(self._path.read_text())
        places = (REST, file, file.get("gpu", {}).get(str(gpu), {}))
        if isinstance(REST[key], Mapping) and key != "fabric":
            return {name: value for place in places for name, value in place.get(key, {}).items()}
        return next(place[key] for place in reversed(places) if key in place)

    def _call(self, name: str, *given: Any) -> int:
        with open(f"{self._path}.log", "a") as log:
            log.write(f"{name}\n")
        gpu = number_of(name, given)
        if gpu is not None:
            self._asked[gpu] += 1
            if self._asked[gpu] > self.said("lost_after", gpu):
                return GPU_IS_LOST
        returns = self.said("returns", gpu)
        result = returns.get(name, returns.get("*", 0) if gpu is not None else 0)
        if result == "hang":
            Event().wait()
        if result:
            return int(result)
        function: Callable[..., Any] = FUNCTIONS.get(name, answer)
        code: int = function(self, gpu, name, *given)
        return code


@lru_cache(maxsize=8)
def parsed(text: str) -> Mapping[str, Any]:
    """The file."""
    return msgspec.toml.decode(text, type=dict[str, Any])


def number_of(name: str, given: tuple[Any, ...]) -> int | None:
    """The GPU that a function is about: its handle points to its number + 1."""
    if name == "nvmlDeviceGetHandleByIndex_v2":
        return int(given[0].value)
    if name.startswith("nvmlDevice") and name != "nvmlDeviceGetCount_v2":
        return int(cast(given[0], c_void_p).value or 0) - 1
    return None


def answer(driver: Driver, gpu: int | None, name: str, *given: Any) -> int:
    """A function that fills in one number or text, of those in ANSWERS."""
    said = driver.said("answers", gpu)[name.removesuffix("_v2")]
    if isinstance(said, Mapping):
        said = said[str(given[1].value)]
    if isinstance(said, str):
        given[-2].value = bytes.fromhex(said[4:]) if said.startswith("hex ") else said.encode()
    else:
        given[-1]._obj.value = said
    return 0


def point(pointer: Any, number: int) -> int:
    """Fill in a handle."""
    memmove(byref(pointer), byref(c_void_p(number)), 8)
    return 0


def fill(filled: Any, **values: Any) -> int:
    """Fill in a structure."""
    for name, value in values.items():
        setattr(filled, name, value)
    return 0


def init(driver: Driver, gpu: None, name: str, flags: Any) -> int:
    return 0


def error_string(driver: Driver, gpu: None, name: str, number: int) -> bytes:
    return f"Error {number}".encode()


def count(driver: Driver, gpu: None, name: str, number: Any) -> int:
    return fill(number._obj, value=driver.said("gpus"))


def handle(driver: Driver, gpu: int, name: str, index: Any, pointer: Any) -> int:
    return point(pointer._obj, gpu + 1) if gpu < driver.said("gpus") else INVALID_ARGUMENT


def uuid(driver: Driver, gpu: int, name: str, device: Any, text: Any, size: Any) -> int:
    return fill(text, value=f"GPU-a1b2c3d4-0000-1111-2222-00000000000{gpu}".encode())


def pci_info(driver: Driver, gpu: int, name: str, device: Any, info: Any) -> int:
    return fill(info._obj, busId=f"00000000:{BUSES[gpu]:02X}:00.0".encode())


def temperature(driver: Driver, gpu: int, name: str, device: Any, said: Any) -> int:
    return fill(said._obj, temperature=driver.said("answers", gpu)["nvmlDeviceGetTemperature"])


def memory(driver: Driver, gpu: int, name: str, device: Any, said: Any) -> int:
    return fill(said._obj, total=81559 * MIB, used=1 * MIB)


def bar1(driver: Driver, gpu: int, name: str, device: Any, said: Any) -> int:
    return fill(said._obj, bar1Total=131072 * MIB, bar1Used=1 * MIB)


def ecc_mode(driver: Driver, gpu: int, name: str, device: Any, now: Any, pending: Any) -> int:
    return fill(now._obj, value=1) or fill(pending._obj, value=1)


def mig_mode(driver: Driver, gpu: int, name: str, device: Any, now: Any, pending: Any) -> int:
    return fill(now._obj, value=driver.said("mig", gpu)) or fill(pending._obj, value=0)


def instance(driver: Driver, gpu: int, name: str, device: Any, index: Any, pointer: Any) -> int:
    return point(pointer._obj, 1000) if index.value in driver.said("instances", gpu) else NOT_FOUND


def processes(driver: Driver, gpu: int, name: str, device: Any, number: Any, said: Any) -> int:
    pids = driver.said("processes", gpu)
    if len(pids) > number._obj.value:
        return fill(number._obj, value=len(pids)) or INSUFFICIENT_SIZE
    for pid, process in zip(pids, said or (), strict=False):
        fill(process, pid=pid, usedGpuMemory=500 * MIB)
    return fill(number._obj, value=len(pids))


def fabric(driver: Driver, gpu: int, name: str, device: Any, said: Any) -> int:
    if getattr(said._obj, "version", 0) >> 24 > driver.said("fabric_version", gpu):
        return MISMATCH
    table = dict(driver.said("fabric", gpu))
    said._obj.uuid[:] = bytes.fromhex(table.pop("cluster", "00" * 16))
    return fill(said._obj, **table)


def sram(driver: Driver, gpu: int, name: str, device: Any, said: Any) -> int:
    return fill(said._obj, too_many=driver.said("sram", gpu))


def remapped_rows(driver: Driver, gpu: int, name: str, device: Any, *counts: Any) -> int:
    return max(fill(one._obj, value=number) for one, number in zip(counts, driver.said("rows", gpu), strict=True))


def link_state(driver: Driver, gpu: int, name: str, device: Any, link: int, active: Any) -> int:
    if link >= driver.said("links", gpu):
        return INVALID_ARGUMENT if driver.said("links", gpu) else NOT_SUPPORTED
    if link in driver.said("cut", gpu):
        return NOT_SUPPORTED
    return fill(active._obj, value=int(link not in driver.said("down", gpu)))


def far_end(driver: Driver, gpu: int, name: str, device: Any, link: int, info: Any) -> int:
    return fill(info._obj, busId=f"00000000:{5 + link % 4:02X}:00.0".encode())


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
    said, speed = driver.said("fields", gpu), driver.said("speed", gpu)
    links = driver.said("links", gpu) - len(driver.said("cut", gpu))
    said = {"90": speed, "91": links, "170": driver.said("c2c", gpu), "172": 44712, **said}
    for value in values._obj:
        up = value.scopeId not in driver.said("down", gpu)
        of_link = {164: speed if up else 0, 166: driver.said("version", gpu) if up else 0}
        default = said.get(f"{value.fieldId}", of_link.get(value.fieldId, f"error {NOT_SUPPORTED}"))
        found = said.get(f"{value.fieldId}.{value.scopeId}", default)
        if isinstance(found, str):
            value.nvmlReturn = int(found.removeprefix("error "))
        else:
            value.valueType, value.value.ullVal = 3, found
    return 0


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "nvmlInitWithFlags": init,
    "nvmlErrorString": error_string,
    "nvmlDeviceGetCount_v2": count,
    "nvmlDeviceGetHandleByIndex_v2": handle,
    "nvmlDeviceGetUUID": uuid,
    "nvmlDeviceGetPciInfo_v3": pci_info,
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
    "nvmlDeviceGetNvLinkState": link_state,
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": far_end,
    "nvmlDeviceGetModuleId": module_id,
    "nvmlDeviceGetCpuAffinity": cpus,
    "nvmlDeviceGetMemoryAffinity": nodes,
    "nvmlDeviceGetTopologyCommonAncestor": ancestor,
    "nvmlDeviceGetFieldValues": field_values,
}


def install(path: Path) -> None:
    """Put the driver where pynvml keeps its library."""
    import pynvml

    pynvml.nvmlLib = Driver(path)


if __name__ == "__main__":
    from linkgauge.probes.calls import entrypoint as calls
    from linkgauge.probes.gpu import nvml_threads as nvml_asking

    file = Path(os.environ["NVML_STUB"])
    nvml_asking.CONTROL = parsed(file.read_text()).get("device", str(file))
    install(file)
    calls.main()
