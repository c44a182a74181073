"""The path type that NCCL finds between two devices of a topology file. NCCL's own rules over the XML, independent of
our code.

After ncclTopoGetSystemFromXml (src/graph/topo.cc) and ncclTopoSetPaths (src/graph/paths.cc) of NVIDIA/nccl: a
breadth-first search from each device that keeps the widest of the paths with equally few hops. NCCL's later steps (PXN,
P2C, detours without peer access) depend on the permissions of a job, not on the topology.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

ORDER = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS")
# Tenths of a Gb/s per lane, by the beginning of the text: kvDictPciGen.
LANES = {
    "2.5 GT/s": 15,
    "5 GT/s": 30,
    "8 GT/s": 60,
    "16 GT/s": 120,
    "32 GT/s": 240,
    "5.0 GT/s PCIe": 30,
    "8.0 GT/s PCIe": 60,
    "16.0 GT/s PCIe": 120,
    "32.0 GT/s PCIe": 240,
    "64.0 GT/s PCIe": 480,
}
# GB/s of one link (A100; MI200 in RCCL's topo.h), between processors, and within a device.
NVLINK, XGMI, SOCKETS, LOCAL = 20.0, 36.0, 10.0, 5000.0


@dataclass(frozen=True)
class Step:
    """A link, from one of its ends."""

    kind: str  # NVL, C2C, PCI, SYS
    to: str
    rate: float


@dataclass
class Graph:
    """NCCL's graph of the elements."""

    kinds: dict[str, str] = field(default_factory=dict)  # GPU, PCI, CPU, NIC, NVS
    steps: dict[str, list[Step]] = field(default_factory=lambda: defaultdict(list))

    def join(self, a: str, b: str, kind: str, rate: float) -> None:
        self.steps[a].append(Step(kind, b, rate))
        self.steps[b].append(Step(kind, a, rate))


def paths(system: Element, bridged: bool = True) -> dict[tuple[str, str], str]:
    """The path types between all GPUs and NICs of different cards.

    `bridged`: a GPU may be between two others (NCCL_NVB_DISABLE=0).
    """
    graph = build(system)
    ends = [name for name, kind in graph.kinds.items() if kind in ("GPU", "NIC")]
    found: dict[tuple[str, str], str] = {}
    for here in ends:
        reached = search(graph, here, bridged)
        others = [there for there in ends if there in reached and there[:-2] != here[:-2]]
        found.update({(here, there): reached[there] for there in others})
    return found


def build(system: Element) -> Graph:
    graph = Graph()
    cpus = system.findall("cpu")
    for number, cpu in enumerate(cpus):
        graph.kinds[f"cpu{number}"] = "CPU"
        for pci in cpu.findall("pci"):
            hang(graph, pci, f"cpu{number}")
    for one in range(len(cpus)):
        for other in range(one):
            graph.join(f"cpu{one}", f"cpu{other}", "SYS", SOCKETS)
    for number, cpu in enumerate(cpus):
        for pci in cpu.iter("pci"):
            for gpu in pci.findall("gpu"):
                link(graph, pci.attrib["busid"], gpu, f"cpu{number}")
    return graph


def hang(graph: Graph, pci: Element, above: str) -> None:
    """Add an element below its parent.

    In files without classes, an element with children is a switch; NCCL then reads classes from sysfs.
    """
    name, below, code = pci.attrib["busid"], pci.findall("pci"), pci.get("class", "")
    switch = code.startswith("0x0604") or (not code and below)
    graph.kinds[name] = "PCI" if switch else "GPU" if code.startswith(("0x03", "0x12")) else "NIC"
    lanes = int(pci.get("link_width") or 0) or 16
    speed = next((rate for text, rate in LANES.items() if pci.get("link_speed", "").startswith(text)), 60)
    graph.join(name, above, "PCI", lanes * speed / 80)
    for further in below:
        hang(graph, further, name)


def link(graph: Graph, name: str, gpu: Element, cpu: str) -> None:
    """Add a link. Each side of a link to another GPU has its own element; all switches are one device."""
    for nvlink in (*gpu.findall("nvlink"), *gpu.findall("xgmi")):
        rate = (NVLINK if nvlink.tag == "nvlink" else XGMI) * int(nvlink.attrib["count"])
        if nvlink.attrib["tclass"].startswith(("0x03", "0x12")):
            if graph.kinds.get(nvlink.attrib["target"]) == "GPU":
                graph.steps[name].append(Step("NVL", nvlink.attrib["target"], rate))
        else:
            graph.kinds["nvs"] = "NVS"
            graph.join(name, "nvs", "NVL", rate)
    for c2c in gpu.findall("c2c"):
        graph.join(name, cpu, "C2C", int(c2c.attrib["bw"]) * int(c2c.attrib["count"]) / 1000)


def search(graph: Graph, base: str, bridged: bool) -> dict[str, str]:
    count, rate, kind = {base: 0}, {base: LOCAL}, {base: "LOC"}
    front = [base]
    while front:
        further: list[str] = []
        for here in front:
            for step in graph.steps[here]:
                through_gpu = here != base and graph.kinds[here] == "GPU"
                bridge = bridged and step.kind == "NVL" and graph.kinds[step.to] == "GPU" and count[here] <= 1
                if through_gpu and not bridge:
                    continue
                width = min(rate[here], step.rate)
                if (step.to not in rate or count[step.to] > count[here]) and rate.get(step.to, 0) < width:
                    count[step.to], rate[step.to] = count[here] + 1, width
                    kind[step.to] = max(kind[here], type_of(graph, here, step, kind[here], count), key=ORDER.index)
                    further += [step.to] if step.to not in further else []
        front = further
    return kind


def type_of(graph: Graph, here: str, step: Step, so_far: str, count: dict[str, int]) -> str:
    ends = {graph.kinds[here], graph.kinds[step.to]}
    if step.kind == "PCI":
        return "PHB" if "CPU" in ends else "PXB" if ends == {"PCI"} else "PIX"
    if step.kind == "NVL" and graph.kinds[here] == "GPU" and so_far == "NVL" and count[step.to] > 1:
        return "NVB"
    return step.kind
