"""Writes the dashboards: python deploy/grafana/write_boards.py [FOLDER]. The default is the folder of this file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from fleet_board import fleet_board
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from link_board import link_board
from node_board import node_board


def main(folder: str = "") -> None:
    """Write one file for each dashboard. The file name is the uid of the dashboard in Grafana."""
    for dashboard in (fleet_board(), node_board(), link_board()):
        path = Path(folder or Path(__file__).parent) / f"{dashboard.uid}.json"
        path.write_text(json.dumps(dashboard, cls=JSONEncoder, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
