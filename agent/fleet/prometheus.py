"""Ask the HTTP API of Prometheus, or of a server with the same API (Thanos, Mimir, VictoriaMetrics)."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

import msgspec

from ...probes.calls.bounded_read import bounded_read
from ..inputs.site_file import BadInput

_DEADLINE = 60.0  # seconds for each part of an answer
_MOST = 256 << 20  # bytes of an answer
_MOST_TOKEN = 1 << 16
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach the server. Files are PEM."""

    url: str
    token_file: str | None = None  # a bearer token
    ca_file: str | None = None
    client_file: str | None = None  # certificate and key of the client


class Series(msgspec.Struct, frozen=True):
    """One element of an instant vector."""

    metric: Mapping[str, str]
    value: tuple[float, str]

    @property
    def number(self) -> float:
        """The value: also +Inf and NaN."""
        return float(self.value[1])


class _Data(msgspec.Struct, frozen=True):
    result: tuple[Series, ...] = ()


class _Answer(msgspec.Struct, frozen=True):
    status: str
    data: _Data = _Data()
    error: str = ""


class _NoRedirect(HTTPRedirectHandler):
    """A redirect would send the token to another address."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class Client:
    """A server. Every method raises BadInput with one sentence."""

    def __init__(self, access: Access) -> None:
        parts = urlsplit(access.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"--prometheus {access.url}: the address must begin with http:// or https://")
        if access.token_file and parts.scheme == "http" and parts.hostname not in _HERE:
            raise BadInput("--token-file: the token would cross the network in clear text: use https://")
        self._at = f"{access.url.rstrip('/')}/api/v1/query"
        self._headers = {"Authorization": f"Bearer {_token(access.token_file)}"} if access.token_file else {}
        self._opener = _opener(access)

    def ask(self, query: str) -> tuple[Series, ...]:
        """The instant vector of a query."""
        body = urlencode({"query": query, "timeout": f"{_DEADLINE:g}s"}).encode()
        try:
            with self._opener.open(Request(self._at, body, self._headers), timeout=_DEADLINE) as answer:
                text = answer.read(_MOST + 1)
        except HTTPError as refused:
            raise BadInput(f"{self._at}: {refused.code} {refused.reason}{_said(refused)}") from None
        except (OSError, HTTPException) as refused:
            raise BadInput(f"{self._at}: {getattr(refused, 'reason', None) or refused}") from None
        if len(text) > _MOST:
            raise BadInput(f"{self._at}: an answer larger than {_MOST >> 20} MB")
        try:
            read = msgspec.json.decode(text, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
            raise BadInput(f"{self._at}: not the API of Prometheus ({wrong})") from None
        if read.status != "success":
            raise BadInput(f"{self._at}: {read.error}")
        return read.data.result


def _opener(access: Access) -> OpenerDirector:
    """An opener that checks certificates, and follows neither redirects nor proxies."""
    try:
        context = ssl.create_default_context(cafile=access.ca_file)
        if access.client_file:
            context.load_cert_chain(access.client_file, password=_no_password)
    except (OSError, ValueError) as wrong:  # ssl.SSLError is an OSError
        files = " or ".join(filter(None, (access.ca_file, access.client_file)))
        raise BadInput(f"{files}: {getattr(wrong, 'strerror', None) or wrong}") from None
    return build_opener(ProxyHandler({}), HTTPSHandler(context=context), _NoRedirect())


def _no_password() -> str:
    raise ValueError("the key has a password: use a file without one")


def _token(path: str) -> str:
    try:
        text = bounded_read(path, _MOST_TOKEN).decode("ascii").strip()
    except (OSError, ValueError) as refused:
        raise BadInput(f"--token-file {path}: {getattr(refused, 'strerror', None) or refused}") from None
    if not text or any(character.isspace() for character in text):
        raise BadInput(f"--token-file {path}: the file must hold one token")
    return text


def _said(refused: HTTPError) -> str:
    """The error in the answer, if it is one of Prometheus."""
    try:
        with refused:
            read: Any = msgspec.json.decode(refused.read(_MOST_TOKEN))
    except (OSError, HTTPException, msgspec.DecodeError, UnicodeDecodeError):
        return ""
    return f": {read['error']}" if isinstance(read, dict) and isinstance(read.get("error"), str) else ""
