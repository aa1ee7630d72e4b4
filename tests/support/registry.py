"""A server on loopback that answers as an OCI registry with tokens, a chart repository, the Hub of
models, and a proxy do: `Answers` says what it has, and keeps what it was asked."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHART = "ab" * 32
TOKEN = "a-token-for-everybody"
MANIFEST = json.dumps({"schemaVersion": 2, "manifests": [{"digest": "sha256:" + "0" * 64}]})
DIGEST = f"sha256:{hashlib.sha256(MANIFEST.encode()).hexdigest()}"
INDEX = f"""\
apiVersion: v1
entries:
  another:
  - version: v26.3.3
    digest: {"cd" * 32}
  gpu-operator:
  - version: v26.3.2
    digest: {"ef" * 32}
  - annotations:
      text: a line
    digest: {CHART}
    version: v26.3.3
generated: "2026-11-23T00:00:00Z"
"""


@dataclass
class Answers:
    """`instead` has (status, headers, body) for paths that are to fail. `asked` are the paths, with
    their queries; `proxied` the hosts that it was asked for as a proxy."""

    port: int = 0
    manifest: str = MANIFEST
    stated: str = DIGEST
    instead: dict[str, tuple[int, dict[str, str], str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    proxied: list[str] = field(default_factory=list)
    sent: list[dict[str, str]] = field(default_factory=list)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def answer(self, path: str, query: str, headers: Any) -> tuple[int, dict[str, str], str]:
        if path in self.instead:
            return self.instead[path]
        if path == "/token":
            scope = parse_qs(query).get("scope", [""])[0]
            return 200, {}, json.dumps({"token": TOKEN if scope.endswith(":pull") else "none"})
        if path.startswith("/v2/") and headers.get("Authorization") != f"Bearer {TOKEN}":
            repository = path.removeprefix("/v2/").partition("/manifests/")[0]
            told = f'realm="http://{self.host}/token",service="stand-in"'
            scope = f'scope="repository:{repository}:pull"'
            return 401, {"WWW-Authenticate": f"Bearer {told},{scope}"}, "{}"
        if path.startswith("/v2/") and "oci.image.index" in headers.get("Accept", ""):
            return 200, {"Docker-Content-Digest": self.stated}, self.manifest
        if path.startswith("/api/models/"):
            return 200, {}, json.dumps({"id": "x", "sha": COMMIT})
        if path.endswith("/index.yaml"):
            return 200, {}, INDEX
        return 404, {}, "{}"


@contextmanager
def serving() -> Iterator[Answers]:
    answers = Answers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.netloc:
                answers.proxied.append(parts.netloc)
            answers.asked.append(parts.path + (f"?{parts.query}" if parts.query else ""))
            answers.sent.append(dict(self.headers))
            status, headers, body = answers.answer(parts.path, parts.query, self.headers)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            """Nothing: what it was asked is kept."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    answers.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield answers
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
