"""A described node of any number of PCI functions, for code that must stay fast on the largest machines."""

from __future__ import annotations

_DOMAIN = 15  # roots that fit into the 256 buses of a domain
# functions below a root: a root port, a switch's upstream port, and 14 downstream ports with one device each
_ROOT = 30
_GPUS = 8


def large(functions: int) -> str:
    """The TOML of a machine with two sockets and exactly this number of functions: eight GPUs, a NIC per GPU, and
    disks.
    """
    roots, left = divmod(functions, _ROOT)
    lines = ["[cpu]", "sockets = 2", "cores = 96", "numa_nodes = 4"]
    for number in range(roots):
        devices = ["h100", "connectx7"] if number < _GPUS else ["pm9a3", "pm9a3"]
        lines += _root(number, f"switches = {[[*devices, *['pm9a3'] * 12]]}")
    if left:
        lines += _root(roots, f"ports = {['pm9a3'] * (left // 2)}", f"integrated = {['ast'] * (left % 2)}")
    return "\n".join(lines)


def _root(number: int, *hanging: str) -> list[str]:
    domain, place = divmod(number, _DOMAIN)
    return ["[[root]]", f"domain = {domain}", f"bus = [{place * 17}]", f"numa = {number % 8}", *hanging]
