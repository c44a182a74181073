"""The links of GPUs: NVLink and xGMI to switches and peers, NVLink-C2C and xGMI to the processor, and GPU memory.

The topology has one link per physical link. So a report can show a single NVLink that is down, or all links to one
switch. The rated rate is the lower maximum of both ends, even if the link is inactive. An inactive link is trained at
0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from msgspec import Struct
from msgspec.structs import replace

from ..catalog.gpus import Product, product_of
from ..facts.gpu import Gpu, GpuLink
from ..facts.machine import Node, Numa, Pci
from ..facts.merge import Facts, of
from ..facts.pci_classes import kind_of
from ..graph.topology import FABRIC, Link


class _End(Struct, frozen=True):
    """One GPU's end of a link."""

    key: str
    kind: str
    gpu: Gpu
    at: str  # device id of the GPU
    other: str | None  # device id of the other end; None: unknown
    active: bool | None
    rate: float | None
    version: int | None = None  # NVLink's generation


def gpu_links(facts: Facts) -> Mapping[str, Link]:
    """The link of each end, by the key of the end: "gpu0/nvlink7". The two ends of a GPU-to-GPU link share one link.

    Links without another end are left out: ports of a card without a bridge, and peers that this machine does not show.
    """
    functions = of(facts, Pci)
    reported: dict[str, list[GpuLink]] = defaultdict(list)
    for link in of(facts, GpuLink).values():
        reported[link.gpu or link.key.partition("/")[0]].append(link)
    gpus = of(facts, Gpu).values()
    ends = _placed([end for gpu in gpus for end in _ends(gpu, reported[gpu.key], facts)], functions)
    single, between = dict[str, Link](), defaultdict[tuple[str, ...], list[_End]](list)
    for end in ends:
        if end.other is not None and end.other != end.at:
            if _is_gpu(end.other, functions):
                between[(end.kind, *sorted((end.at, end.other)))].append(end)
            else:
                single[end.key] = _link([end])
    for several in between.values():
        first = several[0].at
        near = [end for end in several if end.at == first]
        far = [end for end in several if end.at != first]
        if _down(near) == _down(far):  # then these ends belong together, even if their numbers differ
            near, far = sorted(near, key=_is_down), sorted(far, key=_is_down)
        for pair in zip_longest(near, far):  # drivers do not report which end belongs to which
            both = [end for end in pair if end]
            single.update(dict.fromkeys((end.key for end in both), _link(both)))
    # A search takes the first of equally short routes: NVLink before C2C between two GPUs of one processor.
    return dict(sorted(single.items(), key=lambda item: item[1].b in of(facts, Numa)))


def _down(ends: list[_End]) -> int:
    return sum(map(_is_down, ends))


def _is_down(end: _End) -> bool:
    return end.active is False


def _link(ends: list[_End]) -> Link:
    """One link from its one or two ends. The slower end sets the rate. The link is down if one end is down."""
    rates = [end.rate for end in ends if end.rate is not None]
    states = {end.active for end in ends}
    rate = min(rates, default=None)
    trained = 0.0 if False in states else rate if True in states else None
    first = ends[0]
    # The generation of the link
    grade = f"{first.kind}{first.version or ''}" if first.kind in ("nvlink", "c2c") else first.kind
    return Link(first.key, first.at, str(first.other), first.kind, rate, trained, grade=grade)


def gpu_memory(facts: Facts) -> Iterator[Link]:
    """The memory of each GPU with a known product, even without a driver.

    Not in a virtual machine: without a driver, a slice of a GPU looks like a whole GPU.
    """
    functions, node = of(facts, Pci), of(facts, Node).get("node")
    gpus = {gpu.address if gpu.address in functions else key: gpu for key, gpu in of(facts, Gpu).items()}
    if not (node and node.virtual):
        silent = (key for key in functions if key not in gpus and _is_gpu(key, functions))
        gpus.update((key, Gpu(key=key, address=key)) for key in silent)
    for name, gpu in gpus.items():
        product = product_of(gpu, functions)
        if name and product and product.memory_rate:
            yield Link(f"{name}/memory", name, name, "memory", product.memory_rate, grade=product.memory_kind)


def _ends(gpu: Gpu, reported: Sequence[GpuLink], facts: Facts) -> Iterator[_End]:
    """The ends that the GPU's driver lists. For links that a dump only counts, as many ends without details."""
    functions, numas = of(facts, Pci), of(facts, Numa)
    at = str(gpu.address if gpu.address in functions else gpu.key)
    product = product_of(gpu, functions)
    version = product.link_version if product else None
    kinds = Counter(link.kind for link in reported)
    if not kinds["nvlink"]:
        for number in range(gpu.nvlinks or 0):
            yield _End(f"{gpu.key}/nvlink{number}", "nvlink", gpu, at, FABRIC, None, _rate(gpu, product, None), version)
    home = _home(gpu, functions, numas)
    count = kinds["c2c"] or gpu.c2c_links or 0
    all_c2c = product.c2c_rate if product else None
    c2c = all_c2c / count if all_c2c and count else gpu.c2c_rate
    if not kinds["c2c"]:
        for number in range(count):
            yield _End(f"{gpu.key}/c2c{number}", "c2c", gpu, at, home, True, c2c, version)
    for link in reported:
        to_cpu = link.kind == "c2c" or link.remote_kind == "cpu"
        other = home if to_cpu and link.remote not in functions else _other(link, functions)
        rate = c2c if link.kind == "c2c" else _rate(gpu, product, link)
        yield _End(link.key, link.kind or "nvlink", gpu, at, other, link.active, rate, version or link.version)


def _rate(gpu: Gpu, product: Product | None, link: GpuLink | None) -> float | None:
    """Bytes per second. NVLink speeds are signalling rates, higher and host-dependent; xGMI speeds are data rates."""
    kind = (link.kind if link else None) or "nvlink"
    if product and product.link_rate and product.link_kind == kind:
        return product.link_rate
    return gpu.nvlink_rate if kind == "nvlink" else link.speed if link else None


def _other(link: GpuLink, functions: Mapping[str, Pci]) -> str | None:
    """The function at the other end, or the fabric if an NVLink leads to a device that this machine does not show.

    Containers and virtual machines hide switches, and a rack's switches belong to no node. For a link that is down the
    driver may not know the other end.
    """
    if link.remote in functions:
        return link.remote
    hidden = link.remote_kind == "switch" or (link.remote_kind is None and bool(link.active or link.remote))
    return FABRIC if link.kind == "nvlink" and hidden else None


def _home(gpu: Gpu, functions: Mapping[str, Pci], numas: Mapping[str, Numa]) -> str | None:
    """The NUMA node at the processor end of a link."""
    function = functions.get(gpu.address or "")
    for number in (gpu.numa, function.numa if function else None):
        if (node := numas.get(f"numa{number}")) and node.cpus:
            return node.key
    with_cpus = [name for name, numa in numas.items() if numa.cpus]
    near = [name for name in with_cpus if set(numas[name].cpus or ()) & set(gpu.cpus or ())]
    return near[0] if near else with_cpus[0] if len(with_cpus) == 1 else None


def _placed(ends: list[_End], functions: Mapping[str, Pci]) -> list[_End]:
    """The ends, with the other end of NVLinks that are down, as far as the links that are up determine it."""
    lost = [end for end in ends if end.kind == "nvlink" and end.other is None and end.active is False]
    if not lost:
        return ends
    others = [end.other for end in ends if end.kind == "nvlink" and end.other]
    fabric = any(other == FABRIC or _is_switch(other, functions) for other in others)
    if not others:  # no link is up: only the product remains
        products = [product_of(gpu, functions) for gpu in {end.at: end.gpu for end in lost}.values()]
        fabric = sum(1 for product in products if product and product.fabric) > 1
    places = {end.key: FABRIC for end in lost} if fabric else _mates(lost, ends, functions)
    return [replace(end, other=places.get(end.key)) if end in lost else end for end in ends]


def _mates(lost: list[_End], ends: Iterable[_End], functions: Mapping[str, Pci]) -> dict[str, str]:
    """The peers of links that are down in a machine without switches: pairs of GPUs that both miss links.

    A GPU without any link misses the peers that all others miss. Of the connected pairs, the pair with the fewest links
    comes first: on one board all pairs have equally many links.
    """
    joined = Counter(
        tuple(sorted((end.at, end.other)))
        for end in ends
        if end.kind == "nvlink" and end.other and end.other != end.at and _is_gpu(end.other, functions)
    )
    missing: dict[str, list[_End]] = defaultdict(list)
    for end in lost:
        missing[end.at].append(end)
    for one in [at for at in missing if not any(at in pair for pair in joined)]:  # a GPU without any link
        others = [at for at in missing if any(at in pair for pair in joined)]
        if len(missing[one]) == sum(len(missing[other]) for other in others):
            joined.update(dict.fromkeys(((min(one, other), max(one, other)) for other in others), 0))
    places: dict[str, str] = {}
    while pairs := [pair for pair in joined if missing[pair[0]] and missing[pair[1]]]:
        one, two = min(pairs, key=lambda pair: joined[pair])
        places[missing[one].pop(0).key] = two
        places[missing[two].pop(0).key] = one
        joined[one, two] += 2  # one for each end
    return places


def _is_gpu(name: str, functions: Mapping[str, Pci]) -> bool:
    return name in functions and kind_of(functions[name]) == "gpu"


def _is_switch(name: str, functions: Mapping[str, Pci]) -> bool:
    return name in functions and kind_of(functions[name]) == "nvswitch"
