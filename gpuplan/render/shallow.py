"""A reader of YAML that takes no deep nesting."""

from __future__ import annotations

from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scanner import Scanner

DEEPEST = 100  # brackets that are open at once: the scanner looks at each of them for each token


class _Shallow(Scanner):
    def fetch_flow_collection_start(self, TokenClass: Any, to_push: str) -> None:  # noqa: N803
        if len(self.flow_context) == DEEPEST:
            raise RecursionError
        super().fetch_flow_collection_start(TokenClass, to_push)


def reader() -> YAML:
    """Of plain data. It raises `RecursionError` beside ruamel's own errors."""
    made = YAML(typ="safe", pure=True)
    made.Scanner = _Shallow
    return made
