"""Memory of a training run: bytes of states, and what frameworks allocate.

The trainer's constants are fitted by bench/fitting/memory.py around what its code says; a bare
loop's are of libraries that allocate little beside tensors (litgpt, torchtune).
"""

from __future__ import annotations

SOURCE = "fitted on public points of training memory (2026-11-21)"
NF4_BYTES = 4.127 / 8  # of a weight whose scales are quantized too (Dettmers 2023, section 3)
# Bytes of a parameter beside its weight: gradient, optimizer states, temporaries of an update
# (DeepSpeed: an fp32 gradient and two temporaries; torch's multi-tensor AdamW: two fp32 ones).
OPTIMIZERS: dict[str, tuple[float, float, float]] = {
    "adamw": (4.0, 12.0, 12.0),
    "adamw-8bit": (2.0, 2.0, 12.0),
    "adamw-bf16": (2.0, 4.0, 12.0),
}
ADAPTER = (2.0, 12.0, 8.0)
# Bytes a token, layer and hidden size: `stored` with recomputation, `hidden` without; `wide` a
# width of the MLP; `layer_hidden`, `layer_wide`: the layer that is recomputed; `loss` a token and
# vocabulary entry. `fixed`, and `gathered` by ZeRO-3 for adapters, on each GPU; `unpack`: matrices
# in 16 bits beside quantized ones; `group`: parameters that DeepSpeed updates at once
# (`sub_group_size`).
_LAYER = {"hidden": 13.9, "wide": 7.9, "layer_hidden": 17.5, "layer_wide": 6.8}
FRAMEWORKS: dict[str, dict[str, float]] = {
    "trainer": {
        **_LAYER,
        "stored": 1.674,
        "loss": 16.17,
        "loss_quantized": 9.034,
        "fixed": 2.122e9,
        "fixed_quantized": 0.4478e9,
        "unpack": 14.25,
        "gathered": 13.74e9,
        "group": 1e9,
    },
    "bare": {
        **_LAYER,
        "stored": 1.6,
        "loss": 9.4,
        "loss_quantized": 9.4,
        "fixed": 1.9e9,
        "fixed_quantized": 0.0,
        "unpack": 1.8,
        "gathered": 0.0,
        "group": 0.0,
    },
}
