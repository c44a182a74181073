"""A line that names a fault, anywhere in the healthy output of a tool: the text is never ok."""

from __future__ import annotations

from random import Random

import pytest

from linkgauge.models.catalog.log_messages import KERNEL, PROGRAMS, SAID, Said, entries, message
from tests.support.texts import report_of

NVLINK = "".join(
    f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-{gpu}a0b)\n"
    + "".join(f"\t Link {link}: 26.562 GB/s\n" for link in range(18))
    for gpu in range(4)
)
PORT = (
    "CA 'mlx5_{0}'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n"
    "\t\tRate: 400\n\t\tBase lid: {0}\n\t\tSM lid: 1\n\t\tLink layer: InfiniBand\n"
)
PORTS = "".join(PORT.format(number) for number in range(4))
ARRAY = (
    "Personalities : [raid1]\nmd0 : active raid1 nvme1n1[1] nvme0n1[0]\n      937560384 blocks super 1.2 [2/2] [UU]\n"
)
LINK = (
    "17:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)\n"
    "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n\t\tLnkSta:\tSpeed 32GT/s, Width x16\n"
)
HEALTHY = (NVLINK, PORTS, ARRAY, LINK)
FILES = (*KERNEL, *PROGRAMS, *SAID)


@pytest.mark.parametrize("text", HEALTHY, ids=("nvlink", "ports", "array", "link"))
def test_the_outputs_alone_are_ok(text: str) -> None:
    assert report_of(text).verdict == "ok"


@pytest.mark.parametrize("file", FILES)
def test_a_line_with_a_fault_prevents_ok(file: str) -> None:
    chance, silent = Random(file), []
    for row in (message(entry.name) for entry in entries(file)):
        if not row.code or row.severity == "info" or row.needs:
            continue  # alone, it does not say that something is wrong
        text = chance.choice(HEALTHY)
        lines = text.split("\n")
        place = chance.randrange(len(lines))
        said = ["", row.examples[0], ""] if isinstance(row, Said) else [row.example]
        if report_of("\n".join([*lines[:place], *said, *lines[place:]])).verdict == "ok":
            silent.append((row.name, text[:20], place))
    assert silent == []
