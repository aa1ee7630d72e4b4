"""Which precisions the published weights of a model can be served in."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Change, Diagnostic
from gpuplan.models.model import Transformer
from gpuplan.sizing.ask.messages import contradiction
from gpuplan.sizing.model.checkpoints import FROM_UNQUANTIZED, UNQUANTIZED
from gpuplan.source import Origin


def precision_problem(model: Transformer, precision: str, at: Origin) -> Iterator[Diagnostic]:
    """Nothing, if an engine can serve the published weights in `precision`."""
    stored = model.checkpoint_precision
    if precision == stored or (stored in UNQUANTIZED and precision in FROM_UNQUANTIZED):
        return
    remedy = f"write precision: {stored}, or leave it out"
    if stored in UNQUANTIZED:
        remedy = f"leave it out, use fp8, or name a checkpoint in {precision} by its config.json"
    yield contradiction(
        f"no engine serves {model.identifier} in {precision}",
        at.child("precision"),
        f"its weights are published in {stored}",
        remedy,
        Change(at.child("precision"), None),
    )
