"""Encoders: of text (BERT and its family, ModernBERT, CLIP), of images (ViT, CLIP), and T5.

Parts as the modelling code of huggingface/transformers 5.23 builds them. Models without a head for
tokens have tied embeddings here: there is no second matrix.
"""

from __future__ import annotations

from dataclasses import replace

from gpuplan.models.families import attention, experts, windows
from gpuplan.models.families.architectures import Architecture, as_many
from gpuplan.models.families.attention import grouped, projections
from gpuplan.models.families.experts import mlp
from gpuplan.models.families.layers import Feed, Frame, Mixer, Parts
from gpuplan.models.families.towers import COLOURS
from gpuplan.models.fields import Fields

_PARTS = Parts(norm_bias=True, gated_mlp=False, mlp_bias=True, attention_bias="all")


def _embeddings(fields: Fields, frame: Frame, _vocabulary: int) -> int:
    """Positions, types of token, and the norm of their sum."""
    rows = fields.whole("max_position_embeddings") + fields.whole("type_vocab_size", 2)
    return (rows + 2) * frame.hidden_size


def _positions_after_padding(fields: Fields) -> int:
    """RoBERTa counts positions from the number of the padding token on: the rows up to it are taken
    (`create_position_ids_from_input_ids` in its modelling code)."""
    rows = fields.whole("max_position_embeddings")
    return max(1, rows - fields.whole("pad_token_id", 1, least=0) - 1)


def _square(frame: Frame) -> int:
    return frame.hidden_size**2 + frame.hidden_size


def _pooled(fields: Fields, frame: Frame, vocabulary: int) -> int:
    return _embeddings(fields, frame, vocabulary) + _square(frame)


def _masked(fields: Fields, frame: Frame, vocabulary: int) -> int:
    head = _square(frame) + 2 * frame.hidden_size + vocabulary
    return _embeddings(fields, frame, vocabulary) + head


def _pretraining(fields: Fields, frame: Frame, vocabulary: int) -> int:
    next_sentence = 2 * frame.hidden_size + 2
    return _masked(fields, frame, vocabulary) + _square(frame) + next_sentence


def _labelled(fields: Fields, frame: Frame) -> int:
    return (frame.hidden_size + 1) * (len(fields.mapping("id2label")) or 2)


def _ranked(fields: Fields, frame: Frame, vocabulary: int) -> int:
    """A classifier of two layers over the first token; of BERT the first of them is its pooler."""
    return _embeddings(fields, frame, vocabulary) + _square(frame) + _labelled(fields, frame)


def _modern_ranked(fields: Fields, frame: Frame, _vocabulary: int) -> int:
    """A dense layer and a norm, neither with a bias, and the classifier."""
    return frame.hidden_size**2 + frame.hidden_size + _labelled(fields, frame)


_BERT = Architecture(
    parts=_PARTS,
    ends=_pooled,
    kv_heads=as_many,
    defaults={"tie_word_embeddings": True},
    last_norm=False,
    role="encoder",
)


_ROBERTA = replace(_BERT, context=_positions_after_padding)


def _modern_head(_fields: Fields, frame: Frame, vocabulary: int) -> int:
    return frame.hidden_size**2 + frame.hidden_size + vocabulary


# The first layer has no norm before its attention; the embeddings have one instead.
_MODERN = Architecture(
    mixers=attention.windowed(windows.all_but_every_nth("global_attn_every_n_layers", 3, first=0)),
    bias_field="attention_bias",
    kv_heads=as_many,
    names={"sliding_window": "local_attention"},
    defaults={"tie_word_embeddings": True},
    role="encoder",
)


def _patches(fields: Fields) -> int:
    return (fields.whole("image_size") // fields.whole("patch_size")) ** 2


def _tokens(fields: Fields) -> int:
    """Tokens of an image: its patches and one for the whole."""
    return _patches(fields) + 1


def _patch_embedding(fields: Fields, frame: Frame) -> int:
    pixels = COLOURS * fields.whole("patch_size") ** 2
    return (pixels + _patches(fields) + 2) * frame.hidden_size


def _vit(fields: Fields, frame: Frame, _vocabulary: int) -> int:
    labels = len(fields.mapping("id2label")) or 2
    head = (frame.hidden_size + 1) * labels
    return _patch_embedding(fields, frame) + frame.hidden_size + head


def _vit_pooled(fields: Fields, frame: Frame, _vocabulary: int) -> int:
    return _patch_embedding(fields, frame) + frame.hidden_size + _square(frame)


def _clip_vision(fields: Fields, frame: Frame, _vocabulary: int) -> int:
    return _patch_embedding(fields, frame) + 2 * frame.hidden_size


def _clip_vision_projected(fields: Fields, frame: Frame, vocabulary: int) -> int:
    projection = frame.hidden_size * fields.whole("projection_dim")
    return _clip_vision(fields, frame, vocabulary) + projection


def _clip_text(fields: Fields, frame: Frame, _vocabulary: int) -> int:
    return fields.whole("max_position_embeddings") * frame.hidden_size


def _clip_text_projected(fields: Fields, frame: Frame, vocabulary: int) -> int:
    projection = frame.hidden_size * fields.whole("projection_dim")
    return _clip_text(fields, frame, vocabulary) + projection


_IMAGE = Architecture(
    parts=_PARTS,
    ends=_vit,
    kv_heads=as_many,
    context=_tokens,
    defaults={"vocab_size": 0, "tie_word_embeddings": True},
    role="encoder",
)
_CLIP_TEXT = replace(_BERT, ends=_clip_text, last_norm=True)


def _t5_parts(fields: Fields, parts: Parts) -> Parts:
    gated = str(fields.value("feed_forward_proj") or "relu").startswith("gated")
    return replace(parts, gated_mlp=gated)


def _t5_decoder_layers(fields: Fields, frame: Frame) -> int:
    return fields.whole("num_decoder_layers", frame.layers)


def _t5_mixers(fields: Fields, frame: Frame) -> tuple[Mixer, ...]:
    """Encoder layers, then those of the decoder, each with a second attention to the encoder."""
    own = grouped(frame)
    assert own.attention is not None
    crossing = replace(
        own, linear=own.linear + projections(own.attention, frame), rest=frame.hidden_size
    )
    return (own,) * frame.layers + (crossing,) * _t5_decoder_layers(fields, frame)


def _t5_feeds(fields: Fields, frame: Frame) -> tuple[Feed, ...]:
    made = mlp(frame, fields.whole("intermediate_size"))
    return (made,) * (frame.layers + _t5_decoder_layers(fields, frame))


def _t5_encoder(fields: Fields, frame: Frame, _vocabulary: int) -> int:
    """Biases of relative positions, one table for all layers."""
    return fields.whole("relative_attention_num_buckets", 32) * frame.attention_heads


def _t5_ends(fields: Fields, frame: Frame, vocabulary: int) -> int:
    return 2 * _t5_encoder(fields, frame, vocabulary) + frame.hidden_size


_T5 = Architecture(
    mixers=_t5_mixers,
    feeds=_t5_feeds,
    ends=_t5_ends,
    adjust=_t5_parts,
    kv_heads=as_many,
    names={
        "hidden_size": "d_model",
        "intermediate_size": "d_ff",
        "num_hidden_layers": "num_layers",
        "num_attention_heads": "num_heads",
        "head_dim": "d_kv",
        "max_position_embeddings": "n_positions",
    },
    defaults={"tie_word_embeddings": True, "n_positions": 512},
    head_dim="stated",
    role="encoder_decoder",
)

ENCODERS: dict[str, Architecture] = {
    "BertForMaskedLM": replace(_BERT, ends=_masked),
    "BertForPreTraining": replace(_BERT, ends=_pretraining),
    "BertForSequenceClassification": replace(_BERT, ends=_ranked, pooling="score"),
    "BertModel": replace(_BERT, pooling="embed"),
    "CLIPTextModel": _CLIP_TEXT,
    "CLIPTextModelWithProjection": replace(_CLIP_TEXT, ends=_clip_text_projected),
    "CLIPVisionModel": replace(_IMAGE, ends=_clip_vision),
    "CLIPVisionModelWithProjection": replace(_IMAGE, ends=_clip_vision_projected),
    "MT5ForConditionalGeneration": _T5,
    "ModernBertForMaskedLM": replace(_MODERN, ends=_modern_head),
    "ModernBertForSequenceClassification": replace(_MODERN, ends=_modern_ranked, pooling="score"),
    "ModernBertModel": replace(_MODERN, pooling="embed"),
    "RobertaForMaskedLM": replace(_ROBERTA, ends=_masked),
    "RobertaForSequenceClassification": replace(_ROBERTA, ends=_ranked, pooling="score"),
    "RobertaModel": replace(_ROBERTA, pooling="embed"),
    "T5EncoderModel": replace(
        _T5,
        mixers=attention.plain,
        feeds=experts.dense,
        ends=_t5_encoder,
        role="encoder",
    ),
    "T5ForConditionalGeneration": _T5,
    "ViTForImageClassification": _IMAGE,
    "ViTModel": replace(_IMAGE, ends=_vit_pooled),
    "XLMRobertaForSequenceClassification": replace(_ROBERTA, ends=_ranked, pooling="score"),
    "XLMRobertaModel": replace(_ROBERTA, pooling="embed"),
}
