"""The web configuration file: users with access, and the messages about wrong files."""

from __future__ import annotations

import ssl
from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.agent.inputs.site_file import BadInput
from linkgauge.agent.web.config import read_config
from tests.support.programs.certificates import authority, certificate, needs_openssl
from tests.support.programs.web_clients import Got, get, server_of

bcrypt = pytest.importorskip("bcrypt", reason="the extra [web] is not installed")
pytest.importorskip("yaml", reason="the extra [web] is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    authority(made)
    authority(made, "other")
    certificate(made, "server", "DNS:localhost,IP:127.0.0.1")
    certificate(made, "client", "DNS:prometheus.example")
    certificate(made, "nobody", "DNS:nobody.example")
    certificate(made, "stranger", "DNS:prometheus.example", signed_by="other")
    return made


def client(folder: Path, name: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    if name:
        context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    return context


def written(folder: Path, text: str) -> str:
    path = folder / "web.yml"
    path.write_text(text)
    return str(path)


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(f"{name}:{password}".encode()).decode()}


TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
MUTUAL = (
    "tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: ca.crt, "
    "client_auth_type: RequireAndVerifyClientCert, client_allowed_sans: [prometheus.example]}\n"
)


@needs_openssl
def test_tls(folder: Path) -> None:
    with server_of(config=written(folder, TLS + "http_server_config: {headers: {X-Rack: r7}}\n")) as server:
        got = get(server, tls=client(folder))
        with pytest.raises(ConnectionError):
            get(server)
    assert (got.status, got.headers["x-rack"]) == (200, "r7")


@needs_openssl
def test_client_certificates(folder: Path) -> None:
    with server_of(config=written(folder, MUTUAL)) as server:
        assert get(server, "/report", tls=client(folder, "client")).status == 200
        assert get(server, tls=client(folder, "nobody")).status == 403
        for name in (None, "stranger"):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                get(server, tls=client(folder, name))


def test_passwords(tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    with server_of(config=written(tmp_path, f"basic_auth_users: {{prom: {hashed}}}\n")) as server:
        right = [get(server, "/report", headers=basic("prom", "secret")) for _ in range(3)]
        wrong = [
            get(server, headers=headers)
            for headers in (
                {},
                basic("prom", "Secret"),
                basic("prom", ""),
                basic("other", "secret"),
                basic("prom", "secret\0x"),
                basic("prom", "secret" + 80 * "x"),
                {"Authorization": "Basic !"},
                {"Authorization": "Bearer secret"},
            )
        ]
    assert [got.status for got in right] == [200, 200, 200]
    assert {(got.status, got.headers["www-authenticate"]) for got in wrong} == {(401, 'Basic realm="linkgauge"')}


def test_health_too_is_asked_for_a_password(tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    with server_of(config=written(tmp_path, f"basic_auth_users: {{prom: {hashed}}}\n")) as server:
        assert get(server, "/healthz").status == 401


def test_another_configuration_without_a_new_server(tmp_path: Path) -> None:
    hashed = bcrypt.hashpw(b"secret", bcrypt.gensalt(4)).decode()
    path = written(tmp_path, "{}\n")
    with server_of(config=path) as server:
        first = get(server).status
        written(tmp_path, f"basic_auth_users: {{prom: {hashed}}}\n")
        server.configure(read_config(path))
        second: list[Got] = [get(server), get(server, headers=basic("prom", "secret"))]
        written(tmp_path, "basic_auth_users: {prom: secret}\n")
        with pytest.raises(BadInput, match="not a bcrypt hash"):
            read_config(path)
        server.configure(read_config(None))
        assert (first, [got.status for got in second], get(server).status) == (200, [401, 200], 200)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tls_server_config: {cert_file: x, key_file: y}", "No such file or directory"),
        ("tls_server_config: {cert_file: web.yml, key_file: web.yml}", "not a certificate and its key in PEM"),
        ("tls_server_config: {cert_file: x}", "tls_server_config: key_file: missing"),
        ("tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequestClientCert}", "client_auth_type"),
        (
            "tls_server_config: {cert_file: a, key_file: b, client_auth_type: RequireAndVerifyClientCert}",
            "client_ca_file",
        ),
        ("tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}", "set client_auth_type"),
        ("tls_server_config: {cert_file: a, key_file: b, client_allowed_sans: [c]}", "needs client_auth_type"),
        ("tls_server_config: {cert_file: a, key_file: b, min_version: TLS10}", "min_version"),
        ("tls_server_config: {cert_file: a, key_file: b, min_version: TLS13, max_version: TLS12}", "is above"),
        ("tls_server_config: {cert_file: a, key_file: b, cipher_suites: [x]}", "cipher_suites: unknown key"),
        ("basic_auth_user: {}", "basic_auth_user: unknown key; did you mean basic_auth_users?"),
        ("basic_auth_users: {prom: secret}", "basic_auth_users: prom: not a bcrypt hash"),
        ("basic_auth_users: [prom]", "basic_auth_users: expected object"),
        ('http_server_config: {headers: {"a\\nb": c}}', "not a valid HTTP header"),
        ("a: [", "expected"),
        ("- a", "expected object"),
        ("!!python/object/apply:os.system [true]", "could not determine a constructor"),
    ],
)
def test_messages_for_wrong_files(tmp_path: Path, text: str, expected: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(BadInput) as refused:
        read_config(path)
    assert str(refused.value).startswith(f"web = {path}: ")
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        read_config(str(tmp_path / "none.yml"))


@given(text=st.text(max_size=60) | st.binary(max_size=60).map(lambda raw: raw.decode("utf-8", "replace")))
def test_any_text_is_a_configuration_or_refused_in_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yml"
    path.write_text(text, encoding="utf-8")
    message = "accepted"
    try:
        read_config(str(path))
    except BadInput as refused:
        message = str(refused)
    assert message
    assert "\n" not in message


@needs_openssl
def test_a_key_with_a_password_is_refused(folder: Path) -> None:
    import subprocess

    subprocess.run(
        ["openssl", "rsa", "-aes256", "-passout", "pass:x", "-in", "server.key", "-out", "locked.key"],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=60,
    )
    path = written(folder, "tls_server_config: {cert_file: server.crt, key_file: locked.key}\n")
    with pytest.raises(BadInput, match="use a key without a password"):
        read_config(path)
