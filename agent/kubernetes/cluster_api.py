"""The API of the cluster that a pod runs in, with the rights of its service account."""

from __future__ import annotations

import json
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_SECONDS = 10.0
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


class ApiError(Exception):
    """The API refused a request. `code` is that of HTTP; None: no answer."""

    def __init__(self, why: str, code: int | None = None) -> None:
        super().__init__(why)
        self.code = code


@dataclass(frozen=True, slots=True)
class Cluster:
    """The address of the API, and the token of the service account."""

    url: str
    token: str = ""
    authority: str | None = None  # the file with the certificate that signed the API's

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = "application/json") -> Any:
        """Send a request with a JSON body; return the JSON of the response. Raises ApiError."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json", "Content-Type": kind}
        data = None if body is None else json.dumps(body).encode()
        asking = urllib.request.Request(f"{self.url}{path}", data, headers, method=method)
        trust = ssl.create_default_context(cafile=self.authority) if self.url.startswith("https") else None
        try:
            with urllib.request.urlopen(asking, timeout=_SECONDS, context=trust) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            raise ApiError(f"{method} {path}: {refused.code} {refused.reason}", refused.code) from None
        except HTTPException as failed:
            raise ApiError(f"{method} {path}: not an answer of HTTP ({type(failed).__name__})") from None
        except (OSError, ValueError) as failed:
            raise ApiError(f"{method} {path}: {failed}") from None


def here() -> Cluster:
    """The cluster of this pod. Raises ApiError outside of one."""
    try:
        token = (_ACCOUNT / "token").read_text().strip()
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    except (OSError, KeyError) as missing:
        raise ApiError(f"no pod with a service account: {missing}") from None
    host = f"[{host}]" if ":" in host else host
    return Cluster(f"https://{host}:{port}", token, str(_ACCOUNT / "ca.crt"))
