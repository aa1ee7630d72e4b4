"""FLOP a token as Megatron-Bridge counts them for its published TFLOP/s.

Found from rows that publish both tokens and FLOP per second: six a weight and causal attention in
all layers as if there were no windows; gpt-oss without its gates; adapters four a weight, without
attention; modules for multi-token prediction as layers, each with a head.
"""

from __future__ import annotations

from gpuplan.accuracy.metrics.steps import predicting
from gpuplan.accuracy.points.settings import Setting
from gpuplan.models.model import Transformer
from gpuplan.sizing.model import widths

MAMBA = 18_040.0  # of a state space layer's scan, an inner unit
UNGATED = ("GptOssForCausalLM",)


def flop_per_token(model: Transformer, setting: Setting) -> float:
    w = {name: q.value for name, q in widths.inputs(model).items()}
    further, heads = predicting(model, setting.framework)
    routed = w.get("routed_parameters", 0.0)
    if model.architecture in UNGATED:
        routed *= 2 / 3
    deeper = 1 + further / model.layers
    weights = (w["unrouted_parameters"] + routed) * deeper
    weights += model.vocabulary * model.hidden_size * (1 + heads)
    if setting.method.adapter:
        return 4 * weights
    attended = (w["full_width"] + w["window_width"]) * deeper
    return 6 * weights + 6 * setting.length * attended + MAMBA * w["mamba_width"]
