"""Counters of ports in samples of metrics: node_infiniband_link_downed_total{device="mlx5_2",port="1"} 4.

The end of a metric's name is the counter's name in sysfs (Documentation/ABI/stable/sysfs-class-infiniband), or the name
that prometheus/node_exporter gives it (collector/infiniband_linux.go, netclass_linux.go, netdev_linux.go). Telegraf's
plugin infiniband keeps the names of sysfs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ....models.facts.machine import Net, Port
from ....models.facts.records import Fact, Observation, Record
from ..core.part import Part
from .item import device_kind
from .sample_lines import Sample, sample_lines

_OF_PORTS = (  # of RDMA devices: names of sysfs
    "link_downed",
    "link_error_recovery",
    "symbol_error",
    "port_rcv_errors",
    "port_rcv_remote_physical_errors",
    "port_xmit_discards",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "local_ack_timeout_err",
    "out_of_sequence",
    "packet_seq_err",
    "rnr_nak_retry_err",
    "out_of_buffer",
    "rx_icrc_encapsulated",
)
_WORD = 4.0  # bytes of a unit of port_rcv_data (IBTA specification 1, 16.1.3.5)
# The name of a counter here, and the unit of its value
_PORTS = {
    **{name: (name, 1.0) for name in _OF_PORTS},
    "symbol_errors": ("symbol_error", 1.0),
    "port_errors_received": ("port_rcv_errors", 1.0),
    "port_receive_remote_physical_errors": ("port_rcv_remote_physical_errors", 1.0),
    "port_discards_transmitted": ("port_xmit_discards", 1.0),
    "port_rcv_data": ("rx_bytes", _WORD),
    "port_data_received_bytes": ("rx_bytes", 1.0),
}
_NETS = {
    "network_carrier_changes": ("carrier_changes", 1.0),
    "network_receive_errs": ("rx_errors", 1.0),
    "network_receive_bytes": ("rx_bytes", 1.0),
    "rx_crc_errors_phy": ("rx_crc_errors", 1.0),
    "rx_symbol_err_phy": ("rx_symbol_errors", 1.0),
    "link_down_events_phy": ("link_downed", 1.0),
    "rx_bytes_phy": ("rx_bytes", 1.0),
}
_BESIDE = ("rx_bytes", "carrier_changes")  # counters that alone show no fault
_NAME = re.compile(rf"(?:^|_)({'|'.join((*_PORTS, *_NETS))})(?:_total|_counter)?")


def counted(lines: Sequence[str]) -> Iterator[tuple[Sample, type[Fact], str, str, float]]:
    """Each counter of a port: its sample, the kind and the key of the port, the name of the counter, and its value."""
    for sample in sample_lines(lines):
        found = _NAME.search(sample.metric)
        device = sample.device or ""
        kind = device_kind(device)
        if not found or found.end() != len(sample.metric) or kind not in ("nic", "net"):
            continue
        port = kind == "nic" and found[1] in _PORTS
        if port or (kind == "net" and found[1] in _NETS):
            name, unit = (_PORTS if port else _NETS)[found[1]]
            key = f"{device}/{sample.port or 1}" if port else device
            yield sample, Port if port else Net, key, name, float(sample.value) * unit


def counter_records(part: Part) -> Iterator[Record]:
    """A `Port` or a `Net` for each port with a counter of errors, and its counters. The highest sample counts: counters
    rise, and the samples may be of several machines.
    """
    facts: dict[str, Fact] = {}
    counts: dict[tuple[str, str], Observation] = {}
    for sample, kind, key, name, value in counted(part.text.split("\n")):
        where = part.cite(sample.number, sample.line)
        one = Observation(about=key, quantity=name, unit="count", value=value, at=part.at, evidence=where)
        if counts.setdefault((key, name), one).value < value:
            counts[key, name] = one
        facts.setdefault(key, kind(key=key))
    judged = {key for key, name in counts if name not in _BESIDE}
    yield from (fact for key, fact in facts.items() if key in judged)
    yield from (one for (key, _), one in counts.items() if key in judged)
