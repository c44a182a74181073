"""Tell NVSentinel or gpud about faults and their end. The state folder has what they know already."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from ...exporters.events.health_events import HealthEvent, changes
from ...exporters.events.nvsentinel import Receiver, Refused, Unavailable
from ..inputs.site_file import BadInput
from ..state.state_file import read_state_file, write_state_file
from .background_sender import TryAgain

FILE = "health-events.json"
_log = logging.getLogger("linkgauge")


class Faults(msgspec.Struct, frozen=True):
    """The faults of one cycle, by key."""

    node: str
    at: str | None
    events: Mapping[str, HealthEvent]


class HealthEvents:
    """Sends what changed since the last event that the receiver took."""

    def __init__(self, address: str, folder: str) -> None:
        """`folder`: for the state file. Raises BadInput without the libraries."""
        self._folder = folder
        self._known: dict[str, HealthEvent] = {}
        with suppress(OSError, ValueError):
            self._known = read_state_file(os.path.join(folder, FILE), dict[str, HealthEvent])
        try:
            self._receiver = Receiver(address)
        except ImportError:
            raise BadInput("[push] nvsentinel needs gRPC: pip install 'linkgauge[nvsentinel]'") from None

    def send(self, faults: Faults) -> None:
        """Send the events that the receiver does not know. Raises TryAgain."""
        events = list(changes(self._known, faults.events))
        if not events:
            return
        try:
            self._receiver.send(events, faults.node, faults.at)
        except Unavailable as why:
            raise TryAgain(str(why)) from None
        except Refused as why:
            _log.warning("nvsentinel: %d events were refused: %s", len(events), why)
        self._known = dict(faults.events)
        with suppress(OSError):  # the log has a warning about the state folder already
            write_state_file(self._folder, FILE, msgspec.json.encode(self._known), lasting=False)

    def close(self) -> None:
        """End a call that is running, too."""
        self._receiver.close()
