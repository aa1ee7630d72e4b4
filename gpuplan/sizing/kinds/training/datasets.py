"""What a training run keeps of its dataset: the files, their text, and what is made of it.

Axolotl tokenizes the text, packs the sequences, and saves the result; each step leaves an Arrow
file. Downloads of the hub lie in one cache with the weights.
"""

from __future__ import annotations

from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.needs import TOKEN_TEXT
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet

# 24.5 MB of Parquet are 47.8 MB in memory: `dataset_info` of a copy of tatsu-lab/alpaca.
_TEXT_SHARE = constant(2, "1", "text in Arrow beside its Parquet: dataset_info of tatsu-lab/alpaca")
# `input_ids` in 4 bytes, `attention_mask` in 1, `labels` in 8; `position_ids` in 8 once sequences
# are packed. Source: `OptimizedTypedSequence` of huggingface/datasets; other columns are int64.
_TOKENIZED = constant(13, "B", "a token's input_ids, attention_mask and labels in Arrow")
PACKED_TOKEN = constant(21, "B", "the same with position_ids")

_DOWNLOADS = sheet("""
    download_bytes: B = model_bytes + dataset_bytes  # one cache holds what the hub gives
""")
_TEXT = sheet("""
    dataset_text_bytes: B = text_share * dataset_bytes  # the text as it is read
""")
_TOKENS = sheet("""
    dataset_tokens: 1 = dataset_text_bytes / token_text  # tokens of that text
""")
_KEPT = sheet("""
    dataset_prepared_bytes: B = dataset_tokens * (tokenized_token + 2 * packed_token)
        # left by each step: tokens, packed sequences, and these once more where the run reads them
    dataset_kept_bytes: B = dataset_bytes + dataset_text_bytes + dataset_prepared_bytes
        # files that were put there, their text, and what is made of it
""")


def downloads(settled: Settled[TrainingDemand], model: Quantity) -> Quantity:
    """What the hub gives a run whose published weights are `model`."""
    size = settled.demand.dataset.size
    if size is None:
        return model
    scope: Scope = {"model_bytes": model, "dataset_bytes": size}
    return _DOWNLOADS.record(settled.ledger, scope)["download_bytes"]


def kept(settled: Settled[TrainingDemand]) -> Quantity:
    """What the dataset's volume holds, of a dataset whose size is given."""
    dataset = settled.demand.dataset
    assert dataset.size is not None
    scope: Scope = {
        "dataset_bytes": dataset.size,
        "text_share": _TEXT_SHARE,
        "token_text": TOKEN_TEXT,
        "tokenized_token": _TOKENIZED,
        "packed_token": PACKED_TOKEN,
    }
    if dataset.tokens is not None:
        scope["dataset_tokens"] = dataset.tokens
    counted = _TOKENS if dataset.tokens is None else Sheet(())
    return (_TEXT + counted + _KEPT).record(settled.ledger, scope)["dataset_kept_bytes"]
