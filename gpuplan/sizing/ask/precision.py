"""Which precisions the published weights of a model can be served in."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Change, Diagnostic
from gpuplan.models.model import Transformer
from gpuplan.sizing.ask.messages import contradiction
from gpuplan.sizing.model.checkpoints import FROM_UNQUANTIZED, UNQUANTIZED
from gpuplan.source import Origin

# Engines that make no weights of fewer bits while they load: docs/source/features/
# quantization.md of NVIDIA/TensorRT-LLM (09d4c79ba941a5c2c62c878c3572c0dcc8b85efa) names published
# checkpoints alone.
AS_STORED = {"tensorrt-llm": "docs/source/features/quantization.md of NVIDIA/TensorRT-LLM"}


def precision_problem(
    model: Transformer, precision: str, engine: str | None, at: Origin
) -> Iterator[Diagnostic]:
    """Nothing, if the engine, or any where none is named, can serve the published weights in
    `precision`."""
    stored = model.checkpoint_precision
    if engine in AS_STORED and stored in UNQUANTIZED and precision not in (stored, *UNQUANTIZED):
        yield contradiction(
            f"{engine} makes no weights in {precision} of {model.identifier}",
            at.child("precision"),
            f"it reads what is published, in {stored} ({AS_STORED[engine]})",
            f"name a checkpoint in {precision}, leave it out, or leave 'engine' out",
            Change(at.child("precision"), None),
            Change(at.child("engine"), None),
        )
        return
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
