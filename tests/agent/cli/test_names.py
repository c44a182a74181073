"""Every kind of name with every command, option and file that takes the name of a device."""

from __future__ import annotations

from functools import cache
from itertools import chain
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from linkgauge.agent.cli.main import main
from linkgauge.agent.cli.model.expect_args import expect
from linkgauge.agent.inputs.site_file import BadInput, site
from linkgauge.agent.pipeline.registry import SOURCES
from linkgauge.agent.pipeline.run_source import collect
from linkgauge.agent.pipeline.source import Source
from linkgauge.exporters.commands.ticket import as_ticket
from linkgauge.models.diagnosis.ignored import silenced, unmatched
from linkgauge.models.evaluate import evaluate
from linkgauge.models.facts.machine import Pci, Serial
from linkgauge.models.facts.records import Record
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Finding, Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.host.recorded import dump
from linkgauge.probes.serials import read_serials
from linkgauge.probes.synthetic.build import build

HGX = Path(__file__).parents[2] / "nodes/hgx-h100.toml"
UUID = "GPU-00000000-0000-4000-8000-000000000002"
# Name -> the PCI address of the device, and its name as the end of a flow.
NAMES = {
    "gpu1": ("0000:1e:00.0", "gpu1"),
    "GPU1": ("0000:1e:00.0", "gpu1"),
    "0000:1e:00.0": ("0000:1e:00.0", "gpu1"),
    "0000:1E:00.0": ("0000:1e:00.0", "gpu1"),
    "1e:00.0": ("0000:1e:00.0", "gpu1"),
    UUID: ("0000:1e:00.0", "gpu1"),
    UUID.lower(): ("0000:1e:00.0", "gpu1"),
    "1650921000123": ("0000:1e:00.0", "gpu1"),  # serial number
    "module 2": ("0000:1e:00.0", "gpu1"),
    "Module2": ("0000:1e:00.0", "gpu1"),
    "mlx5_3": ("0000:1f:00.0", "mlx5_3/1"),
    "mlx5_3/1": ("0000:1f:00.0", "mlx5_3/1"),
    "MLX5_3/1": ("0000:1f:00.0", "mlx5_3/1"),
    "nic3": ("0000:1f:00.0", "mlx5_3/1"),
    "ib1": ("0000:1f:00.0", "ib1"),
    "0200:00ff:fe01:f000": ("0000:1f:00.0", "mlx5_3/1"),  # node GUID
    "slot 7": ("0000:1f:00.0", "mlx5_3/1"),
    "PCIe Slot 7": ("0000:1f:00.0", "mlx5_3/1"),  # the firmware's label
    "nvme0": ("0000:1d:00.0", "nvme0"),
    "nvme0n1": ("0000:1d:00.0", "nvme0n1"),
    "SERIAL0001": ("0000:1d:00.0", "nvme0"),
}


@cache
def hgx() -> Snapshot:
    """The node, with what its synthetic description cannot give: the serial number of a GPU and a slot."""
    host = build(HGX.read_text())
    read = chain.from_iterable(collect(one, host) for one in (*SOURCES, Source("serials", read_serials)))
    further: list[Record] = [
        Serial(key="gpu1", number="1650921000123"),
        Pci(key="0000:1f:00.0", slot="7", label="PCIe Slot 7"),
    ]
    return assemble([*read, *further], Site(), host.now(), origin=host.origin)


@pytest.mark.parametrize("name", NAMES)
def test_each_name_with_each_command(name: str) -> None:
    address, end = NAMES[name]
    (part,) = (block for block in _ticket(name).split("\n\n") if block.startswith("PART"))
    assert f"PCI address           {address}" in part
    target = "numa0" if end != "mlx5_3/1" else "numa1"
    flows = expect(hgx(), [name, target], None, "", None, False, "text")
    assert flows == expect(hgx(), [end, target], None, "", None, False, "text")
    for subject in (address, end):  # rules name a device by its address, or as the driver does
        finding = Finding(code="pcie-errors", severity="warning", subject=subject, message="")
        ignoring = replace(hgx(), site=Site(ignore={f"pcie-errors:{name}": "ordered"}))
        assert silenced(ignoring, finding) == "ordered"
        assert silenced(ignoring, replace(finding, code="nic-errors")) is None
        assert silenced(ignoring, replace(finding, subject="0000:9e:00.0")) is None
    assert site(None, [f"pcie-errors:{name}=ordered"]).ignore == {f"pcie-errors:{name}": "ordered"}


def _ticket(name: str) -> str:
    return as_ticket(hgx(), _report(), name, None)


@cache
def _report() -> Report:
    return evaluate(hgx())


def test_a_card_with_two_ports_is_not_one_end() -> None:
    two = replace(hgx(), facts={**hgx().facts, Pci: {**hgx().of(Pci), **_in_slot("0000:11:00.0", "0000:11:00.1")}})
    with pytest.raises(BadInput, match=r"'slot 3' has 2 devices: name one of mlx5_0/1, mlx5_1/1"):
        expect(two, ["slot 3", "numa0"], None, "", None, False, "text")


def _in_slot(*addresses: str) -> dict[str, Pci]:
    return {address: replace(hgx().of(Pci)[address], slot="3") for address in addresses}


def test_entries_that_match_nothing() -> None:
    finding = Finding(code="pcie-errors", severity="warning", subject="0000:1e:00.0", message="")
    ignore = ("pcie-errors:module 2", "pcie-errors", "pcie-errors:gpu3", "nic-errors:mlx5_33", "gpu-xid")
    snapshot = replace(hgx(), site=Site(ignore=dict.fromkeys(ignore, "x")))
    assert unmatched(snapshot, [finding]) == {
        "pcie-errors:gpu3": "no finding pcie-errors is about gpu3",
        "nic-errors:mlx5_33": "this node has no device 'mlx5_33'; did you mean mlx5_3 or mlx5_3/1 or mlx5_9? "
        "'linkgauge topology' lists all names",
        "gpu-xid": "there is no finding gpu-xid",
    }


def test_the_commands_read_serial_numbers_and_warn(tmp_path: Path) -> None:
    """One run of each command: the names reach the resolver, and unknown names end with the same sentence."""
    capture, file = tmp_path / "node.capture", tmp_path / "site.toml"
    capture.write_text(dump(build(HGX.read_text() + "[device.nvme1]\nwidth = 2\n")))
    file.write_text('[ignore]\n"storage-link-slow:SERIAL0002" = "ordered"\n"gpu-xid:gpu99" = "x"\n')
    run = CliRunner().invoke
    node = ["--from", str(capture), "--site", str(file)]
    done = run(main, ["diagnose", *node, "--passive", "--format", "json"])
    assert '"silenced": "ordered"' in done.stdout
    unknown = "this node has no device 'gpu99'; did you mean gpu5 or gpu6 or gpu7? 'linkgauge topology' lists all names"
    assert done.stderr == f"Warning: ignore gpu-xid:gpu99: {unknown}\n"
    for command in (["ticket", "gpu99"], ["expect", "gpu99", "numa0"]):
        done = run(main, [*command, *node])
        assert (done.exit_code, done.stderr) == (64, f"Error: {unknown}\n"), command
    assert "PCI address           0000:20:00.0" in run(main, ["ticket", "serial0002", *node, "--passive"]).stdout
    assert "nvme1" in run(main, ["expect", "serial0002", "numa0", *node]).stdout
