"""Growth of the whole chain, from a log to a report: python -m bench.cost.chain [--lines N]

Logs whose lines are all different events: Xids of one GPU, Xids of many GPUs, AER messages, disks. The chain reads,
assembles, evaluates and writes the report as text and JSON. The exit code is 1 if four times as many lines take more
than six times as long.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping

from linkgauge.exporters.formats.json import as_json
from linkgauge.exporters.text.report import as_text
from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

STAGES = ("read", "assemble", "evaluate", "text", "json")
MOST_GROWTH = 6.0  # times as long for four times as many lines
NOW = 1795230000.0


def _function(number: int) -> str:
    return f"0000:{number % 256:02x}:{number // 256 % 32:02x}"


LOGS: Mapping[str, Callable[[int], str]] = {
    "Xids of one GPU": lambda n: f"NVRM: Xid (PCI:0000:53:00): {n}, pid={n}, something",
    "Xids of many GPUs": lambda n: f"NVRM: Xid (PCI:{_function(n)}): {n // 8192 + 31 + n % 90}, pid={n}, something",
    "AER": lambda n: f"pcieport {_function(n)}.{n // 8192 % 8}: AER: Corrected error received: {_function(n)}.0",
    "disks": lambda n: f"nvme nvme{n}: I/O 1 QID 2 timeout, aborting",
}


def seconds(line: Callable[[int], str], count: int) -> dict[str, float]:
    """The processor seconds of each stage for this number of lines."""
    text = "".join(f"[{number}.123456] {line(number)}\n" for number in range(count))
    marks = [time.process_time()]
    records = list(read_text("log", text, NOW))
    marks.append(time.process_time())
    snapshot = assemble(records, Site(), NOW, origin="dumps")
    marks.append(time.process_time())
    report = evaluate(snapshot)
    marks.append(time.process_time())
    as_text(report, colour=False)
    marks.append(time.process_time())
    as_json(report)
    marks.append(time.process_time())
    return {stage: after - before for stage, before, after in zip(STAGES, marks, marks[1:], strict=False)}


def main(arguments: argparse.Namespace) -> int:
    """Print the table. Returns the exit code."""
    failed = False
    print(f"{'log':20} {'lines':>7} " + " ".join(f"{stage:>9}" for stage in STAGES) + "     total  growth")
    for name, line in LOGS.items():
        before = 0.0
        for count in (arguments.lines // 16, arguments.lines // 4, arguments.lines):
            took = seconds(line, count)
            total = sum(took.values())
            growth = f"{total / before:6.1f}x" if before else ""
            failed |= before > 0.1 and total > MOST_GROWTH * before
            cells = " ".join(f"{took[stage]:7.2f} s" for stage in STAGES)
            print(f"{name:20} {count:7} {cells} {total:7.2f} s {growth}", flush=True)
            before = total
    return int(failed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--lines", type=int, default=50_000)
    sys.exit(main(parser.parse_args()))
