"""The rates of the probes beside those of PyTorch, on the GPU of this machine: python -m bench.accuracy.copies

The node must be idle. PyTorch copies 256 MiB of pinned memory and 4 GiB inside the GPU, best of three tries of 20
copies. Needs PyTorch and linkgauge[cuda].
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

HOST, INSIDE = 1 << 28, 1 << 32  # bytes
COPIES = 20


def peer() -> dict[str, float]:
    """Bytes per second of each kind of copy with PyTorch, in a process of its own. It frees the GPU when it ends."""
    command = [sys.executable, "-m", "bench.accuracy.copies", "--peer"]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def measure() -> dict[str, float]:
    """The same in this process."""
    import torch  # 2 s, and only for the peer

    def rate(target: Any, source: Any) -> float:
        best = 0.0
        for _ in range(4):  # the first warms up
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(COPIES):
                target.copy_(source, non_blocking=True)
            end.record()
            torch.cuda.synchronize()
            best = max(best, COPIES * source.numel() / (start.elapsed_time(end) / 1e3))
        return best

    host = torch.empty(HOST, dtype=torch.uint8, pin_memory=True).random_(0, 255)
    gpu = torch.empty(HOST, dtype=torch.uint8, device="cuda")
    one, two = (torch.empty(INSIDE, dtype=torch.uint8, device="cuda") for _ in range(2))
    return {"host to GPU": rate(gpu, host), "GPU to host": rate(host, gpu), "inside the GPU": 2 * rate(two, one)}


def ours() -> dict[str, float]:
    """The rates of `linkgauge diagnose` for the first GPU. A copy inside the GPU counts bytes read and written."""
    command = [sys.executable, "-m", "linkgauge", "diagnose", "--level", "full", "--format", "json"]
    report = json.loads(subprocess.run(command, check=False, capture_output=True, text=True).stdout)
    alone = [level for level in report["levels"] if not level["beside"] and level["op"] == "copy" and level["observed"]]
    ends = {"host to GPU": ["numa0", "gpu0"], "GPU to host": ["gpu0", "numa0"], "inside the GPU": ["gpu0"]}
    return {
        name: max(level["observed"] for level in alone if level["ends"] == wanted)
        for name, wanted in ends.items()
        if any(level["ends"] == wanted for level in alone)
    }


def main() -> None:
    """Print both rates of each kind of copy, and their ratio."""
    theirs, mine = peer(), ours()
    print("copy             PyTorch  linkgauge  GB/s   ratio")
    for name, rate in theirs.items():
        seen = mine.get(name)
        print(f"{name:15} {rate / 1e9:8.1f}", f"{seen / 1e9:10.1f} {seen / rate:13.3f}" if seen else "  not measured")


if __name__ == "__main__":
    if sys.argv[1:] == ["--peer"]:
        print(json.dumps(measure()))
    else:
        main()
