"""Devices that a synthetic node can be made of: what they are called, and what their links can do.

Numbers and names are those of pci.ids, links and capacities those of data sheets. A node's description can add its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec

Kind: TypeAlias = Literal["port", "gpu", "nvswitch", "nic", "nvme", "sata", "display", "other"]
Id = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{4}:[0-9a-f]{4}$")]
Line = Annotated[str, msgspec.Meta(pattern=r"^[\x20-\x7e]*$")]
Word = Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9][A-Za-z0-9_.:-]*)?$")]
Lanes = Annotated[int, msgspec.Meta(ge=0, le=255)]
Size = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=1e18)]

VENDORS = {
    "1000": "Broadcom / LSI",
    "1002": "Advanced Micro Devices, Inc. [AMD/ATI]",
    "1022": "Advanced Micro Devices, Inc. [AMD]",
    "102b": "Matrox Electronics Systems Ltd.",
    "10de": "NVIDIA Corporation",
    "11f8": "PMC-Sierra Inc.",
    "1344": "Micron Technology Inc",
    "1414": "Microsoft Corporation",
    "144d": "Samsung Electronics Co Ltd",
    "14e4": "Broadcom Inc. and subsidiaries",
    "1556": "PLDA",
    "15b3": "Mellanox Technologies",
    "17db": "Cray Inc",
    "1a03": "ASPEED Technology, Inc.",
    "1ae0": "Google, Inc.",
    "1b36": "Red Hat, Inc.",
    "1d0f": "Amazon.com, Inc.",
    "8086": "Intel Corporation",
}
CLASSES: Mapping[str, int] = {
    "port": 0x060400,
    "gpu": 0x030200,
    "nvswitch": 0x068000,
    "nic": 0x020000,
    "nvme": 0x010802,
    "sata": 0x010601,
    "display": 0x030000,
    "other": 0x088000,
}
INFINIBAND_CLASS, ACCELERATOR_CLASS = 0x020700, 0x120000


class Model(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A kind of device. Speeds in GT/s, rates in Gb/s, sizes in bytes, clocks in MHz, power in watts."""

    kind: Kind
    id: Id  # vendor and device
    subsystem: Id | None = None
    pci_class: Annotated[int, msgspec.Meta(ge=0, lt=1 << 24)] | None = None
    name: Line = ""
    driver: Word = ""
    speed: float | None = None  # what its link can do; None: it has no PCIe capability
    width: Lanes = 16
    functions: Annotated[int, msgspec.Meta(ge=1, le=8)] = 1
    second: Word = ""  # the model of its last function, where that is another one
    switch: Word = ""  # the model of the switch that the card has before its device
    emulated: bool = False  # a hypervisor's port: its link files are about nothing
    handed_on: bool = False  # a virtual function in a guest: it has no link of its own
    rate: Annotated[float, msgspec.Meta(ge=0, le=1e5)] = 0  # of a network port; 0: its driver does not say
    netdev: Word = ""  # how its network device is called, without the number
    rdma: Word = ""  # how its RDMA device is called, without the number
    link_layer: Literal["InfiniBand", "Ethernet", "Unknown"] = "Ethernet"
    hca_type: Line = ""
    board_id: Line = ""
    firmware: Line = "1.0"
    product: Line = ""  # of a disk
    size: Size = 0  # of a disk
    # Of a GPU, what the catalog of products does not have.
    clock: Amount | None = None  # the highest of its SMs
    default_clock: Amount | None = None  # where it is lower than that
    memory_clock: Amount | None = None
    rests: Annotated[int, msgspec.Meta(ge=0, le=15)] = 0  # its performance state without work
    power: Amount | None = None  # its default limit
    bar1: Size | None = None
    ecc: bool = False
    mig: bool = False  # can be cut into instances
    vbios: Line = ""
    part: Line = ""  # of its board

    @property
    def infiniband(self) -> bool:
        """Whether its ports speak InfiniBand."""
        return bool(self.rdma) and self.link_layer == "InfiniBand"


def _gpu(device: str, subsystem: str, name: str, speed: float, **more: object) -> Model:
    fields = {"kind": "gpu", "driver": "nvidia", "name": name, "speed": speed}
    return msgspec.convert({"id": f"10de:{device}", "subsystem": f"10de:{subsystem}", **fields, **more}, Model)


def _connectx(device: str, name: str, speed: float, width: int, rate: float, **more: object) -> Model:
    fields = {"netdev": "eth", "rdma": "mlx5_", "driver": "mlx5_core", **more}
    return msgspec.convert(
        {"kind": "nic", "id": f"15b3:{device}", "name": name, "speed": speed, "width": width, "rate": rate, **fields},
        Model,
    )


def _efa(device: str, rate: float, speed: float = 32, width: int = 16) -> Model:
    return Model(
        kind="nic",
        id=f"1d0f:{device}",
        name="Elastic Fabric Adapter (EFA)",
        driver="efa",
        speed=speed,
        width=width,
        rate=rate,
        rdma="efa_",
        link_layer="Unknown",
        firmware="0.0.0.0",
    )


def _port(number: str, name: str, speed: float, width: int = 16, emulated: bool = False) -> Model:
    return Model(kind="port", id=number, name=name, driver="pcieport", speed=speed, width=width, emulated=emulated)


def _nvme(number: str, name: str, product: str, size: int, **more: object) -> Model:
    fields = {"kind": "nvme", "id": number, "name": name, "driver": "nvme", "product": product, "size": size}
    return msgspec.convert({"speed": 16.0, "width": 4, **fields, **more}, Model)


MODELS: Mapping[str, Model] = {
    "root-gen3": _port("8086:2030", "Sky Lake-E PCI Express Root Port A", 8),
    "root-gen4": _port("8086:347a", "Ice Lake PCI Express Root Port A", 16),
    "root-gen5": _port("8086:352a", "PCI Express Gen5 Port A", 32),
    "pex89": _port("1000:c030", "PEX890xx PCIe Gen 5 Switch", 32),
    "pex88": _port("1000:c010", "PEX880xx PCIe Gen 4 Switch", 16),
    "aws-port": _port("1000:0001", "53c810", 2.5, 1, emulated=True),
    # Those that Nitro shows of a P5's switches have the links of real ones (lstopo -v in the Smol training playbook).
    "aws-root": _port("1d0f:0200", "", 16, 8),
    "aws-switch": _port("1d0f:0200", "", 32),
    "qemu-port": _port("1b36:000c", "QEMU PCIe Root port", 16, 32, emulated=True),
    "root-amd": _port("1022:1483", "Starship/Matisse GPP Bridge", 16),
    "root-amd-gen5": _port("1022:14ab", "", 32),
    # Switches on cards: of a ConnectX-7, and of an MI300X (ROCm/rccl, tools/topo_expl/models/topo_8p_940.xml).
    "connectx7-switch": _port("15b3:1979", "", 32),
    "mi300x-switch": _port("1022:1500", "", 32),
    # A superchip's GPU talks to its processor over C2C; DCGM expects one lane of PCIe beside that.
    "root-grace": _port("10de:22b8", "Grace PCIe Root Port", 32),
    "root-grace-x1": _port("10de:22b8", "Grace PCIe Root Port", 16, 1),
    "a100": _gpu(
        "20b2",
        "1463",
        "GA100 [A100 SXM4 80GB]",
        16,
        clock=1410,
        default_clock=1275,
        memory_clock=1593,
        power=400,
        bar1=128 << 30,
        ecc=True,
        mig=True,
        vbios="92.00.36.00.02",
        part="692-2G506-0212-002",
    ),
    "a100-40": _gpu(
        "20b0",
        "134f",
        "GA100 [A100 SXM4 40GB]",
        16,
        clock=1410,
        default_clock=1095,
        memory_clock=1215,
        power=400,
        bar1=64 << 30,
        ecc=True,
        mig=True,
    ),
    "a100-pcie": _gpu(
        "20b5",
        "1533",
        "GA100 [A100 PCIe 80GB]",
        16,
        clock=1410,
        default_clock=1065,
        memory_clock=1512,
        power=300,
        bar1=128 << 30,
        ecc=True,
        mig=True,
    ),
    "h100": _gpu(
        "2330",
        "16c1",
        "GH100 [H100 SXM5 80GB]",
        32,
        clock=1980,
        memory_clock=2619,
        power=700,
        bar1=128 << 30,
        ecc=True,
        mig=True,
        vbios="96.00.A5.00.01",
        part="692-2G520-0200-000",
    ),
    "h200": _gpu(
        "2335",
        "18be",
        "GH100 [H200 SXM 141GB]",
        32,
        clock=1980,
        memory_clock=3201,
        power=700,
        bar1=256 << 30,
        ecc=True,
        mig=True,
    ),
    "gh200": _gpu(
        "2342",
        "16eb",
        "GH100 [GH200 120GB / 480GB]",
        32,
        clock=1980,
        memory_clock=2619,
        power=900,
        bar1=128 << 30,
        ecc=True,
        mig=True,
    ),
    "b200": _gpu(
        "2901",
        "1999",
        "GB100 [B200]",
        32,
        clock=1965,
        memory_clock=3996,
        power=1000,
        bar1=256 << 30,
        ecc=True,
        mig=True,
    ),
    "gb200": _gpu(
        "2941",
        "2046",
        "GB100 [HGX GB200]",
        32,
        clock=2062,
        memory_clock=3996,
        power=1200,
        bar1=256 << 30,
        ecc=True,
        mig=True,
    ),
    "a10g": _gpu(
        "2237",
        "152f",
        "GA102GL [A10G]",
        16,
        clock=1710,
        memory_clock=6251,
        rests=8,
        power=300,
        bar1=32 << 30,
        ecc=True,
        vbios="94.02.75.00.01",
    ),
    "l40s": _gpu(
        "26b9", "1851", "AD102GL [L40S]", 16, clock=2520, memory_clock=9001, rests=8, power=350, bar1=64 << 30, ecc=True
    ),
    # The clocks of this one are in no data sheet (RTX PRO 6000 Blackwell Server Edition data sheet: 600 W, 96 GB).
    "rtx-pro-6000": _gpu(
        "2bb5",
        "2bb5",
        "GB202GL [RTX PRO 6000 Blackwell Server Edition]",
        32,
        rests=8,
        power=600,
        bar1=128 << 30,
        ecc=True,
        mig=True,
    ),
    "mi300x": Model(
        kind="gpu",
        id="1002:74a1",
        pci_class=ACCELERATOR_CLASS,
        name="Aqua Vanjaram [Instinct MI300X]",
        driver="amdgpu",
        speed=32,
        switch="mi300x-switch",
    ),
    "t4": _gpu(
        "1eb8",
        "12a2",
        "TU104GL [Tesla T4]",
        8,
        clock=1590,
        default_clock=585,
        memory_clock=5001,
        rests=8,
        power=70,
        bar1=256 << 20,
        ecc=True,
    ),
    "rtx4090": _gpu(
        "2684",
        "16f3",
        "AD102 [GeForce RTX 4090]",
        16,
        pci_class=0x030000,
        clock=3105,
        memory_clock=10501,
        rests=8,
        power=450,
        bar1=32 << 30,
    ),
    "nvswitch2": Model(
        kind="nvswitch", id="10de:1af1", name="GA100 [A100 NVSwitch]", driver="nvidia-nvswitch", speed=16, width=2
    ),
    "nvswitch3": Model(
        kind="nvswitch", id="10de:22a3", name="GH100 [H100 NVSwitch]", driver="nvidia-nvswitch", speed=16, width=2
    ),
    "connectx6": _connectx(
        "101b",
        "MT28908 Family [ConnectX-6]",
        16,
        16,
        200,
        netdev="ib",
        link_layer="InfiniBand",
        pci_class=INFINIBAND_CLASS,
        hca_type="MT4123",
        board_id="MT_0000000223",
        firmware="20.39.1002",
    ),
    "connectx6-roce": _connectx(
        "101b",
        "MT28908 Family [ConnectX-6]",
        16,
        16,
        200,
        hca_type="MT4123",
        board_id="MT_0000000223",
        firmware="20.39.1002",
    ),
    "connectx6-guest": _connectx(
        "101c",
        "MT28908 Family [ConnectX-6 Virtual Function]",
        16,
        16,
        200,
        netdev="ib",
        link_layer="InfiniBand",
        pci_class=INFINIBAND_CLASS,
        hca_type="MT4124",
        handed_on=True,
        firmware="20.39.1002",
    ),
    "connectx7": _connectx(
        "1021",
        "MT2910 Family [ConnectX-7]",
        32,
        16,
        400,
        netdev="ib",
        link_layer="InfiniBand",
        pci_class=INFINIBAND_CLASS,
        hca_type="MT4129",
        board_id="MT_0000000838",
        firmware="28.39.1002",
    ),
    "connectx7-roce": _connectx(
        "1021",
        "MT2910 Family [ConnectX-7]",
        32,
        16,
        400,
        hca_type="MT4129",
        board_id="MT_0000000838",
        firmware="28.39.1002",
    ),
    "connectx7-roce-dual": _connectx(
        "1021",
        "MT2910 Family [ConnectX-7]",
        32,
        16,
        200,
        functions=2,
        hca_type="MT4129",
        board_id="MT_0000000834",
        firmware="28.39.1002",
    ),
    "connectx7-guest": _connectx(
        "101e",
        "ConnectX Family mlx5Gen Virtual Function",
        32,
        16,
        400,
        netdev="ib",
        link_layer="InfiniBand",
        pci_class=INFINIBAND_CLASS,
        hca_type="MT4126",
        handed_on=True,
        firmware="28.39.1002",
    ),
    "connectx6dx-dual": _connectx(
        "101d",
        "MT2892 Family [ConnectX-6 Dx]",
        16,
        16,
        100,
        functions=2,
        hca_type="MT4125",
        board_id="MT_0000000359",
        firmware="22.39.1002",
    ),
    "connectx6lx-dual": _connectx(
        "101f",
        "MT2894 Family [ConnectX-6 Lx]",
        16,
        8,
        25,
        functions=2,
        hca_type="MT4127",
        board_id="MT_0000000547",
        firmware="26.39.1002",
    ),
    "connectx-vf": Model(kind="nic", id="15b3:101e", name="ConnectX Family mlx5Gen Virtual Function"),
    "i226": Model(
        kind="nic",
        id="8086:125c",
        name="Ethernet Controller I226-V",
        driver="igc",
        speed=5,
        width=1,
        rate=2.5,
        netdev="eth",
    ),
    "efa": _efa("efa2", 100, 8, 8),
    "efa0": _efa("efa0", 100, 8),
    "efa1": _efa("efa1", 100),
    "efa3": _efa("efa3", 200),
    "ena": Model(
        kind="nic", id="1d0f:ec20", name="Elastic Network Adapter (ENA)", driver="ena", speed=8, width=8, netdev="eth"
    ),
    # HPE Slingshot 11; the driver is that of the Slingshot host software.
    "cassini": Model(kind="nic", id="17db:0501", driver="cxi_core", speed=16, rate=200, netdev="hsn"),
    "gvnic": Model(
        kind="nic", id="1ae0:0042", name="Compute Engine Virtual Ethernet [gVNIC]", driver="gve", netdev="eth"
    ),
    "aws-nvme": _nvme(
        "1d0f:cd01", "NVMe SSD Controller", "Amazon EC2 NVMe Instance Storage", 3_840_000_000_000, speed=8, firmware="0"
    ),
    "ebs": _nvme(
        "1d0f:8061", "NVMe EBS Controller", "Amazon Elastic Block Store", 107_374_182_400, speed=None, firmware="1.0"
    ),
    "azure-nvme": _nvme(
        "1414:b111", "", "Microsoft NVMe Direct Disk", 960_197_124_096, speed=None, firmware="NVMDV001"
    ),
    "gcp-nvme": _nvme("1ae0:001f", "NVMe device", "nvme_card", 402_653_184_000, speed=None, firmware="1"),
    "7450": _nvme("1344:51c3", "7450 PRO NVMe SSD", "Micron_7450_MTFDKCC3T8TFR", 3_840_755_982_336, firmware="E2MU200"),
    "p5600": _nvme(
        "8086:0b60",
        "NVMe DC SSD [3DNAND, Sentinel Rock Controller]",
        "INTEL SSDPF2KX038TZ",
        3_840_755_982_336,
        firmware="JCV10100",
    ),
    "pm9a3": _nvme(
        "144d:a80a",
        "NVMe SSD Controller PM9A1/PM9A3/980PRO",
        "SAMSUNG MZQL23T8HCLS-00A07",
        3_840_755_982_336,
        firmware="GDC5902Q",
    ),
    "990pro": _nvme(
        "144d:a80c",
        "NVMe SSD Controller S4LV008[Pascal]",
        "Samsung SSD 990 PRO 2TB",
        2_000_398_934_016,
        firmware="4B2QJXD7",
    ),
    "ahci": Model(
        kind="sata",
        id="8086:a182",
        name="C620 Series Chipset Family SATA Controller (AHCI)",
        driver="ahci",
        product="INTEL SSDSC2KB480G8",
        size=480_103_981_056,
    ),
    "ast": Model(kind="display", id="1a03:2000", name="ASPEED Graphics Family", driver="ast"),
}
