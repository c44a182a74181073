"""Write the generated parts of the documentation.

    python docs/generate.py           write every block and the JSON Schema of reports
    python docs/generate.py --check   change nothing; exit with 1 and name the files that are out of date
    python docs/generate.py accuracy  run the programs of bench/accuracy and write their blocks (reference/accuracy.md)

A generated block of a page lies between `<!-- generated: NAME -->` and `<!-- end: NAME -->`. BLOCKS has a function for
each NAME. The text comes from the program: the finding codes from models/catalog/codes.toml, the log messages from
models/catalog/messages, the metrics from their catalog, the commands from click, the report from its JSON Schema and
from docs/report-fields.toml, the sources of facts from docs/fact-sources.toml and from the rules, the numbers of other
sources from docs/worked-values.toml.
"""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import click
import tomli
from worked_values import computed, sections

from linkgauge.agent.cli.main import main as linkgauge
from linkgauge.exporters.commands.explain import kind_of_code
from linkgauge.exporters.formats.json import schema
from linkgauge.exporters.metrics.catalog import METRICS
from linkgauge.models.catalog import Code, codes
from linkgauge.models.catalog.log_messages import KERNEL, PROGRAMS, Message, entries, message
from linkgauge.models.diagnosis.remedies import in_words
from linkgauge.models.facts.reason import Reason
from linkgauge.models.rules import RULES

DOCS = Path(__file__).resolve().parent
SCHEMA = DOCS / "report.schema.json"
FIELDS = DOCS / "report-fields.toml"
SOURCES = DOCS / "fact-sources.toml"
_EXAMPLE = 140  # characters of a message
BENCHMARKS = {  # block of a page: the module whose output it holds
    "faults": ("bench.accuracy.fault_injection",),
    "small-losses": ("bench.accuracy.fault_injection", "--small"),
    "jobs": ("bench.accuracy.jobs", "--jobs", "250"),
    "links": ("bench.accuracy.model_accuracy",),
    "collective-curves": ("bench.accuracy.collectives.collective_curves",),
    "training-runs": ("bench.accuracy.plan", "--runs"),
    "costs": ("bench.accuracy.costs",),
    "further-runs": ("bench.accuracy.trainings.training_runs",),
}


def findings() -> str:
    """Every finding code: a table, and a section for each."""
    rows = [(f"[{name}](#{name})", code.says, kind_of_code(code)) for name, code in codes().items()]
    sections = ("\n".join(_finding(name, code)) for name, code in codes().items())
    return "\n".join((_table(("code", "meaning", "severity"), rows), *sections))


def _finding(name: str, code: Code) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"{code.says} *{kind_of_code(code).capitalize()}.*\n"
    if code.of_outputs:
        yield f"Reports of outputs (`diagnose --from`) have [{code.of_outputs}](#{code.of_outputs}) instead.\n"
    sentences = [line for line in code.confirm if line.endswith(".")]
    commands = [line for line in code.confirm if line not in sentences]
    if commands:
        yield from ("```sh", *commands, "```\n")
    yield from (f"{sentence}\n" for sentence in sentences)
    yield from (f"{number}. {in_words(step)}" for number, step in enumerate(code.fix, 1))
    yield f"\nSource: {code.source}.\n"


def log_messages() -> str:
    """The messages of the catalog that name a fault: a table for each family."""
    return "\n".join(_family(file) for file in (*KERNEL, *PROGRAMS))


def _family(file: str) -> str:
    rows = [message(entry.name) for entry in entries(file)]
    cells = [(f"`{row.example[:_EXAMPLE]}`", _meaning(row), f"[{row.code}](findings.md#{row.code})", _grade(row))
             for row in rows if row.code]  # fmt: skip
    return f"## {file.replace('_', ' ').capitalize()}\n\n{_table(('message', 'meaning', 'code', 'severity'), cells)}"


def _meaning(row: Message) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: f"*{found[1]}*", row.meaning)


def _grade(row: Message) -> str:
    many = f"; {row.severity_of_many} from {row.many} on" if row.many else ""
    return f"{row.severity}{many}"


def metrics() -> str:
    """The families of series of `/metrics`."""
    rows = []
    for one in METRICS.values():
        labels = ", ".join("those of `[labels]`" if label == "*" else f"`{label}`" for label in one.labels)
        rows.append((f"`{one.name}`", one.kind, one.unit, labels, one.series, one.text))
    return _table(("metric", "type", "unit", "labels", "number of series", "meaning"), rows)


def reasons() -> str:
    """The values of the label `reason`."""
    return ", ".join(f"`{reason.value}`" for reason in Reason)


def fact_sources() -> str:
    """Each fact and counter, with its source, the releases that have it, and what follows where it is absent."""
    text, *kinds = tomli.loads(SOURCES.read_text()).items()
    return "\n".join([text[1], *(_sources(kind, rows) for kind, rows in kinds)])


def _sources(kind: str, rows: dict[str, list[str]]) -> str:
    needed = {name: sorted({rule.code for rule in RULES if f"{kind}.{name}" in rule.reads}) for name in rows}
    cells = [
        (f"`{name}`" if name.isidentifier() else name, *row[:2], *(row[2:] or [_not_evaluated(needed[name])]))
        for name, row in rows.items()
    ]
    return (
        f"## {kind[0].upper()}{kind[1:]}\n\n{_table(('fact', 'file or call', 'releases', 'where it is absent'), cells)}"
    )


def _not_evaluated(names: Iterable[str]) -> str:
    several = ", ".join(f"[{name}](findings.md#{name})" for name in names)
    if not several:
        raise SystemExit(f"{SOURCES.name}: say what linkgauge says, because no rule needs this fact")
    return f"not evaluated: {several}"


def commands() -> str:
    """Every command with its usage, text and options."""
    return "\n".join(_commands(linkgauge, None))


def _commands(command: click.Command, above: click.Context | None) -> Iterator[str]:
    context = click.Context(command, info_name=command.name if above else "linkgauge", parent=above)
    yield f"## {context.command_path}\n"
    yield f"```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n"
    yield from _help(command.help or "")
    options = [one for one in command.params if isinstance(one, click.Option)]
    records = [record for one in options if (record := one.get_help_record(context))]
    if records:
        yield _table(("option", "meaning"), [(f"`{option}`", " ".join(text.split())) for option, text in records])
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below
            yield from _commands(below, context)


def _help(text: str) -> Iterator[str]:
    """Paragraphs of a help text; those that click keeps as they are become blocks of text."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            yield "```text\n" + paragraph.removeprefix("\b").strip("\n") + "\n```\n"
        else:
            yield " ".join(paragraph.split()) + "\n"


def report() -> str:
    """The types of a report, in the order in which the schema has them."""
    types, texts = json.loads(schema())["$defs"], tomli.loads(FIELDS.read_text())
    held = {name: [*one["properties"]] for name, one in types.items()}
    described = {name: [*fields] for name, fields in texts.items() if name != "types"}
    if {name: set(one) for name, one in held.items()} != {name: set(one) for name, one in described.items()}:
        raise SystemExit(f"{FIELDS.name} does not describe the fields of the schema: {_difference(held, described)}")
    return "\n".join(_type(name, one, texts) for name, one in types.items())


def _difference(held: dict[str, list[str]], described: dict[str, list[str]]) -> str:
    have, texts = ({f"{name}.{field}" for name, fields in one.items() for field in fields} for one in (held, described))
    return ", ".join(sorted(have ^ texts))


def _type(name: str, one: dict[str, Any], texts: dict[str, dict[str, str]]) -> str:
    rows = [(f"`{field}`", _shape(held), texts[name][field]) for field, held in one["properties"].items()]
    return f"## {name}\n\n{texts['types'][name]}\n\n{_table(('field', 'type', 'meaning'), rows)}"


def _shape(one: dict[str, Any]) -> str:
    """A type of the JSON Schema in words."""
    if "anyOf" in one:
        shapes = dict.fromkeys(_shape(option) for option in one["anyOf"])
        return " or ".join(shape for shape in shapes if not (shape == "integer" and "number" in shapes))
    if "enum" in one:
        return ", ".join(f"`{value}`" for value in one["enum"])
    if "$ref" in one:
        name = one["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if one["type"] == "array":
        return f"array of {_shape(one['items'])}"
    if one["type"] == "object":
        return f"object of {_shape(one['additionalProperties'])}"
    return str(one["type"])


def worked_values() -> str:
    """The numbers of the sources beside those of the commands that compute them."""
    heads = ("value", "source", "linkgauge", "command", "difference")
    return "\n".join(
        f"## {section['title']}\n\n{_table(heads, [_worked(row) for row in section['row']])}" for section in sections()
    )


def _worked(row: dict[str, Any]) -> tuple[str, ...]:
    numbers = (f"{value:.4g} {row['unit']}".strip() for value in (row["says"], computed(row)))
    return row["what"], *numbers, f"`linkgauge {row['run']}`", row.get("why", "")


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [[*heads], ["---"] * len([*heads]), *([cell.replace("|", r"\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


BLOCKS: dict[str, Callable[[], str]] = {
    "findings": findings,
    "log-messages": log_messages,
    "metrics": metrics,
    "reasons": reasons,
    "fact-sources": fact_sources,
    "commands": commands,
    "report": report,
    "worked-values": worked_values,
}


def replaced(page: str, texts: dict[str, str]) -> str:
    """The page with the blocks that `texts` names written anew."""

    def block(found: re.Match[str]) -> str:
        name = found["name"]
        body = f"\n{texts[name].strip()}\n" if name in texts else found["body"]
        return f"<!-- generated: {name} -->\n{body}\n<!-- end: {name} -->"

    pattern = r"<!-- generated: (?P<name>[a-z-]+) -->\n(?P<body>.*?)\n?<!-- end: (?P=name) -->"
    return re.sub(pattern, block, page, flags=re.DOTALL)


def written(texts: dict[str, str]) -> dict[Path, str]:
    """What each page should hold."""
    pages = {page: page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("**/*.md"))}
    return {page: replaced(text, texts) for page, text in pages.items() if "<!-- generated: " in text}


def measured() -> dict[str, str]:
    """What the programs of bench/ print."""
    done = {
        name: subprocess.run([sys.executable, "-m", *line], cwd=DOCS.parent, capture_output=True, text=True)
        for name, line in BENCHMARKS.items()
    }
    if failed := [name for name, one in done.items() if "Traceback" in one.stderr or not one.stdout]:
        sys.exit(f"{', '.join(failed)}: the program failed; nothing was written")  # a bound that is not met is written
    if lacking := [name for name, one in done.items() if "nothing to compare with" in one.stdout]:
        sys.exit(f"{', '.join(lacking)}: the published numbers in ../shared are absent; nothing was written")
    return {name: _as_block(one.stdout) for name, one in done.items()}


def _as_block(printed: str) -> str:
    """Tables of Markdown as they are; a text without the list of single nodes."""
    if "|---|" in printed:
        return printed
    text = re.sub(r"^seed \d+  .*\n", "", printed, flags=re.MULTILINE)
    return "```text\n" + re.sub(r"\n{3,}", "\n\n", text).strip() + "\n```"


def main(given: list[str]) -> int:
    """Write or compare; 1: something differed, and --check was given."""
    texts = measured() if "accuracy" in given else {name: block() for name, block in BLOCKS.items()}
    wanted = {SCHEMA: schema(), **written(texts)}
    stale = [path for path, text in wanted.items() if path.read_text(encoding="utf-8") != text]
    for path in stale:
        if "--check" not in given:
            path.write_text(wanted[path], encoding="utf-8")
        print(f"{'out of date' if '--check' in given else 'written'}: {path.relative_to(DOCS.parent)}")
    return 1 if stale and "--check" in given else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
