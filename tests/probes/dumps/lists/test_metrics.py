"""Metrics of any exporter in Prometheus' text format: the device with the fault is named."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

PORTS = {  # the end of a metric's name: values of a port at fault and of a good one, and the code
    "state_id": ("1", "4", "nic-port-down"),
    "port_state": ("2", "4", "nic-port-down"),
    "physical_state_id": ("2", "5", "nic-port-down"),
    "rate_bytes_per_second": ("2.5e+10", "5e+10", "nic-rate-low"),
}
LINKS = {  # of PCI functions and GPUs: now, at most, and the code
    ("current_link_width", "max_link_width"): ("8", "16", "pcie-link-narrow"),
    ("link_width_current", "link_width_max"): ("8", "16", "pcie-link-narrow"),
}


def ports(prefix: str, end: str, values: list[str]) -> str:
    return "\n".join(f'{prefix}_{end}{{device="mlx5_{i}",port="1"}} {value}' for i, value in enumerate(values))


@pytest.mark.parametrize("prefix", ["node_infiniband", "infiniband", "site_ib"])
@pytest.mark.parametrize("end", PORTS)
def test_the_port_with_the_fault_is_named(prefix: str, end: str) -> None:
    bad, good, code = PORTS[end]
    report = report_of(ports(prefix, end, [bad if number == 3 else good for number in range(8)]))
    assert code in {one.code for one in report.findings if one.subject.startswith("mlx5_3")}
    assert report.verdict == "degraded"
    assert report_of(ports(prefix, end, [good] * 8)).findings == ()


@pytest.mark.parametrize("names", LINKS, ids=str)
def test_links_of_functions(names: tuple[str, str]) -> None:
    now, most, code = LINKS[names]
    label = 'segment="0000",bus="3b",device="00",function="0"'
    text = f"node_pcidevice_{names[0]}{{{label}}} {now}\nnode_pcidevice_{names[1]}{{{label}}} {most}\n"
    assert {(one.code, one.subject) for one in report_of(text).findings} == {(code, "0000:3b:00.0")}


def test_counters_and_other_devices_are_left_out() -> None:
    text = 'node_network_receive_bytes_total{device="eth0"} 4.1e+12\nnode_load1{job="node"} 1.5\n'
    assert report_of(text).findings == ()
    assert report_of(text).verdict == "unknown"


COUNTERS = {  # names of node_exporter and of sysfs: a count that is too high, and the code
    "port_errors_received_total": (5000, "nic-errors"),
    "port_rcv_errors": (5000, "nic-errors"),
    "symbol_error": (5000, "nic-errors"),
    "link_error_recovery_total": (5000, "nic-errors"),
    "local_link_integrity_errors_total": (5000, "nic-errors"),
    "excessive_buffer_overrun_errors": (5000, "nic-errors"),
    "link_downed_total": (25, "nic-port-flapping"),
    "port_xmit_discards": (90000, "nic-congestion"),
}
FORMS = {
    "Prometheus": 'node_infiniband_{name}{{device="mlx5_{number}",port="1"}} {value}',
    "InfluxDB": "infiniband,device=mlx5_{number},host=n7,port=1 rate=0i,{name}={value}i 1767000000000000000",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", COUNTERS)
def test_the_port_with_a_high_counter_is_named(form: str, name: str) -> None:
    most, code = COUNTERS[name]

    def text(value: int) -> str:
        values = [value if number == 2 else 0 for number in range(4)]
        lines = (FORMS[form].format(name=name, number=number, value=value) for number, value in enumerate(values))
        return "\n".join(lines)

    assert (code, "mlx5_2/1") in {(one.code, one.subject) for one in report_of(text(most)).findings}
    assert report_of(text(0)).findings == ()
    assert report_of(text(0)).verdict == "ok"


def test_traffic_alone_is_no_evidence() -> None:
    text = 'node_infiniband_port_data_received_bytes_total{device="mlx5_2",port="1"} 4.1e+12\n'
    assert report_of(text).verdict == "unknown"
