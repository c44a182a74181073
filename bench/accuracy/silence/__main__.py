"""The command: python -m bench.accuracy.silence."""

from __future__ import annotations

import argparse
import os
import sys

from bench.accuracy.silence import outcomes

parser = argparse.ArgumentParser(prog="python -m bench.accuracy.silence", description=outcomes.__doc__)
parser.formatter_class = argparse.RawDescriptionHelpFormatter
parser.add_argument("--nodes", default="*", help="pattern of node names")
parser.add_argument("--described", action="store_true", help="without the recorded nodes, which take a minute")
parser.add_argument("--kinds", default="*", help="pattern of kinds of faults")
parser.add_argument("--quick", action="store_true", help="one of equal devices, and all at once")
parser.add_argument("--only-missed", action="store_true", help="without the tables")
parser.add_argument("--list", default="missed,misnamed", help="outcomes whose faults are listed with the reason")
parser.add_argument("--pairs", type=int, default=0, help="number of random pairs of faults")
parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
sys.exit(outcomes.main(parser.parse_args()))
