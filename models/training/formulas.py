"""The formulas of collectives, networks and rooflines by name, for `linkgauge formula`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ..bandwidth import collectives
from ..facts.pcie_rates import rated, speed_of
from . import cluster_fabric as fabric
from . import roofline


def pcie_rate(generation: int, lanes: int = 16) -> float:
    """The rate of a PCIe link after its encoding (PCI Express Base Specification)."""
    return rated(speed_of(generation), lanes)


# What each parameter means. "flops", "memory_rate", "rate" and "inside" are known for a machine type.
PARAMETERS = {
    "active": "experts that process a token",
    "batch": "tokens of the batch",
    "chosen": "GPUs that receive a part",
    "chunks": "pieces of the array",
    "columns": "columns of the second matrix",
    "experts": "experts of a layer",
    "flops": "compute rate of a GPU, FLOP/s",
    "generation": "PCIe generation, 1 to 7",
    "gpus": "number of GPUs",
    "gradients": "bytes of a gradient",
    "inner": "columns of the first matrix",
    "inside": "GPUs of a node",
    "interleave": "parts of the model in a stage",
    "lanes": "PCIe lanes",
    "memory_rate": "rate of a GPU's memory, bytes/s",
    "micro_batches": "micro-batches in a step",
    "model": "width of the model",
    "numbers": "length of the vectors",
    "op": "operation as in linkgauge collective",
    "optimizer": "bytes of the optimizer for a parameter",
    "parameters": "parameters of the model",
    "port_rate": "rate of a port, bytes/s",
    "ports": "ports of a switch",
    "ranks": "GPUs of the group",
    "rate": "rate of a GPU, beyond a node of a node, bytes/s",
    "recompute": "1: repeat the forward pass",
    "rows": "rows of the first matrix",
    "seconds": "time",
    "shape": "GPUs along each axis: 4x4",
    "size": "bytes of the array",
    "stage": "ZeRO stage, 0 to 3",
    "stages": "pipeline stages",
    "step": "seconds of a message of a few bytes",
    "switches": "number of switches",
    "tokens": "tokens",
    "utilisation": "share of the compute rate that is reached",
    "weights": "bytes of a weight",
    "width": "width of the feed-forward layers; of a kernel: bytes of a number",
}
_UNITS: Mapping[Callable[..., Any], tuple[str, ...]] = {
    collectives.all_gather: ("s",),
    collectives.reduce_scatter: ("s",),
    collectives.all_reduce: ("s",),
    collectives.all_reduce_tree: ("s",),
    collectives.all_reduce_in_network: ("s",),
    collectives.all_to_all: ("s",),
    collectives.all_to_all_sparse: ("s",),
    collectives.broadcast: ("s",),
    collectives.send_receive: ("s",),
    collectives.distinct: ("of the GPUs",),
    collectives.bus_bandwidth: ("bytes/s",),
    fabric.nvswitch_rates: ("bytes/s of all switches", "bytes/s that the GPUs can use"),
    fabric.torus_bisection: ("bytes/s in one direction",),
    fabric.torus_all_gather: ("s",),
    fabric.torus_all_to_all: ("s",),
    pcie_rate: ("bytes/s in one direction",),
    roofline.critical_tokens: ("tokens of a GPU",),
    roofline.critical_tokens_two_nodes: ("tokens of a GPU",),
    roofline.tensor_limit: ("GPUs",),
    roofline.tensor_width_two_nodes: ("width of the feed-forward layers",),
    roofline.expert_times: ("s of compute", "s of messages"),
    roofline.expert_width: ("width of the feed-forward layers",),
    roofline.pipeline_time: ("s",),
    roofline.bubble: ("of the step",),
    roofline.train_flops: ("FLOP",),
    roofline.train_seconds: ("s",),
    roofline.state_bytes: ("bytes of a GPU",),
    roofline.state_traffic: ("times the traffic of an AllReduce",),
    roofline.intensity: ("FLOP of a byte",),
    roofline.matmul_time: ("s",),
    roofline.add_time: ("s",),
}
FORMULAS = {function.__name__: function for function in _UNITS}


class Result(Struct, frozen=True):
    """The values of a formula with their units, and the values of its parameters."""

    formula: str
    values: tuple[float, ...]
    units: tuple[str, ...]
    given: Mapping[str, object]


def computed(name: str, given: Mapping[str, str], known: Mapping[str, float]) -> Result:
    """The formula with the given texts, else the known values, else its defaults. ValueError: a text that is no value,
    or a value that is missing.
    """
    function = FORMULAS[name]
    accepted = inspect.signature(function).parameters
    if unknown := sorted(set(given) - set(accepted)):
        raise ValueError(f"{unknown[0]} is no parameter of {name}; write {', '.join(accepted)}")
    values: dict[str, Any] = {}
    missing = []
    for key, parameter in accepted.items():
        if key in given:
            values[key] = _value(key, given[key], str(parameter.annotation))
        elif key in known:
            values[key] = known[key]
        elif parameter.default is not inspect.Parameter.empty:
            values[key] = parameter.default
        else:
            missing.append(key)
    if missing:
        meanings = "; ".join(f"{key}=... ({PARAMETERS[key]})" for key in missing)
        hint = ", or --machine nvidia-dgx-h100" if {"flops", "memory_rate", "rate"} & {*missing} else ""
        raise ValueError(f"{name} needs {meanings}{hint}")
    try:
        found = function(**values)
    except (ZeroDivisionError, OverflowError, KeyError, IndexError):
        raise ValueError(f"{name} has no value for these parameters: numbers must be above 0") from None
    return Result(name, found if isinstance(found, tuple) else (found,), _UNITS[function], values)


def text_of(name: str) -> str:
    """What the formula computes, as one paragraph."""
    return " ".join((inspect.getdoc(FORMULAS[name]) or "").split("\n\n")[0].split())


_POWERS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "p": 1e15}


def _value(key: str, text: str, annotation: str) -> Any:
    """ "990T" is 990e12, "64Mi" is 64 x 2^20. ValueError: not a number."""
    if annotation == "str":
        return text
    if annotation == "Sequence[int]":
        return tuple(int(_number(key, part)) for part in text.split("x"))
    number = _number(key, text)
    return number if annotation == "float" else int(number)


def _number(key: str, text: str) -> float:
    plain = text.strip().lower()
    try:
        if plain.endswith("i"):
            return float(float(plain[:-2]) * 1024 ** (" kmgtp".index(plain[-2])))
        return float(plain[:-1]) * _POWERS[plain[-1]] if plain[-1:] in _POWERS else float(plain)
    except (ValueError, IndexError):
        raise ValueError(f"{key}={text}: not a number: write 4096, 990T, 450G, 64Mi or 4e6") from None
