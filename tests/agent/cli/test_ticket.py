"""The output of `linkgauge ticket`: for a broken part, for the node, and for a device without a fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from linkgauge.agent.cli.accept import accept
from linkgauge.agent.cli.ticket import ticket
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.measuring.session import NOTHING
from linkgauge.exporters.commands.ticket import as_ticket
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Serial
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.name_resolver import names_of
from linkgauge.probes.host.recorded import dump
from linkgauge.probes.serials import read_serials
from linkgauge.probes.synthetic.build import build
from tests.support.nodes.small_nodes import gpu_address, gpus_under_switches, snapshot_of, with_fields
from tests.support.nodes.trees import tree

BROKEN = Path(__file__).parents[2] / "nodes/hgx-h100.toml"


@pytest.fixture
def capture(tmp_path: Path) -> str:
    file = tmp_path / "node.capture"
    file.write_text(dump(build(BROKEN.read_text() + "[device.gpu1]\nwidth = 8\n[device.gpu3]\ninactive = [7]\n")))
    return str(file)


def test_a_part_that_is_broken(capture: str) -> None:
    text = ticket("/", [capture], None, "gpu1", NOTHING, False)
    blocks = text.split("\n\n")
    assert [block.split("\n")[0] for block in blocks] == [
        "TICKET  hgx  2026-11-21T03:00:00Z",
        "PART  0000:1e:00.0, gpu1",
        "CRITICAL  pcie-link-narrow  0000:1e:00.0",
        "TESTS DONE",
    ]
    assert blocks[1].split("\n")[1:] == [
        "  name                  NVIDIA H100 SXM5 80GB",
        "  driver                nvidia",
        "  link width            8",
        "  greatest link width   16",
        "  board part            692-2G520-0200-000",
        "  VBIOS                 96.00.A5.00.01",
        "  module id             2",
        "  PCI address           0000:1e:00.0",
        "  serial number         not asked for (--serial)",
    ]
    assert "  seen                  0000:1e:00.0/current_link_width: 8" in text
    assert "    sudo dmesg | grep 'available PCIe bandwidth, limited by'" in text.split("\n")
    assert max(map(len, text.split("\n"))) <= 100


def test_the_node_has_all_findings(capture: str) -> None:
    text = ticket("/", [capture], None, "node", NOTHING, False)
    assert [line for line in text.split("\n") if line.startswith("CRITICAL")] == [
        "CRITICAL  nvlink-inactive  0000:3e:00.0",
        "CRITICAL  pcie-link-narrow  0000:1e:00.0",
    ]


def test_a_thing_without_fault_and_one_that_is_not_there(capture: str) -> None:
    assert "No finding is about gpu5; the verdict on the node is failed." in ticket(
        "/", [capture], None, "gpu5", NOTHING, False
    )
    with pytest.raises(BadInput, match=r"^this node has no device 'gpu11'; did you mean gpu1 or "):
        ticket("/", [capture], None, "gpu11", NOTHING, False)


def test_an_absent_device_is_not_the_one_that_has_its_name_now(tmp_path: Path) -> None:
    """The driver numbers GPUs anew: gpu5 is another GPU than before."""
    state, text = str(tmp_path / "state"), BROKEN.read_text()
    whole, gone = tmp_path / "whole.capture", tmp_path / "gone.capture"
    whole.write_text(dump(build(text)))
    gone.write_text(dump(build(text + "[device.gpu5]\ngone = true\n[device.nvme2]\ngone = true\n")))
    accept("/", [str(whole)], None, NOTHING, True, state)

    def part(subject: str) -> list[str]:
        blocks = ticket("/", [str(gone)], None, subject, NOTHING, True, state).split("\n\n")
        return [" ".join(line.split()) for line in blocks[1].split("\n")]

    absent = part("0000:9e:00.0")
    assert absent[:2] == ["PART 0000:9e:00.0", "state absent; it was there at 2026-11-21T03:00:00Z"]
    assert "module id 6" in absent
    assert "PCI address 0000:9e:00.0" in absent
    assert "board part 692-2G520-0200-000" in absent
    assert part("9e:00.0") == absent
    present = part("gpu5")
    assert "PCI address 0000:bb:00.0" in present
    assert present[-1] == "caution gpu5 was the device at 0000:9e:00.0 before, which is absent"
    assert part("nvme2")[-1].startswith("serial number SERIAL")


def test_a_link_is_found_by_either_end() -> None:
    records: list[Record] = with_fields(gpus_under_switches(2), gpu_address(0), width=8)
    snapshot = snapshot_of(records)
    report = evaluate(snapshot)
    assert names_of(snapshot, "gpu0") == {"gpu0", gpu_address(0)}
    for subject in ("gpu0", gpu_address(0), "0000:02:00.0"):
        assert "pcie-link-narrow" in as_ticket(snapshot, report, subject, None), subject
    assert "pcie-link-narrow" not in as_ticket(snapshot, report, "gpu1", None)


def test_serial_numbers_are_read_by_name_alone() -> None:
    files = {"sys/class/dmi/id/product_serial": "S-1", "sys/class/nvme/nvme0/serial": "N-2", "sys/class/nvme/nvme1": ""}
    assert list(read_serials(tree(files))) == [Serial(key="node", number="S-1"), Serial(key="nvme0", number="N-2")]
    snapshot = snapshot_of(gpus_under_switches(1))
    text = as_ticket(snapshot, evaluate(snapshot), "gpu0", {"node": "S-1", "gpu0": "G-3"})
    assert [line.split()[-1] for line in text.split("\n") if "serial number" in line] == ["S-1", "G-3"]
