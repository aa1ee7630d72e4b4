"""Peak memory of `generate` in libraries that serve one batch at a time: transformers, litgpt.

What is allocated follows the libraries' code: the full prompt's logits in 16 and in 32 bits until
4.45 of transformers (`num_logits_to_keep`), a table of rotary angles in each layer and a second
copy of the cache during a step in the same releases (`past_key_values` as tuples), and the
matrix that a quantized layer multiplies with.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.accuracy.data.memory import GENERATE
from gpuplan.accuracy.protocols.body import Body, stored_bytes
from gpuplan.frozen import record

ROTARY_POSITIONS = 32768  # rows of the angle table: `max_position_embeddings` of that time's models

AWQ_PROMPT = 1024  # tokens from which AutoAWQ unpacks a layer and multiplies in 16 bits


@record
class Generation:
    """`engine` names constants; `form` is the weights'; `batch` sequences of `prompt` and `output`
    tokens; `cache_bytes` of one cached element."""

    engine: str
    form: str
    prompt: float
    output: float
    batch: float
    gpus: int
    cache_bytes: float = 2.0


def generated(
    shape: Body, run: Generation, constants: Mapping[str, Mapping[str, float]] = GENERATE
) -> float:
    """Peak bytes, all GPUs together."""
    own = constants[run.engine]
    weights = stored_bytes(shape, run.form)
    doubled = 2.0 * shape.head if shape.tied else 0.0
    if run.form == "fp8":
        weights += doubled * own["doubled_fp8"]
    weights += _tables(shape, own)
    unpacked = _unpacked(shape, run.form, own)
    fixed = own["fixed"] * 1e6 * run.gpus + own["square"] * shape.hidden**2
    cache = shape.cached * run.cache_bytes
    prefill = run.batch * run.prompt * (cache + _prefill(shape, run, own))
    if run.form == "awq" and run.prompt >= AWQ_PROMPT:
        prefill += own["awq_unpack"] * 2 * shape.hidden * shape.width
    decode = run.batch * (run.prompt + run.output) * cache * own["copies"]
    loading = stored_bytes(shape, run.form) + (doubled if _loads_twice(run, own) else 0.0)
    kept = unpacked * own["unpacked_kept"]
    return max(loading, weights + fixed + max(prefill + kept, decode + unpacked))


def _loads_twice(run: Generation, own: Mapping[str, float]) -> bool:
    """Tied heads are allocated before they are tied: always, or by AWQ's loader."""
    return bool(own["loads"]) or run.form == "awq"


def _tables(shape: Body, own: Mapping[str, float]) -> float:
    """Sine and cosine in bf16, each layer, each position."""
    return own["tables"] * shape.layers * ROTARY_POSITIONS * shape.query / shape.heads * 4


def _unpacked(shape: Body, form: str, own: Mapping[str, float]) -> float:
    """The matrix that a quantized layer unpacks its weights to."""
    whole = 2.0 * shape.hidden * shape.width
    if form in ("int8", "gptq-int8"):
        return own["unpack8"] * whole
    return own["unpack4"] * whole if form in ("int4", "gptq-int4", "nf4", "nf4-dq") else 0.0


def _prefill(shape: Body, run: Generation, own: Mapping[str, float]) -> float:
    """Bytes a prompt token beside its cache: the MLP's or the logits, on every GPU its own."""
    inside = own["mlp"] * shape.width + own["hidden"] * shape.hidden
    if run.form == "awq":
        inside = max(inside, own["awq"] * shape.width)
    logits = own["logits"] * shape.vocabulary + 2 * shape.hidden if own["logits"] else 0.0
    elsewhere = max(own["parts"] * inside, 4 * shape.vocabulary if own["logits"] else 0.0)
    return max(inside, logits) + (run.gpus - 1) * elsewhere
