"""Memory of an engine that reads texts: weights, the work space of a step, and of a decoder the
cache of its tokens."""

from __future__ import annotations

from functools import cache

from gpuplan.models.model import Transformer
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.memory.engines import engine_memory, step_tokens
from gpuplan.sizing.memory.margin import SERVED, interval

# 90 % of serving's memory is known to 3 %; of readers nothing was measured.
INTERVAL = (0.85, 1.25)
INTERVAL_SOURCE = "assumption: no memory of a reading engine was measured"
STEP = sheet("""
    max_num_batched_tokens: 1 = max(default_step_tokens, least_step_tokens)
        # the engine's default of a server; a text is read in one step
""")
_MEMORY = """
    weights_bytes: B = ceil(projection_parameters * matmul_bytes_each
        + dense_parameters * dense_bytes_each + other_parameters * bf16_bytes)
        # linear layers in the precision; embeddings and norms in 16 bits
    activations_bytes: B = ceil(bf16_bytes * max_num_batched_tokens
        * (2.7 * mlp_width + 1.7 * hidden_size))  # 16-bit work space of a step
    kv_cache_bytes: B = {cache}
    own_bytes: B = context_bytes  # context, graphs and allocator of the engine
"""
_CACHE = {
    True: """ceil(bf16_bytes * kept_elements * max_num_batched_tokens)
        # a decoder keeps the keys and values of a step's tokens""",
    False: "0 * context_bytes  # an encoder keeps nothing",
}


@cache
def memory(model: Transformer) -> Sheet:
    """Needs the shape and `memory_scope`."""
    parts = sheet(_MEMORY.format(cache=_CACHE[model.causal]))
    return parts + SERVED


def memory_scope(model: Transformer, device: Device, engine: str) -> Scope:
    """Numbers of an engine on a device."""
    scope: Scope = {"memory_bytes": device.memory_bytes}
    memory = device.gpu.memory_bytes.value
    scope |= engine_memory(engine) | step_tokens(engine, device.gpu.identifier, memory)
    if model.causal:
        kept = sum(group.layers * group.cached_per_token for group in model.attention)
        scope["kept_elements"] = Quantity(float(kept), "1", model.source)
    return scope


def least_tokens(model: Transformer, engine: str, longest: Quantity) -> Quantity:
    """Those of a step below which the engine does not start: what it is told of the `longest` text,
    or, of TEI that cuts none short, what the model reads (v1.9.3, router/src/lib.rs)."""
    if engine != "tei":
        return longest
    return Quantity(float(model.context_length), "1", model.source)


def confidence_memory(confidence: float) -> dict[str, Quantity]:
    return interval(INTERVAL[1], confidence, INTERVAL_SOURCE)
