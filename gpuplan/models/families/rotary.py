"""Elements of the tables of rotary positions that engines keep on every GPU.

vLLM computes them for every position that a model knows, whatever a server accepts, one table for
all layers of a kind (vllm/model_executor/layers/rotary_embedding, read 2026-11-29). Counted beside
towers alone: those of models of text have a few tens of megabytes.
"""

from __future__ import annotations

from gpuplan.models.families.layers import Frame
from gpuplan.models.fields import Fields


def uncounted(_fields: Fields, _frame: Frame) -> int:
    return 0


def plain(fields: Fields, frame: Frame) -> int:
    """One table; of latent attention for the part of a head that has positions."""
    return _positions(fields) * fields.whole("qk_rope_head_dim", frame.head_dim)


def gemma3(fields: Fields, frame: Frame) -> int:
    """Of the layers that see everything, whose positions are scaled linearly: as many times longer.
    Those with a window have one of their own."""
    scaling = fields.mapping("rope_scaling")
    factor = scaling.get("factor") if "linear" in scaling.values() else None
    longer = int(factor) if isinstance(factor, int | float) and 1 <= factor <= 1000 else 1
    return _positions(fields) * (longer + 1) * frame.head_dim


def gemma4(fields: Fields, frame: Frame) -> int:
    """Layers that see everything have wider heads."""
    return _positions(fields) * (frame.head_dim + fields.whole("global_head_dim"))


def qwen_vl(fields: Fields, frame: Frame) -> int:
    """Four times as many positions, for videos."""
    return 4 * plain(fields, frame)


def qwen3_5(fields: Fields, frame: Frame) -> int:
    """The same of a part of each head."""
    return round(qwen_vl(fields, frame) * fields.share("partial_rotary_factor", 0.25))


def _positions(fields: Fields) -> int:
    return fields.whole("max_position_embeddings")
