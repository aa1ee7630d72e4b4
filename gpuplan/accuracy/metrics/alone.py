"""One request alone, from its prompt to its last token: Qwen's speed tables, litgpt's.

Qwen3's tables count prompt and generated tokens, those of Qwen2 and Qwen2.5 generated tokens only:
their speed does not grow with the prompt. Transformers and litgpt launch each kernel from Python;
vLLM 0.4 did so beyond 8,192 tokens (its largest captured length), where it is slower.
"""

from __future__ import annotations

from gpuplan.accuracy.data.offline import ALONE, ALONE_FORMATS
from gpuplan.accuracy.metrics.offline import language_model, lengths
from gpuplan.accuracy.points.formats import computed, weights
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.protocols import throughput
from gpuplan.accuracy.protocols.ranks import Numbers, runner
from gpuplan.accuracy.reckon import Prior, Reckoned
from gpuplan.models.identity import identity
from gpuplan.sizing.calibration.anchors import Term
from gpuplan.sizing.calibration.gaussian import log2
from gpuplan.sizing.physics.serving.service import Division, Formats

EAGER = ("transformers", "litgpt")
CAPTURED_TOKENS = 8192
TABLES = {"vllm": "vllm", "sglang": "sglang"}  # kernels of other engines are vLLM's
Table = dict[str, dict[str, float]]


def speed(case: Case, engines: Table = ALONE, stored: Table = ALONE_FORMATS) -> Reckoned | str:
    """Tokens per second of one request."""
    model = language_model(case)
    prompt, output = lengths(case)
    engine, release = constants_of(case, prompt + output)
    if engine not in engines:
        return f"engine '{case.engine}' was never measured with one request alone"
    low = weights(case.precision)
    kernel = "bf16" if low == "int8" else computed(case.gpu, low)
    tensor = max(1, int(case.number("tp", 1)))
    on = runner(
        model,
        case.gpu,
        TABLES.get(engine, "vllm"),
        Formats(matmul=kernel, experts=kernel, kv="bf16"),
        Division(tensor_parallel_size=tensor),
    )
    quantized = method(case.precision)
    constants = _constants(engines[engine], stored, engine, quantized, low)
    eager = engine.startswith((*EAGER, "vllm uncaptured"))
    seconds, least = throughput.alone(on, constants, prompt=prompt, output=output, eager=eager)
    whole = case.metric.startswith("speed_in") and _qwen3(case)
    tokens = output + prompt if whole else output
    who = identity(model)
    return Reckoned(
        value=tokens / seconds,
        quantity="speed_alone",
        features={
            "model": who,
            "gpu": case.gpu.identifier,
            "engine": engine,
            "version": f"{engine} {release}",
            "runs": f"{who}|{engine}",
            "cell": f"{who}|{case.gpu.identifier}|{engine}|{quantized}",
            "input": log2(prompt),
            "gpus": log2(case.number("n_gpus", 1)),
        },
        best=tokens / least,
        sense="rate",
    )


def constants_of(case: Case, tokens: float) -> tuple[str, str]:
    """The row of constants, and the release."""
    words = case.row["engine"].split()
    name, release = case.engine.split()[0], words[-1] if len(words) > 1 else "?"
    if name == "transformers" and _qwen3(case):
        return "transformers qwen3", release
    if name == "vllm" and release.startswith("0.4") and tokens > CAPTURED_TOKENS:
        return "vllm uncaptured", release
    return name, release


def _qwen3(case: Case) -> bool:
    return case.row["model"].lower().startswith("qwen3")


def method(precision: str) -> str:
    """How the weights are quantized: "awq" and "gptq-int4" run different kernels."""
    return "awq" if precision.startswith("awq") else precision


def _constants(
    own: dict[str, float], stored: Table, engine: str, quantized: str, low: str
) -> Numbers:
    row = stored.get(f"{engine}|{quantized}") or stored.get(f"{engine}|bf16", {})
    constants = own | row
    if low == "int8":
        constants |= {f"{name}_bytes_each": 1.0 for name in ("matmul", "dense", "expert")}
    return constants


_PRIORS = (
    Prior(
        quantity="speed_alone",
        terms=(
            Term(amplitude=0.06, same=("runs",)),
            Term(amplitude=0.06, same=("cell",)),
            Term(amplitude=0.04, same=("version",)),
            Term(amplitude=0.10, same=("cell",), scales=(("input", 3.0), ("gpus", 1.0))),
            Term(amplitude=0.12, same=("runs",), scales=(("input", 2.0), ("gpus", 1.0))),
        ),
        noise=0.03,
        reaches=(
            (("cell",), True),
            (("runs",), True),
            (("model",), True),
            (("engine",), False),
            ((), False),
        ),
    ),
)
PRIORS = {prior.quantity: prior for prior in _PRIORS}
