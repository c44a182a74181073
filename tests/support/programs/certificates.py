"""Certificates for tests, made with openssl: an authority, a server, and clients with and without names."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")


def authority(folder: Path, name: str = "ca") -> None:
    """Write `name`.crt and `name`.key of a certificate authority."""
    _openssl(
        folder,
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        f"{name}.key",
        "-out",
        f"{name}.crt",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
        "-addext",
        "keyUsage=critical,keyCertSign,cRLSign",  # RFC 5280, 4.2.1.3; Python 3.13 verifies it
    )


def certificate(folder: Path, name: str, names: str, signed_by: str = "ca") -> None:
    """Write `name`.crt and `name`.key. `names` has openssl's format: "DNS:localhost,IP:127.0.0.1"."""
    (folder / f"{name}.ext").write_text(f"subjectAltName={names}\n")
    _openssl(
        folder,
        "req",
        "-new",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        f"{name}.key",
        "-out",
        f"{name}.csr",
        "-subj",
        f"/CN={name}",
    )
    _openssl(
        folder,
        "x509",
        "-req",
        "-in",
        f"{name}.csr",
        "-CA",
        f"{signed_by}.crt",
        "-CAkey",
        f"{signed_by}.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        f"{name}.ext",
        "-out",
        f"{name}.crt",
    )


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True, timeout=60)
