"""Models whose blocks a search chose one by one: Nemotron-NAS (`DeciLMForCausalLM`)."""

from __future__ import annotations

from typing import Any

from gpuplan.models.families.attention import grouped
from gpuplan.models.families.experts import mlp
from gpuplan.models.families.layers import Feed, Frame, Mixer
from gpuplan.models.fields import Fields

_BLOCKS = "a list of one block a layer, each with attention and ffn"


def mixers(fields: Fields, frame: Frame) -> tuple[Mixer | None, ...]:
    """Groups of `n_heads_in_group` query heads; none where the attention was left out."""
    made: list[Mixer | None] = []
    for block in _blocks(fields, frame, "attention"):
        group = block.get("n_heads_in_group")
        if not isinstance(group, int) or not 0 < group <= frame.attention_heads:
            made.append(None)
            continue
        made.append(grouped(frame, kv_heads=frame.attention_heads // group))
    return tuple(made)


def feeds(fields: Fields, frame: Frame) -> tuple[Feed | None, ...]:
    """Two thirds of `ffn_mult` times the hidden size, up to a multiple of 256."""
    made: list[Feed | None] = []
    for block in _blocks(fields, frame, "ffn"):
        times = block.get("ffn_mult")
        if not isinstance(times, int | float) or not 0 < times < 100:
            made.append(None)
            continue
        width = int(2 * times * frame.hidden_size / 3)
        made.append(mlp(frame, -(-width // 256) * 256))
    return tuple(made)


def _blocks(fields: Fields, frame: Frame, part: str) -> list[dict[str, Any]]:
    """One part of each block; empty where it does nothing."""
    blocks = fields.entries("block_configs", dict, _BLOCKS, frame.list_length)
    parts = [block.get(part) for block in blocks]
    return [{} if not isinstance(p, dict) or p.get("no_op") else p for p in parts]
