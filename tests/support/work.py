"""How much is done, counted: a slow machine, or one that others use too, counts the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count


def calls(run: Callable[[], object]) -> int:
    """The calls of functions, Python's and C's, that `run` makes."""
    counted, before = count(), sys.getprofile()

    def called(_frame: object, event: str, _function: object) -> None:
        if event in ("call", "c_call"):
            next(counted)

    sys.setprofile(called)
    try:
        run()
    finally:
        sys.setprofile(before)
    return next(counted)
