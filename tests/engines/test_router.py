"""The router of a stack, as it is released, before servers that are played: what it is told makes
it send prompts to some and answers to others.

The wheel starts the same program by a launcher in Python; the image starts it alone. Both read
these words (docs/cli_reference.md of vllm-project/router).
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gpuplan.kubernetes.lower import lower
from tests.support.plans import read_plan
from tests.support.require import require
from tests.tools.program import ROOT

pytestmark = pytest.mark.enable_socket

PATIENCE_SECONDS = 60
CACHE = {"do_remote_prefill": True, "remote_host": "10.0.0.1", "remote_port": 5600}


class Server(ThreadingHTTPServer):
    """A server of vLLM as far as the router sees one; `asked` are the requests that it got."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""

    def do_GET(self) -> None:
        self._answer({"data": [{"id": "model"}]})

    def do_POST(self) -> None:
        size = int(self.headers["content-length"])
        self.server.asked.append(json.loads(self.rfile.read(size)))
        choice = {"index": 0, "text": "yes", "finish_reason": "stop"}
        body = {"id": "1", "object": "text_completion", "model": "model", "choices": [choice]}
        self._answer(body | {"kv_transfer_params": CACHE | {"remote_engine_id": self.server.url}})

    def _answer(self, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def served() -> Iterator[Server]:
    server = Server()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def words() -> list[str]:
    """What the stack tells its router."""
    plan = read_plan(ROOT / "stacks" / "pools")
    (router,) = (o for o in lower(plan).objects if o.identity == "Deployment/documents-router")
    (container,) = router.tree["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["vllm-router"]
    return list(container["args"])


def here(told: list[str], urls: dict[str, str], port: int) -> Iterator[str]:
    """The same words with other addresses, of this machine."""
    own = {"--host": "127.0.0.1", "--port": str(port), "--prometheus-host": "127.0.0.1"}
    own |= {"--prometheus-port": str(free_port())}
    for word in told:
        flag = word.partition("=")[0]
        yield f"{flag}={own[flag]}" if flag in own else urls.get(word, word)


@contextmanager
def routing(urls: dict[str, str], log: Path) -> Iterator[str]:
    if importlib.util.find_spec("vllm_router") is None:
        require("router", "no vllm-router is installed: it is in the group dev")
    port = free_port()
    command = [sys.executable, "-m", "vllm_router.launch_router", *here(words(), urls, port)]
    environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 0


def ready(router: str, log: Path) -> None:
    for _ in range(PATIENCE_SECONDS * 5):
        if status(f"{router}/readiness") == 200 == status(f"{router}/liveness"):
            return
        time.sleep(0.2)
    raise AssertionError(log.read_text(errors="replace")[-4000:])


def ask(router: str) -> dict[str, Any]:
    body = json.dumps({"model": "model", "prompt": "Is it?", "max_tokens": 7}).encode()
    asked = urllib.request.Request(
        f"{router}/v1/completions", body, {"content-type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=20) as answer:
        found: dict[str, Any] = json.loads(answer.read())
    return found


def urls_of(role: str) -> list[str]:
    told = words()
    return [told[place + 1] for place, word in enumerate(told) if word == f"--{role}"]


def test_a_prompt_goes_to_one_kind_and_its_answer_comes_from_the_other(tmp_path: Path) -> None:
    with ExitStack() as stack:
        prefill = {u: stack.enter_context(served()) for u in urls_of("prefill")}
        decode = {u: stack.enter_context(served()) for u in urls_of("decode")}
        urls = {u: s.url for u, s in (prefill | decode).items()}
        router = stack.enter_context(routing(urls, tmp_path / "log"))
        ready(router, tmp_path / "log")
        for _ in range(6):
            assert ask(router)["choices"][0]["text"] == "yes"
        prompts = [q for s in prefill.values() for q in s.asked]
        answers = [q for s in decode.values() for q in s.asked]
        assert len(prompts) == len(answers) == 6
        assert {q["max_tokens"] for q in prompts} == {1}
        assert all(q["kv_transfer_params"]["do_remote_decode"] for q in prompts)
        assert {q["max_tokens"] for q in answers} == {7}
        # Each answer is told which of the prompts' servers has its cache.
        holders = Counter(q["kv_transfer_params"]["remote_engine_id"] for q in answers)
        assert holders == {s.url: len(s.asked) for s in prefill.values()}
        counts = [len(s.asked) for s in prefill.values()]
        assert max(counts) - min(counts) <= 1, "prompts fall on all alike"


def test_a_server_that_is_away_is_left_out(tmp_path: Path) -> None:
    """A pod that is still loading its weights keeps nobody waiting."""
    with ExitStack() as stack:
        first, *others = urls_of("prefill")
        assert others
        there, answering = stack.enter_context(served()), stack.enter_context(served())
        urls = {u: f"http://127.0.0.1:{free_port()}" for u in others}
        urls |= {first: there.url} | dict.fromkeys(urls_of("decode"), answering.url)
        router = stack.enter_context(routing(urls, tmp_path / "log"))
        ready(router, tmp_path / "log")
        time.sleep(1)  # its first look at all of them
        for _ in range(4):
            assert ask(router)["choices"][0]["text"] == "yes"
        assert len(there.asked) == 4


def test_without_a_server_of_a_kind_it_is_not_ready(tmp_path: Path) -> None:
    """So that its Service sends nobody there."""
    with ExitStack() as stack:
        answering = stack.enter_context(served())
        urls = {u: f"http://127.0.0.1:{free_port()}" for u in urls_of("prefill")}
        urls |= dict.fromkeys(urls_of("decode"), answering.url)
        router = stack.enter_context(routing(urls, tmp_path / "log"))
        for _ in range(20):
            assert status(f"{router}/readiness") != 200, (tmp_path / "log").read_text()[-3000:]
            time.sleep(0.2)
