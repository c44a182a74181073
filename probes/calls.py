"""What runs in a child: `python -m linkgauge.probes.calls NAME ARGS` answers in lines of said_lines.py."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

from ..models.said import Said
from ..models.said_lines import encode

# A call is called like its module; this is its function there.
CALLS: Mapping[str, str] = {
    "ethtool": "link_modes",
    "host_memory": "copy",
    "link_load": "sample",
    "statvfs": "free_space",
}


def main() -> None:
    """Answer one call on standard output. The modules of the others, which take as long as an answer, stay out."""
    name, *args = sys.argv[1:]
    call: Callable[..., Iterator[Said]] = getattr(import_module(f".{name}", __package__), CALLS[name])
    for said in call(*args):
        print(encode(said), flush=True)


if __name__ == "__main__":
    main()
