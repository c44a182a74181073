"""The web configuration file: TLS, client certificates and passwords, in the format of Prometheus exporters.

https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md. Unknown keys are refused. So
are the keys of cipher suites and curves, which OpenSSL's defaults decide here.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from ...models.site.toml_tables import in_tables
from ..inputs.site_file import BadInput, read_text

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_ASKS = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
# The cost is the binary logarithm of the number of rounds; 17 takes about 10 s.
_HASH = re.compile(r"\$2[aby]\$(?:0[4-9]|1[0-7])\$[./A-Za-z0-9]{53}")


class _Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """File names are relative to the folder of the configuration file."""

    cert_file: str
    key_file: str
    client_ca_file: str | None = None
    client_auth_type: Literal["NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"] = "NoClientCert"
    client_allowed_sans: tuple[str, ...] = ()
    min_version: Literal["TLS12", "TLS13"] = "TLS12"
    max_version: Literal["TLS12", "TLS13"] = "TLS13"

    def __post_init__(self) -> None:
        if self.client_auth_type != "NoClientCert" and not self.client_ca_file:
            raise ValueError(f"client_auth_type is {self.client_auth_type}: name the client_ca_file that signs them")
        if self.client_ca_file and self.client_auth_type == "NoClientCert":
            raise ValueError("there is a client_ca_file: set client_auth_type to RequireAndVerifyClientCert")
        if self.client_allowed_sans and self.client_auth_type != "RequireAndVerifyClientCert":
            raise ValueError("client_allowed_sans needs client_auth_type RequireAndVerifyClientCert")
        if self.min_version > self.max_version:
            raise ValueError(f"min_version {self.min_version} is above max_version {self.max_version}")


class _Http(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    http2: bool = True  # accepted and ignored: the server speaks HTTP/1.1
    headers: dict[str, str] = {}

    def __post_init__(self) -> None:
        for name, value in self.headers.items():
            if not (name + value).isprintable() or not (name + value).isascii() or ":" in name or not name:
                raise ValueError(f"headers: {name!r}: not a valid HTTP header")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tls_server_config: _Tls | None = None
    http_server_config: _Http = _Http()
    basic_auth_users: dict[str, str] = {}  # name -> bcrypt hash

    def __post_init__(self) -> None:
        for name, hashed in self.basic_auth_users.items():
            if not _HASH.fullmatch(hashed):
                raise ValueError(
                    f"basic_auth_users: {name}: not a bcrypt hash of cost 4 to 17: run htpasswd -nBC 10 {name}"
                )


class WebConfig(Struct, frozen=True):
    """The content of the file, with its certificates loaded."""

    tls: ssl.SSLContext | None = None
    sans: frozenset[str] = frozenset()  # allowed names of client certificates; empty: every signed certificate
    certificates: bool = False  # every client must have a certificate
    users: Mapping[str, bytes] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def read_config(path: str | None) -> WebConfig:
    """Read the file. Without a path: the defaults, without TLS and passwords. Raises BadInput."""
    if path is None:
        return WebConfig()
    try:
        settings = in_tables(_yaml(read_text(path, "web =")) or {}, _File)
    except ValueError as wrong:
        raise BadInput(f"web = {path}: {wrong}") from None
    if settings.basic_auth_users and find_spec("bcrypt") is None:
        raise BadInput(f"web = {path}: passwords need bcrypt: pip install 'linkgauge[web]'")
    tls = settings.tls_server_config
    return WebConfig(
        tls=_context(tls, path) if tls else None,
        sans=frozenset(tls.client_allowed_sans if tls else ()),
        certificates=tls is not None and tls.client_auth_type == "RequireAndVerifyClientCert",
        users={name: hashed.encode() for name, hashed in settings.basic_auth_users.items()},
        headers=settings.http_server_config.headers,
    )


def _yaml(text: str) -> Any:
    """Parse the YAML. Raises ValueError with the place of the error."""
    try:
        import yaml
    except ImportError:
        raise ValueError("web configuration files need PyYAML: pip install 'linkgauge[web]'") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as broken:
        raise ValueError(" ".join(str(broken).split())) from None
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _context(tls: _Tls, path: str) -> ssl.SSLContext:
    """Load the certificates. Raises BadInput."""
    folder = os.path.dirname(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = _VERSIONS[tls.min_version], _VERSIONS[tls.max_version]
    certificate, key = os.path.join(folder, tls.cert_file), os.path.join(folder, tls.key_file)
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (OSError, ValueError) as wrong:  # ssl.SSLError is an OSError
        raise BadInput(f"web = {path}: cert_file {certificate}, key_file {key}: {_why(wrong)}") from None
    if tls.client_ca_file:
        authority = os.path.join(folder, tls.client_ca_file)
        try:
            context.load_verify_locations(authority)
        except OSError as wrong:
            raise BadInput(f"web = {path}: client_ca_file {authority}: {_why(wrong)}") from None
    context.verify_mode = _ASKS[tls.client_auth_type]
    return context


def _no_password() -> str:
    """Called for an encrypted key: a service cannot ask for a password."""
    raise ValueError("the key is encrypted: use a key without a password")


def _why(wrong: Exception) -> str:
    if isinstance(wrong, ssl.SSLError):
        return f"not a certificate and its key in PEM ({wrong.reason or wrong})"
    return getattr(wrong, "strerror", None) or str(wrong)
