"""Served points: a fixed number of requests in a closed loop, over the ranks of one replica.

Each is the `Replica` that a plan would have, at the point's concurrency. Lengths noted "range-ratio
0.8" have a mean of 0.9 of the nominal one. The loop starts with a burst of all its requests, which
the time to first token includes; the queue of a service, which a plan adds, it does not have. Of
more requests than memory holds the rest waits, by Little's law as long as it takes to serve them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

from gpuplan.accuracy.metrics.serving_runs import USUAL_START, of_run, places
from gpuplan.accuracy.points.known import ENGINES, PRECISIONS
from gpuplan.accuracy.points.points import Case
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Estimate, record
from gpuplan.sizing.calibration.anchors import Anchors, Features, Field
from gpuplan.sizing.calibration.served import OWN
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.intervals import doubted, estimate
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.serving.scopes import formats
from gpuplan.sizing.physics.serving.service import Declared, Division, Service, Start, Tokens
from gpuplan.units import MILLISECOND

# Where weights take more of the memory, what is left for the cache is less than their own error.
MOST_WEIGHTS = 0.9
PART = 1 / 16  # of a sequence; as finely those that are held are found
# The cache that an engine finds over the one that is reckoned: a judgement, since few points have
# requests that wait.
HELD = (0.8, 1.25)
SPREAD_LENGTHS = "range-ratio 0.8"
UNIFORM_LENGTHS = "random 0..N"
# 95th percentile over the mean at which `latency.LENGTHS` finds a variation of 1 / sqrt(3).
UNIFORM_P95 = 1 + 1.645 / 3**0.5


@record
class Served:
    """A served case as a replica; `sequences` are of one rank and stage, `waiting` those of them
    that its memory does not hold."""

    case: Case
    replica: Replica
    sequences: float
    waiting: float
    features: Features

    def token(self, anchors: Field) -> Estimate:
        """Milliseconds for an output token, corrected by `anchors`."""
        twin = self.replica.anchored(Anchors({"time_per_output_token": anchors}))
        seconds = twin.times(self.sequences)["time_per_output_token"]
        return estimate(seconds / MILLISECOND, *twin.token.interval)

    def first(self, anchors: Field) -> Estimate:
        """Milliseconds to the first token, on average, corrected by `anchors`."""
        twin = self.replica.anchored(Anchors({"time_to_first_token": anchors}))
        seconds = twin.times(self.sequences)["first_token_seconds"]
        return estimate(seconds / MILLISECOND, *twin.first.interval)

    @property
    def queued(self) -> Estimate:
        """The same where some wait, by the formulas alone: as uncertain as how many are held, and
        as the tokens of those for which the others wait."""
        middle, longest, shortest = (self._queued(part) for part in (1.0, *HELD))
        held = (shortest / middle, longest / middle)
        factors = doubted(held, self.replica.token_factors)
        return estimate(middle / MILLISECOND, factors, "extrapolated")

    def _queued(self, part: float) -> float:
        """Seconds, if the replica runs `part` of as many at once."""
        everything = self.sequences + self.waiting
        running = min(self.sequences * part, everything)
        times = self.replica.modelled(running)
        return times["first_token_seconds"] + (everything - running) / times["replica_rate"]


def tpot(case: Case) -> Reckoned | str:
    """Milliseconds for an output token."""
    point = served(case)
    if isinstance(point, str):
        return point
    modelled = point.replica.modelled(point.sequences)
    return Reckoned(
        value=modelled["modelled_token_seconds"] / MILLISECOND,
        quantity="time_per_output_token",
        features=point.features,
        best=modelled["roofline_seconds"] / MILLISECOND,
        planned=point.token,
    )


def ttft(case: Case) -> Reckoned | Estimate | str:
    """Milliseconds to the first token, on average."""
    point = served(case)
    if isinstance(point, str):
        return point
    if point.waiting > 0:
        return point.queued
    modelled = point.replica.modelled(point.sequences)
    return Reckoned(
        value=modelled["modelled_first_seconds"] / MILLISECOND,
        quantity="time_to_first_token",
        features=point.features,
        best=modelled["prefill_roofline_seconds"] / MILLISECOND,
        planned=point.first,
    )


def served(case: Case) -> Served | str:
    """The case as a replica, or why the engine cannot express it."""
    if (reason := _unexpressed(case)) is not None:
        return reason
    assert isinstance(case.model, Transformer)
    client = _client(case.row["notes"])
    ratio = 0.9 if client == "spread" else 1.0
    prompt, output = case.number("input_len") * ratio, case.number("output_len") * ratio
    if not (prompt > 0 and output > 0):
        return "lengths of input and output are not given"
    start, repeated = of_run(case)
    tensor, data, expert, stages = (
        max(1, int(case.number(column, 1))) for column in ("tp", "dp", "ep", "pp")
    )
    division = Division(
        tensor_parallel_size=tensor,
        data_parallel_size=data,
        pipeline_stages=stages,
        expert_parallel_size=expert,
    )
    replica = replica_of(
        case.model,
        case.gpu,
        (case.engine, version(case.row["engine"]), case.precision, client, _cache(case)),
        division,
        (prompt, output),
        site=site(case),
        start=start,
        repeated=repeated,
        most=places(case),
    )
    concurrency = case.number("batch", 1)
    wanted = max(concurrency / division.ranks, 1)
    sequences = held(replica, wanted)
    return Served(
        case=case,
        replica=replica,
        sequences=sequences,
        waiting=wanted - sequences,
        features=replica.features(sequences, concurrency if sequences == wanted else 0.0),
    )


def held(replica: Replica, wanted: float) -> float:
    """How many of the `wanted` sequences the replica's memory holds at once."""
    needs = replica.needs(wanted)
    if _fit(needs) or needs["weights_bytes"] > MOST_WEIGHTS * needs["usable_bytes"]:
        return wanted
    low, high = round(1 / PART), math.floor(wanted / PART)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _fit(replica.needs(middle * PART)) else (low, middle - 1)
    return low * PART


def _fit(needs: Mapping[str, float]) -> bool:
    return needs["used_bytes"] <= needs["usable_bytes"]


@lru_cache(maxsize=4096)
def replica_of(
    model: Transformer,
    gpu: Gpu,
    how: tuple[str, str, str, str, str],
    division: Division,
    lengths: tuple[float, float],
    *,
    site: str = OWN,
    start: Start = USUAL_START,
    repeated: float = 0.0,
    most: float | None = None,
) -> Replica:
    """`how`: engine, release, precision, client, the cache's format; `lengths` are the means of
    prompt and answer; `site` is who measured; `repeated` the part of the prompts that a prefix
    cache holds; `most` the sequences that the server was told to take at once."""
    engine, release, precision, client, cache_format = how
    tail = UNIFORM_P95 if client == "uniform" else 1.0
    mixed = model.checkpoint_precision == "mxfp4" or "gpt-oss" in model.identifier
    prompt, output, *tails = (
        constant(length * factor, "1", "measurement")
        for factor in (1.0, tail)
        for length in lengths
    )
    return Replica(
        Service(
            model=model,
            device=whole(GpuOffer(gpu=gpu, gpus_per_node=8)),
            division=division,
            engine=engine,
            release=release,
            precision=precision,
            formats=formats(model, "mxfp4" if mixed else precision, cache_format),
            tokens=Tokens(
                input_mean=prompt,
                input_p95=tails[0],
                output_mean=output,
                output_p95=tails[1],
                longest=constant(tail * sum(lengths), "1", "measurement"),
            ),
            gpu_memory_utilization=constant(0.9, "1", "the engine's own default"),
            confidence=0.5,
            random=False,
            client=client,
            site=site,
            start=start,
            declared=_cached(repeated),
            admitted=most,
        )
    )


def _cached(repeated: float) -> Declared:
    if repeated == 0:
        return Declared()
    asked = constant(repeated, "1", "prompts that an earlier run of the client sent")
    return Declared(prefix_hit_share=asked)


def _cache(case: Case) -> str:
    """The cache's format: what the row says, else what public runs have. Raises `ValueError`."""
    said = case.row.get("kv_cache_dtype", "").strip()
    if said not in ("", "auto", "fp8"):
        raise ValueError(f"kv_cache_dtype '{said}' is neither auto nor fp8")
    return said or ("auto" if case.precision in ("bf16", "int4") else "fp8")


def _client(notes: str) -> str:
    if UNIFORM_LENGTHS in notes:
        return "uniform"
    return "spread" if SPREAD_LENGTHS in notes else "fixed"


def site(case: Case) -> str:
    """Who measured: the repository or page that a row names; nobody is oneself."""
    return next(iter(case.row.get("source_repo", "").split()), OWN)


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
