"""Folders for tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]  # the project
TESTS = ROOT / "tests"
NODES = TESTS / "nodes"  # described and recorded nodes
GOLDEN = TESTS / "golden"  # expected outputs
SHARED = ROOT.parent / "shared"  # reference data beside the project; tests that need it are skipped if it is absent
