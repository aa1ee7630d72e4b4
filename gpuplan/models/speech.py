"""Whisper from its `config.json`: an encoder of windows of audio, a decoder that writes them down.

Counted as the modelling code of huggingface/transformers 5.23 builds it; the head is the embedding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuplan.errors import Rejected
from gpuplan.models.fields import Fields
from gpuplan.models.model import AttentionLayers, Speech, Transformer
from gpuplan.models.precision import checkpoint_precision
from gpuplan.source import Origin

ARCHITECTURE = "WhisperForConditionalGeneration"
WINDOW_SECONDS = 30  # of audio; two positions of the features make one of the encoder
_CONVOLUTION = 3  # taps


def is_speech(config: Mapping[str, Any]) -> bool:
    return config.get("architectures") == [ARCHITECTURE]


def speech(
    config: Mapping[str, Any], identifier: str, revision: str | None, source: str, origin: Origin
) -> Speech:
    """Raises `Rejected` for missing or impossible dimensions, all at once."""
    fields = Fields(config, ARCHITECTURE, origin)
    width, mels = fields.whole("d_model"), fields.whole("num_mel_bins", 80)
    heard, written = (
        fields.whole("max_source_positions", 1500),
        fields.whole("max_target_positions"),
    )
    vocabulary = fields.whole("vocab_size")
    ends = {
        "encoder": _CONVOLUTION * width * (mels + width) + (2 + heard + 2) * width,
        "decoder": (vocabulary + written + 2) * width,
    }
    halves = {}
    for half, attentions in (("encoder", 1), ("decoder", 2)):
        layers, heads = fields.whole(f"{half}_layers"), fields.whole(f"{half}_attention_heads")
        inner = fields.whole(f"{half}_ffn_dim")
        head = fields.multiple("d_model", width, f"{half}_attention_heads", heads)
        matrices = attentions * 4 * width**2 + 2 * width * inner
        rest = attentions * 5 * width + inner + width + 2 * width
        halves[half] = Transformer(
            identifier=identifier,
            revision=revision,
            architecture=ARCHITECTURE,
            layers=layers,
            hidden_size=width,
            attention_heads=heads,
            kv_heads=heads,
            head_dim=head,
            intermediate_size=inner,
            vocabulary=vocabulary if half == "decoder" else 0,
            tied_embeddings=True,
            gated_mlp=False,
            context_length=written if half == "decoder" else heard,
            latent=None,
            experts=None,
            sliding_window=None,
            sliding_layers=0,
            parameters=layers * (matrices + rest) + ends[half],
            active_parameters=layers * (matrices + rest) + ends[half],
            linear_parameters=layers * matrices,
            active_linear_parameters=layers * matrices,
            source=source,
            attention=(
                AttentionLayers(
                    layers=layers,
                    heads=heads,
                    kv_heads=heads,
                    head_dim=head,
                    value_dim=head,
                    cached_per_token=2 * width,
                ),
            ),
            role="encoder" if half == "encoder" else "decoder",
        )
    precision = checkpoint_precision(fields, fields)
    if fields.problems:
        raise Rejected(fields.problems)
    return Speech(
        identifier=identifier,
        revision=revision,
        architecture=ARCHITECTURE,
        encoder=halves["encoder"],
        decoder=halves["decoder"],
        parameters=sum(half.parameters for half in halves.values()),
        window_seconds=WINDOW_SECONDS,
        source=source,
        checkpoint_precision=precision,
    )
