"""Tell NVSentinel or gpud about faults and their end. The state folder has what they know already."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from ...exporters.events.health_events import HealthEvent, changes
from ...exporters.events.nvsentinel import EventsRefused, Receiver, Unavailable
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


class _Known(msgspec.Struct, frozen=True):
    """What a receiver knows about a node."""

    receiver: str
    node: str
    events: Mapping[str, HealthEvent] = {}


class HealthEvents:
    """Sends what changed since the last event that the receiver took."""

    def __init__(self, address: str, folder: str) -> None:
        """`folder`: for the state file. Raises BadInput without the libraries."""
        self._address, self._folder = address, folder
        self._known: _Known | None = None  # None: not read yet
        try:
            self._receiver = Receiver(address)
        except ImportError:
            raise BadInput("[push] nvsentinel needs gRPC: pip install 'linkgauge[nvsentinel]'") from None

    def send(self, faults: Faults) -> None:
        """Send the events that the receiver does not know. Raises TryAgain."""
        known = self._known or self._read()
        if (known.receiver, known.node) != (self._address, faults.node):
            known = _Known(self._address, faults.node)
        self._known = known
        events = list(changes(known.events, faults.events))
        if not events:
            return
        try:
            self._receiver.send(events, faults.node, faults.at)
        except Unavailable as why:
            raise TryAgain(str(why)) from None
        except EventsRefused as why:
            _log.warning("nvsentinel: %d events were refused: %s", len(events), why)
        self._known = replace(known, events=dict(faults.events))
        with suppress(OSError):  # the log has a warning about the state folder already
            write_state_file(self._folder, FILE, msgspec.json.encode(self._known), lasting=False)

    def _read(self) -> _Known:
        """What the last sender wrote. It is read at the first event, when a sender before this one has ended."""
        try:
            return read_state_file(os.path.join(self._folder, FILE), _Known)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as wrong:
            _log.warning("nvsentinel: %s: the ends of earlier faults are not sent", wrong)
        return _Known("", "")

    def close(self) -> None:
        """End a call that is running, too."""
        self._receiver.close()
