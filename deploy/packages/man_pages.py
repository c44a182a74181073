"""Write the man pages of all commands into a folder. The console script is no click command, which click-man expects."""

import sys

from click_man.core import write_man_pages

from linkgauge import __version__
from linkgauge.agent.cli.main import main

write_man_pages("linkgauge", main, version=__version__, target_dir=sys.argv[1])
