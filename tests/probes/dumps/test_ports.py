"""Findings from dumps of RDMA devices: ports that are down or slow, addresses that no peer can reach."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Gid, NcclFailure, Pci, Port, Rdma, Setting
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Origin
from linkgauge.models.site.schema import Site
from tests.support.texts import report_of

PORT = Port(
    key="mlx5_0/1", device="mlx5_0", state="ACTIVE", physical_state="LinkUp", rate=50e9, link_layer="InfiniBand"
)
ROCE = (
    Gid(key="a/1/gid0", port="a/1", index=0, version="RoCE v1", scope="link-local"),
    Gid(key="a/1/gid1", port="a/1", index=1, version="RoCE v2", scope="link-local"),
    Gid(key="a/1/gid2", port="a/1", index=2, version="RoCE v1", scope="IPv4"),
    Gid(key="a/1/gid3", port="a/1", index=3, version="RoCE v2", scope="IPv4"),
    Gid(key="a/1/gid4", port="a/1", index=4, version="RoCE v2", scope="global"),
)
BROKEN = NcclFailure(key="queue pair", error="Connection timed out", text="Call to ibv_modify_qp failed")


def found(*said: Record, origin: Origin = "dumps") -> list[tuple[str, str, str]]:
    report = evaluate(assemble(said, Site(), 0.0, origin=origin))
    return [(one.code, one.subject, one.severity) for one in report.findings]


def ports(*changed: Port) -> list[Record]:
    adapters = [Rdma(key=port.device or "", hca_type="MT4129") for port in changed]
    return [*adapters, *changed]


def port(number: int, **fields: object) -> Port:
    name = f"mlx5_{number}"
    return replace(PORT, key=f"{name}/1", device=name, **fields)


def test_a_port_whose_function_is_not_shown() -> None:
    """As in ibstat's output alone. On a live machine such a device is a software device."""
    for state, expected in (("DOWN", [("nic-port-down", "mlx5_0/1", "critical")]), ("ACTIVE", [])):
        told = ports(replace(PORT, state=state))
        assert found(*told) == expected
        assert found(*told, origin="capture") == []
        assert found(Rdma(key="mlx5_0"), told[-1]) == expected  # as ibstatus: no software device speaks InfiniBand
        assert found(Rdma(key="mlx5_0"), replace(PORT, state=state, link_layer="Ethernet")) == [
            (code, subject, "info") for code, subject, _ in expected
        ]


def test_ports_that_are_no_kin_of_others() -> None:
    waiting = port(0, state="DOWN", physical_state="Polling")
    assert found(*ports(waiting)) == [("nic-port-down", "mlx5_0/1", "warning")]  # a text that shows only this port
    several = ports(waiting, *(port(number) for number in range(1, 4)))
    assert found(*several) == [("nic-port-down", "mlx5_0/1", "warning")]
    others = [
        replace(one, hca_type="MT4123") if isinstance(one, Rdma) and one.key != "mlx5_0" else one for one in several
    ]
    assert found(*others) == [("nic-port-down", "mlx5_0/1", "info")]


def test_spare_second_ports_of_cards() -> None:
    """Two cards with a device for each port, of which the second is unused: it is kin of the other's second."""
    adapters = [Rdma(key=f"mlx5_{number}", hca_type="MT4125", place=number % 2) for number in range(4)]
    spare = {"state": "DOWN", "physical_state": "Disabled", "link_layer": "Ethernet"}
    up = {"link_layer": "Ethernet"}
    assert found(*adapters, *(port(number, **(spare if number % 2 else up)) for number in range(4))) == []
    alike = [replace(one, place=0) for one in adapters]
    down = [port(0, **spare), *(port(number, **up) for number in range(1, 4))]
    assert found(*alike, *down) == [("nic-port-down", "mlx5_0/1", "warning")]


def test_a_port_below_its_kin() -> None:
    assert found(*ports(port(0, rate=25e9), *(port(number) for number in range(1, 4)))) == [
        ("nic-rate-low", "mlx5_0/1", "warning")
    ]


def test_ports_of_which_nobody_says_what_they_are() -> None:
    """As ibstatus has them: one that is slow is told, two may be for another network."""
    several = [port(number) for number in range(2, 7)]
    nameless = [Rdma(key=f"mlx5_{number}") for number in range(7)]
    assert found(*nameless, *several, port(0, rate=25e9)) == [("nic-rate-low", "mlx5_0/1", "warning")]
    assert found(*nameless, *several, port(0, rate=25e9), port(1, rate=25e9)) == []


@pytest.mark.parametrize(("index", "wrong"), [("0", True), ("1", True), ("2", True), ("3", False), ("4", False)])
def test_an_index_that_somebody_chose(index: str, wrong: bool) -> None:
    """It explains why no connection can be made."""
    chosen = Setting(key="NCCL_IB_GID_INDEX", value=index)
    assert found(*ROCE, chosen) == ([("nic-gid-index", "a/1", "warning")] if wrong else [])
    symptom = [("nic-gid-index", "a/1", "warning")] if wrong else [("not-enough-evidence", "node", "info")]
    assert found(*ROCE, chosen, BROKEN) == symptom


@pytest.mark.parametrize(
    "said",
    [
        ROCE,
        (*ROCE[:3], Setting(key="NCCL_IB_GID_INDEX", value="1")),  # none is better
        (*ROCE, Setting(key="NCCL_IB_GID_INDEX", value="9")),  # a table that was cut
        (*ROCE, Setting(key="NCCL_IB_GID_INDEX", value="x")),
        (ROCE[1], replace(ROCE[3], key="b/1/gid3", port="b/1"), Setting(key="NCCL_IB_GID_INDEX", value="1")),
        (*(replace(gid, version="IB") for gid in ROCE), Setting(key="NCCL_IB_GID_INDEX", value="1")),
        (*(replace(gid, version=None) for gid in ROCE), Setting(key="NCCL_IB_GID_INDEX", value="1")),
        (Setting(key="NCCL_IB_GID_INDEX", value="1"),),
    ],
)
def test_an_index_of_which_nothing_is_wrong(said: tuple[Record, ...]) -> None:
    assert found(*said, Pci(key="0000:01:00.0")) == []


@pytest.mark.parametrize(
    ("address", "finding"),
    [
        ("fe80::a8:1", ("nic-gid-index", "mlx5_2/1", "warning")),
        ("::ffff:10.0.0.7", ("not-enough-evidence", "node", "info")),
    ],
)
def test_the_address_of_a_connection_that_failed(address: str, finding: tuple[str, str, str]) -> None:
    states = "curr state INIT, next state RTR"
    error = (
        f"110 Connection timed out, on dev mlx5_2:1, {states}, local GID index 1, local GID {address}, remote GID ::"
    )
    failure = NcclFailure(key="queue pair", error=error, text="x")
    assert found(failure) == [finding]
    chosen = Setting(key="NCCL_IB_GID_INDEX", value="1")
    assert found(failure, chosen, *ROCE) == [("nic-gid-index", "a/1", "warning")]


def test_several_ports_are_one_finding() -> None:
    other = [replace(gid, key=f"b/1/gid{gid.index}", port="b/1") for gid in ROCE]
    (one,) = evaluate(assemble((*ROCE, *other, Setting(key="NCCL_IB_GID_INDEX", value="1")), Site(), 0.0)).findings
    assert (one.subject, one.message) == (
        "a/1",
        "NCCL_IB_GID_INDEX=1 chooses a link-local address of ports a/1, b/1; index 3 has RoCE v2 with a routed address",
    )


@pytest.mark.parametrize(
    ("count", "codes"),
    [(91316, ["nic-congestion", "not-enough-evidence"]), (9000, ["nic-congestion"]), (150, []), (0, [])],
)
def test_messages_without_an_answer_since_an_unknown_time(count: int, codes: list[str]) -> None:
    folder = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters"
    report = report_of(f"{folder}/local_ack_timeout_err:{count}\n{folder}/out_of_sequence:12\n")
    assert [one.code for one in report.findings] == codes
    assert report.verdict == ("unknown" if "not-enough-evidence" in codes else "ok")
