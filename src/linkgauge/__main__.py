"""`python -m linkgauge`, where the command is not on the path."""

from .agent.cli.main import main

main(prog_name="linkgauge")
