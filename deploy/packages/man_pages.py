"""Write the man pages of all commands. The console script is no click command, so click-man finds none."""

import sys

import click
from click_man.core import write_man_pages

from linkgauge import __version__
from linkgauge.agent.cli.main import main

context = click.Context(main)
for name in main.list_commands(context):
    main.get_command(context, name)  # imports the command; click-man writes those that are imported
write_man_pages("linkgauge", main, version=__version__, target_dir=sys.argv[1])
