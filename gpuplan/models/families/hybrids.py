"""Which kind each layer of a hybrid is, by how its configuration says it."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.models.families import attention, recurrent
from gpuplan.models.families.attention import full, full_latent, grouped
from gpuplan.models.families.experts import mixture, mlp
from gpuplan.models.families.layers import Feed, Frame, Mixer
from gpuplan.models.fields import Fields


def _layer_types(fields: Fields, frame: Frame) -> tuple[str, ...]:
    """`layer_types`, or every `full_attention_interval`-th layer (Qwen3-Next)."""
    if fields.stated("layer_types"):
        return _named(fields, frame, "full_attention", "linear_attention")
    every = fields.whole("full_attention_interval")
    return tuple(
        "linear_attention" if (i + 1) % every else "full_attention" for i in range(frame.layers)
    )


def _named(fields: Fields, frame: Frame, *among: str) -> tuple[str, ...]:
    return tuple(fields.choices("layer_types", among, frame.list_length))


def _kimi_layers(fields: Fields, frame: Frame) -> tuple[str, ...]:
    """The numbers of the layers with delta attention, from 1."""
    stated = fields.within("linear_attn_config")
    listed = set(stated.entries("kda_layers", int, "a list of layers"))
    return tuple("delta" if i + 1 in listed else "latent" for i in range(frame.layers))


def _lightning_layers(fields: Fields, frame: Frame) -> tuple[str, ...]:
    """0 in `attn_type_list` is lightning attention, 1 softmax attention."""
    listed = fields.entries("attn_type_list", int, "a list of 0 and 1", frame.list_length)
    return tuple("full" if kind else "lightning" for kind in listed)


def _jamba_layers(fields: Fields, frame: Frame) -> tuple[str, ...]:
    period, offset = fields.whole("attn_layer_period"), fields.whole("attn_layer_offset", least=0)
    return tuple("full" if i % period == offset else "mamba" for i in range(frame.layers))


def _granite_layers(fields: Fields, frame: Frame) -> tuple[str, ...]:
    return _named(fields, frame, "attention", "mamba")


qwen_next = attention.by_kind(
    _layer_types, full_attention=full, linear_attention=recurrent.gated_delta_net
)
kimi = attention.by_kind(_kimi_layers, latent=full_latent, delta=recurrent.kimi_delta)
minimax = attention.by_kind(_lightning_layers, full=full, lightning=recurrent.lightning)
jamba = attention.by_kind(_jamba_layers, full=full, mamba=recurrent.mamba1)
granite = attention.by_kind(_granite_layers, attention=full, mamba=recurrent.mamba2)


def parallel(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """Falcon-H1: attention and Mamba 2 beside each other in every layer."""
    softmax, beside = grouped(frame), recurrent.mamba2(fields, frame)
    both = replace(
        softmax,
        linear=softmax.linear + beside.linear,
        rest=softmax.rest + beside.rest,
        recurrent=beside.recurrent,
    )
    return (both,) * frame.layers


def mamba(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    return (recurrent.mamba1(fields, frame),) * frame.layers


def no_feed(_fields: Fields, frame: Frame) -> tuple[None, ...]:
    return (None,) * frame.layers


_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def _blocks(fields: Fields) -> tuple[str, ...]:
    """Nemotron-H: a layer is one block, as a letter or a word says."""
    if fields.stated("layers_block_type"):
        return tuple(fields.choices("layers_block_type", tuple(_LETTERS.values())))
    letters = fields.letters("hybrid_override_pattern", "".join(_LETTERS))
    return tuple(_LETTERS[letter] for letter in letters)


def block_mixers(fields: Fields, frame: Frame) -> tuple[Mixer | None, ...]:
    blocks = _blocks(fields)
    made = {
        "attention": grouped(frame),
        "mamba": recurrent.mamba2(fields, frame) if "mamba" in blocks else None,
    }
    return tuple(made.get(block) for block in blocks)


def block_feeds(fields: Fields, frame: Frame) -> tuple[Feed | None, ...]:
    blocks = _blocks(fields)
    made: dict[str, Feed] = {}
    if "mlp" in blocks:
        made["mlp"] = mlp(frame, fields.whole("intermediate_size"))
    if "moe" in blocks:
        latent = fields.whole("moe_latent_size", 0, least=0)
        made["moe"] = mixture(
            fields,
            frame,
            count="n_routed_experts",
            width="moe_intermediate_size",
            shared=fields.whole("n_shared_experts", 0, least=0),
            shared_width=fields.whole("moe_shared_expert_intermediate_size", 0, least=0),
            latent=latent or None,
        )
    return tuple(made.get(block) for block in blocks)
