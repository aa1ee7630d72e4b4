"""Layers with a state of constant size: parameters and state of one layer.

Counted as the modelling code of huggingface/transformers 5.23 builds them.
"""

from __future__ import annotations

from gpuplan.models.families.layers import Frame, Mixer
from gpuplan.models.fields import Fields
from gpuplan.models.model import LinearAttention


def gated_delta_net(fields: Fields, frame: Frame) -> Mixer:
    """Qwen3-Next, Qwen3.5."""
    keys, values = fields.whole("linear_num_key_heads"), fields.whole("linear_num_value_heads")
    key, value = fields.whole("linear_key_head_dim"), fields.whole("linear_value_head_dim")
    kernel = fields.whole("linear_conv_kernel_dim")
    inner, channels = values * value, 2 * keys * key + values * value
    width = channels + inner + 2 * values  # queries, keys, values, gate; two scalars a head
    kind = LinearAttention(
        kind="gated_delta_net",
        layers=1,
        key_heads=keys,
        value_heads=values,
        key_dim=key,
        value_dim=value,
        input_width=width,
        inner_width=inner,
        state_elements=values * key * value,
        convolution_elements=channels * kernel,
    )
    scalars = 2 * frame.hidden_size * values
    return Mixer(
        linear=frame.hidden_size * (width + inner) - scalars,
        rest=scalars + channels * kernel + 2 * values + value,
        recurrent=kind,
    )


def kimi_delta(fields: Fields, frame: Frame) -> Mixer:
    """Kimi Linear: decay and gate of each channel, both of low rank."""
    stated = fields.within("linear_attn_config")
    heads, size = stated.whole("num_heads"), stated.whole("head_dim")
    kernel, inner = stated.whole("short_conv_kernel_size"), heads * size
    kind = LinearAttention(
        kind="kimi_delta",
        layers=1,
        key_heads=heads,
        value_heads=heads,
        key_dim=size,
        value_dim=size,
        input_width=3 * inner + 2 * size + heads,
        inner_width=inner,
        state_elements=heads * size * size,
        convolution_elements=3 * inner * kernel,
    )
    linear = frame.hidden_size * (4 * inner + 2 * size) + 2 * size * inner
    scalars = frame.hidden_size * heads + inner + heads + size
    return Mixer(linear=linear, rest=scalars + 3 * inner * kernel, recurrent=kind)


def lightning(_fields: Fields, frame: Frame) -> Mixer:
    """MiniMax-Text-01: linear attention with a fixed decay and an output gate."""
    heads, size = frame.attention_heads, frame.head_dim
    inner = heads * size
    kind = LinearAttention(
        kind="lightning",
        layers=1,
        key_heads=heads,
        value_heads=heads,
        key_dim=size,
        value_dim=size,
        input_width=4 * inner,
        inner_width=inner,
        state_elements=heads * size * size,
        convolution_elements=0,
    )
    return Mixer(linear=5 * frame.hidden_size * inner, rest=inner, recurrent=kind)


def mamba2(fields: Fields, frame: Frame) -> Mixer:
    """Mamba 2 as in Nemotron-H, Granite 4, Falcon-H1: fields by aliases."""
    heads, size = fields.whole("mamba_num_heads"), fields.whole("mamba_head_dim")
    groups, state = fields.whole("n_groups"), fields.whole("ssm_state_size")
    kernel, inner = fields.whole("conv_kernel"), heads * size
    channels = inner + 2 * groups * state
    width = inner + channels + heads
    biases = channels if fields.flag("use_conv_bias", default=True) else 0
    biases += width + frame.hidden_size if fields.flag("use_bias") else 0
    norm = inner if fields.flag("mamba_rms_norm", default=True) else 0
    kind = LinearAttention(
        kind="mamba2",
        layers=1,
        key_heads=groups,
        value_heads=heads,
        key_dim=state,
        value_dim=size,
        input_width=width,
        inner_width=inner,
        state_elements=heads * size * state,
        convolution_elements=channels * kernel,
    )
    return Mixer(
        linear=frame.hidden_size * (width + inner),
        rest=channels * kernel + biases + 3 * heads + norm,
        recurrent=kind,
    )


def mamba1(fields: Fields, frame: Frame) -> Mixer:
    """Mamba 1 as in Falcon-Mamba and Jamba, which norms what the state depends on."""
    inner = fields.whole("mamba_expand", 2) * frame.hidden_size
    if fields.stated("mamba_intermediate_size"):
        inner = fields.whole("mamba_intermediate_size")
    state, kernel = fields.whole("mamba_d_state"), fields.whole("mamba_d_conv")
    rank = fields.whole("mamba_dt_rank")
    normed = rank + 2 * state if fields.flag("mamba_inner_layernorms", default=False) else 0
    biases = inner if fields.flag("mamba_conv_bias", default=True) else 0
    biases += 2 * inner + frame.hidden_size if fields.flag("mamba_proj_bias") else 0
    kind = LinearAttention(
        kind="mamba",
        layers=1,
        key_heads=1,
        value_heads=inner,
        key_dim=state,
        value_dim=1,
        input_width=2 * inner,
        inner_width=inner,
        state_elements=inner * state,
        convolution_elements=inner * kernel,
    )
    own = inner * (rank + 2 * state) + rank * inner + inner  # what B, C and the step depend on
    return Mixer(
        linear=3 * frame.hidden_size * inner + own - inner,
        rest=inner * kernel + biases + normed + inner + inner * state + inner,
        recurrent=kind,
    )
