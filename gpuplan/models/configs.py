"""A transformer from a Hugging Face `config.json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuplan.errors import Rejected
from gpuplan.models import messages
from gpuplan.models.families import counting
from gpuplan.models.families.architectures import Architecture, read, shape
from gpuplan.models.families.registry import architecture, architectures
from gpuplan.models.fields import LARGEST, Fields
from gpuplan.models.model import Transformer
from gpuplan.models.precision import (
    checkpoint_precision,
    quant_method,
    quantized_group,
    scaled_in_blocks,
)
from gpuplan.source import Origin


def citation(source: Mapping[str, str]) -> str:
    """`TITLE, DATE`; the date of reading where the source has none."""
    if "date" in source:
        return f"{source['title']}, {source['date']}"
    return f"{source['title']}, read {source['read']}"


def from_config(
    config: Mapping[str, Any], identifier: str, revision: str | None, source: str, origin: Origin
) -> Transformer:
    """The model that a `config.json` describes; `origin` is the file or where its content stands.
    Raises `Rejected` for an architecture that is not known and for missing or impossible
    dimensions, all at once."""
    name, known = _architecture(config, origin)
    fields = read(known, name, config, origin)
    made = shape(known, fields)
    text = made.fields
    context = known.context(text) if known.context else _context(text)
    precision = checkpoint_precision(fields, text)
    modules = text.whole("num_nextn_predict_layers", 0, least=0)
    streams = text.whole("hc_mult", 1)
    if fields.problems:
        raise Rejected(fields.problems)
    stated = text.whole("intermediate_size", 0, least=0)
    return Transformer(
        identifier=identifier,
        revision=revision,
        architecture=name,
        intermediate_size=counting.dense_width(made.layers) or stated,
        context_length=context,
        source=source,
        checkpoint_precision=precision,
        quant_method=quant_method(fields, text),
        quantized_group=quantized_group(fields, text),
        scaled_in_blocks=scaled_in_blocks(fields, text),
        mtp_layers=modules,
        residual_streams=streams,
        role=known.role,
        pooling=known.pooling,
        **counting.numbers(made),
    )


def _architecture(config: Mapping[str, Any], origin: Origin) -> tuple[str, Architecture]:
    """A known one and its name. Raises `Rejected`."""
    named = config.get("architectures")
    if named is None:
        raise Rejected([messages.no_architecture(origin)])
    where = origin.child("architectures")
    if not isinstance(named, list) or len(named) != 1 or not isinstance(named[0], str):
        wanted = "a list of one name"
        raise Rejected([messages.impossible_value("architectures", named, wanted, where)])
    known = architecture(named[0])
    if known is None:
        raise Rejected([messages.unknown_architecture(named[0], architectures(), where)])
    return named[0], known


def _context(fields: Fields) -> int:
    """Tokens of a request: what is stated, or what YaRN makes of the original length."""
    stated = fields.whole("max_position_embeddings")
    scaling = fields.mapping("rope_scaling")
    if scaling.get("rope_type", scaling.get("type")) != "yarn":
        return stated
    original = _number(
        scaling.get("original_max_position_embeddings"), LARGEST["max_position_embeddings"]
    )
    return max(stated, int(original * _number(scaling.get("factor"), 1000)))


def _number(value: Any, most: float) -> float:
    """0 for what cannot be a length or a factor."""
    return float(value) if isinstance(value, int | float) and 1 <= value <= most else 0.0
