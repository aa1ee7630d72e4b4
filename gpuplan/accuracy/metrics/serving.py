"""Served points: a fixed number of requests in a closed loop, over the ranks of one replica.

Lengths noted "range-ratio 0.8" have a mean of 0.9 of the nominal one. The loop starts with a burst
of all its requests, which the time to first token includes.
"""

from __future__ import annotations

from functools import lru_cache

from gpuplan.accuracy.points.known import ENGINES, PRECISIONS
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.plan.model import record
from gpuplan.sizing.calibration.anchors import Features
from gpuplan.sizing.calibration.served import features
from gpuplan.sizing.data import serving as fitted
from gpuplan.sizing.evidence.sheet import floats
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.physics.serving.latency import TOKEN
from gpuplan.sizing.physics.serving.scopes import (
    Division,
    decode_scope,
    formats,
    prefill_scope,
    serving_scope,
    shape,
    traits,
)
from gpuplan.sizing.physics.serving.steps import step

MILLISECOND = 1e-3
SPREAD_LENGTHS = "range-ratio 0.8"


@record
class Served:
    """A served case: the decode step and the prefill of one rank, evaluated. `sequences` are of one
    rank and stage, `concurrency` of the whole replica."""

    case: Case
    features: Features
    decode: dict[str, float]
    prefill: dict[str, float]
    sequences: float
    concurrency: float
    output: float
    client: str

    @property
    def token_seconds(self) -> float:
        scope = self.decode | {
            "decode_seconds": self.decode["seconds"],
            "prefill_seconds": self.prefill["seconds"],
            "prefill_work_seconds": self.prefill["work_seconds"],
            "output_mean": self.output,
        }
        return TOKEN(scope)["modelled_token_seconds"]

    @property
    def first_seconds(self) -> float:
        c = fitted.FIRST_TOKEN[self.client][self.case.engine]
        burst = c["burst_factor"] * self.decode["stalling_ranks"] * self.prefill["work_seconds"]
        return (
            c["first_overhead"]
            + c["first_prefill_factor"] * self.prefill["seconds"]
            + c["first_step_factor"] * self.token_seconds
            + (c["first_sequence_overhead"] + burst) * self.sequences
        )


def tpot(case: Case) -> Reckoned | str:
    """Milliseconds for an output token."""
    point = served(case)
    if isinstance(point, str):
        return point
    return Reckoned(
        value=point.token_seconds / MILLISECOND,
        quantity="time_per_output_token",
        features=point.features,
        best=point.decode["roofline_seconds"] / MILLISECOND,
        sense="time",
    )


def ttft(case: Case) -> Reckoned | str:
    """Milliseconds to the first token, on average."""
    point = served(case)
    if isinstance(point, str):
        return point
    return Reckoned(
        value=point.first_seconds / MILLISECOND,
        quantity="time_to_first_token",
        features=point.features,
        best=point.prefill["roofline_seconds"] / MILLISECOND,
        sense="time",
    )


def served(case: Case) -> Served | str:
    """The case evaluated, or why the engine cannot express it."""
    if (reason := _unexpressed(case)) is not None:
        return reason
    model = case.model
    assert isinstance(model, Transformer)
    client = "spread" if SPREAD_LENGTHS in case.row["notes"] else "fixed"
    ratio = 0.9 if client == "spread" else 1.0
    prompt, output = case.number("input_len") * ratio, case.number("output_len") * ratio
    if not (prompt > 0 and output > 0):
        return "lengths of input and output are not given"
    concurrency = case.number("batch", 1)
    tp, dp, ep, pp = (max(1, int(case.number(c, 1))) for c in ("tp", "dp", "ep", "pp"))
    decode, prefill, sequences = steps(
        model,
        case.gpu,
        case.engine,
        case.precision,
        division=Division(tensor_parallel_size=tp, data_parallel_size=dp, pipeline_stages=pp),
        concurrency=concurrency,
        prompt=prompt,
        output=output,
    )
    where = features(
        model,
        case.gpu,
        case.engine,
        version(case.row["engine"]),
        case.precision,
        concurrency=concurrency,
        input=prompt,
        output=output,
        tp=tp,
        dp=dp,
        ep=ep,
        pp=pp,
        client=client,
    )
    return Served(
        case=case,
        features=where,
        decode=decode,
        prefill=prefill,
        sequences=sequences,
        concurrency=concurrency,
        output=output,
        client=client,
    )


def steps(
    model: Transformer,
    gpu: Gpu,
    engine: str,
    precision: str,
    *,
    division: Division,
    concurrency: float,
    prompt: float,
    output: float,
) -> tuple[dict[str, float], dict[str, float], float]:
    """A decode step and a prefill of one rank, and its sequences."""
    base, traited = _prepared(model, gpu, engine, precision, division)
    parts = division.data_parallel_size * division.pipeline_stages
    sequences = max(concurrency / parts, 1)
    scope = base | {"sequences": sequences, "prompt": prompt, "context": prompt + output / 2}
    kind = dict(traited)
    decode = step("decode", **kind)(decode_scope(scope))
    prefill = step("prefill", **kind)(prefill_scope(scope, "prompt", 1.0))
    return decode, prefill, sequences


@lru_cache(maxsize=4096)
def _prepared(
    model: Transformer, gpu: Gpu, engine: str, precision: str, division: Division
) -> tuple[dict[str, float], tuple[tuple[str, bool], ...]]:
    """What does not depend on the load."""
    cache_format = "auto" if precision in ("bf16", "int4") else "fp8"
    mixed = model.checkpoint_precision == "mxfp4" or "gpt-oss" in model.identifier
    low = "mxfp4" if mixed else precision
    layout = formats(model, low, cache_format)
    scope = serving_scope(
        model,
        whole(GpuOffer(gpu=gpu, gpus_per_node=8)),
        engine,
        layout,
        division,
    )
    sheet = shape(latent=model.latent is not None, moe=model.experts is not None, partition=False)
    spread = {"input_mean": 1.0, "input_p95": 1.0}
    return sheet(floats(scope) | spread), tuple(traits(model, division).items())


def version(engine: str) -> str:
    """The release in "vllm 0.19.0"."""
    return engine.partition(" ")[2]


def _unexpressed(case: Case) -> str | None:
    if not isinstance(case.model, Transformer):
        return "no language model"
    if case.engine not in ENGINES.values():
        return f"engine '{case.engine}' is not one that is planned"
    if case.precision not in PRECISIONS.values():
        return f"precision '{case.precision}' is not one that is planned"
    if "batch-1 first-token" in case.row["notes"]:
        return "no server: an engine of 2023, one request at a time"
    return None
