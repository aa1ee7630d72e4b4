"""The network traffic of a served model: evidence beside a plan."""

from __future__ import annotations

from gpuplan.sizing.candidates.needs import TOKEN_TEXT
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.sheet import Scope, sheet

# One server-sent event of a streamed answer: a JSON object with the token's text.
CHUNK = constant(256, "B", "a streamed token of an answer with its JSON, about")
INPUTS: Scope = {"token_text": TOKEN_TEXT, "chunk_bytes": CHUNK}
TRAFFIC = sheet("""
    request_bytes_per_s: B/s = requests_per_second
        * (input_mean * token_text + output_mean * chunk_bytes)
        # prompts in, streamed tokens out, all replicas
""")
