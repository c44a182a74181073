"""Uplinks of switches in NCCL's topology files."""

from __future__ import annotations

import pytest

from tests.support.texts import report_of

FILE = """<system version="1">
  <cpu numaid="0" affinity="ffff" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:18:00.0" class="0x060400" vendor="0x1000" device="0xc010" link_speed="{} PCIe" link_width="{}">
      <pci busid="0000:1a:00.0" class="0x030200" vendor="0x10de" device="0x20b2" link_speed="16.0 GT/s PCIe" \
link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1"/>
      </pci>
    </pci>
  </cpu>
</system>
"""


@pytest.mark.parametrize(
    ("speed", "width", "severity"),
    [
        ("2.5 GT/s", 1, "critical"),
        ("16.0 GT/s", 2, "critical"),
        ("16.0 GT/s", 4, None),  # as AWS p5
        ("8.0 GT/s", 16, None),
        ("16.0 GT/s", 16, None),
        ("32.0 GT/s", 16, None),
    ],
)
def test_the_uplink_is_compared_with_the_link_below(speed: str, width: int, severity: str | None) -> None:
    report = report_of(FILE.format(speed, width))
    found = [one for one in report.findings if one.code == "pcie-path-bottleneck"]
    assert [(one.severity, one.subject) for one in found] == ([(severity, "0000:18:00.0")] if severity else [])
    assert report.verdict == ("failed" if severity else "unknown")  # a file with no trained link shows no health
