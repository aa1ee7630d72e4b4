"""The feed-forward part of a layer: an MLP, or a mixture of experts by how its fields are named."""

from __future__ import annotations

from gpuplan.models.families.layers import Feed, Feeds, Frame
from gpuplan.models.fields import Fields
from gpuplan.models.model import Experts


def mlp(frame: Frame, width: int) -> Feed:
    """Up and down projections, and a gate where there is one."""
    matrices = 3 if frame.parts.gated_mlp else 2
    linear = matrices * frame.hidden_size * width
    rest = (matrices - 1) * width + frame.hidden_size if frame.parts.mlp_bias else 0
    return Feed(linear=linear, active_linear=linear, rest=rest, active_rest=rest, width=width)


def dense(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    return (mlp(frame, fields.whole("intermediate_size")),) * frame.layers


def four_times(name: str) -> Feeds:
    """The width that the field `name` states, or four times the hidden size."""

    def feeds(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
        return (mlp(frame, fields.whole(name, 4 * frame.hidden_size)),) * frame.layers

    return feeds


def halved(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    """Qwen 1: `intermediate_size` is of gate and up projection together."""
    return (mlp(frame, fields.whole("intermediate_size") // 2),) * frame.layers


def expanded(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    """MPT: `expansion_ratio` times the hidden size."""
    return (mlp(frame, fields.whole("expansion_ratio", 4) * frame.hidden_size),) * frame.layers


def mixture(
    fields: Fields,
    frame: Frame,
    *,
    count: str,
    width: str,
    active: str = "num_experts_per_tok",
    shared: int = 0,
    shared_width: int | None = None,
    shared_gate: bool = False,
    latent: int | None = None,
) -> Feed:
    """`shared` experts of `shared_width` (else as wide as the routed ones) beside routed ones."""
    total, used, size = fields.whole(count), fields.whole(active), fields.whole(width)
    fields.at_most(active, used, count, total)
    hidden, matrices = frame.hidden_size, 3 if frame.parts.gated_mlp else 2
    beside = (shared_width or size) if shared else 0
    always = matrices * hidden * shared * beside + (2 * hidden * latent if latent else 0)
    each = matrices * (latent or hidden) * size
    router = total * (hidden + (1 if frame.parts.router_bias else 0)) + hidden * shared_gate
    bias = 2 * size + hidden if frame.parts.expert_bias else 0
    return Feed(
        linear=always + total * each,
        active_linear=always + used * each,
        rest=router + total * bias,
        active_rest=router + used * bias,
        experts=Experts(
            count=total,
            active=used,
            intermediate_size=size,
            shared=shared,
            shared_intermediate_size=beside,
            layers=1,
            latent_size=latent,
        ),
    )


def everywhere(count: str, width: str, active: str = "num_experts_per_tok") -> Feeds:
    """Experts in every layer, by the names of their fields."""

    def feeds(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
        return (mixture(fields, frame, count=count, width=width, active=active),) * frame.layers

    return feeds


# Mixtral, gpt-oss, MiniMax-M2.
local = everywhere("num_local_experts", "intermediate_size")


def qwen(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    """Every `decoder_sparse_step`-th layer but those of `mlp_only_layers`. A shared expert, where
    there is one, has a gate of its own."""
    step = fields.whole("decoder_sparse_step", 1)
    without = set(fields.entries("mlp_only_layers", int, "a list of layers"))
    width = fields.whole("shared_expert_intermediate_size", 0, least=0)
    made = mixture(
        fields,
        frame,
        count="num_experts",
        width="moe_intermediate_size",
        shared=1 if width else 0,
        shared_width=width,
        shared_gate=width > 0,
    )
    having = [(i + 1) % step == 0 and i not in without for i in range(frame.layers)]
    return _mixed(fields, frame, having, made)


def deepseek(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    """The layers from `first_k_dense_replace` on, with shared experts beside the routed ones."""
    first = fields.whole("first_k_dense_replace", least=0)
    step = fields.whole("moe_layer_freq", 1)
    fields.at_most("first_k_dense_replace", first, "num_hidden_layers", frame.layers)
    made = mixture(
        fields,
        frame,
        count="n_routed_experts",
        width="moe_intermediate_size",
        shared=fields.whole("n_shared_experts", 0, least=0),
    )
    having = [i >= first and i % step == 0 for i in range(frame.layers)]
    return _mixed(fields, frame, having, made)


def listed(
    count: str, shared: str = "n_shared_experts", dense_width: str = "intermediate_size"
) -> Feeds:
    """The layers that `moe_layer_freq` lists with 1 have experts (MiMo-V2-Flash, MiniMax-M3)."""

    def feeds(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
        wanted = f"a list of {frame.layers} numbers"
        having = [bool(n) for n in fields.entries("moe_layer_freq", int, wanted, frame.list_length)]
        made = mixture(
            fields,
            frame,
            count=count,
            width="moe_intermediate_size",
            shared=fields.whole(shared, 0, least=0),
        )
        return _mixed(fields, frame, having, made, dense_width)

    return feeds


def llama4(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    """Every `interleave_moe_layer_step`-th layer has experts and one shared expert, of width
    `intermediate_size`; the others an MLP of `intermediate_size_mlp`."""
    step = fields.whole("interleave_moe_layer_step")
    made = mixture(fields, frame, count="num_local_experts", width="intermediate_size", shared=1)
    having = [(i + 1) % step == 0 for i in range(frame.layers)]
    return _mixed(fields, frame, having, made, "intermediate_size_mlp")


def jamba(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    """Every `expert_layer_period`-th layer, from `expert_layer_offset`."""
    period, offset = (
        fields.whole("expert_layer_period"),
        fields.whole("expert_layer_offset", least=0),
    )
    made = mixture(fields, frame, count="num_experts", width="intermediate_size")
    having = [i % period == offset for i in range(frame.layers)]
    return _mixed(fields, frame, having, made)


def granite(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    """Granite 4: a shared MLP in every layer, experts beside it where there are some."""
    width = fields.whole("shared_intermediate_size")
    if not fields.whole("num_local_experts", 0, least=0):
        return (mlp(frame, width),) * frame.layers
    made = mixture(
        fields,
        frame,
        count="num_local_experts",
        width="intermediate_size",
        shared=1,
        shared_width=width,
    )
    return (made,) * frame.layers


def _mixed(
    fields: Fields,
    frame: Frame,
    having: list[bool],
    made: Feed,
    dense_width: str = "intermediate_size",
) -> tuple[Feed, ...]:
    """Experts in the layers of `having`, an MLP in the others."""
    if all(having):
        return (made,) * frame.layers
    plain = mlp(frame, fields.whole(dense_width))
    return tuple(made if has else plain for has in having)
