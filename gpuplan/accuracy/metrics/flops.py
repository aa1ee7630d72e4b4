"""FLOP a token as NeMo and Megatron-Bridge count them for their published TFLOP/s.

Found from rows that publish both tokens and FLOP per second: six a weight and causal attention in
all layers as if there were no windows; gpt-oss without its gates; adapters four a weight, without
attention; modules for multi-token prediction as layers, each with a head. Before 25.09 NeMo counted
attention as if it were not causal (nemo/utils/flops_formulas.py, until #14424 of 2025-08-09), and
none in fine-tuning.
"""

from __future__ import annotations

from gpuplan.accuracy.data.models import UNGATED
from gpuplan.accuracy.metrics.steps import predicting
from gpuplan.accuracy.points.settings import Setting, version
from gpuplan.models.model import Transformer
from gpuplan.sizing.model import widths

CAUSAL = 25 + 9 / 100  # the release that first counted half of the scores
MAMBA = 18_040.0  # of a state space layer's scan, an inner unit


def flop_per_token(model: Transformer, setting: Setting, engine: str = "") -> float:
    """`engine` says the release; without one, as the newest counts."""
    w = {name: q.value for name, q in widths.inputs(model).items()}
    further, heads = predicting(model, setting.framework)
    routed = w.get("routed_parameters", 0.0)
    if model.architecture.startswith(UNGATED):
        routed *= 2 / 3
    deeper = 1 + further / model.layers
    weights = (w["unrouted_parameters"] + routed) * deeper
    weights += model.vocabulary * model.hidden_size * (1 + heads)
    if setting.method.adapter:
        return 4 * weights
    attended = (w["full_width"] + w["window_width"]) * deeper
    scores = _scores(engine, fine_tuned=setting.recipe == "sft")
    return 6 * weights + scores * setting.length * attended + MAMBA * w["mamba_width"]


def _scores(engine: str, *, fine_tuned: bool) -> float:
    """FLOP a token, a token of the sequence and a unit of attention's width."""
    old = (version(engine) or CAUSAL) < CAUSAL
    return (0.0 if fine_tuned else 12.0) if old else 6.0
