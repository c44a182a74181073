"""The response of the web server to each request, independent of sockets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ...exporters.metrics.prometheus import OPENMETRICS, TEXT
from .pages import Form, Pages

_GZIP = re.compile(r"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))")
_PLAIN = "text/plain; charset=utf-8"
# No caching, no scripts or other loaded content, no guessing of content types.
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'",
    "Server": "linkgauge",
    "X-Content-Type-Options": "nosniff",
}


class Request(NamedTuple):
    """A request."""

    method: str
    path: str  # without the query
    accept: str = ""
    encodings: str = ""
    trusted: bool = False  # from this machine, or authenticated


class Response(NamedTuple):
    """A response."""

    status: int
    body: bytes
    headers: Mapping[str, str]


def reply(pages: Pages, request: Request) -> Response:
    """The response to a request. Only GET and HEAD are allowed."""
    if request.method not in ("GET", "HEAD"):
        return sentence(405, "this service is read-only: use GET or HEAD", {"Allow": "GET, HEAD"})
    if request.path == "/metrics":
        new = "application/openmetrics-text" in request.accept
        return _page(pages, request, "openmetrics" if new else "metrics", OPENMETRICS if new else TEXT)
    if request.path == "/":
        return _html(pages, request, "whole" if request.trusted else "front")
    if request.path == "/healthz":
        return sentence(200, "ok") if pages.alive() else sentence(503, "the service has not completed a cycle in time")
    if request.path == "/ready":
        ready, why = pages.ready()
        return sentence(200 if ready else 503, why)
    if request.path in ("/report", "/report.html"):
        if request.trusted:
            json = request.path == "/report"
            return _page(pages, request, "report", "application/json") if json else _html(pages, request, "html")
        return sentence(403, "the report needs a request from this machine, a password or a client certificate")
    return sentence(404, "no such page: use /metrics, /report, /report.html, /healthz, /ready or /")


def sentence(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """A response with one line of text."""
    return Response(status, f"{text}\n".encode(), {**_HEADERS, "Content-Type": _PLAIN, **(headers or {})})


def _html(pages: Pages, request: Request, form: Form) -> Response:
    """A page with the styles that its policy names."""
    from ...exporters.html.styles import policy  # jinja2 is loaded at the first request

    allowed = {"Content-Security-Policy": f"{policy()}; frame-ancestors 'none'"}
    return _page(pages, request, form, "text/html; charset=utf-8", allowed)


def _page(pages: Pages, request: Request, form: Form, kind: str, further: Mapping[str, str] | None = None) -> Response:
    zipped = _GZIP.search(request.encodings) is not None
    encoding = {"Content-Encoding": "gzip"} if zipped else {}
    headers = {**_HEADERS, "Content-Type": kind, "Vary": "Accept, Accept-Encoding", **encoding, **(further or {})}
    return Response(200, pages.read(form, zipped), headers)
