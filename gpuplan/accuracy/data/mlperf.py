"""Language benchmarks of MLPerf Inference, data center: mean lengths and latency limits.

Limits bound the 99th percentiles of the time to first token and per output token. Source: MLPerf
Inference rules, benchmark table (mlcommons/inference_policies inference_rules.adoc at ac93e89,
2026-07-23), with tokens per sample; GPT-J left them in 2025. Mean inputs are of the data sets."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.frozen import record


@record
class Limit:
    """Seconds at the 99th percentile."""

    first_seconds: float
    token_seconds: float


@record
class Benchmark:
    """Mean tokens of a sample, 0 where no source states them; `beams` of a beam search are all
    generated."""

    input_tokens: float
    output_tokens: float
    limits: Mapping[str, Limit]
    beams: int = 1


def _limit(first_milliseconds: float, token_milliseconds: float) -> Limit:
    return Limit(first_seconds=first_milliseconds / 1e3, token_seconds=token_milliseconds / 1e3)


BENCHMARKS = {
    "llama2-70b": Benchmark(
        input_tokens=294,
        output_tokens=294.45,
        limits={"server": _limit(2000, 200), "interactive": _limit(450, 40)},
    ),
    "llama3.1-405b": Benchmark(
        input_tokens=9428,
        output_tokens=684.68,
        limits={"server": _limit(6000, 175), "interactive": _limit(4500, 80)},
    ),
    "mixtral-8x7b": Benchmark(
        input_tokens=315, output_tokens=144.84, limits={"server": _limit(2000, 200)}
    ),
    "llama3.1-8b": Benchmark(
        input_tokens=778,
        output_tokens=128,
        limits={"server": _limit(2000, 100), "interactive": _limit(500, 30)},
    ),
    "deepseek-r1": Benchmark(
        input_tokens=800,
        output_tokens=3880,
        limits={"server": _limit(2000, 80), "interactive": _limit(1500, 15)},
    ),
    # Performance set: mean input of dataset_isl_distribution.png at 3842039 (2025-12-23), output
    # of the reference in README.md, TEST09 (mlcommons/inference language/gpt-oss-120b).
    "gpt-oss-120b": Benchmark(
        input_tokens=5011,
        output_tokens=1278.2,
        limits={"server": _limit(3000, 80), "interactive": _limit(2000, 20)},
    ),
    # Summaries of about 69 tokens, four beams; a limit on the whole request, of 20 s.
    "gptj-6b": Benchmark(input_tokens=778, output_tokens=69, limits={}, beams=4),
}
UNKNOWN = Benchmark(input_tokens=0, output_tokens=0, limits={})
