"""What machines can serve: in words, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.plan import wording
from gpuplan.plan.capacity import Answer, Capacity, Frontier, ModelFit, Operation, Question
from gpuplan.plan.records import Split
from gpuplan.plan.serialize import to_json, to_tree
from gpuplan.plan.times import in_words
from gpuplan.render.text import COLUMNS, wrapped
from gpuplan.report.facts.catalog import table
from gpuplan.report.machines import runs as trained
from gpuplan.units import format_probability, format_quantity, format_usd, plural, significant

WITHIN = ("finish_within",)  # objectives whose name says that the limit is the most
ROWS = 16  # of a curve that are shown


def text(answer: Answer) -> str:
    question = answer.question
    head = _filled(f"{question.workload}   {', '.join(_asked(question))}", "", 4)
    if answer.frontier is not None:
        return head + "".join(_frontier(question, answer.frontier))
    if answer.runs:
        return head + "".join(trained.lines(answer))
    return head + (_models(answer) if answer.models else "".join(_capacities(answer)))


def _filled(line: str, indent: str, more: int = 2) -> str:
    """`line` in lines that are not too long; those after the first are indented by `more`."""
    lead = indent + " " * more
    first, *rest = wrapped(f"{indent}{line}", COLUMNS)
    return (
        "\n".join([first, *(lead + r for r in wrapped(" ".join(rest), COLUMNS - len(lead)) if r)])
        + "\n"
    )


def _asked(question: Question) -> Iterator[str]:
    """The model, the load but its rate, and the objectives."""
    if question.model is not None:
        yield f"{question.model} {question.precision}"
    for lengths, name in ((question.input_tokens, "tokens in"), (question.output_tokens, "out")):
        if lengths is not None:
            longer = lengths.p95 is not None and lengths.p95 > lengths.mean
            tail = f" (p95 {lengths.p95:,.0f})" if longer else ""
            yield f"{lengths.mean:,.0f}{tail} {name}"
    for objective in question.objectives:
        sign = " ≥" if objective.unit == "1/s" else "" if objective.name in WITHIN else " ≤"
        limit = format_quantity(objective.limit, objective.unit)
        may = " (a miss is accepted)" if objective.accepted else ""
        yield f"{in_words(objective.name)}{sign} {limit}{may}"


def _capacities(answer: Answer) -> Iterator[str]:
    for item in answer.capacities:
        split = () if item.split is None else _split(item, item.split)
        yield f"  {_machines(item)}\n"
        yield "".join(_filled(line, "    ") for line in (*_verdict(item), *split))
    rates = [c.assured for c in answer.capacities if c.assured]
    if len(rates) > 1:
        yield f"  together {significant(sum(rates))} requests/s, as {len(rates)} workloads: one "
        yield "takes nodes of one kind\n"
    peak, growth = answer.question.peak, answer.question.growth
    if peak and rates:
        times = significant(max(rates) / (peak * growth))
        grown = f" × {significant(growth)}" if growth > 1 else ""
        yield f"  wanted {significant(peak)}{grown} requests/s: the best is {times} times that\n"


def _machines(item: Capacity) -> str:
    kind = f" ({item.node_type})" if item.node_type else ""
    limit = ", assumed: nodes may be bought without limit" if item.assumed else ""
    return f"{plural(item.nodes, 'node')} of {item.gpus_per_node} × {item.gpu}{kind}{limit}"


def _verdict(item: Capacity) -> tuple[str, ...]:
    """The rate, and the layout that has it."""
    if item.assured is None or item.requests_per_second is None:
        reasons = "; ".join(wording.shortfall(to_tree(s)) for s in item.shortfalls)
        return (f"none: {reasons or 'no layout fits'}",)
    likely = item.requests_per_second
    ends = f"{significant(likely.low)} to {significant(likely.high)}"
    shape = [plural(item.replicas, "replica")]
    shape += [f"tensor parallel {item.tensor_parallel_size}"] * (item.tensor_parallel_size > 1)
    shape += [f"on {item.partition}"] if item.partition else []
    users = "" if item.users is None else f" ({item.users:,} users)"
    chance = format_probability(item.confidence)
    return (
        (
            f"{significant(item.assured)} requests/s{users} with {chance}, "
            f"likely {significant(likely.value)} ({ends}, {likely.basis})"
        ),
        ", ".join(shape),
    )


def _split(item: Capacity, split: Split) -> tuple[str, str]:
    likely, chance = split.requests_per_second, format_probability(item.confidence)
    prefill, decode = split.prefill_tensor_parallel_size, split.decode_tensor_parallel_size
    more = f", {significant(split.assured / item.assured)} times that" if item.assured else ""
    over = "both in each node" if split.over == "links" else "joined by the fabric"
    return (
        (
            f"as two pools {significant(split.assured)} requests/s with {chance}, likely "
            f"{significant(likely.value)}{more}"
        ),
        (
            f"{split.prefill_replicas} × {prefill} GPU for prefill, "
            f"{split.decode_replicas} × {decode} GPU for decode, "
            f"{split.sequences} sequences each, {over}"
        ),
    )


def _models(answer: Answer) -> str:
    largest = next((fit for fit in answer.models if fit.gpu), None)
    rows = [(f.model, _billions(f), f.precision or "", _verdict_on(f)) for f in answer.models]
    name = f"{_billions(largest)}: {largest.model}" if largest else "none"
    head = ("model", "parameters", "precision", "verdict")
    body = "".join(f"  {line}\n" for line in table(head, rows).splitlines())
    return f"  largest of {len(rows)} models that fits: {name}\n{body}"


def _frontier(question: Question, frontier: Frontier) -> Iterator[str]:
    """Every so many of the points, and the first and the last."""
    operations, confidence = frontier.operations, format_probability(question.confidence)
    yield f"  {frontier.tried:,} configurations, {frontier.held:,} fit into memory; "
    yield f"{len(operations):,} are beaten by none in speed and cost\n"
    step = max(1, -(-(len(operations) - 1) // (ROWS - 1)))
    head = ("replica", "batch", "TPOT", "TTFT p95", "tokens/s a GPU", "$/M tokens", "SLO")
    rows = [_operation_row(item) for item in (*operations[:-1:step], *operations[-1:])]
    yield "".join(f"  {line}\n" for line in table(head, rows).splitlines())
    yield f"  likely values of a replica that is always so full; objectives with {confidence}\n"


def _operation_row(item: Operation) -> tuple[str, ...]:
    name = f"{item.gpu} as {item.partition}" if item.partition else item.gpu
    usd = item.usd_per_million_tokens
    return (
        f"{item.tensor_parallel_size} × {name}" if item.tensor_parallel_size > 1 else name,
        f"{item.sequences}",
        format_quantity(item.time_per_output_token, "s"),
        format_quantity(item.time_to_first_token, "s"),
        significant(item.tokens_per_second_per_gpu),
        "unpriced" if usd is None else format_usd(usd),
        "met" if item.meets else "missed",
    )


def _billions(fit: ModelFit) -> str:
    return f"{fit.parameters / 1e9:,.1f} B"


def _verdict_on(fit: ModelFit) -> str:
    if fit.gpu is None:
        return f"no: {'; '.join(_reasons(fit)) or 'no layout fits'}"
    size = fit.tensor_parallel_size or 1
    shape = f", tensor parallel {size}" if size > 1 else ""
    cost = "unpriced" if fit.usd_per_hour is None else f"{format_usd(fit.usd_per_hour)}/h"
    name = f"{fit.gpu} as {fit.partition}" if fit.partition else fit.gpu
    return f"fits {fit.gpu_count} × {name}{shape}, {cost}"


def _reasons(fit: ModelFit) -> Iterator[str]:
    if fit.nearest is not None:
        yield f"{fit.nearest}: {wording.shortfall(to_tree(fit.shortfalls[0]))}"
    if fit.problem is not None:
        yield fit.problem


def tree(answer: Answer) -> dict[str, Any]:
    """Plain data with stable keys."""
    return {
        "workload": answer.question.workload,
        "capacities": [to_json(c) for c in answer.capacities],
        "models": [_fit_tree(fit) for fit in answer.models],
        "frontier": to_json(answer.frontier),
        "runs": [trained.tree(r) for r in answer.runs],
    }


def _fit_tree(fit: ModelFit) -> dict[str, Any]:
    layout = ("gpu", "gpu_count", "tensor_parallel_size", "replicas")
    return {
        "model": fit.model,
        "parameters": fit.parameters,
        "precision": fit.precision,
        "fits": fit.gpu is not None,
        **{name: getattr(fit, name) for name in layout},
        "usd_per_hour": None if fit.usd_per_hour is None else float(fit.usd_per_hour),
        "reasons": list(_reasons(fit)),
    }
