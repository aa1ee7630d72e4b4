"""One question to one server, without credentials of anybody; proxies are those of the environment.

A server that sends to another host is not followed: what answers there is not what was asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from typing import Any, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    Request,
    build_opener,
    getproxies,
    proxy_bypass,
)

from gpuplan.errors import Rejected
from gpuplan.online import messages

TIMEOUT_SECONDS = 30
MOST_BYTES = 64 * 2**20
OK, NOT_FOUND, TOO_MANY = 200, 404, 429
NOT_ALLOWED = (401, 403, 407)
AGENT = {"User-Agent": "gpuplan"}


@dataclass(frozen=True, slots=True)
class Answer:
    """`headers` has names in any case."""

    status: int
    headers: Message
    body: bytes

    def json(self, host: str, subject: str) -> Any:
        """Raises `Rejected`."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as problem:
            raise Rejected([messages.unusable(host, subject, "it is no JSON")]) from problem


class _SameHost(HTTPRedirectHandler):
    def redirect_request(  # noqa: PLR0917 - the library's own signature
        self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        here, target = urlsplit(req.full_url), urlsplit(newurl)
        if (here.scheme, here.netloc) != (target.scheme, target.netloc):
            fp.close()
            raise Rejected([messages.sent_elsewhere(here.netloc, target.netloc or newurl)])
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def get(url: str, headers: Mapping[str, str] = {}) -> Answer:
    """The answer, whatever its status. Raises `Rejected` where there is none."""
    host = urlsplit(url).netloc
    request = Request(url, headers={**AGENT, **headers})  # noqa: S310 - both schemes are meant
    try:
        with build_opener(_SameHost()).open(request, timeout=TIMEOUT_SECONDS) as response:
            return _read(response.status, response.headers, response, host)
    except HTTPError as problem:
        with problem:
            return _read(problem.code, problem.headers, problem, host)
    except URLError as problem:
        raise Rejected([messages.unreachable(host, _reason(problem), _proxy(url))]) from problem
    except (OSError, HTTPException, ValueError) as problem:
        raise Rejected([messages.unreachable(host, _words(problem), _proxy(url))]) from problem


def _read(status: int, headers: Message, stream: Any, host: str) -> Answer:
    body = stream.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise Rejected([messages.unusable(host, "this", "it is larger than 64 MiB")])
    return Answer(status, headers, body)


def refuse(answer: Answer, host: str, subject: str) -> NoReturn:
    """The one message for an answer that is not the wanted one."""
    if answer.status in NOT_ALLOWED:
        problem = messages.not_allowed(host, subject, answer.status)
    elif answer.status == NOT_FOUND:
        problem = messages.not_there(host, subject)
    elif answer.status == TOO_MANY:
        problem = messages.too_often(host, subject, answer.headers.get("Retry-After"))
    else:
        problem = messages.unusable(host, subject, f"its status is {answer.status}")
    raise Rejected([problem])


def _reason(problem: URLError) -> str:
    return _words(problem.reason) if isinstance(problem.reason, Exception) else str(problem.reason)


def _words(problem: Exception) -> str:
    return getattr(problem, "strerror", None) or str(problem) or type(problem).__name__


def _proxy(url: str) -> str | None:
    """The proxy that a question goes through, without what may stand before its host."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if proxy is None or proxy_bypass(parts.hostname or ""):
        return None
    return proxy.rpartition("@")[2].partition("://")[2] or proxy.rpartition("@")[2]
