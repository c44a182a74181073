"""Which reader recognises each file of a folder, and what linkgauge reports of the file alone.

    python -m bench.accuracy.recognised FOLDER

One row for each file: its readers with the number of parts that each one reads, the verdict, the findings, and the
first things that could not be checked. A file that linkgauge refuses has the message instead.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from linkgauge.agent.inputs.resolve import from_paths
from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.pipeline.diagnose import diagnose
from linkgauge.agent.pipeline.registry import measure_nothing
from linkgauge.models.report import Report
from linkgauge.models.site.schema import Site
from linkgauge.probes.dumps.core.split import split
from linkgauge.probes.dumps.registry import READERS

_TEXT = 1 << 20  # bytes; a binary file has a NUL among the first of them


def main(folder: str) -> None:
    """Print the table of the files below `folder`."""
    print("file\treaders\tverdict\tfindings\tnot checked")
    for path in sorted(path for path in Path(folder).rglob("*") if path.is_file()):
        print(path.relative_to(folder), *row(path), sep="\t", flush=True)


def row(path: Path) -> Iterator[str]:
    """The cells of one file after its name."""
    yield ", ".join(f"{reader} {count}" for reader, count in _readers(path).items()) or "-"
    try:
        source = from_paths([str(path)])
        report = diagnose(source.host, source.readers, measure_nothing, Site()).report
    except BadInput as refused:
        yield f"refused: {refused}"
        return
    yield report.verdict
    yield "; ".join(_findings(report)) or "-"
    yield "; ".join(f"{gap.subject}: {gap.detail}"[:90] for gap in report.not_checked[:2]) or "-"


def _findings(report: Report) -> Iterator[str]:
    counts = Counter((finding.severity, finding.code) for finding in report.findings)
    for (severity, code), count in counts.items():
        yield f"{severity} {code}" + (f" ({count})" if count > 1 else "")


def _readers(path: Path) -> Counter[str]:
    """The readers of the parts of a text; of an archive: none, its files have readers of their own."""
    data = path.read_bytes()
    if b"\0" in data[:_TEXT]:
        return Counter()
    parts = split(path.name, data.decode("utf-8", "replace"), 0.0, READERS)
    return Counter(reader.name if reader else "unknown lines" for reader, _ in parts)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m bench.accuracy.recognised FOLDER")
    main(sys.argv[1])
