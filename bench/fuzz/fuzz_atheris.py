"""Coverage-guided fuzzing of one dump reader. bench/fuzz/fuzz.py --engine atheris starts this program per reader.

python -m bench.fuzz.fuzz_atheris READER SECONDS SEED FOLDER. The first failed input ends it and is kept in the folder.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

NEEDED = ("tests.support.samples", "bench.fuzz.fuzz_checks", "bench.fuzz.fuzz_archives")
LONGEST = 16_000  # bytes per input
SLOW = 10  # seconds for one input


def main(name: str, seconds: str, seed: str, folder: str) -> None:
    """Fuzz until the time is over."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["linkgauge.probes"]):
        import_module("linkgauge.probes.dumps.core.archives")
        readers = import_module("linkgauge.probes.dumps.registry").READERS
    samples, checks, archives = map(import_module, NEEDED)
    reader = next((one for one in readers if one.name == name), None)
    if reader:
        seeds = [text.encode()[:LONGEST] for text in samples.samples()[name]]
    else:
        make = archives.Archives(int(seed)).number
        seeds = [content for number in range(300) if len(content := make(number)[0]) <= LONGEST]

    def one(data: bytes) -> None:
        if reader:
            checks.check(reader, data.decode("utf-8", "replace"), False, False)
        else:
            archives.check(data)

    with tempfile.TemporaryDirectory() as corpus:
        for number, content in enumerate(seeds):
            (Path(corpus) / str(number)).write_bytes(content)
        options = [
            f"-max_total_time={seconds}",
            f"-seed={seed}",
            f"-max_len={LONGEST}",
            f"-timeout={SLOW}",
            f"-artifact_prefix={folder}/{name}-",
            "-print_final_stats=1",
            "-rss_limit_mb=4096",
        ]
        atheris.Setup([name, *options, corpus], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
