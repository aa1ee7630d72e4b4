"""Training runs on machines, in words: when they end, how many end in time, what a budget pays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.plan import wording
from gpuplan.plan.capacity import Answer, Run, Runs
from gpuplan.plan.serialize import to_tree
from gpuplan.render.text import COLUMNS, wrapped
from gpuplan.report.facts.catalog import table
from gpuplan.units import (
    format_bytes,
    format_probability,
    format_quantity,
    format_seconds,
    format_usd,
    plural,
    significant,
)

ROWS = 16  # of a curve that are shown
ALONE = "; GPUs of several nodes are not used without `platform.fabric`"
PURPOSES = {
    "fastest": "the soonest of these:",
    "soonest": "none ends it in time; the soonest on any number:",
    "in_time": "in time, on the fewest:",
    "cheapest": "the cheapest:",
}


def lines(answer: Answer) -> Iterator[str]:
    every = [run for item in answer.runs for run in item.runs]
    if every and all(run.purpose == "frontier" for run in every):
        yield from _frontier(answer)
        return
    for item in answer.runs:
        yield f"  {_machines(item)}\n"
        purposes = {run.purpose for run in item.runs}
        if "fastest" not in purposes and item.shortfalls:
            reasons = "; ".join(wording.shortfall(to_tree(s)) for s in item.shortfalls)
            alone = "" if item.fabric else ALONE
            yield _filled(f"none of them holds it: {reasons}{alone}")
        for run in item.runs:
            yield _filled(f"{PURPOSES[run.purpose]} {_verdict(item, run)}")
            yield _filled(", ".join(_layout(run)), 4)
            if run.tokens_in_budget is not None and answer.question.budget is not None:
                yield _filled(_reach(run, answer.question.budget), 4)
        if "soonest" in purposes:
            yield _filled("a larger `global_batch` lets more GPUs share a step")
    first = next((run for item in answer.runs for run in item.runs), None)
    if first is not None:
        size = format_bytes(first.checkpoint_bytes)
        yield _filled(f"a checkpoint takes {size}; {significant(first.tokens)} tokens in all", 0)


def tree(item: Runs) -> dict[str, Any]:
    """Plain data with stable keys."""
    money = ("usd", "usd_per_hour")
    runs = [
        to_tree(run) | {n: None if (v := getattr(run, n)) is None else float(v) for n in money}
        for run in item.runs
    ]
    return {**to_tree(item), "runs": runs}


def _filled(text: str, more: int = 2) -> str:
    lead = " " * (2 + more)
    first, *rest = wrapped(f"{lead}{text}", COLUMNS)
    tail = [f"{lead}  {line}" for line in wrapped(" ".join(rest), COLUMNS - len(lead) - 2) if line]
    return "\n".join([first, *tail]) + "\n"


def _frontier(answer: Answer) -> Iterator[str]:
    """Every so many of the points, and the first and the last."""
    points = [(item, run) for item in answer.runs for run in item.runs]
    chance = format_probability(points[0][0].confidence)
    yield f"  {len(points):,} runs are beaten by none in time and money; times with {chance}\n"
    step = max(1, -(-(len(points) - 1) // (ROWS - 1)))
    head = ("ends after", "GPUs", "in all", "of the peak", "layout")
    rows = [_row(item, run) for item, run in (*points[:-1:step], *points[-1:])]
    yield "".join(f"  {line}\n" for line in table(head, rows).splitlines())


def _row(item: Runs, run: Run) -> tuple[str, ...]:
    return (
        format_seconds(run.assured),
        f"{run.gpus:,} × {item.gpu}",
        "unpriced" if run.usd is None else format_usd(run.usd),
        f"{run.utilization:.0%}",
        " ".join([run.sharding, *(f"{short} {size}" for short, _, size in _sizes(run))]),
    )


def _sizes(run: Run) -> list[tuple[str, str, int]]:
    """The parts that it is divided into, with their short and long names."""
    of = run.parallelism
    sizes = (
        ("TP", "tensor", of.tensor_parallel_size),
        ("CP", "context", of.context_parallel_size),
        ("PP", "pipeline", of.pipeline_parallel_size),
        ("EP", "expert", of.expert_parallel_size),
        ("DP", "data", of.data_parallel_size),
    )
    return [size for size in sizes if size[2] > 1]


def _machines(item: Runs) -> str:
    kind = f" ({item.node_type})" if item.node_type else ""
    each = f"{item.gpus_per_node} × {item.gpu}{kind}"
    if item.nodes is None:
        return f"nodes of {each}, bought without limit"
    return f"{plural(item.nodes, 'node')} of {each}" + (", assumed" if item.assumed else "")


def _verdict(item: Runs, run: Run) -> str:
    chance = format_probability(item.confidence)
    likely = run.seconds
    ends = f"{format_seconds(likely.low)} to {format_seconds(likely.high)}"
    return (
        f"{format_seconds(run.assured)} with {chance} on {plural(run.gpus, 'GPU')} "
        f"({plural(run.nodes, 'node')}), likely {format_seconds(likely.value)} "
        f"({ends}, {likely.basis})"
    )


def _layout(run: Run) -> Iterator[str]:
    yield f"{run.engine}: sharding {run.sharding}"
    yield from (f"{name} parallel {size}" for _, name, size in _sizes(run))
    if copies := run.parallelism.state_copies:
        yield f"{copies} copies of the states"
    yield f"{run.utilization:.0%} of the bf16 peak"
    if run.lost_share:
        yield f"{run.lost_share:.1%} more time for checkpoints and failures"
    yield "unpriced" if run.usd is None else f"{format_usd(run.usd)} in all"
    watts, whole = format_quantity(run.gpu_watts, "W"), run.node_watts
    servers = "" if whole is None else f", {format_quantity(whole, 'W')} of whole servers"
    yield f"{watts} of GPUs{servers}"


def _reach(run: Run, budget: float) -> str:
    assert run.tokens_in_budget is not None
    part = run.tokens_in_budget / run.tokens
    reached = f"{significant(run.tokens_in_budget)} tokens"
    return f"{format_usd(budget)} pays {reached}, {part:.0%} of the run"
