"""What machines can serve: in words, and as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from gpuplan.diagnostics import Diagnostic
from gpuplan.plan import wording
from gpuplan.plan.model import record
from gpuplan.plan.serialize import to_tree
from gpuplan.report.facts.catalog import table
from gpuplan.units import format_probability, format_quantity, format_usd, significant

if TYPE_CHECKING:
    from gpuplan.models.model import Model
    from gpuplan.sizing.ask.demand import Demand
    from gpuplan.sizing.candidates.choose import Candidate
    from gpuplan.sizing.decide.capacity import Capacity
    from gpuplan.sizing.kinds.serving.frontier import Frontier, Operation
    from gpuplan.sizing.kinds.serving.split import Split

COLUMNS = 100
ROWS = 16  # of a curve that are shown


@record
class Fitting:
    """A model in the place of the workload's: the layout that serves it, or what came nearest, or
    the problems that the workload has with it."""

    model: Model
    demand: Demand | None = None
    winner: Candidate | None = None
    nearest: Candidate | None = None
    problems: tuple[Diagnostic, ...] = ()


@record
class Answer:
    """Of one workload: the capacity of each kind of node, the models that fit, or the curve of
    latency against cost."""

    demand: Demand
    capacities: tuple[Capacity, ...] = ()
    models: tuple[Fitting, ...] = ()
    frontier: Frontier | None = None


def text(answer: Answer) -> str:
    head = _filled(f"{answer.demand.name}   {', '.join(_asked(answer.demand))}", "", 4)
    if answer.frontier is not None:
        return head + "".join(_frontier(answer, answer.frontier))
    return head + (_models(answer) if answer.models else "".join(_capacities(answer)))


def _filled(line: str, indent: str, more: int = 2) -> str:
    """`line` in lines that are not too long; those after the first are indented by `more`."""
    return (
        "\n".join(wrap(line, COLUMNS, initial_indent=indent, subsequent_indent=indent + " " * more))
        + "\n"
    )


def _asked(demand: Demand) -> Iterator[str]:
    """The model, the load but its rate, and the objectives."""
    if demand.model is not None:
        yield f"{demand.model.identifier} {demand.precision}"
    for field, name in (("load.input_tokens", "tokens in"), ("load.output_tokens", "out")):
        mean, high = demand.value(f"{field}.mean"), demand.value(f"{field}.p95")
        if mean is not None:
            tail = f" (p95 {high:,.0f})" if high and high > mean else ""
            yield f"{mean:,.0f}{tail} {name}"
    for field, quantity in demand.given.items():
        if field.startswith("slo.") and field != "slo.confidence":
            name, unit = field.removeprefix("slo.").replace("_", " "), quantity.unit
            sign = "≥" if unit == "1/s" else "≤"
            yield f"{name} {sign} {format_quantity(quantity.value, unit)}"


def _capacities(answer: Answer) -> Iterator[str]:
    for item in answer.capacities:
        split = () if item.split is None else _split(item, item.split)
        yield f"  {_machines(item)}\n"
        yield "".join(_filled(line, "    ") for line in (*_verdict(item), *split))
    found = [c.assured for c in answer.capacities if c.assured]
    if len(found) > 1:
        yield f"  together {significant(sum(found))} requests/s, as {len(found)} workloads: one "
        yield "takes nodes of one kind\n"
    wanted = answer.demand.value("load.requests_per_second.peak")
    if wanted and found:
        growth = answer.demand.value("growth.factor") or 1.0
        times = significant(max(found) / (wanted * growth))
        grown = f" × {significant(growth)}" if growth > 1 else ""
        yield f"  wanted {significant(wanted)}{grown} requests/s: the best is {times} times that\n"


def _machines(item: Capacity) -> str:
    kind = f" ({item.node_type})" if item.node_type else ""
    there = ", assumed: nodes may be bought without limit" if item.assumed else ""
    plural = "s" if item.nodes > 1 else ""
    return f"{item.nodes} node{plural} of {item.gpus_per_node} × {item.gpu}{kind}{there}"


def _verdict(item: Capacity) -> tuple[str, ...]:
    """The rate, and the layout that has it."""
    if item.assured is None or item.requests_per_second is None:
        reasons = "; ".join(wording.shortfall(to_tree(s)) for s in item.shortfalls)
        return (f"none: {reasons or 'no layout fits'}",)
    likely = item.requests_per_second
    ends = f"{significant(likely.low)} to {significant(likely.high)}"
    shape = [f"{item.replicas} replica{'s' if item.replicas > 1 else ''}"]
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


def _split(item: Capacity, found: Split) -> tuple[str, str]:
    likely, chance = found.requests_per_second, format_probability(item.confidence)
    first, token = found.prefill_tensor_parallel_size, found.decode_tensor_parallel_size
    more = f", {significant(found.assured / item.assured)} times that" if item.assured else ""
    return (
        (
            f"as two pools {significant(found.assured)} requests/s with {chance}, likely "
            f"{significant(likely.value)}{more}"
        ),
        (
            f"{found.prefill_replicas} × {first} GPU for prefill, "
            f"{found.decode_replicas} × {token} GPU for decode, {found.sequences} sequences each"
        ),
    )


def _models(answer: Answer) -> str:
    largest = next((m for m in answer.models if m.winner), None)
    rows = [_row(m) for m in answer.models]
    name = f"{_billions(largest)}: {largest.model.identifier}" if largest else "none"
    head = ("model", "parameters", "precision", "verdict")
    body = "".join(f"  {line}\n" for line in table(head, rows).splitlines())
    return f"  largest of {len(rows)} models that fits: {name}\n{body}"


def _frontier(answer: Answer, found: Frontier) -> Iterator[str]:
    """Every so many of the points, and the first and the last."""
    confidence = format_probability(answer.demand.value("slo.confidence") or 0.0)
    yield f"  {found.tried:,} configurations, {found.held:,} fit into memory; "
    yield f"{len(found.operations):,} are beaten by none in speed and cost\n"
    step = max(1, -(-(len(found.operations) - 1) // (ROWS - 1)))
    shown = [*found.operations[:-1:step], *found.operations[-1:]]
    head = ("replica", "sequences", "TPOT", "TTFT p95", "tokens/s a GPU", "cost", "objectives")
    rows = [_operation_row(item) for item in shown]
    yield "".join(f"  {line}\n" for line in table(head, rows).splitlines())
    yield f"  likely values of a replica that is always so full; objectives with {confidence}\n"


def _operation_row(item: Operation) -> tuple[str, ...]:
    name = f"{item.gpu} as {item.partition}" if item.partition else item.gpu
    many = f"{item.tensor_parallel_size} × {name}" if item.tensor_parallel_size > 1 else name
    usd = item.usd_per_million_tokens
    return (
        many,
        f"{item.sequences}",
        format_quantity(item.time_per_output_token, "s"),
        format_quantity(item.time_to_first_token, "s"),
        significant(item.tokens_per_second_per_gpu),
        "unpriced" if usd is None else f"{format_usd(usd)}/M tokens",
        "met" if item.meets else "missed",
    )


def _billions(item: Fitting) -> str:
    return f"{item.model.parameters / 1e9:,.1f} B"


def _row(item: Fitting) -> tuple[str, ...]:
    precision = item.demand.precision if item.demand else ""
    return (item.model.identifier, _billions(item), precision, _fits(item))


def _fits(item: Fitting) -> str:
    if item.winner is None:
        return f"no: {'; '.join(_reasons(item)) or 'no layout fits'}"
    one, usd = item.winner, item.winner.usd_per_hour
    shape = f", tensor parallel {one.gpus}" if one.gpus > 1 else ""
    cost = "unpriced" if usd is None else f"{format_usd(usd)}/h"
    name = one.device.gpu.identifier + (f" as {one.device.partition}" * bool(one.device.partition))
    return f"fits {one.gpu_count} × {name}{shape}, {cost}"


def _reasons(item: Fitting) -> Iterator[str]:
    if item.nearest is not None:
        gpu = item.nearest.device.gpu.identifier
        yield f"{gpu}: {wording.shortfall(to_tree(item.nearest.shortfalls[0]))}"
    yield from (d.message for d in item.problems[:1])


def tree(answer: Answer) -> dict[str, Any]:
    """Plain data with stable keys."""
    return {
        "workload": answer.demand.name,
        "capacities": [to_tree(c) for c in answer.capacities],
        "models": [_fitting(m) for m in answer.models],
        "frontier": to_tree(answer.frontier),
    }


def _fitting(item: Fitting) -> dict[str, Any]:
    one = item.winner
    usd = None if one is None else one.usd_per_hour
    return {
        "model": item.model.identifier,
        "parameters": item.model.parameters,
        "precision": item.demand.precision if item.demand else None,
        "fits": one is not None,
        "gpu": one.device.gpu.identifier if one else None,
        "gpu_count": one.gpu_count if one else None,
        "tensor_parallel_size": one.gpus if one else None,
        "replicas": one.replicas if one else None,
        "usd_per_hour": None if usd is None else float(usd),
        "reasons": list(_reasons(item)),
    }
