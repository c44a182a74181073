"""Described nodes of any number of PCI functions, and of 8 GPUs with 16 NICs, of 16 GPUs and of 72 GPUs: code must stay
fast and pictures readable on the largest machines.
"""

from __future__ import annotations

from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.synthetic.build import build

from .described import FOLDER

_DOMAIN = 15  # roots that fit into the 256 buses of a domain
# functions below a root: a root port, a switch's upstream port, and 14 downstream ports with one device each
_ROOT = 30
_GPUS = 8
_HEAD = 'hostname = "{name}"\n[cpu]\nsockets = 2\ncores = 64\nmodel = "Intel(R) Xeon(R) Platinum 8480C"\n'


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


def wide() -> Recorded:
    """8 GPUs, 16 NICs and 8 NVMe disks behind four switches of two sockets."""
    text = (FOLDER / "hgx-h100.toml").read_text()
    return build(text.replace('"connectx7", "pm9a3"', '"connectx7", "connectx7", "pm9a3"'))


def sixteen() -> Recorded:
    """16 GPUs behind eight switches of two sockets, with a NIC at each switch."""
    lines = [_HEAD.format(name="sixteen")]
    for number in range(8):
        lines.append(
            f'[[root]]\nbus = [{number * 32}]\nnuma = {number // 4}\nswitches = [["h100", "h100", "connectx7"]]'
        )
    return build("\n".join(lines))


def seventy_two() -> Recorded:
    """72 GPUs behind eighteen switches of two sockets."""
    lines = [_HEAD.format(name="seventy-two")]
    for number in range(18):
        place = f"domain = {number // 9}\nbus = [{number % 9 * 28}]\nnuma = {number // 9}"
        lines.append(f'[[root]]\n{place}\nswitches = [["h100", "h100", "h100", "h100"]]')
    return build("\n".join(lines))
