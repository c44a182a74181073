"""A web server over a recorded node in a process of its own, for measurements.

    python tests/support/programs/web_process.py

It writes its port, serves until its standard input ends, and then writes its peak memory in bytes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from linkgauge.agent.web.server import serving
from linkgauge.models.site.gate import Gate
from tests.support.programs.web_clients import pages_of


def main(config: str | None = None, detail: str = "") -> None:
    pages = pages_of()
    if detail:
        pages.configure({}, detail, Gate())
    with serving("127.0.0.1:0", pages, config) as server:
        print(server.address[1], flush=True)
        sys.stdin.read()
    # Not getrusage, which returns the parent's value if that was larger at the start of this process.
    (most,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(int(most) << 10, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
