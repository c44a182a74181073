"""NICs to themselves: what is planned, and what is made of what tools print, good and bad."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Pci, Port, Rdma
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Flow, NotChecked, Observation, Record
from linkgauge.models.report import Finding, Report
from linkgauge.probes.host.live import Live
from linkgauge.probes.measure.external_tools import found
from linkgauge.probes.measure.network import efa as efa_run
from linkgauge.probes.measure.network.port_loopback import plan
from linkgauge.probes.measure.probe import Effort, Probe, Scope
from tests.support.nodes.described import node as recorded
from tests.support.nodes.described import report_of as diagnosed
from tests.support.nodes.loopback_node import NIC, PORT, node
from tests.support.nodes.small_nodes import function, report_of
from tests.support.perftest_outputs import LATENCIES, RATES, output
from tests.support.programs import fake_tools
from tests.support.programs.live_probes import LONGEST

pytestmark = pytest.mark.slow

ROW = " 1048576    2000             390.10             388.00             0.046253"
TABLE = output("RDMA_Write BW Test", RATES.format("Gb/sec"), ROW)
SMALL = " 8       1000          0.97           5.22         1.01       1.02 0.0 1.1 2.0"
LATENCY = output("RDMA_Write Latency Test", LATENCIES, SMALL)
ITSELF = Flow("loopback", ("host", "mlx5_3"))


def asked(*args: str) -> list[Record]:
    return list(Live().call("port_loopback", *args, deadline=LONGEST))


def planned(report: Report, effort: Effort = "quick", peers: tuple[str, ...] = ()) -> list[Probe]:
    ends = frozenset(one.id for one in report.topology.devices)
    return list(plan(report, Scope(effort=effort, ends=ends, peers=peers)))


def with_gpu() -> list[Record]:
    card = replace(function("0000:02:00.0", "0000:00:01.0"), key="0000:02:00.0")
    return [*node(), card, Gpu(key="gpu0", address=card.key, name="H100 PCIe")]


def test_ports_that_are_up_are_measured() -> None:
    (probe,) = planned(report_of(node()))
    assert (probe.name, probe.args) == ("port_loopback", ("itself", "quick", "mlx5_0/1"))
    assert probe.kinds == {("host", "nic")}
    assert probe.bytes == 2000 << 20
    assert planned(report_of(node(port=replace(PORT, state="DOWN")))) == []
    assert planned(report_of(node()), "passive") == []
    assert list(plan(report_of(node()), Scope(ends=frozenset({"gpu7"})))) == []


def test_of_many_ports_a_few_are_measured_together() -> None:
    """All 32 of them in one process would never fit into what a quick look may take."""
    probes = planned(diagnosed(recorded("vm-p5")))
    assert [len(probe.args) - 2 for probe in probes] == [4] * 8
    assert len({port for probe in probes for port in probe.args[2:]}) == 32
    assert {probe.args[:2] for probe in probes} == {("efa", "quick")}
    assert all(probe.seconds < 2 for probe in probes)


def test_what_crosses_the_network_is_named() -> None:
    """And never measured quickly."""
    report = report_of(node())
    assert planned(report, "quick", ("node2",)) == planned(report, "quick")
    assert [probe.args for probe in planned(report, "full", ("node2",))] == [
        ("itself", "full", "mlx5_0/1"),
        ("tcp", "full", "node2"),
        ("peer", "full", "node2", "mlx5_0/1", "18515"),
    ]
    assert all(probe.bytes <= 20 << 30 for probe in planned(report, "full", ("node2",)))


def test_gpu_memory_where_nics_reach_it() -> None:
    report = report_of(with_gpu())
    assert ("gpu", "full", "mlx5_0/1", "gpu0", "0000:02:00.0") in [probe.args for probe in planned(report, "full")]
    ends = frozenset(one.id for one in report.topology.devices)
    mine = [probe.args for probe in plan(report, Scope(effort="full", ends=ends, owned=True))]
    assert ("gpu", "full", "mlx5_0/1", "gpu0", "0000:02:00.0", "owned") in mine
    off = Finding(code="gdr-disabled", severity="critical", subject="gpu0", message="")
    assert [probe.args[0] for probe in planned(replace(report, findings=(off,)), "full")] == ["itself"]


def test_an_efa_is_asked_by_other_tools() -> None:
    card = Pci(key=NIC, parent="pci0000:00", pci_class=0x020000, vendor=0x1D0F, device=0xEFA1, driver="efa")
    port = Port(key="rdmap0/1", device="rdmap0", state="ACTIVE", rate=12.5e9, link_layer="Unspecified")
    (probe,) = planned(report_of([card, Rdma(key="rdmap0", address=NIC, driver="efa"), port]))
    assert probe.args == ("efa", "quick", "rdmap0/1")


def test_the_rate_of_an_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = fake_tools.perftest(tmp_path, monkeypatch, "ib_write_bw", f"print({TABLE!r})")
    rate, moved = asked("itself", "quick", "mlx5_3/2")
    assert isinstance(rate, Observation)
    assert (rate.about, rate.quantity, rate.unit) == (ITSELF, "hca_loopback", "bytes_per_second")
    assert rate.value == pytest.approx(48.5e9)
    assert rate.evidence.source == "ib_write_bw"
    assert rate.evidence.text == f"ib_write_bw Version: 6.06 -s 1048576 -n 2000 --report_gbits: {ROW.strip()}"
    assert isinstance(moved, Observation)
    assert (moved.about, moved.quantity, moved.value) == ("mlx5_3", "bytes_moved", 2000 << 20)
    server, client = log.read_text().splitlines()
    assert server == "server everywhere"  # a perftest without the option
    assert client.startswith("-d mlx5_3 -i 2 -p ")


def test_the_server_listens_on_the_tested_address_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option is in perftest_parameters.c of perftest (usage: "--bind_source_ip")."""
    usage = "      --bind_source_ip  Source IP of the interface used for connection establishment."
    log = fake_tools.perftest(tmp_path, monkeypatch, "ib_write_bw", f"print({TABLE!r})", usage)
    assert isinstance(asked("itself", "quick", "mlx5_3/2")[0], Observation)
    server, client = log.read_text().splitlines()
    assert server == "server 127.0.0.1"
    assert "--bind_source_ip" not in client


def test_everything_of_an_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tools.perftest(tmp_path, monkeypatch, "ib_write_bw", f"print({TABLE!r})")
    fake_tools.perftest(tmp_path, monkeypatch, "ib_write_lat", f"print({LATENCY!r})")
    said = [one for one in asked("itself", "full", "mlx5_3/1") if isinstance(one, Observation)]
    assert [(one.about, one.quantity, one.unit) for one in said] == [
        (ITSELF, "hca_loopback", "bytes_per_second"),
        ("mlx5_3", "bytes_moved", "bytes"),
        (Flow("loopback", ("host", "mlx5_3"), 8), "latency", "seconds"),
    ]
    assert said[2].value == pytest.approx(1.01e-6)


@pytest.mark.parametrize(
    ("help", "option"), [("--use_cuda_bus_id", "--use_cuda_bus_id=0000:02:00.0"), ("--use_cuda=<n>", "--use_cuda=0")]
)
def test_the_memory_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, help: str, option: str) -> None:
    log = fake_tools.perftest(tmp_path, monkeypatch, "ib_write_bw", f"print({TABLE!r})", help)
    fake_tools.perftest(tmp_path, monkeypatch, "ib_write_lat", f"print({LATENCY!r})", help)
    rate = asked("gpu", "full", "mlx5_3/1", "gpu0", "0000:02:00.0")[0]
    assert isinstance(rate, Observation)
    assert rate.about == Flow("loopback", ("gpu0", "mlx5_3"))
    assert option in log.read_text()


@pytest.mark.parametrize(
    ("does", "reason", "path", "why"),
    [
        (
            "sys.exit('Unable to open file descriptor')",
            Reason.OTHER,
            None,
            "ib_write_bw: Unable to open file descriptor",
        ),
        ("print('rubbish')", Reason.UNREADABLE, "ib_write_bw", "its output contains no result"),
        (
            f"print({TABLE[: TABLE.index('390.10')]!r})",
            Reason.UNREADABLE,
            "ib_write_bw",
            "its output contains no result",
        ),
        ("time.sleep(600)", Reason.NO_ANSWER, None, "ib_write_bw: no answer within 5 s"),
        ("import os; os.kill(os.getpid(), 9)", Reason.OTHER, None, "ib_write_bw: ended with -9"),
    ],
)
def test_tools_that_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, reason: Reason, path: str | None, why: str
) -> None:
    fake_tools.perftest(tmp_path, monkeypatch, "ib_write_bw", does)
    assert asked("itself", "quick", "mlx5_3/1") == [
        NotChecked(what="port_loopback", subject="mlx5_3/1", reason=reason, path=path, detail=why)
    ]


def test_without_cuda_nothing_is_said_of_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tools.perftest(tmp_path, monkeypatch, "ib_write_bw", f"print({TABLE!r})")
    (lost,) = asked("gpu", "full", "mlx5_3/1", "gpu0", "0000:02:00.0")
    assert isinstance(lost, NotChecked)
    assert "without CUDA" in lost.why


@pytest.mark.parametrize(
    ("args", "tool", "how"),
    [
        (("itself", "quick", "mlx5_0/1"), "ib_write_bw", "install perftest"),
        (("efa", "quick", "rdmap0/1"), "fi_rma_bw", "install libfabric's fabtests (AWS: the EFA installer)"),
        (("tcp", "full", "192.0.2.1"), "iperf3", "install iperf3"),
    ],
)
def test_what_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], tool: str, how: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if found(tool):
        pytest.skip(f"{tool} is where it is always looked for")
    (lost,) = asked(*args)
    assert isinstance(lost, NotChecked)
    assert (lost.why, lost.how) == (f"{tool} is not installed", how)


FABTESTS = """\
bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
1m      20k     =20k     19g         1.70s  12334.90      85.01       0.01
"""


def test_a_table_of_libfabric() -> None:
    (rate,) = efa_run.rows(FABTESTS, "rdmap0", "fabtests", "rate")
    assert (rate.about, rate.value) == (Flow("loopback", ("host", "rdmap0")), 12334.9e6)
    (latency,) = efa_run.rows(FABTESTS.replace("1m ", "8 "), "rdmap0", "fabtests", "latency")
    assert (latency.about, latency.quantity) == (Flow("loopback", ("host", "rdmap0"), 8), "latency")
    assert latency.value == pytest.approx(85.01e-6)


@given(st.text(st.sampled_from("0123456789.kmgs= \n-"), max_size=120))
def test_any_text_of_libfabric(text: str) -> None:
    assert all(one.value > 0 for one in efa_run.rows(text, "rdmap0", "x", "rate"))


@pytest.mark.skipif(not shutil.which("fi_pingpong"), reason="libfabric's tools are not installed")
def test_the_real_fi_pingpong() -> None:
    """Over TCP: an EFA is nowhere else."""
    (latency,) = efa_run.latency("any", 30.0, provider="tcp;ofi_rxm")
    if isinstance(latency, NotChecked):
        pytest.skip(f"no such provider: {latency.why}")
    assert isinstance(latency, Observation)
    assert 1e-7 < latency.value < 10
