"""Throughput of TensorRT-LLM without a client: the maximum, static batches, the first token of one
request alone.

The maximum is of trtllm-bench with all requests queued; static batches and first tokens are of
gptSessionBenchmark, releases of 2023 and 2024 (`protocols/session.py`).
"""

from __future__ import annotations

from math import dist

from gpuplan.accuracy.data.offline import CONSTANTS
from gpuplan.accuracy.points.formats import quantized, weights
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.protocols import session, throughput
from gpuplan.accuracy.protocols.ranks import Numbers, Runner, runner
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.identity import identity
from gpuplan.models.model import Transformer
from gpuplan.releases import minor
from gpuplan.sizing.calibration.anchors import Features, Term
from gpuplan.sizing.calibration.gaussian import log2
from gpuplan.sizing.physics.serving.service import Division
from gpuplan.units import MILLISECOND

ENGINE = "tensorrt-llm"
LARGEST_BATCH = 2048.0
# Requests of a run, by tokens of input and output: perf-overview.md of TensorRT-LLM 0.20 to 1.1.
REQUESTS = {
    (128.0, 128.0): 30000.0,
    (128.0, 2048.0): 3000.0,
    (128.0, 4096.0): 1500.0,
    (500.0, 2000.0): 3000.0,
    (1000.0, 1000.0): 3000.0,
    (1000.0, 2000.0): 1500.0,
    (1024.0, 8192.0): 1500.0,
    (1024.0, 32768.0): 1000.0,
    (2048.0, 128.0): 3000.0,
    (2048.0, 2048.0): 1500.0,
    (5000.0, 500.0): 1500.0,
    (8192.0, 1024.0): 1500.0,
    (20000.0, 2000.0): 1000.0,
    (32768.0, 1024.0): 1000.0,
}
ONE_REQUEST = "batch-1 first-token"
TOGETHER = (0, 8)  # the first release with XQA: docs/source/blogs/XQA-kernel.md
GROUPED = (0, 10)  # and the first after 0.9.0, which has no grouped kernel for mixtures in fp8
# The page that names no release has 0.6.1, and 0.5 where it was not measured again:
# docs/source/performance.md of TensorRT-LLM 0.6.1 (138f96d4).
UNNAMED = (0, 6)


def maximum(case: Case, constants: Numbers = CONSTANTS["maximum"]) -> Reckoned | str:
    """Output tokens per second of a GPU, as many requests waiting as it can take."""
    prompt, output = lengths(case)
    on = _runner(case)
    pace = throughput.queued(
        on,
        constants,
        prompt=prompt,
        output=output,
        most=LARGEST_BATCH,
        requests=requests(prompt, output),
    )
    if pace is None:
        return f"{case.model.identifier} does not fit these GPUs"
    return Reckoned(
        value=pace.rate,
        quantity="maximum_throughput",
        features=features(case, on),
        best=pace.best,
        sense="rate",
    )


def static(case: Case, constants: Numbers = CONSTANTS["static"]) -> Reckoned | str:
    """Output tokens per second of a GPU, a batch prefilled together and decoded to its end."""
    prompt, output = lengths(case)
    batch = case.number("batch")
    if batch < 1:
        return "the batch is not given"
    on = _runner(case, ungrouped=True)
    together = _release(case) >= TOGETHER
    pace = session.static(
        on, constants, prompt=prompt, output=output, batch=batch, together=together
    )
    return Reckoned(
        value=pace.rate,
        quantity="static_throughput",
        features=features(case, on),
        best=pace.best,
        sense="rate",
    )


def batch_one(case: Case, constants: Numbers = CONSTANTS["first_token"]) -> Reckoned | str:
    """Milliseconds to the first token of one request, without a server."""
    prompt, _ = lengths(case)
    on = _runner(case, ungrouped=True)
    seconds, least = session.first_token(on, constants, prompt)
    return Reckoned(
        value=seconds / MILLISECOND,
        quantity="first_token_alone",
        features=features(case, on),
        best=least / MILLISECOND,
    )


def lengths(case: Case) -> tuple[float, float]:
    """Tokens of input and output. Raises `ValueError` where they are not given."""
    prompt, output = case.number("input_len"), case.number("output_len")
    if not (prompt > 0 and output > 0):
        raise ValueError("lengths of input and output are not given")
    return prompt, output


def language_model(case: Case) -> Transformer:
    """The case's model. Raises `ValueError` for others than language models."""
    if not isinstance(case.model, Transformer):
        raise ValueError("no language model")
    return case.model


def requests(prompt: float, output: float) -> float:
    """Of a run of trtllm-bench with these lengths; of the nearest ones where its table has them
    not."""
    place = (log2(prompt), log2(output))
    return REQUESTS[min(REQUESTS, key=lambda lengths: dist(place, tuple(map(log2, lengths))))]


def _runner(case: Case, *, ungrouped: bool = False) -> Runner:
    """`ungrouped`: mixtures in fp8 were built without a grouped kernel before `GROUPED`."""
    model = language_model(case)
    if case.engine != ENGINE:
        raise ValueError(f"engine '{case.engine}' is not measured so")
    low = weights("mxfp4" if model.checkpoint_precision == "mxfp4" else case.precision)
    tensor, data, stages = (max(1, int(case.number(c, 1))) for c in ("tp", "dp", "pp"))
    if model.experts and data == 1 and _attention_parallel(case):
        tensor, data = 1, tensor
    division = Division(
        tensor_parallel_size=tensor, data_parallel_size=data, pipeline_stages=stages
    )
    if ungrouped and model.experts and low == "fp8" and _release(case) < GROUPED:
        model = session.every_expert(model)
    return runner(model, case.gpu, ENGINE, quantized(model, case.gpu, low), division)


def _attention_parallel(case: Case) -> bool:
    """Whether tables of maxima run mixtures with data-parallel attention (`enable_attention_dp` in
    docs/source/performance/perf-overview.md of TensorRT-LLM): from 1.0 on."""
    return case.row["batch"].strip() == "max" and _release(case) >= (1, 0)


def _release(case: Case) -> tuple[int, ...]:
    return minor(case.row["engine"].partition(" ")[2]) or UNNAMED


def features(case: Case, on: Runner) -> Features:
    """Texts: model, GPU, precision, what they are together, the division of the model, the release.
    Numbers: base-2 logarithms of lengths and batch."""
    assert isinstance(case.model, Transformer)
    who, parts = identity(case.model), on.division
    cell = f"{who}|{case.gpu.identifier}|{on.formats.experts}"
    ranks = f"{parts.tensor_parallel_size}|{parts.data_parallel_size}|{parts.pipeline_stages}"
    return {
        "model": who,
        "gpu": case.gpu.identifier,
        "generation": case.gpu.architecture,
        "version": case.row["engine"].partition(" ")[2] or "?",
        "cell": cell,
        "layout": f"{cell}|{ranks}",
        "input": log2(case.number("input_len", 1)),
        "output": log2(case.number("output_len", 1)),
        "batch": log2(case.number("batch", 1)) if case.row["batch"].strip() != "max" else 0.0,
    }


_LENGTHS = (("input", 2.0), ("output", 2.0))
_LOAD = (("input", 3.0), ("output", 3.0), ("batch", 3.0))
_PROMPT = (("input", 2.0),)
_REACHES = (
    (("layout",), True),
    (("cell",), True),
    (("model",), True),
    (("gpu",), False),
    ((), False),
)
_PRIORS = (
    Prior(
        quantity="maximum_throughput",
        terms=(
            Term(amplitude=0.12, same=("model",)),
            Term(amplitude=0.15, same=("cell",)),
            Term(amplitude=0.10, same=("layout",)),
            Term(amplitude=0.08, same=("generation",)),
            Term(amplitude=0.06, same=("version",)),
            Term(amplitude=0.12, same=("layout",), scales=_LENGTHS),
            Term(amplitude=0.08, same=("model",), scales=_LENGTHS),
            Term(amplitude=0.06, same=("gpu",), scales=_LENGTHS),
        ),
        noise=0.05,
        reaches=_REACHES,
        least=1.0,
    ),
    Prior(
        quantity="static_throughput",
        terms=(
            Term(amplitude=0.08, same=("model",)),
            Term(amplitude=0.06, same=("gpu",)),
            Term(amplitude=0.10, same=("cell",)),
            Term(amplitude=0.08, same=("layout",)),
            Term(amplitude=0.08, same=("cell",), scales=_LOAD),
        ),
        noise=0.06,
        reaches=_REACHES,
    ),
    Prior(
        quantity="first_token_alone",
        terms=(
            Term(amplitude=0.05, same=("model",), scales=_PROMPT),
            Term(amplitude=0.05, same=("gpu",), scales=_PROMPT),
            Term(amplitude=0.06, same=("layout",), scales=_PROMPT),
        ),
        noise=0.08,
        reaches=_REACHES,
    ),
)
PRIORS = {prior.quantity: prior for prior in _PRIORS}
