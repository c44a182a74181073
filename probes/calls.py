"""What runs in a child: `python -m linkgauge.probes.calls NAME ARGS` answers in lines of said_lines.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping

from ..models.said import Said
from ..models.said_lines import encode
from . import ethtool, host_memory, link_load, statvfs

CALLS: Mapping[str, Callable[..., Iterator[Said]]] = {
    "ethtool": ethtool.link_modes,
    "host_memory": host_memory.copy,
    "link_load": link_load.sample,
    "statvfs": statvfs.free_space,
}


def main() -> None:
    """Answer one call on standard output."""
    name, *args = sys.argv[1:]
    for said in CALLS[name](*args):
        print(encode(said), flush=True)


if __name__ == "__main__":
    main()
