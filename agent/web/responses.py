"""What the web server answers to which request. It knows no sockets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ...exporters.metrics.prometheus import OPENMETRICS, TEXT
from .pages import Form, Pages

_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")
_PLAIN = "text/plain; charset=utf-8"
# Whoever embeds or sniffs the page gets nothing out of it.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'",
    "Server": "linkgauge",
    "X-Content-Type-Options": "nosniff",
}


class Asked(NamedTuple):
    """A request."""

    method: str
    path: str  # without the query
    accept: str = ""
    encodings: str = ""
    trusted: bool = False  # it comes from this machine, or from somebody who said who he is


class Reply(NamedTuple):
    """A response."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def reply(pages: Pages, asked: Asked) -> Reply:
    """The response to a request; those that change something are not known."""
    if asked.method not in ("GET", "HEAD"):
        return sentence(405, "this service is read, with GET or HEAD", {"Allow": "GET, HEAD"})
    if asked.path == "/metrics":
        new = "application/openmetrics-text" in asked.accept
        return _page(pages, asked, "openmetrics" if new else "metrics", OPENMETRICS if new else TEXT)
    if asked.path == "/":
        return _page(pages, asked, "front", "text/html; charset=utf-8")
    if asked.path == "/healthz":
        return sentence(200, "ok") if pages.alive() else sentence(503, "the cycle stands still")
    if asked.path == "/report":
        if asked.trusted:
            return _page(pages, asked, "report", "application/json")
        return sentence(403, "the report is for this machine itself, or with a password or client certificate")
    return sentence(404, "there are /metrics, /report, /healthz and /")


def sentence(status: int, text: str, headers: Mapping[str, str] | None = None) -> Reply:
    """A response that is one line of text."""
    return Reply(status, f"{text}\n".encode(), {**_HEADERS, "Content-Type": _PLAIN, **(headers or {})})


def _page(pages: Pages, asked: Asked, form: Form, kind: str) -> Reply:
    zipped = _GZIP.search(asked.encodings) is not None
    encoding = {"Content-Encoding": "gzip"} if zipped else {}
    headers = {**_HEADERS, "Content-Type": kind, "Vary": "Accept, Accept-Encoding", **encoding}
    return Reply(200, pages.read(form, zipped), headers)
