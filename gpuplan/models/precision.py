"""In which precision the published weights are, by a `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from gpuplan.models import messages
from gpuplan.models.fields import Fields

# `torch_dtype`, since transformers 4.56 `dtype`; absent, the format of nearly all checkpoints.
_TYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
# `quant_method` of quantization_config, as huggingface/transformers names them.
_METHODS = {"fp8": "fp8", "mxfp4": "mxfp4"}
_INTEGER_METHODS = {"awq", "gptq"}


def checkpoint_precision(fields: Fields) -> str:
    """One of bf16, fp16, fp32, fp8, int8, int4, mxfp4. Another is a problem of `fields`: which
    weights it leaves alone is not known, so its bytes cannot be counted."""
    quantization = fields.value("quantization_config")
    if isinstance(quantization, Mapping):
        method, bits = quantization.get("quant_method"), quantization.get("bits")
        if method in _INTEGER_METHODS and bits in (4, 8):
            return f"int{bits}"
        if method not in _METHODS:
            refusal = partial(messages.unknown_quantization, str(method), tuple(_METHODS))
            fields.refuse("quantization_config", refusal)
        return _METHODS.get(str(method), "bf16")
    stored = fields.value("dtype") or fields.value("torch_dtype")
    return _TYPES.get(str(stored), "bf16")
