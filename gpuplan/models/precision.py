"""In which precision the published weights are, by a `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gpuplan.models import messages
from gpuplan.models.fields import Fields

# Absent, the format of nearly all checkpoints.
_STORED = ("dtype", "torch_dtype")
_TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
# `quant_method` of quantization_config, as huggingface/transformers names them.
_METHODS = {"fp8": "fp8", "mxfp4": "mxfp4"}
_INTEGER_METHODS = {"awq", "gptq"}
_COMPRESSED = {"int4": "int4", "int8": "int8", "float8": "fp8"}


def checkpoint_precision(whole: Fields, text: Fields) -> str:
    """One of bf16, fp16, fp32, fp8, int8, int4, mxfp4, by what the configuration says, or that of
    the language model in it. Another is a problem: which weights it leaves alone is not known, so
    its bytes cannot be counted."""
    for fields in (whole, text):
        if isinstance(quantization := fields.value("quantization_config"), Mapping):
            return _quantized(fields, quantization)
    stored = next(filter(None, (f.value(n) for f in (whole, text) for n in _STORED)), None)
    return _TYPES.get(str(stored), "bf16")


def _quantized(fields: Fields, quantization: Mapping[str, Any]) -> str:
    method, bits = str(quantization.get("quant_method")), quantization.get("bits")
    if method in _INTEGER_METHODS and bits in (4, 8):
        return f"int{bits}"
    known = _METHODS.get(method) or _compressed(quantization)
    if known is None:
        refusal = partial(messages.unknown_quantization, method, tuple(_METHODS))
        fields.refuse("quantization_config", refusal)
    return known or "bf16"


def _compressed(quantization: Mapping[str, Any]) -> str | None:
    """compressed-tensors: what its groups agree on."""
    groups = quantization.get("config_groups")
    if quantization.get("quant_method") != "compressed-tensors" or not isinstance(groups, Mapping):
        return None
    parts = [g.get("weights") for g in groups.values() if isinstance(g, Mapping)]
    formats = {f"{p.get('type')}{p.get('num_bits')}" for p in parts if isinstance(p, Mapping)}
    return _COMPRESSED.get(next(iter(formats))) if len(formats) == 1 else None
