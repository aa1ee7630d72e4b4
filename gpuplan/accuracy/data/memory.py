"""Constants of memory of measured libraries and frameworks that no plan is made for.

Public points of 2023 to 2025 (transformers 4.32 to 4.51, litgpt 2023-10, ms-swift 1.5, torchtune;
2026-11-21). GENERATE follows the libraries' code, with few numbers read off the points; FINETUNE is
fitted by bench/fitting/memory.py around what the frameworks' code says.
"""

from __future__ import annotations

# What `generate` takes beside weights and cache. `fixed`: MB on each GPU; `square`: bytes a squared
# hidden size; `tables`: of rotary angles in each layer; `copies` of the cache in a decode step;
# bytes a prompt token and width: `mlp`, `hidden`, with AWQ `awq`, a vocabulary entry `logits`;
# `unpack8`, `unpack4`, `awq_unpack`: 16-bit matrices beside quantized ones, `unpacked_kept` also
# while a prompt is read; tied heads stored twice while loading (`loads`), in fp8 for good
# (`doubled_fp8`); `parts`: of a prompt's work that every further GPU repeats.
_NONE = {
    "doubled_fp8": 0.0,
    "loads": 0.0,
    "tables": 0.0,
    "unpack8": 0.0,
    "unpack4": 1.3,
    "unpacked_kept": 1.0,
    "copies": 1.0,
    "square": 0.0,
    "mlp": 0.0,
    "hidden": 0.0,
    "awq": 0.0,
    "awq_unpack": 0.0,
    "logits": 0.0,
    "parts": 0.94,
}
GENERATE: dict[str, dict[str, float]] = {
    "transformers 4.38": {
        **_NONE,
        "loads": 1.0,
        "unpack8": 2.0,
        "fixed": 14.0,
        "square": 3.0,
        "tables": 1.0,
        "copies": 2.0,
        "mlp": 5.7,
        "hidden": 10.5,
        "logits": 6.0,
    },
    "transformers 4.46": {
        **_NONE,
        "fixed": 26.0,
        "unpacked_kept": 0.0,
        "unpack8": 0.5,
        "mlp": 5.7,
        "hidden": 10.5,
    },
    "transformers 4.51": {
        **_NONE,
        "fixed": 36.0,
        "awq": 1.2,
        "awq_unpack": 2.1,
        "doubled_fp8": 1.0,
    },
    "transformers 2023": {**_NONE, "fixed": 550.0, "copies": 2.0, "logits": 6.2},
    "nvidia-smi 2023": {
        **_NONE,
        "fixed": 80.0,
        "unpack8": 8.5,
        "unpack4": 6.7,
        "mlp": 5.7,
        "hidden": 10.5,
    },
    "litgpt": {**_NONE, "fixed": 250.0, "unpack4": 1.7},
}

# Of a training run. Bytes a token, layer and hidden size: `stored` with recomputation, `hidden`
# without; `wide` a width of the MLP (`wide_plain` where it has no gate, `wide_eager` uncompiled);
# `layer_hidden`, `layer_wide`: the layer that is recomputed; `scores` a head and squared token;
# `loss` a vocabulary entry (of it `chunked` in chunks); tokens beyond `until` count `beyond`.
# `fixed`, `wrapping` in GB; `unpack`: matrices in 16 bits beside quantized ones;
# `filled`, `cap`: parts of a GPU that are used before layers move to the next, and at most;
# `first`, `first_step`: the first GPU's part then; `typical`: of the longest sample's activations.
_ADAMW = {  # bytes a parameter: kept beside 2 of weight, and for a moment in the step
    "adapter": 8.0,
    "adapter_step": 2.0,
    "full": 6.0,
    "full_step": 2.0,
}
_LAYER = {
    "stored": 1.9,
    "layer_hidden": 17.5,
    "layer_wide": 6.8,
    "hidden": 13.9,
    "wide": 7.9,
    "wide_plain": 7.9,
    "wide_eager": 7.9,
    "no_lora": 0.0,
    "scaled": 0.0,
    "scores": 22.7,
    "until": 4096.0,
    "beyond": 1.0,
    "loss_fp32": 0.0,
    "chunked": 1.0,
    "offloaded": 0.0,
    "fixed_quantized": 0.0,
    "unpack": 0.0,
}
FINETUNE: dict[str, dict[str, float]] = {
    "swift": {
        **_LAYER,
        **_ADAMW,
        "loss": 40.74,
        "loss_quantized": 41.02,
        "until": 2048.0,
        "beyond": 0.6175,
        "loss_fp32": 54.52,
        "fixed": 0.8759,
        "fixed_quantized": 0.4,
        "unpack": 1.806,
        "filled": 0.93,
        "first": 0.8369,
        "first_step": 0.2673,
        "cap": 0.985,
        "stored": 2.211,
        "hidden": 15.24,
        "wide": 9.172,
        "layer_hidden": 18.59,
        "layer_wide": 7.343,
        "scores": 22.38,
    },
    "litgpt": {
        **_LAYER,
        **_ADAMW,
        "loss": 13.1,
        "loss_quantized": 13.1,
        "wide": 11.54,
        "wide_plain": 3.339,
        "stored": 1.619,
        "no_lora": 9.36,
        "scaled": 1.785,
        "fixed": 0.1016,
        "unpack": 30.17,
        "typical": 0.4,
        "wrapping": 1.592,
        "hidden": 10.26,
    },
    "torchtune": {
        **_LAYER,
        **_ADAMW,
        "loss": 11.11,
        "loss_quantized": 9.701,
        "wide": 4.349,
        "chunked": 0.2276,
        "eight_bit": 2.657,
        "layers_gathered": 4.1,
        "quantizing": 118.0,
        "fixed": 0.4994,
        "unpack": 0.4675,
        "stored": 1.276,
        "hidden": 18.86,
    },
}

# Of torchtitan (2024-12), as its code says: fp32 weights, gradients, moments (`full`); selective
# recomputation keeps every second product, attention's output and a layer's input in bf16
# (`hidden`, `wide`); `eager` layers keep more; `staged`: weights and gradients of a pipeline's
# stage. `loss`, `eager` and `fixed` (GB) are read off its Tables 1 and 2.
TORCHTITAN: dict[str, float] = {
    "stored": 2.0,
    "hidden": 8.0,
    "wide": 2.0,
    "eager": 2.7,
    "layer_hidden": _LAYER["layer_hidden"],
    "layer_wide": _LAYER["layer_wide"],
    "full": 16.0,
    "staged": 6.0,
    "layers_gathered": 4.0,
    "loss": 15.0,
    "fixed": 0.5,
}

# Bytes of a diffusion pipeline beside its modules: VAE and activations at 1,024 pixels; TensorRT
# engines in fp16 keep more.
DIFFUSION = {"half": 5.6e9, "other": 2.4e9}
DIFFUSION_NVFP4 = 6.16  # bits a weight: modulation and some layers stay bf16
