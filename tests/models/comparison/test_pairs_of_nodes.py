"""Pairs of described nodes beside lists that were made by hand from their descriptions, before the first comparison."""

from __future__ import annotations

import re

import pytest

from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import SOURCES, measure_nothing
from linkgauge.exporters.commands.compare import as_text
from linkgauge.models.comparison.differences import compare
from linkgauge.models.comparison.side import Side, of_snapshot
from linkgauge.models.site.schema import Site
from tests.support.nodes.described import node

# Group and regular expression of a line.
BY_HAND = {
    ("a100-pcie", "a100-pcie-bare"): [
        ("Devices", "only in A: GPU gpu2, gpu3"),
        ("Links", "gpu0, gpu1: active NVLinks 12 links -> 0 links"),
    ],
    ("vm-p5", "p5-slice"): [
        ("Verdict", "machine type aws-p5.48xlarge -> aws-p5.4xlarge"),
        ("Devices", "only in A: GPU gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7 "),
        ("Devices", "only in A: NIC efa_1, .* and 23 more"),
        ("Devices", "only in A: NVMe controller nvme2, .*, nvme8 "),
        ("Devices", "only in A: NUMA node numa1"),
        ("Devices", "only in A: CPU package package1"),
        ("Links", "gpu0: active NVLinks 18 links -> 0 links"),
        ("Links", "gpu0: fabric state completed -> not supported"),
        ("Settings", "only in A: file system /"),
        ("Hardware", "node: product p5.48xlarge -> p5.4xlarge"),
        ("Hardware", "package0: cores 48 -> 8"),
        ("Hardware", "numa0: memory 1.1 TB -> 275 GB"),
    ],
    ("azure-nd-h100-v5", "oci-h100"): [
        ("Verdict", "machine type azure-nd96isr-h100-v5 -> oci-bm.gpu.h100.8"),
        ("Devices", "only in B: NIC .*ConnectX-7"),
        ("Devices", "only in B: NIC .*ConnectX-6 Dx"),
        ("Devices", "only in B: RDMA port mlx5_8/1, .* and 2 more"),
        ("Devices", "only in B: NVMe controller .* and 8 more"),
        ("Links", "mlx5_0/1, .*: rate 50.0 GB/s -> 25.0 GB/s"),
        ("Settings", "link layer InfiniBand -> Ethernet"),
        ("Settings", "only in B: setting .*iommu"),
        ("Versions", "node: kernel 6.8.0-1015-azure -> "),
        ("Hardware", "node: vendor Microsoft Corporation -> Oracle Corporation"),
        ("Hardware", "node: instance type Standard_ND96isr_H100_v5 -> BM.GPU.H100.8"),
        ("Hardware", r"model .*Platinum 8480C -> .*Platinum 8480\+"),
        ("Hardware", "cores 48 -> 56"),
        ("Hardware", "memory 1.02 TB -> 1.1 TB"),
    ],
}
# What the comparison shows besides: all of it is true, and the lists lack it.
FURTHER = {
    ("a100-pcie", "a100-pcie-bare"): [("Links", "0000:20:02.0: PCIe width 16 lanes -> 4 lanes")],  # a disk, not a GPU
    ("vm-p5", "p5-slice"): [
        ("Devices", "only in A: RDMA port "),
        ("Devices", "only in A: disk "),
        ("Settings", "(mems|cpus)_allowed: setting "),
    ],
    ("azure-nd-h100-v5", "oci-h100"): [
        ("Devices", "only in A: NIC .*Virtual Function"),
        ("Devices", "only in A: NVMe controller "),
        ("Devices", "only in B: disk "),
        ("Links", "mlx5_2/1: rate 50.0 GB/s -> 12.5 GB/s"),
        ("Links", "lanes 4X NDR -> "),
        ("Findings", "only in A: pcie-topology-hidden"),
        ("Settings", "cpus_allowed: setting |SMT notsupported -> on"),
        ("Hardware", "nvme0n1, .*: (size|model) "),
    ],
}


def side(name: str) -> Side:
    return of_snapshot(*diagnose(node(name), SOURCES, measure_nothing, Site()))


def lines(a: str, b: str) -> list[tuple[str, str]]:
    """Each line of the text with its group."""
    text = re.sub(r"\n    +", " ", as_text(compare(side(a), side(b)), "a", "b"))
    found, group = [], ""
    for line in text.splitlines()[3:]:
        if line.startswith("  ") and group != "Not compared":
            found.append((group, line.strip()))
        elif line:
            group = line
    return found


@pytest.mark.parametrize("pair", BY_HAND, ids="-".join)
def test_the_comparison_shows_what_the_list_has(pair: tuple[str, str]) -> None:
    shown = lines(*pair)

    def fits(expected: tuple[str, str], line: tuple[str, str]) -> bool:
        return expected[0] == line[0] and re.search(expected[1], line[1]) is not None

    assert [one for one in BY_HAND[pair] if not any(fits(one, line) for line in shown)] == []
    known = [*BY_HAND[pair], *FURTHER[pair]]
    assert [line for line in shown if not any(fits(one, line) for one in known)] == []
