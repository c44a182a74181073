"""Tools of a fabric: known, and said not to be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.models.facts.records import NotChecked
from linkgauge.probes.dumps import recognise
from linkgauge.probes.dumps.core.part import Part
from linkgauge.probes.dumps.network import ib_fabric

SAMPLES = {
    "ibnetdiscover": "CA   134  1 0x0000000000000001 4x NDR - SW  1719 10 0x0000000000000002 ( 'a HCA-1' - 'leaf' )\n",
    "iblinkinfo": "CA: node1 mlx5_0:\n      0x0000000000000001    134    1[  ] ==( 4X 106.25 Gbps Active/LinkUp)==>\n",
    "ibqueryerrors": 'Errors for "node1 HCA-1"\n   GUID 0x1 port 1: [SymbolErrorCounter == 7]\n',
    "perfquery": "# Port counters: Lid 5 port 1 (CapMask: 0x5300)\nSymbolErrorCounter:..............7\n",
    "mlxlink": "Operational Info\n----------------\nState                           : Active\n",
}


@pytest.mark.parametrize("tool", SAMPLES)
def test_what_is_not_read(tool: str) -> None:
    text = f"\n{SAMPLES[tool]}"
    assert recognise(text)
    (one,) = ib_fabric.read(Part("ib.txt", 7, text, 0.0))
    assert isinstance(one, NotChecked)
    assert (one.what, one.subject) == ("Port.counters", "node")
    assert one.why.startswith(f"ib.txt:8: {tool} is not read: ")


def test_several_tools() -> None:
    part = Part("ib.txt", 1, "".join(SAMPLES.values()), 0.0)
    assert [one.why.split()[1] for one in ib_fabric.read(part) if isinstance(one, NotChecked)] == list(SAMPLES)


@given(st.lists(st.sampled_from([*SAMPLES.values(), "CA: ", "\n"]) | st.text(max_size=9), max_size=9).map("".join))
def test_any_text(text: str) -> None:
    assert len(list(ib_fabric.read(Part("ib.txt", 1, text, 0.0)))) <= len(SAMPLES)
