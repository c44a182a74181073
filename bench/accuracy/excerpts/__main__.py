"""What excerpts of outputs keep: python -m bench.accuracy.excerpts [--readers PATTERN] [--transformations PATTERN]
[--list N] [--seed N]

Each sample of the readers (tests/probes/dumps/samples) is transformed as people and programs change outputs: frames,
layouts, pieces, damage. The readers must get the same facts from the result, or name a gap. They must get no other fact
and no new finding. The columns of the tables are:

- facts: facts of the whole outputs for which the excerpts have the information: each line without which the whole
  output does not have the fact (its own line, the heading of its column, the line of its device). Damage has none.
- kept: the share of these facts that the readers get from the excerpts.
- bare: facts whose own line is in an excerpt, without a line that they need; kept: the share with a device without a
  name.
- wrong: facts that the whole output does not have; wrong.py has the definition.
- new: findings that the whole output does not have, or has with a lower severity; compare.py has the definition.
  certain: critical and certain ones.
- silent: samples of which facts are lost without a gap. blind: excerpts that have all lines of a fault, and whose
  verdict is ok.

exceptions.toml lists the wrong facts and new findings that are known, each with its reason.
The exit code is 1 if a number is beyond the limits in this file, without these.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from random import Random

import tomli
from msgspec import Struct
from msgspec.structs import replace

from bench.accuracy.excerpts.compare import Result, compare, together
from bench.accuracy.excerpts.damage import DAMAGE
from bench.accuracy.excerpts.excerpt import Sample, Transformation
from bench.accuracy.excerpts.exports import EXPORTS
from bench.accuracy.excerpts.frames import FRAMES
from bench.accuracy.excerpts.layout import LAYOUTS
from bench.accuracy.excerpts.pieces import PIECES
from bench.accuracy.excerpts.reading import read
from linkgauge.models.report import Finding
from tests.support.dump_samples import CHANGES, SAMPLES, outputs, sample_files

TRANSFORMATIONS: tuple[Transformation, ...] = (*FRAMES, *EXPORTS, *LAYOUTS, *PIECES, *DAMAGE)
LEAST_KEPT = 0.98
BLIND = "blind"  # the text of an exception for a verdict
COLUMNS = ("facts", "kept", "bare", "kept", "wrong", "new", "certain", "silent", "blind")


class Row(Struct, frozen=True):
    """One sample under one transformation."""

    sample: Sample
    transformation: Transformation
    result: Result


def samples(pattern: str = "*") -> list[Sample]:
    """The samples of the readers whose name matches. Samples without a fact show nothing here."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for path in sample_files():
        if not path.name.endswith(CHANGES):
            reader = path.relative_to(SAMPLES).parts[1]
            for output in outputs(path):
                found[reader][f"{path.stem}: {output.name}"] = output.text.rstrip("\n") + "\n"
    return [
        Sample(reader, name, text, tuple(other for other in texts.values() if other != text))
        for reader, texts in sorted(found.items())
        if fnmatchcase(reader, pattern)
        for name, text in texts.items()
        if read((text,)).atoms
    ]


def rows(every: Iterable[Sample], pattern: str = "*", seed: int = 1) -> Iterator[Row]:
    """Each sample under each transformation whose name matches and that fits it."""
    for sample in every:
        for one in TRANSFORMATIONS:
            if fnmatchcase(one.name, pattern):
                chance = Random(f"{seed} {one.name} {sample.reader} {sample.name}")
                results = [compare(sample, excerpt, one.kind) for excerpt in one.make(sample, chance)]
                if results:
                    yield Row(sample, one, together(results))


def counts(several: Iterable[Row]) -> Counter[str]:
    """The sums of some rows."""
    total: Counter[str] = Counter()
    for row in several:
        result, damage = row.result, row.transformation.kind == "damage"
        total["samples"] += 1
        total["facts"] += 0 if damage else len(result.present)
        total["facts kept"] += 0 if damage else len(result.present & result.kept)
        total["bare"] += 0 if damage else len(result.bare)
        total["bare kept"] += 0 if damage else len(result.bare & result.kept)
        total["wrong"] += len(result.wrong)
        total["new"] += len({(one.code, one.subject) for one in result.new})
        total["certain"] += sum(map(_grave, result.new))
        total["silent"] += result.silent
        total["blind"] += result.blind
    return total


def _grave(one: Finding) -> bool:
    return one.severity == "critical" and one.confidence == "certain"


def table(every: Sequence[Row], by: str) -> Iterator[str]:
    """The sums by reader or by transformation."""
    names = [row.sample.reader for row in every] if by == "reader" else [one.name for one in TRANSFORMATIONS]
    groups: dict[str, list[Row]] = {name: [] for name in names}
    for row in every:
        groups[row.sample.reader if by == "reader" else row.transformation.name].append(row)
    yield f"{by:30} samples " + " ".join(f"{column:>7}" for column in COLUMNS)
    for name, group in (*((name, some) for name, some in groups.items() if some), ("total", every)):
        total = counts(group)
        shares = [_share(total[f"{column} kept"], total[column]) for column in ("facts", "bare")]
        cells = [total["facts"], shares[0], total["bare"], shares[1]]
        cells += [total[column] for column in COLUMNS[4:]]
        yield f"{name[:30]:30} {total['samples']:7} " + " ".join(f"{cell or '-':>7}" for cell in cells)


def _share(part: int, whole: int) -> str:
    return f"{part / whole * 100:.1f}%" if whole else "-"


def matrix(every: Sequence[Row]) -> Iterator[str]:
    """Readers x transformations: percent of the facts kept, with * if a fact is wrong and ! if a finding is new."""
    used = {row.transformation.name for row in every}
    names = [one.name for one in TRANSFORMATIONS if one.name in used]
    yield from (f"{number:3} {name}" for number, name in enumerate(names, 1))
    cells: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in every:
        cells[row.sample.reader, row.transformation.name].append(row)
    yield f"\n{'':16}" + "".join(f"{number:>5}" for number in range(1, len(names) + 1))
    for reader in dict.fromkeys(row.sample.reader for row in every):
        yield f"{reader:16}" + "".join(f"{_cell(cells.get((reader, name), ())):>5}" for name in names)


def _cell(several: Sequence[Row]) -> str:
    total = counts(several)
    marks = ("*" if total["wrong"] else "") + ("!" if total["new"] else "")
    kept = str(total["facts kept"] * 100 // total["facts"]) if total["facts"] else "."
    return f"{kept}{marks}"


def exceptions(every: Iterable[Row], most: int) -> Iterator[str]:
    """For each row with a defect: the first facts and findings concerned."""
    for row in every:
        where = f"{row.sample.reader} | {row.sample.name} | {row.transformation.name}"
        result = row.result
        if row.transformation.kind != "damage":
            yield from _first(f"lost: {where}", result.present - result.kept, most)
        yield from _first(f"wrong: {where}", result.wrong, most)
        new = {f"{one.code} {one.subject} {one.severity}, {one.confidence}: {one.message[:100]}" for one in result.new}
        yield from _first(f"new: {where}", new, most)
        yield from (f"blind: {where}" for _ in range(result.blind))


def _first(title: str, several: Iterable[object], most: int) -> Iterator[str]:
    texts = sorted(map(str, several))
    yield from (f"{title}: {text}" for text in texts[:most])
    if len(texts) > most:
        yield f"{title}: and {len(texts) - most} more"


@cache
def known() -> tuple[dict[str, str], ...]:
    """The wrong facts and new findings that are known: reader, sample and changes as patterns, fact, reason."""
    return tuple(tomli.loads(Path(__file__).with_name("exceptions.toml").read_text())["exceptions"])


def is_known(row: Row, text: str, grave: bool = False) -> bool:
    """Whether a wrong fact or new finding is known. `grave`: only if the damaged line itself says the fault."""
    return any(_fits(one, row, text) for one in known() if not grave or "explicit" in one)


def _fits(one: Mapping[str, str], row: Row, text: str) -> bool:
    names = {"reader": row.sample.reader, "sample": row.sample.name, "changes": row.transformation.name, "text": text}
    return all(fnmatchcase(names[key], one.get(key, "*")) for key in names)


def open_rows(every: Iterable[Row]) -> Iterator[Row]:
    """The rows without their known wrong facts and new findings."""
    for row in every:
        wrong = frozenset(atom for atom in row.result.wrong if not is_known(row, str(atom)))
        new = tuple(one for one in row.result.new if not is_known(row, f"{one.code} {one.subject}", _grave(one)))
        blind = row.result.blind and not any(_fits(one, row, BLIND) for one in known() if one.get("text") == BLIND)
        yield replace(row, result=replace(row.result, wrong=wrong, new=new, blind=blind))


def failures(every: Sequence[Row]) -> Iterator[str]:
    """The limits that are not met."""
    total = counts(open_rows(every))
    if total["facts kept"] < LEAST_KEPT * total["facts"]:
        yield f"{_share(total['facts kept'], total['facts'])} of the facts are kept, fewer than {LEAST_KEPT:.0%}"
    yield from (f"{total[name]} {name}" for name in ("wrong", "new", "blind") if total[name])


def main(arguments: argparse.Namespace) -> int:
    """Print the tables. Returns the exit code."""
    every = list(rows(samples(arguments.readers), arguments.transformations, arguments.seed))
    tables = (table(every, "reader"), table(every, "transformation"), matrix(every))
    print("\n\n".join("\n".join(one) for one in tables))
    rest = list(open_rows(every))
    print("\n".join(("", *exceptions(rest, arguments.list))) if arguments.list else "")
    failed = list(failures(every))
    print("\n".join(failed) or "all limits hold")
    return int(bool(failed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--readers", default="*", help="pattern of names of readers")
    parser.add_argument("--transformations", default="*", help="pattern of names of transformations")
    parser.add_argument("--list", type=int, default=0, metavar="N", help="list the first N defects of each kind")
    parser.add_argument("--seed", type=int, default=1)
    sys.exit(main(parser.parse_args()))
