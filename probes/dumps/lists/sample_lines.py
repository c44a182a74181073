"""Lines of metrics, one sample or several in each: Prometheus' text format, and InfluxDB's line protocol (Telegraf).

https://prometheus.io/docs/instrumenting/exposition_formats; https://docs.influxdata.com, line protocol:
infiniband,device=mlx5_0,port=1 link_downed=0i,symbol_error=0i 1737652060000000000.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

_NUMBER = r"[0-9]{1,20}(?:\.[0-9]{1,15})?(?:e[+-]?[0-9]{2})?"
_PROMETHEUS = re.compile(
    r"[ \t>]{0,8}(?P<metric>[a-z][a-zA-Z0-9_:]{3,100})\{(?P<labels>[^}\n]{3,600})\}"
    rf"[ \t]+(?P<value>{_NUMBER})(?:[ \t]+[0-9]{{10,13}})?[ \t]*"
)
_LABEL = re.compile(r'(\w{1,40})="([^"\n]{0,200})"')
_INFLUX = re.compile(
    r"[ \t>]{0,8}(?P<measurement>[a-z]\w{1,60})(?P<tags>(?:,\w{1,40}=[^\s,=]{1,100}){1,20})"
    r"[ ](?P<fields>\w{1,60}=[^\s,=]{1,100}(?:,\w{1,60}=[^\s,=]{1,100}){0,200})(?:[ ][0-9]{10,19})?[ \t]*"
)
_PAIR = re.compile(r"(\w{1,60})=([^\s,=]{1,100})")
_VALUE = re.compile(rf"({_NUMBER})[iu]?")
_NAMES = (
    "device",
    "hca",
    "interface",
    "ifname",
    "gpu",
    "index",
    "minor_number",
    "pci_bus_id",
    "bdf",
    "address",
    "name",
)
_PCI = ("segment", "bus", "device", "function")  # node_pcidevice_*


class Sample(Struct, frozen=True):
    """A value of a metric, with the number (from 0) and the text of its line."""

    metric: str
    labels: Mapping[str, str]
    value: str
    number: int
    line: str

    @property
    def device(self) -> str | None:
        """The device that the labels name: "mlx5_2", "gpu 3", a PCI address."""
        if all(name in self.labels for name in _PCI):
            return "{segment}:{bus}:{device}.{function}".format_map(self.labels)
        name = next((name for name in _NAMES if name in self.labels), "")
        value = self.labels.get(name)
        return f"gpu {value}" if value and value.isdecimal() and name in ("gpu", "index", "minor_number") else value

    @property
    def port(self) -> str | None:
        """The number of the port of an RDMA device."""
        port = self.labels.get("port", "")
        return port if port.isdecimal() else None


def sample_lines(lines: Sequence[str]) -> Iterator[Sample]:
    """The samples of all lines. The metric of a field in the line protocol is "measurement_field"."""
    for number, line in enumerate(lines):
        if "{" in line and (found := _PROMETHEUS.fullmatch(line)):
            yield Sample(found["metric"], dict(_LABEL.findall(found["labels"])), found["value"], number, line)
        elif "=" in line and "," in line and (found := _INFLUX.fullmatch(line)):
            tags = dict(_PAIR.findall(found["tags"]))
            for name, text in _PAIR.findall(found["fields"]):
                if value := _VALUE.fullmatch(text):
                    yield Sample(f"{found['measurement']}_{name}", tags, value[1], number, line)
