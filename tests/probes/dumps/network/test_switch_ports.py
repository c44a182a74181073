"""Tables of ports on switches."""

from __future__ import annotations

import pytest

from tests.support.texts import found_in, report_of

# Heading, the rule below it, a row, the words for up, down, and switched off, and the port names
TABLES = {
    "sonic": (
        "  Interface    Oper    Admin    Alias    Description\n-----------  ------  -------  -------  -------------\n",
        "{port:>11}  {state}   etp1     {peer}\n",
        ("  up       up", "down       up", "down     down"),
        ("Ethernet0", "Ethernet128"),
    ),
    "eos": (
        "Port       Name      Status       Vlan     Duplex Speed  Type            Flags Encapsulation\n",
        "{port:<10} {peer:<9} {state:<12} routed   full   400G   400GBASE-DR4\n",
        ("connected", "notconnect", "disabled"),
        ("Et1/1", "Et31/4"),
    ),
    "eos descriptions": (
        "Interface                      Status         Protocol           Description\n",
        "{port:<30} {state}   {peer}\n",
        ("up             up              ", "down           down            ", "admin down     down            "),
        ("Et1/1", "Et31/4"),
    ),
    "nx-os": (
        f"{'-' * 80}\nPort          Name               Status    Vlan      Duplex  Speed   Type\n{'-' * 80}\n",
        "{port:<13} {peer:<18} {state:<9} routed    auto    auto    QSFP-DD-400G-DR4\n",
        ("connected", "notconnec", "disabled"),
        ("Eth1/1", "Eth1/31"),
    ),
    "hedgehog": (
        "NAME       NOS            TYPE      CONNECTION / MODE     ADM / OP     SPEED    TRANSCEIVER\n",
        "{port:<10} Ethernet160    mesh      {peer:<21} {state:<12} 800G     OSFP112\n",
        ("up/up", "up/down", "down/down"),
        ("E1/21/1", "E1/3"),
    ),
    "onyx": (
        "Interface      Description     Speed     Current line rate   Logical port state   Physical port state\n"
        f"{'-' * 95}\n",
        "{port:<14} {peer:<15} hdr       200.0 Gbps          {state}\n",
        ("Active               LinkUp", "Down                 Polling", "Down                 Disabled"),
        ("IB1/1", "IB1/31"),
    ),
}


def table(name: str, *rows: tuple[str, str, int]) -> str:
    """The table with these rows: port, peer, and 0: up, 1: down, 2: switched off."""
    heading, form, words, _ = TABLES[name]
    return heading + "".join(form.format(port=port, peer=peer, state=words[state]) for port, peer, state in rows)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("peer", ["gpu02", "n7-mlx5_3", "leaf--2"])
def test_a_port_with_a_name_that_has_no_link(name: str, peer: str) -> None:
    first, other = TABLES[name][3]
    assert found_in(table(name, (first, "gpu01", 0), (other, peer, 1))) == [("nic-port-down", "warning", other)]
    assert found_in(table(name, (first, peer, 1), (other, "gpu01", 0))) == [("nic-port-down", "warning", first)]
    assert found_in(table(name, (first, peer, 0), (other, "gpu01", 0))) == []
    assert found_in(table(name, (first, peer, 2), (other, "gpu01", 0))) == []


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("peer", ["spare", "unused 3", "--", "gpu7 RMA", "n3 off", "removed", "decom n2"])
def test_a_spare_port_is_no_fault_and_not_ok(name: str, peer: str) -> None:
    first, other = TABLES[name][3]
    report = report_of(table(name, (first, "gpu01", 0), (other, peer, 1)))
    assert not report.findings
    assert report.verdict == "unknown"


@pytest.mark.parametrize(
    ("state", "expected"), [("errdisabled", "nic-port-down"), ("linkFlapE", "nic-port-flapping"), ("connected", None)]
)
def test_a_port_that_the_switch_disabled(state: str, expected: str | None) -> None:
    for name in ("eos", "nx-os"):
        heading, form, _, ports = TABLES[name]
        for port in ports:
            for peer in ("gpu01", "--"):
                found = found_in(heading + form.format(port=port, peer=peer, state=state))
                assert found == ([(expected, "warning", port)] if expected else [])


@pytest.mark.parametrize("name", ["sonic", "eos", "eos descriptions", "hedgehog"])
def test_the_last_table_of_a_port_counts(name: str) -> None:
    first, other = TABLES[name][3]
    down = table(name, (first, "gpu01", 0), (other, "gpu02", 1))
    up = table(name, (first, "gpu01", 0), (other, "gpu02", 0))
    assert found_in(f"{down}\nafter:\n\n{up}") == []
    assert found_in(f"{up}\nlater:\n\n{down}") == [("nic-port-down", "warning", other)]
    another = table(name, (first, "gpu05", 0), (other, "gpu06", 0))
    assert found_in(f"{down}\nsecond switch:\n\n{another}") == [("nic-port-down", "warning", other)]
