"""Ports and counters of which a text shows neither the product nor the place."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

Found = list[tuple[str, str, str]]


def mapping(states: str) -> str:
    """Lines of ibdev2netdev: U is up, D is down."""
    words = {"U": "Up", "D": "Down"}
    return "".join(f"mlx5_{at} port 1 ==> ib{at} ({words[state]})\n" for at, state in enumerate(states))


def states(rates: list[int]) -> str:
    """Lines of `ibstat | grep`."""
    lines = (f"CA 'mlx5_{at}'\n\t\tState: Active\n\t\tRate: {rate}\n" for at, rate in enumerate(rates))
    return "".join(lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (mapping("UUUUUDUU"), [("nic-port-down", "warning", "mlx5_5/1")]),
        (mapping("UUUUUDDU"), []),
        (mapping("UUD"), []),
        (states([400] * 7 + [200]), [("nic-rate-low", "warning", "mlx5_7/1")]),
        (states([400] * 8 + [100]), []),  # a ninth port may belong to another network
        (states([400] * 6 + [100, 100]), []),
    ],
)
def test_the_odd_one_out_of_several_ports(text: str, expected: Found) -> None:
    assert found_in(text) == expected


RISE = "mlx5_core 0000:3b:00.0 ens1f0np0: Link up\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "".join(f"[{at}.000000] {RISE}" for at in (9000, 9100, 9400)),
            [("nic-port-flapping", "warning", "ens1f0np0")],
        ),
        ("".join(f"[{at}.000000] {RISE}" for at in (9000, 9100)), []),
        ("".join(f"[{at}.000000] {RISE}" for at in (4, 6, 9)), []),  # the driver starts
        ("".join(f"[{at}.000000] {RISE}".replace("ens1f0", f"ens{at}f0") for at in (9001, 9002, 9003)), []),
    ],
)
def test_a_port_that_comes_up_several_times(text: str, expected: Found) -> None:
    assert found_in(text) == expected


def offered(gpus: int, adapters: int) -> str:
    """The devices of `kubectl describe node`, of 8 GPUs and 32 adapters."""
    return (
        "Capacity:\n  nvidia.com/gpu:         8\n  vpc.amazonaws.com/efa:  32\n"
        f"Allocatable:\n  nvidia.com/gpu:         {gpus}\n  vpc.amazonaws.com/efa:  {adapters}\n"
    )


@pytest.mark.parametrize(
    ("gpus", "adapters", "expected"),
    [
        (8, 32, []),
        (7, 32, [("gpu-missing", "warning", "node")]),
        (8, 31, [("nic-missing", "warning", "node")]),
    ],
)
def test_devices_that_kubernetes_does_not_offer(gpus: int, adapters: int, expected: Found) -> None:
    assert found_in(offered(gpus, adapters)) == expected


@pytest.mark.parametrize(("states", "severity"), [(["Down"], "warning"), (["Down", "Active"], "info")])
def test_ports_of_a_text_in_which_nccl_cannot_connect(states: list[str], severity: str) -> None:
    log = "n1:9:9 [0] misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument\n"
    text = log + "".join(
        f"CA 'irdma{at}'\n\tPort 1:\n\t\tState: {state}\n\t\tRate: 100\n" for at, state in enumerate(states)
    )
    assert [one for one in found_in(text) if one[0] == "nic-port-down"] == [("nic-port-down", severity, "irdma0/1")]


@pytest.mark.parametrize(
    ("speed", "modes", "expected"),
    [
        (1000, "25000baseCR/Full", [("nic-rate-low", "warning", "ens1")]),
        (10000, "25000baseCR/Full", [("nic-rate-low", "info", "ens1")]),
        (1000, "10000baseT/Full", [("nic-rate-low", "info", "ens1")]),
        (25000, "25000baseCR/Full", []),
    ],
)
def test_a_port_far_below_its_own_fastest_mode(speed: int, modes: str, expected: Found) -> None:
    text = f"Settings for ens1:\n\tSupported link modes:   {modes}\n\tSpeed: {speed}Mb/s\n\tLink detected: yes\n"
    assert found_in(text) == expected


def test_the_lowest_speed_of_infiniband() -> None:
    text = (
        "Infiniband device 'mlx4_0' port 1 status:\n\tstate:\t\t 4: ACTIVE\n\tphys state:\t 5: LinkUp\n"
        "\trate:\t\t 10 Gb/sec (4X)\n\tlink_layer:\t InfiniBand\n"
    )
    assert found_in(text) == [("nic-rate-low", "warning", "mlx4_0/1")]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("symbol_error:640", [("nic-errors", "warning", "mlx5_2/1")]),
        ("symbol_error:31", [("nic-errors", "info", "mlx5_2/1")]),
        ("symbol_error:7", []),
        ("link_downed:40", [("nic-port-flapping", "warning", "mlx5_2/1")]),
        ("link_downed:10", []),
        ("port_xmit_discards:900", [("nic-congestion", "info", "mlx5_2/1")]),
    ],
)
def test_counters_without_traffic_and_time(line: str, expected: Found) -> None:
    assert found_in(f"/sys/class/infiniband/mlx5_2/ports/1/counters/{line}\n") == expected


def test_counters_with_the_time_since_they_were_reset() -> None:
    text = (
        "Physical Counters and BER Info\nTime Since Last Clear [Min]     : {}\nEffective Physical Errors       : 500\n"
    )
    assert found_in(text.format("60.0")) == [("nic-errors", "warning", "port")]
    assert found_in(text.format("60000.0")) == []


def test_receive_errors_of_a_device() -> None:
    text = "3: ens1: <BROADCAST,UP,LOWER_UP> mtu 9000 qdisc mq\n    RX:  bytes packets errors dropped\n    {} 9 {} 0\n"
    assert found_in(text.format(990_000_000, 180_000)) == [("nic-errors", "warning", "ens1")]
    assert found_in(text.format(990_000_000_000_000, 180_000)) == []


def test_a_message_that_counts_only_without_another() -> None:
    """The test fails alike with host memory and with GPU memory; the lines before tell which one it used."""
    refused = "Couldn't allocate MR\nfailed to create mr\n"
    buffer = "allocated GPU buffer address at 00007f0000000000 pointer=0x7f0000000000\n"
    assert found_in(refused) == [("memlock-low", "warning", "node")]
    assert found_in(buffer + refused) == [("gdr-disabled", "warning", "node")]


def test_a_general_message_counts_only_if_no_other_row_reads_its_line() -> None:
    start = "[1767000000.1] [n7:4711:0] ib_iface.c:980 UCX  ERROR "
    assert found_in(f"{start}failed to create qp: Invalid argument\n") == [("not-enough-evidence", "info", "node")]
    locked = f"{start}ibv_create_cq(cqe=4096) failed: Cannot allocate memory\n"
    assert found_in(locked) == [("memlock-low", "warning", "node")]


def ports(*physical: str) -> str:
    """Lines of `rdma link` for InfiniBand ports: the physical state of each."""
    lines = (
        f"link mlx5_{at}/1 subnet_prefix fe80:0000:0000:0000 lid 65535 sm_lid 0 lmc 0 state "
        f"{'ACTIVE' if state == 'LINK_UP' else 'DOWN'} physical_state {state}\n"
        for at, state in enumerate(physical)
    )
    return "".join(lines)


def test_ports_without_a_cable_beside_others() -> None:
    """Each second port of a card has no cable. One of many that is down is a fault."""
    assert [one for one in found_in(ports(*["LINK_UP", "DISABLED"] * 4)) if one[1] != "info"] == []
    several = found_in(ports(*["LINK_UP"] * 7, "POLLING"))
    assert several == [("nic-port-down", "warning", "mlx5_7/1")]


def test_a_text_with_no_port_that_is_up() -> None:
    assert found_in(ports("POLLING")) == [("nic-port-down", "warning", "mlx5_0/1")]
    assert [one for one in found_in(ports("DISABLED")) if one[1] != "info"] == []


def adapter(number: int, state: str) -> str:
    """A part of `ibstat`, of a card with Ethernet."""
    return f"CA 'mlx5_{number}'\n\tCA type: MT4125\n\tPort 1:\n\t\tState: {state}\n\t\tLink layer: Ethernet\n"


@pytest.mark.parametrize(
    ("states", "verdict", "expected"),
    [
        (["Down"], "unknown", [("nic-port-down", "info", "mlx5_0/1")]),
        (["Down", "Down", "Active"], "unknown", [("nic-port-down", "info", "node")]),
    ],
)
def test_ports_of_a_text_of_which_most_are_down(states: list[str], verdict: str, expected: Found) -> None:
    text = "".join(adapter(number, state) for number, state in enumerate(states))
    assert (report_of(text).verdict, found_in(text)) == (verdict, expected)
