"""fi_info: short and long, cut, and of rubbish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.jsonl import decode, encode
from linkgauge.models.facts.machine import Port, Rdma
from linkgauge.models.facts.reason import Reason
from linkgauge.models.facts.records import Evidence, Fact, NotChecked, Record
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.network import fi_info

SHARED = Path(__file__).parents[4] / "shared"
SHORT = """\
provider: efa
    fabric: efa
    domain: rdmap16s27-rdm
    version: 122.0
    type: FI_EP_RDM
    protocol: FI_PROTO_EFA
provider: verbs;ofi_rxm
    fabric: IB-0xfe80000000000000
    domain: mlx5_3
    version: 122.0
provider: tcp
    fabric: 10.0.0.0/24
    domain: eth0
"""
LONG = """\
---
fi_info:
    caps: [ FI_MSG, FI_RMA ]
    fi_domain_attr:
        domain: 0x0
        name: rdmap16s27-rdm
    fi_fabric_attr:
        name: efa
        prov_name: efa
    nic:
        fi_device_attr:
            name: rdmap16s27
            device_id: 0xefa1
            driver: efa
            firmware: 0.0.0.0
        fi_bus_attr:
            bus_type: FI_BUS_PCI
            fi_pci_attr:
                domain_id: 0
                bus_id: 16
                device_id: 27
                function_id: 0
        fi_link_attr:
            mtu: 8928
            speed: 100000000000
            state: FI_LINK_UP
            network_type: Ethernet
"""


def said(text: str) -> list[Record]:
    return list(fi_info.read(Part("fi.txt", 1, text, 0.0)))


def fact(kind: type[Fact], text: str, key: str, **fields: tuple[int, object]) -> Fact:
    """A fact whose fields come with the numbers of the lines that say so."""
    lines = text.splitlines()
    cites = {name: Evidence(f"fi.txt:{line}", lines[line - 1].strip()) for name, (line, _) in fields.items()}
    return kind(key=key, cites=cites, **{name: value for name, (_, value) in fields.items()})


def test_domains_of_providers() -> None:
    """A network device as a domain is no RDMA device."""
    for text in (SHORT, SHORT.replace("    ", "")):
        assert recognise(text)
        assert said(text) == [fact(Rdma, text, "rdmap16s27", driver=(3, "efa")), fact(Rdma, text, "mlx5_3")]


def test_nics() -> None:
    assert recognise(LONG)
    assert said(LONG) == [
        fact(Rdma, LONG, "rdmap16s27", driver=(14, "efa"), firmware=(15, "0.0.0.0"), address=(22, "0000:10:1b.0")),
        fact(Port, LONG, "rdmap16s27/1", device=(25, "rdmap16s27"), rate=(25, 12.5e9), state=(26, "ACTIVE")),
    ]


@pytest.mark.parametrize(
    ("changed", "to"),
    [
        ("bus_id: 16", "bus_id: 0"),
        ("device_id: 27", "device_id: 99"),
        ("bus_id: 16", "bus_id: x"),
        ("function_id: 0\n", "\n"),
    ],
)
def test_an_address_that_is_not_known(changed: str, to: str) -> None:
    text = LONG.replace(changed, to).replace("device_id: 27", "device_id: 0" if to == "bus_id: 0" else "device_id: 27")
    (adapter, _) = said(text)
    assert isinstance(adapter, Rdma)
    assert adapter.address is None


def test_no_provider() -> None:
    text = "fi_getinfo: -61 (No data available)"
    assert recognise(text)
    path, why = "fi.txt:1", f"{text}: no provider fits what was asked for"
    assert said(text) == [NotChecked(what="Rdma", subject="node", reason=Reason.OTHER, path=path, detail=why)]


@pytest.mark.parametrize("text", [SHORT, LONG])
def test_an_output_that_was_cut(text: str) -> None:
    whole = {one.key: one for one in said(text) if isinstance(one, Fact)}
    for end in (0, *(found.end() for found in re.finditer("\n", text))):
        for one in said(text[:end]):
            assert isinstance(one, Fact)
            assert all(getattr(whole[one.key], name) == getattr(one, name) for name in one.cites)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the recorded outputs of ../shared are not here")
def test_outputs_of_other_tools_hold_none() -> None:
    files = [path for path in SHARED.glob("data/outputs/**/*") if path.is_file() and path.suffix not in (".gz", ".tsv")]
    found = [path.name for path in files if re.search(fi_info.BEGIN, path.read_text(errors="replace"), re.MULTILINE)]
    assert found == []


pieces = st.sampled_from([line + "\n" for line in (SHORT + LONG).splitlines()] + [": ", "bus_id: ", "fi_getinfo: -1"])


@given(st.lists(pieces | st.text(max_size=8), max_size=30).map("".join) | st.text())
def test_any_text(text: str) -> None:
    for one in said(text):
        assert isinstance(one, Rdma | Port | NotChecked)
        assert decode(encode(one)) == one
