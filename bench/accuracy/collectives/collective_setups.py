"""The machines of the published curves of collectives."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from linkgauge.models.catalog.collectives import Transport


class Setup(Struct, frozen=True):
    """The machine of a curve; rates are nominal, in bytes per second."""

    platform: str
    grade: str
    gpus: int  # per node
    rate: float  # per GPU
    nodes: int = 1
    node_rate: float = 0.0
    switched: bool = False
    held_back: bool = False  # no row of the catalog comes from this platform
    machine: str = ""  # type in platforms.toml, if the catalog can have rows of it
    later: bool = False  # held back, and collected after the formulas before the present ones were chosen
    transport: Transport | None = None  # between nodes, if the machine type does not decide
    ll128: bool = False  # the source states that NCCL uses LL128, over a transport without it elsewhere


HIGH, MEGA = "gcp-a3-highgpu-8g", "gcp-a3-megagpu-8g"
RACK = "nvidia-dgx-gb200"  # GPUs of several trays

SETUPS: Mapping[str, Setup] = {
    "4xA100 NV4 mesh allreduce w2": Setup("4xA100 mesh", "nvlink3", 2, 100e9),
    "4xA100 NV4 mesh allreduce w4": Setup("4xA100 mesh", "nvlink3", 4, 300e9),
    "4xGH200 NV6 mesh allreduce w2": Setup("4xGH200", "nvlink4", 2, 150e9),
    "4xGH200 NV6 mesh allreduce w4": Setup("4xGH200", "nvlink4", 4, 450e9),
    "8xA100 allreduce": Setup("stas00 8xA100", "nvlink3", 8, 300e9),
    "NDv4 A100 allreduce busbw": Setup("Azure NDv4", "nvlink3", 8, 300e9),
    "8xH200 allreduce": Setup("8xH200", "nvlink4", 8, 450e9, switched=True),
    "p5 1 node allreduce (NVLS)": Setup("AWS p5", "nvlink4", 8, 450e9, switched=True),
    "8xB200 p6-b200 allreduce": Setup("AWS p6-b200", "nvlink5", 8, 900e9, switched=True),
    "V100 allreduce busbw": Setup("V100 PCIe", "pcie3", 2, 15.754e9),
    # Two hives of four GPUs. A ring uses one xGMI link of 46 GB/s per GPU, or PCIe; the source does not state which.
    "HPE MI100 allreduce busbw": Setup("HPE MI100", "xgmi", 8, 46e9),
    "p4de 2 nodes allreduce": Setup("AWS p4de", "nvlink3", 8, 300e9, 2, 50e9, transport="efa"),
    "p5 2 nodes allreduce": Setup("AWS p5", "nvlink4", 8, 450e9, 2, 400e9, switched=True, transport="efa"),
    "p6-b200 4 nodes allreduce": Setup("AWS p6-b200", "nvlink5", 8, 900e9, 4, 400e9, switched=True, transport="efa"),
    "8xMI300X": Setup("8xMI300X AAC", "xgmi", 8, 448e9),
    "2 nodes of 8xMI300X": Setup("8xMI300X AAC", "xgmi", 8, 448e9, 2, 400e9),
    "8xMI355X Vultr": Setup("8xMI355X Vultr", "xgmi", 8, 537.6e9),
    "8xMI355X OCI": Setup("8xMI355X OCI", "xgmi", 8, 537.6e9),
    "GB300 4 GPUs": Setup("OCI GB300", "nvlink5", 4, 900e9, switched=True),
    "GB300 8 GPUs": Setup("OCI GB300", "nvlink5", 8, 900e9, switched=True),
    "GB300 64 GPUs": Setup("OCI GB300", "nvlink5", 64, 900e9, switched=True),
    "4xH100": Setup("4xH100", "nvlink4", 4, 450e9, switched=True),
    "p5 1 node": Setup("AWS p5", "nvlink4", 8, 450e9, switched=True),
    "p5 2 nodes": Setup("AWS p5", "nvlink4", 8, 450e9, 2, 400e9, switched=True, transport="efa"),
    "p5 16 nodes": Setup("AWS p5", "nvlink4", 8, 450e9, 16, 400e9, switched=True, transport="efa"),
    # further_curves.csv. Of its ten new platforms in alphabetical order, every second one is held back.
    "8xH100 DGX": Setup("DGX H100", "nvlink4", 8, 450e9, switched=True),
    "2 nodes of 8xH100 Dell": Setup("Dell XE9680 H100", "nvlink4", 8, 450e9, 2, 400e9, True, True),
    "4 nodes of 8xH100 Dell": Setup("Dell XE9680 H100", "nvlink4", 8, 450e9, 4, 400e9, True, True),
    "8xH100 Dell, NVLS off": Setup("Dell XE9680 H100", "nvlink4", 8, 450e9, held_back=True),
    "2 nodes of A100 OCI": Setup("OCI A100", "nvlink3", 8, 300e9, 2, 200e9, held_back=True),
    "8xB200 A4": Setup("GCP A4", "nvlink5", 8, 900e9, switched=True, held_back=True),
    "2 nodes of 8xB200 A4": Setup("GCP A4", "nvlink5", 8, 900e9, 2, 400e9, True, True),
    "2 nodes of 8xH200 Dell": Setup("Dell H200", "nvlink4", 8, 450e9, 2, 400e9, True),
    "2 nodes of 8xH200 Nebius": Setup("Nebius H200", "nvlink4", 8, 450e9, 2, 400e9, True),
    "2 nodes of 8xMI355X OCI": Setup("8xMI355X OCI", "xgmi", 8, 537.6e9, 2, 400e9),
    "4 nodes of 8xMI355X OCI": Setup("8xMI355X OCI", "xgmi", 8, 537.6e9, 4, 400e9),
    "GB300 2 racks of 64 GPUs": Setup("OCI GB300", "nvlink5", 64, 900e9, 2, 6400e9, True),
    "2 nodes of A3 Mega": Setup("A3 Mega dstack", "nvlink4", 8, 450e9, 2, 200e9, True, True, MEGA, ll128=True),
    "2 nodes of A3 Ultra": Setup("GCP A3 Ultra", "nvlink4", 8, 450e9, 2, 400e9, True, machine="gcp-a3-ultragpu-8g"),
    "2 nodes of 8xH100 IB": Setup("wutz H100", "nvlink4", 8, 450e9, 2, 400e9, True, True),
    "8xB200 Vultr": Setup("Vultr B200", "nvlink5", 8, 900e9, switched=True),
    "2 nodes of 8xB200 Vultr": Setup("Vultr B200", "nvlink5", 8, 900e9, 2, 400e9, True),
    # Of twelve later platforms in alphabetical order, every second one is held back, from the second one on.
    "AML NDmv4, 1 node": Setup("AML NDmv4", "nvlink3", 8, 300e9),
    "2 nodes of AML NDmv4": Setup("AML NDmv4", "nvlink3", 8, 300e9, 2, 200e9),
    "2 nodes of Azure NDv5": Setup("Azure NDv5", "nvlink4", 8, 450e9, 2, 400e9, True, True, later=True),
    "4 nodes of 4xMI250X": Setup("Cray MI250X", "xgmi", 8, 300e9, 4, 100e9, transport="slingshot"),
    "8xA100 FAIR": Setup("FAIR A100", "nvlink3", 8, 300e9, held_back=True, later=True),
    "2 nodes of A100 FAIR": Setup("FAIR A100", "nvlink3", 8, 300e9, 2, 200e9, held_back=True, later=True),
    "2 nodes of A3 High": Setup("GCP A3 High", "nvlink4", 8, 450e9, 2, 100e9, machine=HIGH),  # NCCL_ALGO=Ring
    # NCCL_ALGO=Ring and NCCL_NVLS_ENABLE=0
    "128 nodes of 8xH100": Setup("H100 of 128 nodes", "nvlink4", 8, 450e9, 128, 400e9, held_back=True, later=True),
    "2 nodes of 8xH100 HGX": Setup("H100 two hosts", "nvlink4", 8, 450e9, 2, 400e9, True),
    "16 nodes of Kestrel": Setup(
        "Kestrel", "nvlink4", 4, 450e9, 16, 50e9, held_back=True, transport="slingshot", later=True
    ),
    "2 nodes of 8xMI300X RoCE": Setup("MI300X two nodes", "xgmi", 8, 448e9, 2, 400e9),
    "2 nodes of 8xH100 Nebius": Setup("Nebius H100", "nvlink4", 8, 450e9, 2, 400e9, True, True, later=True),
    "GB200 2 racks of 64 GPUs": Setup("OCI GB200", "nvlink5", 64, 900e9, 2, 3200e9, True, machine=RACK),
    "2 nodes of 8xH100 OCI": Setup("OCI H100", "nvlink4", 8, 450e9, 2, 400e9, True, True, later=True),
    # Further sources of earlier platforms. Of the sources of A3 Mega, those of Slurm and of GKE are in the catalog.
    # GPUDirect-TCPXO's profile had NCCL_NVLS_ENABLE=0 until 2025.
    "2 nodes of A100 OCI 40GB": Setup("OCI A100", "nvlink3", 8, 300e9, 2, 200e9, held_back=True, later=True),
    "2 nodes of 8xMI355X Vultr": Setup("8xMI355X Vultr", "xgmi", 8, 537.6e9, 2, 400e9),
    "2 nodes of A3 Ultra, SkyPilot": Setup(
        "GCP A3 Ultra", "nvlink4", 8, 450e9, 2, 400e9, True, machine="gcp-a3-ultragpu-8g"
    ),
    "2 nodes of A3 Mega, Slurm": Setup("A3 Mega Slurm", "nvlink4", 8, 450e9, 2, 200e9, True, machine=MEGA),
    "2 nodes of A3 Mega, GKE": Setup("A3 Mega GKE", "nvlink4", 8, 450e9, 2, 200e9, True, machine=MEGA),
    "2 nodes of A3 Mega, older dstack": Setup(
        "A3 Mega dstack", "nvlink4", 8, 450e9, 2, 200e9, True, True, MEGA, later=True
    ),
    "2 nodes of A3 Mega, NeMo lab": Setup("A3 Mega lab", "nvlink4", 8, 450e9, 2, 200e9, True, True, MEGA, later=True),
    # Of five later sources in alphabetical order, every second one is held back, from the second one on.
    "2 nodes of A3 Mega create fork": Setup("A3 Mega fork", "nvlink4", 8, 450e9, 2, 200e9, machine=MEGA),
    "2 nodes of p5 EKS": Setup("AWS p5 EKS", "nvlink4", 8, 450e9, 2, 400e9, True, True, "aws-p5.48xlarge", later=True),
    "GB200 72 GPUs CoreWeave": Setup("CoreWeave GB200", "nvlink5", 72, 900e9, switched=True, machine=RACK),
    "GB200 2 racks of 72 GPUs CoreWeave": Setup("CoreWeave GB200", "nvlink5", 72, 900e9, 2, 3600e9, True, machine=RACK),
    "GB200 20 racks of 72 GPUs CoreWeave": Setup(
        "CoreWeave GB200", "nvlink5", 72, 900e9, 20, 3600e9, True, machine=RACK
    ),
    "GB300 16 GPUs OKE": Setup("OCI GB300 OKE", "nvlink5", 16, 900e9, 1, 0.0, True, True, RACK, later=True),
    "2 nodes of 8xH200 OCI": Setup("OCI H200", "nvlink4", 8, 450e9, 2, 400e9, True),
    # Of fourteen further platforms in alphabetical order, every second one is held back, from the second one on.
    # Platforms that were held back before stay so. One was left out: its author reaches a quarter more when tuned.
    "8xMI325X AAC11": Setup("8xMI325X AAC11", "xgmi", 8, 448e9),
    "2 nodes of 8xMI325X": Setup("8xMI325X AAC11", "xgmi", 8, 448e9, 2, 400e9),
    "4 nodes of 8xMI325X": Setup("8xMI325X AAC11", "xgmi", 8, 448e9, 4, 400e9),
    "8 nodes of 8xMI325X": Setup("8xMI325X AAC11", "xgmi", 8, 448e9, 8, 400e9),
    "2 nodes of A3 High, TCPX benchmark": Setup(
        "A3 High TCPX benchmark", "nvlink4", 8, 450e9, 2, 100e9, held_back=True, machine=HIGH, later=True
    ),
    "2 nodes of AKS NDv4": Setup("AKS NDv4", "nvlink3", 8, 300e9, 2, 200e9),
    "2 nodes of p4d": Setup("AWS p4d", "nvlink3", 8, 300e9, 2, 50e9, held_back=True, transport="efa", later=True),
    "2 nodes of 4xGH200 Santis": Setup("CSCS GH200", "nvlink4", 4, 450e9, 2, 100e9, transport="slingshot"),
    "2 nodes of 4xGH200 Alps": Setup("CSCS GH200", "nvlink4", 4, 450e9, 2, 100e9, transport="slingshot"),
    "12 nodes of 8xH100 CoreWeave": Setup("CoreWeave H100", "nvlink4", 8, 450e9, 12, 400e9, True, True, later=True),
    "2 nodes of A100 Crusoe": Setup("Crusoe A100", "nvlink3", 8, 300e9, 2, 200e9),
    "4 nodes of DGX A100": Setup("DGX A100 DeepOps", "nvlink3", 8, 300e9, 4, 200e9, held_back=True, later=True),
    "GB200 8 GPUs A4X": Setup("GCP A4X", "nvlink5", 8, 900e9, switched=True, machine=RACK),
    "GB200 32 GPUs A4X": Setup("GCP A4X", "nvlink5", 32, 900e9, switched=True, machine=RACK),
    "2 nodes of A4X Max": Setup("GCP A4X Max", "nvlink5", 4, 900e9, 2, 400e9, True, True, later=True),
    "2 nodes of 8xB200 Lambda": Setup("Lambda B200", "nvlink5", 8, 900e9, 2, 400e9, True, True, later=True),
    "2 nodes of 8xMI300X OKE": Setup("OCI MI300X", "xgmi", 8, 448e9, 2, 400e9),
    "2 nodes of 4xGH200 Olivia": Setup(
        "Olivia GH200", "nvlink4", 4, 450e9, 2, 100e9, held_back=True, transport="slingshot", later=True, ll128=True
    ),
    "2 nodes of 8xB200 A4, dstack": Setup("GCP A4", "nvlink5", 8, 900e9, 2, 400e9, True, True, later=True),
    "2 nodes of 8xH100 Nebius, dstack": Setup("Nebius H100", "nvlink4", 8, 450e9, 2, 400e9, True, True, later=True),
    # Of seven further platforms in alphabetical order, every second one is held back, from the second one on.
    "2 nodes of A3 High, bandwidth test": Setup("A3 High bandwidth test", "nvlink4", 8, 450e9, 2, 100e9, machine=HIGH),
    "2 nodes of A3 Mega, bandwidth test": Setup(
        "A3 Mega bandwidth test", "nvlink4", 8, 450e9, 2, 200e9, held_back=True, machine=MEGA, later=True
    ),
    "2 nodes of A3 Mega, GKE in Japan": Setup("A3 Mega Japan GKE", "nvlink4", 8, 450e9, 2, 200e9, machine=MEGA),
    "2 nodes of A3 Mega, Slurm in Japan": Setup(
        "A3 Mega Japan Slurm", "nvlink4", 8, 450e9, 2, 200e9, held_back=True, machine=MEGA, later=True
    ),
    "8xH100, issue 290": Setup("H100 of issue 290", "nvlink4", 8, 450e9, switched=True),
    "8xMI350X": Setup("MI350X", "xgmi", 8, 537.6e9, held_back=True, later=True),
    "4xA100 Polaris": Setup("Polaris", "nvlink3", 4, 300e9),
    "4 nodes of Polaris": Setup("Polaris", "nvlink3", 4, 300e9, 4, 50e9, transport="slingshot"),
    # Further sources of earlier platforms.
    "GB200 8 GPUs OKE": Setup("OCI GB200", "nvlink5", 8, 900e9, switched=True, machine=RACK),
    "2 nodes of 8xB200 A4, DraNet": Setup("GCP A4", "nvlink5", 8, 900e9, 2, 400e9, True, True, later=True),
    # Of five further platforms in alphabetical order, every second one is held back, from the second one on.
    "8xH100, bfloat16": Setup("bfloat16 H100", "nvlink4", 8, 450e9, switched=True),
    "2 nodes of 8xH200 CoreWeave": Setup("CoreWeave H200", "nvlink4", 8, 450e9, 2, 400e9, True, True, later=True),
    "4xH100 Lambda": Setup("Lambda 4xH100", "nvlink4", 4, 450e9, switched=True),
    "8xA100 thanos": Setup("Thanos A100", "nvlink3", 8, 300e9, held_back=True, later=True),
    "8xA100 thanos, one process": Setup("Thanos A100", "nvlink3", 8, 300e9, held_back=True, later=True),
    "2 nodes of 8xH100 Together": Setup("Together H100", "nvlink4", 8, 450e9, 2, 400e9, True),
}
