"""Served points: tensor parallelism inside a node, a fixed number of requests in a closed loop.

Lengths noted "range-ratio 0.8" have a mean of 0.9 of the nominal one. The loop starts with a burst
of all its requests, which the time to first token includes.
"""

from __future__ import annotations

from gpuplan.accuracy.known import ENGINES, PRECISIONS
from gpuplan.accuracy.points import Case
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Basis, Estimate, record
from gpuplan.sizing.api import GpuOffer
from gpuplan.sizing.data import serving as fitted
from gpuplan.sizing.devices import whole
from gpuplan.sizing.formula import Quantity
from gpuplan.sizing.intervals import estimate
from gpuplan.sizing.latency import TOKEN
from gpuplan.sizing.scopes import decode_scope, formats, prefill_scope, serving_scope, shape
from gpuplan.sizing.sheet import floats
from gpuplan.sizing.steps import step

MILLISECOND = 1e-3


@record
class Served:
    """A served case: its decode step and its prefill, evaluated."""

    case: Case
    decode: dict[str, float]
    prefill: dict[str, float]
    concurrency: float
    output: float
    measured: bool

    @property
    def basis(self) -> Basis:
        return "calibrated" if self.measured else "extrapolated"

    @property
    def token_seconds(self) -> float:
        scope = self.decode | {
            "decode_seconds": self.decode["seconds"],
            "prefill_seconds": self.prefill["seconds"],
            "prefill_work_seconds": self.prefill["work_seconds"],
            "output_mean": self.output,
        }
        return TOKEN(scope)["time_per_output_token"]

    @property
    def first_seconds(self) -> float:
        d, burst = self.decode, fitted.FIRST[self.case.engine]["burst_factor"]
        each = d["first_sequence_overhead"] + burst * self.prefill["work_seconds"]
        return (
            d["first_overhead"]
            + d["first_prefill_factor"] * self.prefill["seconds"]
            + d["first_step_factor"] * self.token_seconds
            + each * self.concurrency
        )


def tpot(case: Case) -> Estimate | str:
    """Milliseconds for an output token."""
    point = served(case)
    if isinstance(point, str):
        return point
    family = "moe" if point.decode.get("expert_layers") else "dense"
    factors = fitted.INTERVALS["time_per_output_token", family, point.basis]
    return estimate(point.token_seconds / MILLISECOND, factors, point.basis)


def ttft(case: Case) -> Estimate | str:
    """Milliseconds to the first token, on average."""
    point = served(case)
    if isinstance(point, str):
        return point
    factors = fitted.INTERVALS["time_to_first_token", case.engine, point.basis]
    return estimate(point.first_seconds / MILLISECOND, factors, point.basis)


def served(case: Case) -> Served | str:
    """The case evaluated, or why the engine cannot express it."""
    if (reason := _unexpressed(case)) is not None:
        return reason
    assert isinstance(case.model, Transformer)
    ratio = 0.9 if "range-ratio 0.8" in case.row["notes"] else 1.0
    prompt, output = case.number("input_len") * ratio, case.number("output_len") * ratio
    if not (prompt > 0 and output > 0):
        return "lengths of input and output are not given"
    moe, gpus = case.model.experts is not None, int(case.number("tp", 1))
    precision = "mxfp4" if "gpt-oss" in case.model.identifier else case.precision
    cache = "auto" if case.precision in ("bf16", "int4") else "fp8"
    layout = formats(case.model, precision, cache)
    device = whole(GpuOffer(gpu=case.gpu, gpus_per_node=8))
    scope, measured = serving_scope(case.model, device, case.engine, layout, gpus)
    for name, value in (
        ("sequences", case.number("batch", 1)),
        ("prompt", prompt),
        ("context", prompt + output / 2),
        ("input_mean", prompt),
        ("input_p95", prompt),
    ):
        scope[name] = Quantity(value, "1", "measurement")
    base = shape(latent=case.model.latent is not None, moe=moe, partition=False)(floats(scope))
    kind = {"moe": moe, "parallel": gpus > 1, "windowed": case.model.sliding_layers > 0}
    decode = step("decode", **kind)(decode_scope(base))
    prefill = step("prefill", **kind)(prefill_scope(base, "prompt", 1.0))
    return Served(
        case=case,
        decode=decode,
        prefill=prefill,
        concurrency=case.number("batch", 1),
        output=output,
        measured=measured,
    )


def _unexpressed(case: Case) -> str | None:
    if not isinstance(case.model, Transformer):
        return "no language model"
    if case.engine not in ENGINES.values():
        return f"engine '{case.engine}' is not one that is planned"
    if case.precision not in PRECISIONS.values():
        return f"precision '{case.precision}' is not one that is planned"
    if "batch-1 first-token" in case.row["notes"]:
        return "no server: an engine of 2023, one request at a time"
    layout = {c: case.number(c, 1) for c in ("tp", "pp", "ep", "dp")}
    if any(layout[c] > 1 for c in ("pp", "ep", "dp")) or layout["tp"] > 8:
        return "replicas over pipeline, expert or data parallel ranks are not planned"
    return None
