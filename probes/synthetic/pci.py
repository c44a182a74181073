"""The PCI tree of a synthetic node: functions, addresses and names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import count, product
from typing import TypeAlias

from .device_models import Model, models
from .schema import Change, Node, Root

Attached: TypeAlias = "str | Sequence[Attached]"  # below a port: a model, the list below a switch, or "" for nothing


@dataclass(eq=False)
class Function:
    """A PCI function."""

    address: str
    folder: str
    model: Model
    numa: int
    port: Function | None = None  # the upper end of its link
    below: Function | None = None  # for a port: function 0 at the lower end of its link
    physfn: Function | None = None
    names: tuple[str, ...] = ()
    change: Change = Change()
    disks: tuple[str, ...] = ()


def place(node: Node) -> list[Function]:
    """Return all functions of the node, ordered by address. Raises ValueError for conflicts."""
    available = {**models(), **node.model}
    found: dict[str, Function] = {}
    for root in node.root:
        domains = root.domain if isinstance(root.domain, list) else [root.domain]
        for domain, bus in product(domains, root.bus):
            for function in _Root(root, domain, bus, available).functions():
                if function.address in found:
                    raise ValueError(f"two devices are at {function.address}: leave more buses between the roots")
                found[function.address] = function
    functions = [found[address] for address in sorted(found)]
    _name(functions)
    _change(functions, node.device)
    for function in _virtual(functions):
        if function.address in found:
            raise ValueError(f"a virtual function would be at {function.address}, where another device is")
        found[function.address] = function
    return [found[address] for address in sorted(found) if not found[address].change.gone]


class _Root:
    """One PCI root. Buses are numbered depth first, like firmware does."""

    def __init__(self, root: Root, domain: int, bus: int, models: Mapping[str, Model]) -> None:
        self._root, self._domain, self._models = root, domain, models
        self._bus, self._last, self._slots = bus, bus, count(root.slot)

    def functions(self) -> Iterator[Function]:
        """Yield the root ports with everything below them, then the devices on the root bus."""
        folder = f"sys/devices/pci{self._domain:04x}:{self._bus:02x}"
        for attached in (*self._root.ports, *self._root.switches):
            port = self._port(self._root.port, folder, self._bus, next(self._slots))
            yield from (port, *self._below(attached, port))
        for name in self._root.integrated:
            yield from self._device(name, folder, self._bus, next(self._slots), None)

    def _below(self, attached: Attached, port: Function) -> Iterator[Function]:
        """Yield the functions below a port: a device, a switch, a card with its own switch, or nothing."""
        if not isinstance(attached, str):
            yield from self._switch(self._root.switch, [partial(self._below, one) for one in attached], port)
        elif not attached:
            self._next()
        elif own := self._model(attached).switch:
            yield from self._switch(own, [partial(self._card, attached)], port)
        else:
            yield from self._card(attached, port)

    def _card(self, name: str, port: Function) -> Iterator[Function]:
        return self._device(name, port.folder, self._next(), 0, port)

    def _switch(
        self, name: str, below_ports: Sequence[Callable[[Function], Iterator[Function]]], port: Function
    ) -> Iterator[Function]:
        """Yield the upstream port, other functions of its chip, and the downstream ports with the functions below.

        Each function in `below_ports` creates the functions below one downstream port.
        """
        upstream, *others = self._card(name, port)
        yield from (self._is_port(upstream, name), *others)
        inside = self._next()
        for number, below in enumerate(below_ports):
            downstream = self._port(name, upstream.folder, inside, number)
            yield from (downstream, *below(downstream))

    def _port(self, name: str, folder: str, bus: int, slot: int) -> Function:
        return self._is_port(next(self._device(name, folder, bus, slot, None)), name)

    def _is_port(self, function: Function, name: str) -> Function:
        if function.model.kind != "port":
            raise ValueError(f"{name} is a {function.model.kind}, not a port")
        return function

    def _device(self, name: str, folder: str, bus: int, slot: int, port: Function | None) -> Iterator[Function]:
        """Yield the functions of a device. The first is the end of the link."""
        if slot > 31:
            raise ValueError(f"bus {bus:#04x} has no room for a device number {slot}")
        model = self._model(name)
        further = [self._model(model.second)] if model.second else []
        for number, one in enumerate([model] * model.functions + further):
            address = f"{self._domain:04x}:{bus:02x}:{slot:02x}.{number}"
            function = Function(address, f"{folder}/{address}", one, self._root.numa, port)
            if port and port.below is None:
                port.below = function
            yield function

    def _model(self, name: str) -> Model:
        if name not in self._models:
            raise ValueError(f"no model is called {name!r}; there are {', '.join(sorted(self._models))}")
        return self._models[name]

    def _next(self) -> int:
        self._last += 1
        if self._last > 0xFF:
            raise ValueError(f"the root at bus {self._bus:#04x} has no bus left for all of its devices")
        return self._last


def _name(functions: list[Function]) -> None:
    """Give functions the names that drivers use, in address order: gpu0, mlx5_0, eth0 ...

    The port above a device is "gpu0.port". A switch has the name of its upstream port.
    """
    numbers: dict[str, int] = defaultdict(int)
    for function in functions:
        model = function.model
        for prefix in _prefixes(function):
            function.names += (f"{prefix}{numbers[prefix]}",)
            numbers[prefix] += 1
        if model.kind == "nvme":
            function.disks = (f"{function.names[0]}n1",)
        elif model.kind == "sata":
            function.disks = (f"sd{_letters(int(function.names[0][4:]))}",)
    for function in functions:
        if function.port and function.port.below is function:
            function.port.names += tuple(f"{name}.port" for name in (function.address, *function.names))


def _prefixes(function: Function) -> list[str]:
    model = function.model
    if model.kind == "nic":
        return [prefix for prefix in (model.rdma, model.netdev) if prefix]
    if model.kind == "port":
        return ["switch"] if function.port else []
    return [model.kind]


def _letters(number: int) -> str:
    """Convert 0 to "a" and 26 to "aa", like sd_format_disk_name of drivers/scsi/sd.c."""
    text = ""
    while number >= 0:
        text, number = chr(ord("a") + number % 26) + text, number // 26 - 1
    return text


def _change(functions: list[Function], changes: Mapping[str, Change]) -> None:
    by_name = {
        name: function for function in functions for name in (function.address, *function.names, *function.disks)
    }
    changed: dict[Function, str] = {}
    for name, change in changes.items():
        function = by_name.get(name)
        if function is None:
            near = ", ".join(get_close_matches(name, by_name, 5, 0)) or "none at all"
            raise ValueError(f"device {name!r}: there is none; there are, among others, {near}")
        if function in changed:
            raise ValueError(f"device {name!r} is {changed[function]!r}: put all of its changes in one table")
        if change.gone and function.model.kind == "port":
            raise ValueError(f"device {name!r} is a port: take away what hangs on it")
        changed[function] = name
        function.change = change


def _virtual(functions: list[Function]) -> Iterator[Function]:
    """Yield virtual functions, numbered after the physical functions of their device, like SR-IOV with an offset."""
    next_number: dict[str, int] = {}
    for function in functions:
        card = function.address.rpartition(":")[0]
        for _ in range(function.change.vfs):
            number = next_number.setdefault(card, function.model.functions)
            if number > 0xFF:
                raise ValueError(f"{card} has more virtual functions than a bus has numbers")
            next_number[card] += 1
            address = f"{card}:{number >> 3:02x}.{number & 7}"
            folder = f"{function.folder.rpartition('/')[0]}/{address}"
            yield Function(address, folder, models()["connectx-vf"], function.numa, physfn=function)
