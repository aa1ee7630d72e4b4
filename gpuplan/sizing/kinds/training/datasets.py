"""What a training run keeps of its dataset: the files, their text, and what is made of it.

Axolotl tokenizes the text, packs the sequences, and saves the result; each step leaves an Arrow
file. Downloads of the hub lie in one cache with the weights.
"""

from __future__ import annotations

from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.needs import TOKEN_TEXT
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Formula, Quantity, constant

# 24.5 MB of Parquet are 47.8 MB in memory: `dataset_info` of a copy of tatsu-lab/alpaca.
_TEXT_SHARE = constant(2, "1", "text in Arrow beside its Parquet: dataset_info of tatsu-lab/alpaca")
# `input_ids` in 4 bytes, `attention_mask` in 1, `labels` in 8; `position_ids` in 8 once sequences
# are packed. Source: `OptimizedTypedSequence` of huggingface/datasets; other columns are int64.
_TOKENIZED = constant(13, "B", "a token's input_ids, attention_mask and labels in Arrow")
PACKED_TOKEN = constant(21, "B", "the same with position_ids")

_DOWNLOADS = Formula("model_bytes + dataset_bytes", "B", "one cache holds what the hub gives")
_TEXT = Formula("text_share * dataset_bytes", "B", "the text as it is read")
_TOKENS = Formula("dataset_text_bytes / token_text", "1", "tokens of that text")
_PREPARED = Formula(
    "dataset_tokens * (tokenized_token + 2 * packed_token)",
    "B",
    "left by each step: tokens, packed sequences, and these once more where the run reads them",
)
_KEPT = Formula(
    "dataset_bytes + dataset_text_bytes + dataset_prepared_bytes",
    "B",
    "files that were put there, their text, and what is made of it",
)


def downloads(settled: Settled[TrainingDemand], model: Quantity) -> Quantity:
    """What the hub gives a run whose published weights are `model`."""
    size = settled.demand.dataset.size
    if size is None:
        return model
    return settled.ledger.derive(
        "download_bytes", _DOWNLOADS, model_bytes=model, dataset_bytes=size
    )


def kept(settled: Settled[TrainingDemand]) -> Quantity:
    """What the dataset's volume holds, of a dataset whose size is given."""
    ledger, dataset = settled.ledger, settled.demand.dataset
    size = dataset.size
    tokens: Quantity | None = dataset.tokens
    assert size is not None
    text = ledger.derive("dataset_text_bytes", _TEXT, text_share=_TEXT_SHARE, dataset_bytes=size)
    if tokens is None:
        tokens = ledger.derive(
            "dataset_tokens", _TOKENS, dataset_text_bytes=text, token_text=TOKEN_TEXT
        )
    prepared = ledger.derive(
        "dataset_prepared_bytes",
        _PREPARED,
        dataset_tokens=tokens,
        tokenized_token=_TOKENIZED,
        packed_token=PACKED_TOKEN,
    )
    return ledger.derive(
        "dataset_kept_bytes",
        _KEPT,
        dataset_bytes=size,
        dataset_text_bytes=text,
        dataset_prepared_bytes=prepared,
    )
