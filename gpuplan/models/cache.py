"""What a sequence keeps in memory: cache of softmax attention, states of linear attention."""

from __future__ import annotations

from gpuplan.models.model import Transformer


def cached_per_token(model: Transformer) -> float:
    """Elements that one more token adds far beyond every window: the growth of the cache."""
    return sum(
        group.layers * group.cached_per_token / group.tokens_per_entry
        for group in model.attention
        if group.window is None
    )


def index_per_token(model: Transformer) -> int:
    """Elements of the indexer's own cache, a token."""
    sparse = model.sparse
    return sparse.index_layers * sparse.index_cached_per_token if sparse else 0


def state_bytes(model: Transformer, *, state: int = 4, convolution: int = 2) -> int:
    """Bytes of the linear layers' states, a sequence; of `state` bytes an element of the recurrence
    and `convolution` bytes an input of the convolution."""
    linear = model.linear
    if linear is None:
        return 0
    layer_bytes = linear.state_elements * state + linear.convolution_elements * convolution
    return linear.layers * layer_bytes
