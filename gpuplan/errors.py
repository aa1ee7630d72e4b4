"""Exceptions that carry diagnostics across a call boundary.

A user's mistake is a `Diagnostic`; it travels as `Rejected` where a function cannot return one.
Every other exception that leaves a public function is a bug in gpuplan.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.diagnostics import Diagnostic


class Rejected(Exception):
    """The input cannot be compiled; `diagnostics` says why, all problems at once."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(d.message for d in self.diagnostics))
