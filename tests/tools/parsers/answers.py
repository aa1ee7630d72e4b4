"""How the programs `ask_*.py` answer: a JSON list on the last line of what they print.

Runs in the environment of the parsers, knows no gpuplan.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable
from typing import Any


def answer(parse: Callable[[Any], dict[str, Any]]) -> None:
    """`parse` each question of the standard input: what it returns, or `error`, the engine's own
    words."""
    print(json.dumps([_one(parse, question) for question in json.load(sys.stdin)]))


def _one(parse: Callable[[Any], dict[str, Any]], question: Any) -> dict[str, Any]:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            return parse(question)
    except SystemExit:  # of argparse, which has said why
        return {"error": said.getvalue().strip()[-600:]}
    except Exception as problem:  # noqa: BLE001 - whatever it is, it is the engine's refusal
        return {"error": f"{type(problem).__name__}: {problem}"[:900]}
