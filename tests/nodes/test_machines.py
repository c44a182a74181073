"""Machine types: each machine is recognised by its devices, and a machine with fewer devices as a smaller type."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.models.catalog import machines
from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.machine import Node, Pci, Port, Rdma
from linkgauge.models.facts.records import Fact
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.inventory.snapshot import Snapshot
from linkgauge.models.report import Finding
from linkgauge.models.site.schema import Machine, Site
from tests.support.nodes.gpu_facts import findings, with_fields

AZURE = {
    "vendor": "Microsoft Corporation",
    "product": "Virtual Machine",
    "asset_tag": "7783-7084-3265-9085-8269-3286-77",
}
GOOGLE = {"vendor": "Google", "product": "Google Compute Engine"}
ORACLE = {"vendor": "Oracle Corporation", "product": "ORACLE SERVER", "asset_tag": "OracleCloud.com"}
GVNIC, CX5, CX7, CX7_VIRTUAL, CX8 = "1ae0:0042", "15b3:1019", "15b3:1021", "15b3:101e", "15b3:1023"
# Names as drivers say them, and the numbers of their functions.
GPUS = {
    "V100": ("Tesla V100-SXM2-32GB", "10de:1db5"),
    "V100 SXM3": ("Tesla V100-SXM3-32GB", "10de:1db8"),
    "A100 40": ("NVIDIA A100-SXM4-40GB", "10de:20b0"),
    "A100 80": ("NVIDIA A100-SXM4-80GB", "10de:20b2"),
    "A100 PCIe": ("NVIDIA A100 80GB PCIe", "10de:20b5"),
    "H100": ("NVIDIA H100 80GB HBM3", "10de:2330"),
    "H100 NVL": ("NVIDIA H100 NVL", "10de:2321"),
    "H200": ("NVIDIA H200", "10de:2335"),
    "B200": ("NVIDIA B200", "10de:2901"),
    "B300": ("NVIDIA B300 SXM6 AC", "10de:3182"),
    "GB200": ("NVIDIA GB200", "10de:2941"),
    "GB300": ("NVIDIA GB300", "10de:31c2"),
    "GH200": ("NVIDIA GH200 120GB", "10de:2342"),
    "A10G": ("NVIDIA A10G", "10de:2237"),
    "A10": ("NVIDIA A10", "10de:2236"),
    "L4": ("NVIDIA L4", "10de:27b8"),
    "L40S": ("NVIDIA L40S", "10de:26b9"),
    "RTX PRO 6000": ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "10de:2bb5"),
    "MI300X": ("AMD Instinct MI300X", "1002:74a1"),
    "MI300X VF": ("AMD Instinct MI300X VF", "1002:74b5"),
    "MI355X": ("AMD Instinct MI355X", "1002:75a3"),
    "MI250X": ("AMD Instinct MI250X", "1002:7408"),
    "MI300A": ("AMD Instinct MI300A", "1002:74a0"),
    "Gaudi 2": ("HL-225", "1da3:1020"),
    "Gaudi 3": ("HL-325L", "1da3:1060"),
    "Trainium1": ("", "1d0f:7164"),
    "Trainium2": ("", "1d0f:7364"),
    "none": ("", "0000:0000"),
}


def amazon(product: str) -> dict[str, str]:
    return {"vendor": "Amazon EC2", "product": product}


def dmi(vendor: str, product: str) -> dict[str, str]:
    return {"vendor": vendor, "product": product}


def shows(node: dict[str, Any], kind: str, count: int, others: dict[str, int] | None = None) -> list[Fact]:
    """What a machine shows: its firmware, GPUs with their driver, and other functions by their numbers."""
    name, numbers = GPUS[kind]
    found: list[Fact] = [Node(key="node", virtual=True, container="", **node)]
    for index, pair in enumerate(
        [numbers] * count + [pair for pair, many in (others or {}).items() for _ in range(many)]
    ):
        vendor, device = (int(part, 16) for part in pair.split(":"))
        code = 0x020000 if index >= count else 0x088000 if pair.startswith("1d0f") else 0x030200
        found.append(Pci(key=f"0000:{index:02x}:00.0", pci_class=code, vendor=vendor, device=device))
    return found + [Gpu(key=f"gpu{n}", name=name, address=f"0000:{n:02x}:00.0") for n in range(count if name else 0)]


def azure(instance: str) -> dict[str, str]:
    return {**AZURE, "instance": instance}


def oracle(instance: str) -> dict[str, str]:
    return {**ORACLE, "instance": instance}


# Of each machine type of the catalog, what such a machine shows.
WHOLE = {
    "aws-p3dn.24xlarge": shows(amazon("p3dn.24xlarge"), "V100", 8),
    "aws-p4d.24xlarge": shows(amazon("p4d.24xlarge"), "A100 40", 8),
    "aws-p4de.24xlarge": shows(amazon("p4de.24xlarge"), "A100 80", 8),
    "aws-p5.48xlarge": shows(amazon("p5.48xlarge"), "H100", 8),
    "aws-p5.4xlarge": shows(amazon("p5.4xlarge"), "H100", 1),
    "aws-p5e.48xlarge": shows(amazon("p5e.48xlarge"), "H200", 8),
    "aws-p5en.48xlarge": shows(amazon("p5en.48xlarge"), "H200", 8),
    "aws-p6-b200.48xlarge": shows(amazon("p6-b200.48xlarge"), "B200", 8, {CX7: 2}),
    "aws-p6-b300.48xlarge": shows(amazon("p6-b300.48xlarge"), "B300", 8),
    "aws-p6e-gb200.36xlarge": shows(amazon("p6e-gb200.36xlarge"), "GB200", 4),
    "aws-g5.48xlarge": shows(amazon("g5.48xlarge"), "A10G", 8),
    "aws-g6.48xlarge": shows(amazon("g6.48xlarge"), "L4", 8),
    "aws-g6e.48xlarge": shows(amazon("g6e.48xlarge"), "L40S", 8),
    "aws-g7e.48xlarge": shows(amazon("g7e.48xlarge"), "RTX PRO 6000", 8),
    "aws-trn1.32xlarge": shows(amazon("trn1.32xlarge"), "Trainium1", 16),
    "aws-trn1n.32xlarge": shows(amazon("trn1n.32xlarge"), "Trainium1", 16),
    "aws-trn2.48xlarge": shows(amazon("trn2.48xlarge"), "Trainium2", 16),
    "azure-nd96is-v5": shows(azure("Standard_ND96is_H100_v5"), "H100", 8),
    "azure-nd40rs-v2": shows(azure("Standard_ND40rs_v2"), "V100", 8),
    "azure-nd96asr-v4": shows(azure("Standard_ND96asr_v4"), "A100 40", 8),
    "azure-nd96amsr-a100-v4": shows(azure("Standard_ND96amsr_A100_v4"), "A100 80", 8),
    "azure-nd96isr-h100-v5": shows(azure("Standard_ND96isr_H100_v5"), "H100", 8),
    "azure-nd96isr-h200-v5": shows(azure("Standard_ND96isr_H200_v5"), "H200", 8),
    "azure-nd96isr-mi300x-v5": shows(azure("Standard_ND96isr_MI300X_v5"), "MI300X VF", 8),
    "azure-nd128isr-gb200-v6": shows(azure("Standard_ND128isr_NDR_GB200_v6"), "GB200", 4),
    "azure-nd128isr-gb300-v6": shows(azure("Standard_ND128isr_GB300_v6"), "GB300", 4),
    "azure-nc24ads-a100-v4": shows(azure("Standard_NC24ads_A100_v4"), "A100 PCIe", 1),
    "azure-nc48ads-a100-v4": shows(azure("Standard_NC48ads_A100_v4"), "A100 PCIe", 2),
    "azure-nc96ads-a100-v4": shows(azure("Standard_NC96ads_A100_v4"), "A100 PCIe", 4),
    "azure-nc40ads-h100-v5": shows(azure("Standard_NC40ads_H100_v5"), "H100 NVL", 1),
    "azure-nc80adis-h100-v5": shows(azure("Standard_NC80adis_H100_v5"), "H100 NVL", 2),
    "gcp-a2-megagpu-16g": shows(GOOGLE, "A100 40", 16, {GVNIC: 1}),
    "gcp-a2-highgpu-8g": shows(GOOGLE, "A100 40", 8, {GVNIC: 1}),
    "gcp-a2-ultragpu-8g": shows(GOOGLE, "A100 80", 8, {GVNIC: 1}),
    "gcp-a3-megagpu-8g": shows(GOOGLE, "H100", 8, {GVNIC: 9}),
    "gcp-a3-highgpu-8g": shows(GOOGLE, "H100", 8, {GVNIC: 5}),
    "gcp-a3-8g": shows(GOOGLE, "H100", 8, {GVNIC: 1}),
    "gcp-a3-ultragpu-8g": shows(GOOGLE, "H200", 8, {GVNIC: 2, CX7_VIRTUAL: 8}),
    "gcp-a4-highgpu-8g": shows(GOOGLE, "B200", 8, {GVNIC: 2, CX7_VIRTUAL: 8}),
    "gcp-a4x-highgpu-4g": shows(GOOGLE, "GB200", 4, {GVNIC: 1}),
    "gcp-a4x-maxgpu-4g-metal": shows(GOOGLE, "GB300", 4, {CX8: 8}),
    "oci-bm.gpu4.8": shows(oracle("BM.GPU4.8"), "A100 40", 8, {CX5: 18}),
    "oci-bm.gpu.b4.8": shows(oracle("BM.GPU.B4.8"), "A100 40", 8, {CX5: 18}),
    "oci-bm.gpu.a100-v2.8": shows(oracle("BM.GPU.A100-v2.8"), "A100 80", 8, {CX5: 18}),
    "oci-bm.gpu.h100.8": shows(oracle("BM.GPU.H100.8"), "H100", 8, {CX7: 16}),
    "oci-bm.gpu.h200.8": shows(oracle("BM.GPU.H200.8"), "H200", 8, {CX7: 8}),
    "oci-bm.gpu.b200.8": shows(oracle("BM.GPU.B200.8"), "B200", 8, {CX7: 8}),
    "oci-bm.gpu.b300.8": shows(oracle("BM.GPU.B300.8"), "B300", 8, {CX8: 16}),
    "oci-bm.gpu.gb200-v3.4": shows(oracle("BM.GPU.GB200-v3.4"), "GB200", 4, {CX8: 8}),
    "oci-bm.gpu.gb200.4": shows(oracle("BM.GPU.GB200.4"), "GB200", 4, {CX7: 4}),
    "oci-bm.gpu.gb300.4": shows(oracle("BM.GPU.GB300.4"), "GB300", 4, {CX8: 8}),
    "oci-bm.gpu.mi300x.8": shows(oracle("BM.GPU.MI300X.8"), "MI300X", 8, {CX7: 8}),
    "oci-bm.gpu.mi355x.8": shows(oracle("BM.GPU.MI355X-v1.8"), "MI355X", 8),
    "oci-bm.gpu.l40s.4": shows(oracle("BM.GPU.L40S.4"), "L40S", 4, {CX7: 2}),
    "oci-bm.gpu.a10.4": shows(oracle("BM.GPU.A10.4"), "A10", 4),
    "nvidia-dgx-1": shows(dmi("NVIDIA", "DGX-1 with V100-32"), "V100", 8),
    "nvidia-dgx-2": shows(dmi("NVIDIA", "NVIDIA DGX-2H"), "V100 SXM3", 16),
    "nvidia-dgx-station-a100": shows(dmi("NVIDIA", "DGX Station A100 920-23487-2530-0R0"), "A100 80", 4),
    "nvidia-dgx-a100": shows(dmi("NVIDIA", "DGXA100 920-23687-2530-000"), "A100 40", 8),
    "nvidia-dgx-h100": shows(dmi("NVIDIA", "DGXH100"), "H100", 8, {CX7: 12}),
    "nvidia-dgx-h200": shows(dmi("NVIDIA", "DGXH200"), "H200", 8, {CX7: 12}),
    "nvidia-gb200-tray": shows(dmi("NVIDIA", "GB200 NVL"), "GB200", 4, {CX7: 4}),
    "nvidia-dgx-gb200": shows(dmi("NVIDIA", "DGX GB200"), "GB200", 4, {CX7: 4}),
    "nvidia-dgx-gb300": shows(dmi("NVIDIA", "DGX GB300"), "GB300", 4, {CX8: 4}),
    "nvidia-gb300-tray": shows(dmi("NVIDIA", "GB300 NVL"), "GB300", 4, {CX8: 4}),
    "nvidia-dgx-b200": shows(dmi("NVIDIA", "DGXB200"), "B200", 8, {CX7: 12}),
    "nvidia-dgx-b300": shows(dmi("NVIDIA", "DGXB300"), "B300", 8, {CX8: 8}),
    "hpe-cray-ex235n": shows(dmi("HPE", "HPE Cray EX235n"), "A100 40", 4),
    "hpe-cray-ex254n": shows(dmi("HPE", "HPE Cray EX254n"), "GH200", 4),
    "hpe-cray-ex235a": shows(dmi("HPE", "HPE Cray EX235a"), "MI250X", 8),
    "hpe-cray-ex255a": shows(dmi("HPE", "HPE Cray EX255a"), "MI300A", 4),
    "dell-xe9680": shows(dmi("Dell Inc.", "PowerEdge XE9680"), "H100", 8),
    "dell-xe8545": shows(dmi("Dell Inc.", "PowerEdge XE8545"), "A100 40", 4),
    "dell-xe8640": shows(dmi("Dell Inc.", "PowerEdge XE8640"), "H100", 4),
    "hgx-a100-8": shows(dmi("Supermicro", "SYS-420GP-TNAR"), "A100 80", 8),
    "hgx-h100-8": shows(dmi("Supermicro", "SYS-821GE-TNHR"), "H100", 8),
    "hgx-h200-8": shows(dmi("QEMU", "Standard PC (Q35 + ICH9, 2009)"), "H200", 8),
    "hgx-b200-8": shows(dmi("Supermicro", "SYS-A21GE-NBRT"), "B200", 8),
    "mi300x-8": shows(dmi("Supermicro", "AS-8125GS-TNMR2"), "MI300X", 8),
    "gaudi2-8": shows(dmi("Supermicro", "SYS-820GH-TNR2"), "Gaudi 2", 8),
    "gaudi3-8": shows(dmi("Supermicro", "SYS-822GA-NGR3"), "Gaudi 3", 8),
}
# A part of each of these is a machine that is sold, or one that cannot be told from it.
SLICES = [
    shows(amazon("g5.xlarge"), "A10G", 1),
    shows(amazon("p5.2xlarge"), "H100", 1),
    shows(AZURE, "H100 NVL", 1),
    shows(AZURE, "A100 PCIe", 1),
    shows(AZURE, "A10", 1),
    shows(azure("Standard_ND48isr_H200_v5"), "H200", 4),
    shows(GOOGLE, "A100 40", 1, {GVNIC: 1}),
    shows(GOOGLE, "A100 40", 4, {GVNIC: 1}),
    shows(GOOGLE, "A100 80", 2),
    shows(GOOGLE, "H100", 1, {GVNIC: 1}),
    shows(GOOGLE, "H100", 4, {GVNIC: 1}),
    shows(GOOGLE, "L4", 2),
    shows(ORACLE, "A10", 1),
    shows(ORACLE, "A10", 2),
    shows(ORACLE, "H100", 1, {CX7_VIRTUAL: 1}),
    shows(ORACLE, "A100 80", 1),
    shows(ORACLE, "L40S", 1),
    shows(oracle("VM.GPU.H100.1"), "H100", 1, {CX7: 1}),
    shows(dmi("Supermicro", "SYS-421GE-TNRT"), "H100", 2),
    shows(dmi("QEMU", "KVM"), "H200", 4),
    shows(dmi("NVIDIA", "NVIDIA_DGX_Spark"), "none", 0),
    shows(dmi("NVIDIA", "DGX GH200"), "GH200", 1),
    shows({}, "B200", 3),
]


def snapshot_of(records: list[Fact], *own: Machine) -> Snapshot:
    return assemble(records, Site(machine=own), 1.0)


def name_of(records: list[Fact], *own: Machine) -> str | None:
    machine = snapshot_of(records, *own).machine
    return machine.name if machine else None


def missing(records: list[Fact], *own: Machine) -> list[Finding]:
    """Findings on what is fewer than it should be."""
    found = findings(records, site=Site(machine=own))
    return [one for one in found if one.code in ("gpu-missing", "nic-missing", "nvlink-inactive")]


def test_every_machine_type_is_here() -> None:
    assert list(WHOLE) == [machine.name for machine in machines()]


@pytest.mark.parametrize("name", WHOLE)
def test_each_is_known_for_what_it_is(name: str) -> None:
    """So no entry hides a later one."""
    assert name_of(WHOLE[name]) == name


@pytest.mark.parametrize("name", WHOLE)
def test_without_its_vendor_a_machine_has_no_vendor_type(name: str) -> None:
    """What a maker or a cloud alone has is not taken from a product's name or from its GPUs."""
    (machine,) = (machine for machine in machines() if machine.name == name)
    stripped = with_fields(WHOLE[name], "node", vendor="Acme", asset_tag="Acme")
    found = snapshot_of([one for one in stripped if isinstance(one, Fact)]).machine
    assert (found == machine) == (machine.vendor is None and machine.asset_tag is None)
    assert found is None or not found.vendor


@pytest.mark.parametrize(
    ("name", "by"),
    [
        ("aws-p5.48xlarge", "DMI product name p5.48xlarge"),
        ("azure-nc40ads-h100-v5", "cloud-init instance type Standard_NC40ads_H100_v5"),
        ("gcp-a4-highgpu-8g", "GPU name NVIDIA B200 and DMI vendor Google"),
        ("gcp-a2-megagpu-16g", "16 PCI functions 10de:20b0 and DMI vendor Google"),
        ("hgx-h100-8", "GPU name NVIDIA H100 80GB HBM3"),
    ],
)
def test_it_says_by_what(name: str, by: str) -> None:
    assert snapshot_of(WHOLE[name]).matched_by == by


def test_machines_without_a_written_type() -> None:
    """In containers and dumps: GPUs that a cloud has in one size alone still tell, others do not."""
    snapshot = snapshot_of(shows(AZURE, "H100", 8))
    assert snapshot.machine
    assert snapshot.machine.name == "azure-nd96isr-h100-v5"
    assert snapshot.matched_by == f"GPU name NVIDIA H100 80GB HBM3 and DMI chassis asset tag {AZURE['asset_tag']}"
    assert name_of(shows(ORACLE, "GB200", 4, {CX8: 8})) == "oci-bm.gpu.gb200-v3.4"
    assert name_of(shows(ORACLE, "GB200", 4, {CX7: 4})) == "oci-bm.gpu.gb200.4"
    assert name_of(shows(AZURE, "H100 NVL", 1)) is None


def test_letters_of_an_instance_type_may_be_small_or_large() -> None:
    assert name_of(shows(azure("STANDARD_NC40ADS_H100_V5"), "H100 NVL", 1)) == "azure-nc40ads-h100-v5"


def test_virtual_functions_of_a_host_are_no_further_nics() -> None:
    lent = [
        replace(one, physfn="0000:00:00.0") if isinstance(one, Pci) and one.vendor == 0x1AE0 else one
        for one in WHOLE["gcp-a3-megagpu-8g"]
    ]
    assert name_of(lent) == "gcp-a3-8g"


def test_gpus_without_a_driver_are_known_by_their_numbers() -> None:
    bare = [one for one in WHOLE["gcp-a4-highgpu-8g"] if not isinstance(one, Gpu)]
    assert snapshot_of(bare).matched_by == "PCI numbers of NVIDIA B200 and DMI vendor Google"


@pytest.mark.parametrize("records", SLICES)
def test_a_small_machine_lacks_nothing(records: list[Fact]) -> None:
    assert missing(records) == []


@pytest.mark.parametrize("name", [machine.name for machine in machines() if machine.sure and (machine.gpus or 0) > 1])
def test_one_gpu_less(name: str) -> None:
    (machine,) = (machine for machine in machines() if machine.name == name)
    assert [one for one in missing(WHOLE[name]) if one.code == "gpu-missing"] == []
    less = [one for one in WHOLE[name] if one.key not in ("0000:00:00.0", "gpu0")]
    (found,) = (one for one in missing(less) if one.code == "gpu-missing")
    assert (found.expected, found.observed, found.basis) == (machine.gpus, (machine.gpus or 0) - 1, "profile")
    assert found.message.startswith(f"{found.observed} of the {found.expected} GPUs of {name} are there")


@pytest.mark.parametrize("name", [machine.name for machine in machines() if not machine.sure])
def test_counts_need_more_than_the_name_of_gpus(name: str) -> None:
    (machine,) = (machine for machine in machines() if machine.name == name)
    assert (machine.links, machine.rdma, machine.nvme, machine.sockets, machine.numa) == (None,) * 5
    assert missing([one for one in WHOLE[name] if one.key not in ("0000:00:00.0", "gpu0")]) == []


def linked(name: str, links: int) -> list[Fact]:
    """The machine, its GPUs with so many active NVLinks."""
    return [replace(one, nvlinks=links) if isinstance(one, Gpu) else one for one in WHOLE[name]]


def test_links_of_a_machine() -> None:
    assert missing(linked("azure-nc96ads-a100-v4", 12)) == []
    found = missing(linked("azure-nc96ads-a100-v4", 0))
    assert {(one.code, one.severity, one.basis, one.expected, one.observed) for one in found} == {
        ("nvlink-inactive", "critical", "profile", 12, 0)
    }
    assert len(found) == 4
    assert missing(linked("azure-nc24ads-a100-v4", 0)) == missing(linked("aws-p5.4xlarge", 0)) == []
    ours = Machine(name="ours", source="the order", product="*", gpus=4, links=8)
    assert [one.basis for one in missing(linked("azure-nc96ads-a100-v4", 4), ours)] == ["site"] * 4


def fabric(rate: float, count: int = 8) -> list[Fact]:
    """RDMA ports beside the GPUs of a machine with 8 of 400 Gb/s."""
    records = [one for one in WHOLE["azure-nd96isr-h100-v5"] if not isinstance(one, Gpu)]
    for number in range(count):
        place = f"0101:{number:02x}:00.0"
        records += [
            Pci(key=place, pci_class=0x020700, vendor=0x15B3, device=0x101E),
            Rdma(key=f"mlx5_{number}", address=place, driver="mlx5_core"),
            Port(
                key=f"mlx5_{number}/1",
                device=f"mlx5_{number}",
                state="ACTIVE",
                physical_state="LinkUp",
                rate=rate,
                link_layer="InfiniBand",
            ),
        ]
    return records


def test_ports_of_a_machine() -> None:
    """All of them run alike: nothing else would tell."""
    assert [one for one in findings(fabric(50e9)) if one.code.startswith("nic-")] == []
    slow = [one for one in findings(fabric(25e9)) if one.code == "nic-rate-low"]
    assert {(one.severity, one.basis, one.expected, one.observed) for one in slow} == {
        ("critical", "profile", 50e9, 25e9)
    }
    assert len(slow) == 8
    (few,) = missing(fabric(50e9, 7))
    assert (few.code, few.severity, few.basis, few.expected, few.observed) == (
        "nic-missing",
        "warning",
        "profile",
        8,
        7,
    )
    metal = with_fields(fabric(50e9, 7), "node", virtual=False)
    assert [one.severity for one in findings(metal) if one.code == "nic-missing"] == ["critical"]


def test_the_own_type_of_a_site_comes_first() -> None:
    ours = Machine(name="ours", source="the order", gpu="*H100*", gpus=7)
    assert name_of(WHOLE["aws-p5.48xlarge"], ours) == "ours"
    assert missing([*WHOLE["aws-p5.48xlarge"][:8], *WHOLE["aws-p5.48xlarge"][9:]], ours) == []


def test_names_of_gpus_do_not_make_up_for_a_tree_that_is_hidden() -> None:
    for name, severity in (("hgx-h200-8", "warning"), ("gcp-a4-highgpu-8g", "info"), ("aws-p5.48xlarge", "info")):
        hidden = [one for one in findings(WHOLE[name]) if one.code == "pcie-topology-hidden"]
        assert [one.severity for one in hidden] == [severity]


words = st.sampled_from(
    [
        "",
        "Google",
        "NVIDIA",
        "Amazon EC2",
        "p5.48xlarge",
        "DGXH100",
        "OracleCloud.com",
        AZURE["asset_tag"],
        "[",
        "*",
        "Standard_ND96isr_H100_v5",
        "BM.GPU.H100.8",
        "NVIDIA H200",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    ]
) | st.text(max_size=12)
nodes = st.builds(
    Node,
    key=st.just("node"),
    vendor=st.none() | words,
    product=st.none() | words,
    asset_tag=st.none() | words,
    instance=st.none() | words,
)
numbers = st.none() | st.sampled_from([0x10DE, 0x1D0F, 0x1AE0, 0x15B3, 0x2330, 0x20B0, 0x1021, 0x0042, 0x7164])
functions = st.builds(
    Pci,
    key=st.from_regex(r"0000:[0-9a-f]{2}:00\.0", fullmatch=True),
    vendor=numbers,
    device=numbers,
    pci_class=st.sampled_from([None, 0x030200, 0x020000]),
    physfn=st.sampled_from([None, "0000:00:00.0"]),
)
gpus = st.builds(Gpu, key=st.sampled_from([f"gpu{n}" for n in range(16)]), name=st.none() | words)


@given(nodes, st.lists(functions, max_size=20), st.lists(gpus, max_size=8))
def test_anything_is_one_machine_type_or_none(node: Node, pci: list[Pci], named: list[Gpu]) -> None:
    snapshot = snapshot_of([node, *pci, *named])
    assert (snapshot.machine is None) == (snapshot.matched_by is None)
    assert snapshot.machine is None or snapshot.machine in machines()
