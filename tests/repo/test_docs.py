"""The documentation: generated parts are up to date, links and paths lead somewhere, and the site needs no network."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHANGELOG = ROOT / "CHANGELOG.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
GENERATED = re.compile(r"<!-- generated: (?P<name>[a-z-]+) -->.*?<!-- end: (?P=name) -->", re.DOTALL)
FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[(?:[^\]\\]|\\.)*\]\(([^)\s]+)\)")
FOLDERS = "agent|bench|deploy|docs|exporters|models|probes|src|tests"
PATH = re.compile(rf"`((?:{FOLDERS})/[\w./-]+|\.ci/\w+|mkdocs\.yml|pyproject\.toml)`")
MENTION = re.compile(r"(?:(?<![\w/.-])|(?<=https://linkgauge\.example/))docs/([\w/-]+\.(?:md|json))(#[\w-]+)?")
FOREIGN = {  # pages of other projects that our sources cite
    "JOURNAL_EXPORT_FORMATS.md",
    "user-tutorial/benchmarks/micro-benchmarks.md",
}
MOST_WORDS = 22_500


def anchors(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and mkdocs make them from headings."""
    titles = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    names = [re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles]
    seen = Counter[str]()
    found = set()
    for name in names:
        found.add(f"{name}_{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def leads(page: Path, anchor: str) -> bool:
    return page.exists() and (not anchor or anchor.removeprefix("#") in anchors(page))


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = (ROOT / name for name in names.split("\0") if name)
    return [file for file in files if file.is_file() and not file.is_symlink()]


def test_generated_parts_are_up_to_date() -> None:
    line = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run: python docs/generate.py"


@pytest.mark.parametrize("page", [*PAGES, CHANGELOG], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        assert leads(page.parent / name if name else page, anchor), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_of_the_repository_exist(page: Path) -> None:
    """Pages name files of the repository as code. Examples are NAME and the rows of new files."""
    lines = page.read_text(encoding="utf-8").splitlines()
    kept = (line for line in lines if not re.search(r"\| (?:new:|written by)", line))
    named = {path for line in kept for path in PATH.findall(line) if "NAME" not in path}
    assert not {path for path in named if not (ROOT / path).exists()}


def test_pages_that_code_and_deployments_name_exist() -> None:
    lost = set()
    for file in tracked():
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        for name, anchor in MENTION.findall(text):
            if name not in FOREIGN and not leads(ROOT / "docs" / name, anchor):
                lost.add(f"{file.relative_to(ROOT)}: docs/{name}{anchor}")
    assert not lost


def test_the_documentation_stays_short() -> None:
    texts = (GENERATED.sub("", page.read_text(encoding="utf-8")) for page in PAGES)
    words = [word for text in texts for word in text.split() if any(map(str.isalnum, word))]
    assert len(words) <= MOST_WORDS


def test_the_site_needs_no_network(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    line = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in tmp_path.glob("**/*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"([^\"]+)\"", page.read_text())
        assert not [address for address in loaded if re.match(r"(https?:)?//", address)], page.name
    for sheet in tmp_path.glob("**/*.css"):
        assert not re.search(r"url\([\"']?(https?:)?//", sheet.read_text()), sheet.name
