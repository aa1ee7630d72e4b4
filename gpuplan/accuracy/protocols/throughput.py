"""Throughput of language models without a client: as many requests as the GPUs hold, one request
alone.

Each protocol has constants of its own (`data/offline.py`), in the terms of `steps.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from gpuplan.accuracy.protocols.ranks import Numbers, Runner, decode, held_sequences, prefill
from gpuplan.plan.model import record
from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.physics.serving.service import Division

PREFILL_TOKENS = 8192.0  # prompts that are computed together in one step
HALVINGS = 6  # of the search for the largest load whose first tokens come in time
ROUNDS = 3  # of the search for the largest load within a limit
PARTS = (1.0, 0.6, 0.35)  # of the sequences that fit: fewer may be faster

QUEUED = Sheet(
    (
        (
            "token_seconds",
            Formula(
                "decode_seconds + interference * sequences / output * prompt_seconds",
                "s",
                "every sequence that ends lets a new prompt into the steps of the others",
            ),
        ),
        (
            "rate",
            Formula(
                "sequences / (token_seconds * tensor_parallel_size * bubble)",
                "1/s",
                "tokens of one GPU; the stages of a pipeline work on different sequences",
            ),
        ),
        (
            "best_rate",
            Formula(
                "sequences / ((decode_roofline + sequences / output * prompt_roofline) "
                "* tensor_parallel_size)",
                "1/s",
                "reads at peak bandwidth, products at peak",
            ),
        ),
    )
)
RUN = Sheet(
    (
        (
            "rate",
            Formula(
                "(waves * sequences + last) / ((waves * token_seconds + last_token_seconds) "
                "* tensor_parallel_size * bubble)",
                "1/s",
                "a run of few requests: whole waves, and one of what is left",
            ),
        ),
    )
)


@record
class Pace:
    """Output tokens per second of one GPU, what physics allows at most, and the seconds between two
    tokens of a sequence. `sequences` run on each rank."""

    rate: float
    best: float
    token_seconds: float
    prompt_seconds: float
    sequences: float
    division: Division


def queued(
    runner: Runner,
    constants: Numbers,
    *,
    prompt: float,
    output: float,
    most: float,
    held: float = 0.75,
    limit: float | None = None,
    first: float | None = None,
    beams: int = 1,
    requests: float | None = None,
) -> Pace | None:
    """All requests are waiting: a rank runs as many as pay, at most `most` and those whose cache
    fits while `held` of their output stands in it; with a `limit`, as many as keep the seconds
    between tokens below it, and with a `first`, as many as let the first token come so soon at the
    99th percentile where requests come at random. The `beams` of a request share its prompt, in the
    cache and when it is read. A run of so many `requests` of one length, over all ranks, ends with
    fewer than fit, and takes as many as fit before. None where the model does not fit."""
    division, constants = runner.division, _tuned(runner, constants)
    room = held_sequences(runner, prompt / beams + held * output) / division.pipeline_stages
    if room < 1:
        return None
    full = min(room, most)
    together = max(1.0, PREFILL_TOKENS // prompt)
    filled = prefill(runner, constants, together, prompt)
    scope = {
        "output": output,
        "interference": constants["interference"],
        "tensor_parallel_size": float(division.tensor_parallel_size),
        "bubble": constants["bubble"] if division.pipeline_stages > 1 else 1.0,
        "prompt_seconds": filled["work_seconds"] / (together * beams),
        "prompt_roofline": filled["roofline_seconds"] / (together * beams),
    }

    def pace(load: float) -> Pace:
        return _queued(runner, constants, scope, load, prompt / beams + output / 2)

    if requests is not None:
        share = requests / (division.data_parallel_size * division.pipeline_stages)
        return _run(pace, scope, min(full, max(1.0, share)), share)
    if limit is None:
        return max((pace(part * full) for part in PARTS), key=lambda p: p.rate)
    fastest = _paced(pace, full, limit)
    if first is None or _first_seconds(fastest, scope, constants) <= first:
        return fastest
    return _in_time(pace, fastest.sequences, lambda p: _first_seconds(p, scope, constants) <= first)


def _in_time(pace: Callable[[float], Pace], most: float, kept: Callable[[Pace], bool]) -> Pace:
    """The largest load below `most` that keeps to a limit, at least one sequence."""
    best, low, high = pace(1.0), 1.0, most
    for _ in range(HALVINGS):
        middle = pace(math.sqrt(low * high))
        if kept(middle):
            best, low = middle, middle.sequences
        else:
            high = middle.sequences
    return best


def _first_seconds(pace: Pace, scope: Numbers, constants: Numbers) -> float:
    """Seconds to the first token at the 99th percentile where requests come at random: prompts are
    computed one after the other (M/D/1, of Kingman's exponential tail), beside the steps of those
    who write."""
    each = pace.prompt_seconds * scope["interference"]
    busy = pace.sequences / pace.token_seconds / scope["output"] * each
    if busy >= 1:
        return math.inf
    waited = each / (2 * (1 - busy)) * max(0.0, math.log(100 * busy))
    return constants["waiting"] * waited + each + pace.token_seconds


def _run(pace: Callable[[float], Pace], scope: dict[str, float], full: float, share: float) -> Pace:
    """`share` requests of a rank, `full` at a time."""
    steady, waves = pace(full), share // full
    last = share - waves * full
    ending = pace(max(1.0, last))
    rate = RUN(
        {
            "waves": waves,
            "sequences": full,
            "token_seconds": steady.token_seconds,
            "last": last,
            "last_token_seconds": ending.token_seconds if last else 0.0,
            "tensor_parallel_size": scope["tensor_parallel_size"],
            "bubble": scope["bubble"],
        }
    )["rate"]
    return replace(steady, rate=rate)


def _tuned(runner: Runner, constants: Numbers) -> Numbers:
    """The constants, with those of 4-bit matrix products where they are measured."""
    if "four_bit_factor" not in constants or not runner.formats.mlp.endswith("fp4"):
        return constants
    factor = constants["matmul_factor"] * constants["four_bit_factor"]
    return {**constants, "matmul_factor": factor}


def _paced(pace: Callable[[float], Pace], full: float, limit: float) -> Pace:
    """The largest load whose tokens keep to the limit, at least one sequence; seconds grow about
    linearly with the load."""
    high = pace(full)
    if high.token_seconds <= limit or full <= 1:
        return high
    middle = low = pace(1.0)
    for _ in range(ROUNDS):
        if low.token_seconds > limit or low.sequences >= high.sequences - 1:
            break
        slope = (high.token_seconds - low.token_seconds) / (high.sequences - low.sequences)
        middle = pace(low.sequences + (limit - low.token_seconds) / slope)
        if middle.token_seconds > limit:
            high = middle
        else:
            low = middle
    return middle


def _queued(
    runner: Runner, constants: Numbers, scope: dict[str, float], load: float, context: float
) -> Pace:
    step = decode(runner, constants, load, context)
    values = QUEUED(
        {
            **scope,
            "sequences": load,
            "decode_seconds": step["seconds"],
            "decode_roofline": step["roofline_seconds"],
        }
    )
    return paced(runner, values, load)


def paced(runner: Runner, values: Numbers, sequences: float) -> Pace:
    """What a sheet of rates says of so many sequences."""
    return Pace(
        rate=values["rate"],
        best=values["best_rate"],
        token_seconds=values["token_seconds"],
        prompt_seconds=values["prompt_seconds"],
        sequences=sequences,
        division=runner.division,
    )


def alone(
    runner: Runner, constants: Numbers, *, prompt: float, output: float, eager: bool
) -> tuple[float, float]:
    """Seconds of one request, and at least how many. `eager`: each kernel is launched by the host,
    which takes its own time beside the GPU's."""
    long = constants["long_attention"]
    slow = {**constants, "attention_factor": constants["attention_factor"] * long}
    steps = (
        (1.0, prefill(runner, constants, 1.0, prompt)),
        (output, decode(runner, slow, 1.0, prompt + output / 2)),
    )
    return sum(_both(steps, constants, eager)), sum(n * s["roofline_seconds"] for n, s in steps)


def _both(
    steps: tuple[tuple[float, dict[str, float]], ...], constants: Numbers, eager: bool
) -> Iterator[float]:
    for count, step in steps:
        gpu, host = step["work_seconds"], step["overhead_seconds"]
        if eager:
            each = constants["expert_overhead"] * step.get("experts", 0.0)
            host += each * step.get("expert_layers", 0.0)
            yield count * _COMBINED(gpu=gpu, host=host)
        else:
            yield count * (gpu + host)


_COMBINED = Formula("(gpu ** 3 + host ** 3) ** (1 / 3)", "s", "the slower of the two, mostly")
