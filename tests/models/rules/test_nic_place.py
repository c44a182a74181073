"""Fabric NICs that are all attached to one processor, with GPUs at both processors."""

from __future__ import annotations

import pytest

from linkgauge.models.site.schema import Site
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.synthetic.build import build
from tests.support.nodes.described import node, report_of

HEAD = """
[cpu]
sockets = 2
cores = 8
"""
GPUS = 'switches = [["h100", "h100", {}]]'


def machine(first: str, second: str, further: str = "") -> Recorded:
    """Two GPUs at each processor, under a switch with what is given besides."""
    roots = (
        f"[[root]]\nbus = [0x{bus}]\nnuma = {n}\n{GPUS.format(more)}\n"
        for n, (bus, more) in enumerate((("18", first), ("98", second)))
    )
    return build(f"{further}{HEAD}{''.join(roots)}")


def summaries(recorded: Recorded, site: Site | None = None) -> list[tuple[str, str]]:
    report = report_of(recorded, site)
    return [(one.subject, one.message) for one in report.findings if one.code == "nic-numa-remote"]


def nics(number: int) -> str:
    return ", ".join(['"connectx7"'] * number)


def test_all_at_one_processor() -> None:
    ((subject, message),) = summaries(machine(nics(4), '"pm9a3"'))
    assert subject == "package1"
    assert message.endswith("reach every fabric NIC across the processors' interconnect: none of 4 is at package1")


@pytest.mark.parametrize(("first", "second"), [(2, 2), (3, 1), (1, 0), (2, 0)])
def test_one_at_each_or_too_few_to_tell(first: int, second: int) -> None:
    assert summaries(machine(nics(first) or '"pm9a3"', nics(second) or '"pm9a3"')) == []


def test_two_that_the_site_names_as_fabric() -> None:
    assert [subject for subject, _ in summaries(machine(nics(2), '"pm9a3"'), Site(fabric=("mlx5_*",)))] == ["package1"]
    assert summaries(machine(nics(1), '"pm9a3"'), Site(fabric=("mlx5_*",))) == []


def test_nics_for_management_do_not_count() -> None:
    assert summaries(machine('"connectx6lx-dual", "connectx6lx-dual"', '"pm9a3"')) == []


def test_a_machine_that_is_right() -> None:
    report = report_of(node("hgx-h100"))
    assert report.checks["nic-numa-remote"] is True
    assert [one for one in report.findings if one.code == "nic-numa-remote"] == []
