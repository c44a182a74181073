"""`python -m linkgauge`, where the command is not on the path."""

from .agent.cli.entry import run

run()
