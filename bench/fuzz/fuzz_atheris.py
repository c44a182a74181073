"""One reader of dumps, fuzzed with coverage. bench/fuzz/fuzz.py --engine atheris starts it for each reader.

python -m bench.fuzz.fuzz_atheris READER SECONDS SEED FOLDER; an input that fails is kept in the folder, and ends it.
"""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LONGEST = 16_000  # bytes of an input
SLOW = 10  # seconds for one input


def main(name: str, seconds: str, seed: str, folder: str) -> None:
    """Fuzz until the time is over."""
    atheris: Any = import_module("atheris")
    with atheris.instrument_imports(include=["linkgauge.probes"]):
        import_module("linkgauge.probes.dumps.core.archives")
        families = import_module("linkgauge.probes.dumps.registry").READERS
    samples, checks, archives = map(
        import_module, ("tests.support.samples", "bench.fuzz.fuzz_checks", "bench.fuzz.fuzz_archives")
    )
    family = next((one for one in families if one.name == name), None)
    if family:
        seeds = [text.encode()[:LONGEST] for text in samples.samples()[name]]
    else:
        make = archives.Archives(int(seed)).number
        seeds = [content for number in range(300) if len(content := make(number)[0]) <= LONGEST]

    def one(data: bytes) -> None:
        if family:
            checks.check(family, data.decode("utf-8", "replace"), False, False)
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
