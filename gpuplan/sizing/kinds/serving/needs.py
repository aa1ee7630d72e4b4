"""The network traffic of a served model: evidence beside a plan."""

from __future__ import annotations

from gpuplan.sizing.candidates.needs import TOKEN_TEXT
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Formula, Quantity, constant
from gpuplan.sizing.physics.serving.scopes import Scope

# One server-sent event of a streamed answer: a JSON object with the token's text.
CHUNK = constant(256, "B", "a streamed token of an answer with its JSON, about")
_REQUESTS = Formula(
    "rate * (input_mean * token_text + output_mean * chunk_bytes)",
    "B/s",
    "prompts in, streamed tokens out, all replicas",
)


def record_requests(settled: Settled, scope: Scope, rate: Quantity) -> None:
    """The network traffic of a served model."""
    settled.ledger.derive(
        "needs.request_bytes_per_s",
        _REQUESTS,
        rate=rate,
        input_mean=scope["input_mean"],
        token_text=TOKEN_TEXT,
        output_mean=scope["output_mean"],
        chunk_bytes=CHUNK,
    )
