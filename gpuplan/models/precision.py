"""In which precision the published weights are, by a `config.json`."""

from __future__ import annotations

import re
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
_COMPRESSED = {"int4": "int4", "int8": "int8", "float8": "fp8", "float4": "nvfp4"}
# `quant_algo` of NVIDIA's Model Optimizer, and formats of compressed-tensors that their bits alone
# do not tell apart. Mixed precisions are not among them: which layers are in which is a list.
_ALGORITHMS = {"FP8": "fp8", "NVFP4": "nvfp4"}
_FORMATS = {"mxfp4-pack-quantized": "mxfp4", "nvfp4-pack-quantized": "nvfp4"}

# Lists of modules that stay unquantized: of compressed-tensors and Model Optimizer, and of others.
_LEFT = ("ignore", "exclude_modules", "modules_to_not_convert")
_ATTENTION = re.compile(r".*\bself_attn(\*|\.\*)?")


def checkpoint_precision(whole: Fields, text: Fields) -> str:
    """One of bf16, fp16, fp32, fp8, int8, int4, mxfp4, nvfp4, by what the configuration says, or
    that of the language model in it. Another is a problem: which weights it leaves alone is not
    known, so its bytes cannot be counted."""
    for fields in (whole, text):
        if isinstance(quantization := fields.value("quantization_config"), Mapping):
            return _quantized(fields, quantization)
    stored = next(filter(None, (f.value(n) for f in (whole, text) for n in _STORED)), None)
    return _TYPES.get(str(stored), "bf16")


def quant_method(whole: Fields, text: Fields) -> str | None:
    """What made the checkpoint's weights of fewer bits, in the names of huggingface/transformers;
    `modelopt` too where only an algorithm of NVIDIA's Model Optimizer is named."""
    stated = _stated(whole, text)
    method = stated.get("quant_method") or ("quant_algo" in stated and "modelopt")
    return method if isinstance(method, str) else None


def quantized_group(whole: Fields, text: Fields) -> int | None:
    """Weights that share a scale, where AWQ, GPTQ or compressed-tensors say so in one number."""
    stated = _stated(whole, text)
    sizes = {p["group_size"] for p in (stated, *_weights(stated)) if "group_size" in p}
    size = sizes.pop() if len(sizes) == 1 else None
    return size if isinstance(size, int) and size > 0 else None


def scaled_in_blocks(whole: Fields, text: Fields) -> bool | None:
    """Whether the weights have a scale for each block of rows and columns, as DeepSeek-V3's of
    8 bits; None where the configuration does not say what shares one."""
    stated = _stated(whole, text)
    if "weight_block_size" in stated:
        return stated["weight_block_size"] is not None
    strategies = {str(w["strategy"]) for w in _weights(stated) if "strategy" in w}
    if strategies:
        return "block" in strategies
    # Whole configurations of `fp8` say how inputs are scaled; Model Optimizer's FP8 is by tensor.
    return False if {"quant_algo", "activation_scheme"} & stated.keys() else None


def leaves_attention(fields: Fields) -> bool:
    """Whether the configuration lists the whole attention of layers among the modules that stay as
    they were. A list that names some of its projections does not."""
    quantization = _stated(fields)
    listed = next((quantization[name] for name in _LEFT if quantization.get(name)), ())
    return isinstance(listed, list) and any(_ATTENTION.fullmatch(str(m)) for m in listed)


def _stated(*places: Fields) -> Mapping[str, Any]:
    """The first of the configurations that is one."""
    stated = (fields.value("quantization_config") for fields in places)
    return next((each for each in stated if isinstance(each, Mapping)), {})


def _quantized(fields: Fields, quantization: Mapping[str, Any]) -> str:
    method, bits = str(quantization.get("quant_method")), quantization.get("bits")
    if method in _INTEGER_METHODS and bits in (4, 8):
        return f"int{bits}"
    algorithm = quantization.get("quant_algo")
    if algorithm is not None:  # NVIDIA's; some of its files name no method, or another's
        known = _ALGORITHMS.get(str(algorithm))
    else:
        known = _METHODS.get(method) or _compressed(quantization)
    if known is None:
        named = method if algorithm is None else f"{method} {algorithm}"
        refusal = partial(messages.unknown_quantization, named, (*_METHODS, *_ALGORITHMS))
        fields.refuse("quantization_config", refusal)
    return known or "bf16"


def _compressed(quantization: Mapping[str, Any]) -> str | None:
    """compressed-tensors: what its groups agree on."""
    if quantization.get("quant_method") != "compressed-tensors":
        return None
    groups = (quantization, *_groups(quantization))
    shared = {str(each.get("format")) for each in groups}
    if len(named := [_FORMATS[f] for f in shared if f in _FORMATS]) == 1:
        return named[0]
    formats = {f"{w.get('type')}{w.get('num_bits')}" for w in _weights(quantization)}
    return _COMPRESSED.get(next(iter(formats))) if len(formats) == 1 else None


def _groups(quantization: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    stated = quantization.get("config_groups")
    groups = stated.values() if isinstance(stated, Mapping) else ()
    return [group for group in groups if isinstance(group, Mapping)]


def _weights(quantization: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """How each group of compressed-tensors stores its weights."""
    stated = (group.get("weights") for group in _groups(quantization))
    return [weights for weights in stated if isinstance(weights, Mapping)]
