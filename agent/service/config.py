"""The configuration of the service: /etc/linkgauge/linkgauge.toml. The site file describes what nodes should have."""

from __future__ import annotations

import os
import re
from typing import Annotated, Literal, TypeAlias

import msgspec

from ...models.site.toml_tables import read_tables
from ...probes.measure.probe import Effort
from ..inputs.site_file import BadInput, read_text
from ..measuring.budget import budget_of

CONFIG = "/etc/linkgauge/linkgauge.toml"
LISTEN = "127.0.0.1:9841"
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_TIME = re.compile(r"([0-9]{1,6})([smhd])")

Time: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]{0,5}[smhd]$")]  # "15s", "10m", "6h", "1d"


class Probing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Scheduled measurements. They are off unless `every` is set."""

    every: Time | None = None
    jitter: Time = "10m"  # random delay, so that the nodes of a cluster do not measure at the same moment
    level: Literal["quick", "full"] = "quick"
    budget: str | None = None  # "30s,20GB"
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.budget is not None:
            budget_of(self.budget, self.level)

    @property
    def effort(self) -> Effort:
        """The level as `diagnose --level` takes it."""
        return self.level


class Push(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Other systems that get the result of each cycle."""

    nvsentinel: Annotated[str, msgspec.Meta(pattern=r"^unix:///.+")] | None = None  # socket of NVSentinel or gpud
    kubernetes: bool = False  # set the node condition LinkgaugeHealthy
    device_taints: Literal["None", "NoSchedule", "NoExecute"] | None = None  # effect of taints of devices with a fault
    node: str | None = None  # name of the node there; default: $NODE_NAME, else the host name

    def __post_init__(self) -> None:
        if self.device_taints and not self.kubernetes:
            raise ValueError("device_taints without kubernetes = true")


class Otlp(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A collector that gets the metrics of each cycle over OTLP."""

    url: Annotated[str, msgspec.Meta(pattern="^https?://.+")] | None = None  # http://collector:4318/v1/metrics
    conventions: Literal["linkgauge", "hw"] = "linkgauge"  # "hw": also OpenTelemetry's names of hardware


class Jobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What jobs write on this node."""

    inspector: Annotated[str, msgspec.Meta(pattern="^/")] | None = None  # folder of the NCCL Inspector's texts


class Redfish(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The management controller (BMC) as a further source."""

    file: Annotated[str, msgspec.Meta(pattern="^/")] | None = None  # how to reach it, as of `diagnose --redfish`
    every: Time = "10m"  # interval between two readings


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The tables of the file. Every key is optional. Times are written "15s", "10m", "6h", "1d"."""

    listen: str = LISTEN
    web: str | None = None  # the web configuration file: TLS, passwords
    site: str | None = None
    detail: Literal["", "links"] = ""  # "links": one series for every hop and pair
    cycle: Time = "15s"
    cycle_busy: Time = "1m"  # while a job runs
    slow: Time = "10m"  # interval of values that change rarely: settings, disks, mounts
    discovery: Time = "1h"  # interval of the inventory; a hot-plugged device triggers it earlier
    textfile: str | None = None  # for node_exporter's textfile collector, written after each cycle
    log: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["text", "json"] = "text"
    probes: Probing = Probing()
    push: Push = Push()
    otlp: Otlp = Otlp()
    jobs: Jobs = Jobs()
    redfish: Redfish = Redfish()


def seconds(time: str) -> float:
    """Convert "15s", "10m", "6h" or "1d" to seconds. Raises ValueError with a message for the user."""
    found = _TIME.fullmatch(time)
    if not found:
        raise ValueError(f"{time!r}: write 15s, 10m, 6h or 1d")
    return int(found[1]) * _UNITS[found[2]]


def read_config(path: str | None) -> Config:
    """Read the named file, else the system's file if it exists. Raises BadInput."""
    option = "--config"
    if path is None:
        if not os.path.exists(CONFIG):
            return Config()
        path, option = CONFIG, ""
    try:
        return read_tables(read_text(path, option), Config)
    except ValueError as wrong:
        raise BadInput(f"{option} {path}: {wrong}".strip()) from None


def key_of(path: str | None, key: str) -> str:
    """The file and the key, for messages about a value of the configuration file that `read_config` read."""
    return f"{path or CONFIG}: {key} ="
