"""Processors, memory, firmware strings and kernel files of a synthetic node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from .schema import Cpu, Node
from .tree_writer import TreeWriter

_CPUS = "sys/devices/system/cpu"
_NODES = "sys/devices/system/node"
_MOST_CPUS, _MOST_NODES = 2048, 64
_FAR_MEMORY = 80  # distance from a Grace processor to its GPU's memory; for another socket its distance is added


def write_host(tree: TreeWriter, node: Node, taken: int) -> None:
    """Write everything except PCI functions. Raises ValueError for too many CPUs or NUMA nodes."""
    cpus = node.cpu.sockets * node.cpu.cores * node.cpu.threads
    nodes = node.cpu.sockets * node.cpu.numa_nodes + len(node.cpu.memory_only)
    if cpus > _MOST_CPUS or nodes > _MOST_NODES:
        raise ValueError(f"{cpus} CPUs in {nodes} NUMA nodes: {_MOST_CPUS} and {_MOST_NODES} are the most")
    _cpus(tree, node)
    _numa_nodes(tree, node.cpu)
    for number, service in enumerate(node.services):
        tree.put(f"sys/fs/cgroup/system.slice/{service}.service/cgroup.procs", 1000 + number)
    tree.files("proc/sys/kernel", hostname=node.hostname, osrelease=node.kernel)
    dmi = {
        "sys_vendor": node.vendor,
        "product_name": node.product,
        "board_name": node.board,
        "bios_version": node.bios,
        "chassis_asset_tag": node.asset_tag,
    }
    if any(dmi.values()):
        tree.files("sys/devices/virtual/dmi/id", **{name: text for name, text in dmi.items() if text})
        tree.link("sys/class/dmi/id", "sys/devices/virtual/dmi/id")
    if node.instance:
        tree.put(
            "run/cloud-init/instance-data.json", f'{{"ds": {{"meta_data": {{"instance_type": "{node.instance}"}}}}}}'
        )
    tree.put("proc/uptime", f"{node.uptime}.00 {node.uptime}.00")
    tree.put("proc/stat", f"btime {taken - node.uptime}")
    tree.put(
        "dev/kmsg",
        "\n".join(
            f"{record.priority},{number},{int(record.at * 1e6)},-;{record.text}"
            for number, record in enumerate(node.log)
        ),
    )


def _cpus(tree: TreeWriter, node: Node) -> None:
    """Write the CPUs, numbered by socket and core: first all first threads, then all second threads."""
    cpu = node.cpu
    cores = cpu.sockets * cpu.cores
    number_of_cpus = cores * cpu.threads
    everything = listed(range(number_of_cpus))
    tree.files(_CPUS, online=everything, present=everything, possible=everything)
    tree.put(f"{_CPUS}/smt/control", "on" if cpu.threads > 1 else "notsupported")
    flags = "fpu vme de pse tsc msr pae mce cx8 apic sep" + " hypervisor" * node.virtual
    packages = [listed(_of_socket(cpu, socket)) for socket in range(cpu.sockets)]
    blocks = []
    for number in range(number_of_cpus):
        socket, core = divmod(number % cores, cpu.cores)
        siblings = listed(range(number % cores, number_of_cpus, cores))
        tree.files(
            f"{_CPUS}/cpu{number}/topology",
            physical_package_id=socket,
            core_id=core,
            die_id=0,
            package_cpus_list=packages[socket],
            core_siblings_list=packages[socket],
            core_cpus_list=siblings,
            thread_siblings_list=siblings,
        )
        if cpu.vendor.startswith("0x"):  # show_cpuinfo of arch/arm64/kernel/cpuinfo.c
            blocks.append(f"processor\t: {number}\nCPU implementer\t: {cpu.vendor}\nCPU part\t: {cpu.model}")
            continue
        blocks.append(
            f"processor\t: {number}\nvendor_id\t: {cpu.vendor}\nmodel name\t: {cpu.model}\nphysical id\t: {socket}\n"
            f"siblings\t: {cpu.cores * cpu.threads}\ncore id\t\t: {core}\ncpu cores\t: {cpu.cores}\nflags\t\t: {flags}"
        )
    tree.put("proc/cpuinfo", "\n\n".join(blocks))


def _numa_nodes(tree: TreeWriter, cpu: Cpu) -> None:
    """Write the NUMA nodes of the sockets, then nodes without CPUs, like on Grace machines."""
    usual = cpu.sockets * cpu.numa_nodes
    numbers = range(usual + len(cpu.memory_only))
    tree.files(_NODES, online=listed(numbers), possible=listed(numbers))
    for number in numbers:
        socket, part = divmod(number, cpu.numa_nodes)
        cores = range(part * cpu.cores // cpu.numa_nodes, (part + 1) * cpu.cores // cpu.numa_nodes)
        cpus = [n for n in _of_socket(cpu, socket) if n % cpu.cores in cores] if number < usual else []
        memory = cpu.memory if number < usual else cpu.memory_only[number - usual]
        kilobytes = memory >> 10
        tree.files(
            f"{_NODES}/node{number}",
            cpulist=listed(cpus),
            distance=" ".join(str(_distance(cpu, number, other)) for other in numbers),
            meminfo=f"Node {number} MemTotal:       {kilobytes} kB\nNode {number} MemFree:        {kilobytes // 2} kB",
        )


def _distance(cpu: Cpu, one: int, other: int) -> int:
    """Return the distance of two nodes; 10 is local (ACPI specification, System Locality Information Table)."""
    if one == other:
        return 10
    same_socket = _socket(cpu, one) == _socket(cpu, other)
    if max(one, other) >= cpu.sockets * cpu.numa_nodes:
        return _FAR_MEMORY if same_socket else _FAR_MEMORY + cpu.far
    return cpu.near if same_socket else cpu.far


def _socket(cpu: Cpu, number: int) -> int:
    """Return the socket of a NUMA node."""
    extra = number - cpu.sockets * cpu.numa_nodes
    return number // cpu.numa_nodes if extra < 0 else extra * cpu.sockets // len(cpu.memory_only)


def _of_socket(cpu: Cpu, socket: int) -> list[int]:
    """Return the CPUs of a socket, in order."""
    cores = cpu.sockets * cpu.cores
    first = range(socket * cpu.cores, (socket + 1) * cpu.cores)
    return [thread * cores + core for thread in range(cpu.threads) for core in first]


def listed(numbers: Sequence[int]) -> str:
    """Format numbers like the kernel's lists of CPUs and nodes: "0-3,8"."""

    def runs() -> Iterator[str]:
        for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
            first, *rest = (number for _, number in run)
            yield f"{first}-{rest[-1]}" if rest else str(first)

    return ",".join(runs())
