"""Texts of kernel log events without private data: names of users, programs, servers and customers, serial numbers.

Programs and drivers write any text into the log, and the events of the log are in reports, tickets and metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ...models.facts.machine import Event
from ..parsing.harmless import reduced
from ..parsing.identifiers import Identities


def without_private_words(events: Iterable[Event]) -> Iterator[Event]:
    """The events with stand-ins instead of private words, as in captures. The names of their devices remain."""
    identities = Identities({})
    for event in events:
        names = {event.name, event.subject, event.port}

        def stand_in(word: str, names: frozenset[str | None] = frozenset(names)) -> str:
            return word if word in names else identities.of("word", word)

        text = reduced(identities.scrubbed(event.text or ""), "log", stand_in)
        cites = {name: replace(cite, text=text) if name == "text" else cite for name, cite in event.cites.items()}
        yield replace(event, text=text, cites=cites)
