"""Reads the files of one device into one fact. An unreadable or invalid file becomes a NotChecked of its field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...models.facts.reason import Reason
from ...models.facts.records import Evidence, Fact, NotChecked, Record
from ...models.facts.registry import kind_name
from ..host.host import Host, Unreadable
from ..parsing.parsers import word

Parser = Callable[[str], Any]  # returns the value, or None for "unknown"; raises ValueError with what is wrong

_LONGEST = 200  # characters of a cited text: meminfo is pages long


class FactReader:
    """Builds the fact of `kind` and `key` from the files in `folder`. "" is the machine's root."""

    def __init__(self, host: Host, kind: type[Fact], key: str, folder: str) -> None:
        self._host, self._kind, self._key, self._folder = host, kind, key, folder
        self._fields: dict[str, Any] = {}
        self._cites: dict[str, Evidence] = {}
        self._lost: list[NotChecked] = []
        self.absent: set[str] = set()  # fields whose file does not exist

    def take(
        self,
        field: str,
        name: str,
        parse: Parser = str,
        *,
        required: bool = False,
        means: int = 0,
        cited: Callable[[str], str] = str,
    ) -> Any:
        """Read the file `name` into `field` and return its value.

        If the file does not exist, the field stays None; with `required` it is also a NotChecked. `means`: an error
        number that is a normal answer here (EINVAL for the speed of a network device without a link). `cited` returns
        the part of the text that becomes the evidence.
        """
        path = self._path(name)
        try:
            text = self._host.read(path)
        except Unreadable as refusal:
            if refusal.code != means:
                self.refused(field, path, refusal)
            return None
        if text is None:
            self.absent.add(field)
            if required:
                self.miss(field, Reason.NOT_INSTALLED, f"{path} is not there")
            return None
        try:
            self._fields[field] = parse(text)
        except ValueError as wrong:
            self.miss(field, Reason.UNREADABLE, str(wrong), path=path)
            return None
        self._cites[field] = Evidence(path, cited(text)[:_LONGEST])
        return self._fields[field]

    def set(self, **fields: Any) -> None:
        """Set fields that have no file of their own."""
        self._fields.update(fields)

    def cite(self, name: str, text: str, **fields: Any) -> None:
        """Set fields that share the text `text` of the file `name` as evidence."""
        self._fields.update(fields)
        self._cites.update(dict.fromkeys(fields, Evidence(self._path(name), text[:_LONGEST])))

    def missed(self, field: str) -> bool:
        """Whether the field could not be read."""
        return any(known.what == f"{kind_name(self._kind)}.{field}" for known in self._lost)

    def refused(self, field: str, path: str, refusal: Unreadable) -> None:
        """Record a NotChecked for a field because its file could not be read."""
        self.miss(field, refusal.reason, refusal.why, refusal.how, path)

    def miss(self, field: str, reason: Reason, detail: str, how: str | None = None, path: str | None = None) -> None:
        """Record a NotChecked for a field. Only the first reason counts."""
        if not self.missed(field):
            what = f"{kind_name(self._kind)}.{field}"
            lost = NotChecked(what=what, subject=self._key, reason=reason, detail=detail, path=path, how=how)
            self._lost.append(lost)

    def text(self, field: str) -> str | None:
        """The text of the field's file. None: it was not read or was not valid."""
        cite = self._cites.get(field)
        return cite.text if cite else None

    def peek(self, name: str) -> str | None:
        """The text of a file that belongs to no field. None: it does not exist or cannot be read."""
        try:
            return self._host.read(self._path(name))
        except Unreadable:
            return None

    def target(self, field: str, name: str, parse: Parser = word) -> Any:
        """The last part of the target of the link `name`: a driver, an IOMMU group. None: there is no such link."""
        try:
            end = self._host.resolve(self._path(name))
            return parse(end.rpartition("/")[2]) if end else None
        except Unreadable as refusal:
            self.refused(field, self._path(name), refusal)
        except ValueError as wrong:
            self.miss(field, Reason.UNREADABLE, str(wrong), path=self._path(name))
        return None

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}" if self._folder else name

    def fact(self) -> Any:
        """The fact with the fields that were read."""
        return self._kind(key=self._key, cites=self._cites, **self._fields)

    def records(self) -> Iterator[Record]:
        """A NotChecked for each field that could not be read, then the fact."""
        yield from self._lost
        yield self.fact()
