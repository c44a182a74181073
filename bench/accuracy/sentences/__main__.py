"""Faults in sentences of people: how many are named, and how many healthy sentences give a false alarm.

    python -m bench.accuracy.sentences [--list] [FOLDER]

A folder has faults.tsv (the codes that fit, a tab, a sentence with a fault) and fine.tsv (one healthy sentence in each
line). The sentences of this folder were written for it by somebody who did not see the catalog; then the catalog got
their words. So they show what a change loses. How many unknown sentences are read, only new ones show. The exit code is
1 if a fault gives `ok`, if less than LEAST of the faults are named, or if more than MOST of the others give a warning.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from linkgauge.models.evaluate import evaluate
from linkgauge.models.inventory.assemble import assemble
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.read import read_text

HERE = Path(__file__).resolve().parent
LEAST, MOST = 0.85, 0.03
_AT = 1795230000.0


def main(arguments: Sequence[str]) -> int:
    """Print the rates. Returns the exit code."""
    shown = "--list" in arguments
    folder = Path(next((one for one in arguments if not one.startswith("-")), str(HERE)))
    faults = [line.split("\t", 1) for line in _lines(folder / "faults.tsv")]
    fine = _lines(folder / "fine.tsv")
    missed, silent = [], []
    for codes, text in faults:
        report = _report(text)
        missed += [] if {one.code for one in report.findings} & {*codes.split(",")} else [f"{codes}: {text}"]
        silent += [text] if report.verdict == "ok" else []
    alarms = [text for text in fine if any(one.severity != "info" for one in _report(text).findings)]
    named = len(faults) - len(missed)
    print(f"faults named: {named} of {len(faults)} ({named / len(faults):.0%}), {len(silent)} of them give ok")
    print(f"false alarms: {len(alarms)} of {len(fine)} ({len(alarms) / len(fine):.1%})")
    for title, texts in (("not named", missed), ("ok", silent), ("false alarm", alarms)) if shown else ():
        print("".join(f"{title}: {text}\n" for text in texts), end="")
    return int(bool(silent) or named < LEAST * len(faults) or len(alarms) > MOST * len(fine))


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]


def _report(text: str) -> Report:
    records = list(read_text("sentence.txt", f"{text}\n", _AT))
    return evaluate(assemble(records, Site(), _AT, origin="dumps"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
