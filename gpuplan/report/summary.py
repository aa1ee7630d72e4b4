"""`compile`'s answer: what was chosen first, then why, then what was written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat

from gpuplan.plan import wording
from gpuplan.plan.costs.units import unit_costs
from gpuplan.plan.model import (
    Alternative,
    MemoryBudget,
    Metric,
    NodePool,
    Order,
    Override,
    Plan,
    Workload,
)
from gpuplan.plan.outside.together import regions_diffs
from gpuplan.plan.serialize import to_tree
from gpuplan.plan.times import TIMES, with_statistic
from gpuplan.render.text import COLUMNS, fitted, printable, width
from gpuplan.render.tree import FileTree
from gpuplan.report.measuring import spared
from gpuplan.report.paint import Paint
from gpuplan.targets import TARGETS
from gpuplan.units import (
    format_apart,
    format_bytes,
    format_probability,
    format_quantity,
    format_seconds,
    plural,
    significant,
)

PROGRAM = "Pulumi.yaml"  # the file that a Pulumi program is known by
NEAREST = 4  # alternatives that are shown
LABEL = 21
BAR = 24
SHORT = {
    "time_to_first_token": "TTFT",
    "time_per_output_token": "TPOT",
    "request_latency": "latency",
    "tokens_per_second": "tokens/s",
    "images_per_second": "images/s",
    "videos_per_second": "videos/s",
    "gpu_images_per_second": "images/s by GPU",
    "decoded_images_per_second": "images/s by decoding cores",
    "stored_images_per_second": "images/s by storage",
    "requests_per_second": "requests/s",
    "finish_within": "finishes in",
}
PARTS = (
    ("weights", "weights_bytes", "█"),
    ("gradients", "gradients_bytes", "▓"),
    ("optimizer", "optimizer_bytes", "▓"),
    ("KV cache", "kv_cache_bytes", "▓"),
    ("workspace", "activations_bytes", "▒"),
    ("overhead", "overhead_bytes", "▒"),
)


def summary(plan: Plan, paint: Paint | None = None, columns: int = COLUMNS) -> str:
    """The choice for each workload, and what the stack costs."""
    paint = paint or Paint()
    numbers = {e.quantity: e.value for e in plan.evidence}
    pools = {pool.name: pool for pool in plan.node_pools}
    blocks = [
        "\n".join((*workload(w, numbers, paint, columns), *_spared(w, numbers, pools, columns)))
        for w in plan.workloads
    ]
    return "\n\n".join([*blocks, "\n".join(_total(plan, paint, columns))]) + "\n"


def workload(
    work: Workload, numbers: dict[str, float], paint: Paint, columns: int
) -> Iterator[str]:
    yield from _head(work.name, [printable(t) for t in _asked(work, numbers)], paint, columns)
    devices = f"{work.gpu_count} × {work.gpu}"
    yield _row(
        paint("green", devices),
        _shape(work),
        width(devices),
    )
    if work.interruption is not None:
        lost = wording.interruption(to_tree(work.interruption))
        yield from _wrapped("interruption", lost, columns, ",")
    yield from _handed(work, columns)
    yield from _wrapped("memory", _memory(work), columns, ",")
    yield from _wrapped("expected", _expected(work), columns)
    units = [u.text for u in unit_costs(work, numbers) if u.basis in ("mean load", "run")]
    if units:
        yield from _wrapped("unit costs", units, columns)
    misses = [_miss(m) for m in work.metrics if m.accepted_miss]
    if misses:
        yield from _wrapped("accepted miss", misses, columns)
    if work.overrides:
        yield from _replaced(work.overrides, columns)
    if work.alternatives:
        others = [_rejected(a) for a in work.alternatives[:NEAREST]]
        if (more := len(work.alternatives) - NEAREST) > 0:
            others.append(f"{more} more, by `gpuplan explain`")
        yield from _wrapped("instead of", others, columns)
    if work.cheaper_split is not None:
        yield from _wrapped("cheaper", wording.apart(to_tree(work.cheaper_split)), columns, ",")


def _spared(
    work: Workload, numbers: dict[str, float], pools: Mapping[str, NodePool], columns: int
) -> Iterator[str]:
    """What certainty would save: the plan holds the objectives at the end of an interval."""
    least = numbers.get(f"{work.name}.measuring.replicas")
    pool = pools.get(work.node_pool)
    if least is None or pool is None:
        return
    if fewer := spared(to_tree(work), int(least), to_tree(pool)):
        where = "if one is measured to be as predicted (`gpuplan explain`)"
        yield from _wrapped("uncertain", [*fewer.split(": "), where], columns, ",")


def _handed(work: Workload, columns: int) -> Iterator[str]:
    if work.disaggregation is not None:
        words = wording.handed(to_tree(work.disaggregation))
        yield from _wrapped("pools", words.split("; "), columns, ";")


def _replaced(overrides: Sequence[Override], columns: int, where: str = "") -> Iterator[str]:
    """What the manifest, or an inventory, says instead of what was derived."""
    first, *others = [printable(wording.override(to_tree(o))) for o in overrides]
    yield from _wrapped("overridden", [where + first, *others], columns)


def _head(name: str, items: Sequence[str], paint: Paint, columns: int) -> Iterator[str]:
    line, lead = f"{paint('bold', name)}   ", width(name) + 3
    used = lead
    for number, item in enumerate(items):
        text = item + ("," if number < len(items) - 1 else "")
        if used > lead and used + 1 + width(text) > columns:
            yield line
            line, used = " " * lead, lead
        elif used > lead:
            line, used = line + " ", used + 1
        line, used = line + text, used + width(text)
    yield line


def _row(label: str, text: str, size: int | None = None) -> str:
    pad = LABEL - (width(label) if size is None else size)
    return f"  {label}{' ' * max(pad, 2)}{text}"


def _wrapped(label: str, items: Sequence[str], columns: int, between: str = " ·") -> Iterator[str]:
    line = ""
    for place, item in enumerate(items, 1):
        ended = item if place == len(items) else item + between
        longer = f"{line} {ended}" if line else ended
        if line and width(longer) + LABEL + 2 > columns:
            yield _row(label, line)
            label, line = "", ended
        else:
            line = longer
    yield _row(label, line)


def _asked(work: Workload, numbers: dict[str, float]) -> Iterator[str]:
    if work.model:
        name = work.model.identifier.rpartition("/")[2]
        yield f"{name} {work.precision}" if work.precision else name
    if work.notebook:
        memory = format_bytes(work.notebook.gpu_memory_bytes)
        several = plural(work.notebook.users, "notebook")
        yield f"{several} with {memory} of GPU memory" + " each" * (work.notebook.users > 1)
    if work.training:
        run = work.training
        yield f"{run.method}, {run.steps:,} steps of {run.global_batch}"
        images = numbers.get(f"{work.name}.dataset.images")
        read = f"{run.sequence_length:,} tokens a sequence"
        yield read if images is None else f"{images:,.0f} images an epoch"
    peak = numbers.get(f"{work.name}.load.requests_per_second.peak")
    if peak is not None:
        yield f"{significant(peak)} requests/s at peak{_growth(work, numbers)}"
    users = numbers.get(f"{work.name}.load.concurrency.users")
    if users is not None:
        pause = numbers.get(f"{work.name}.load.concurrency.think_time", 0.0)
        again = f" who ask again after {format_seconds(pause)}" if pause else ", always waiting"
        yield f"{users:,.0f} users{_growth(work, numbers)}{again}"
    for metric in work.metrics:
        if metric.limit is not None and metric.name != "gpu_memory":
            sign = "≤" if metric.sense == "at_most" else "≥"
            may = " (a miss is accepted)" if metric.accepted_miss else ""
            yield f"{_name(metric)} {sign} {format_quantity(metric.limit, metric.unit)}{may}"


def _growth(work: Workload, numbers: dict[str, float]) -> str:
    factor = numbers.get(f"{work.name}.growth.factor", 1.0)
    horizon = numbers.get(f"{work.name}.growth.horizon")
    if factor == 1:
        return ""
    return f" × {significant(factor)}" + (f" in {format_seconds(horizon)}" if horizon else "")


def _name(metric: Metric) -> str:
    if metric.name in TIMES:
        time, statistic = TIMES[metric.name]
        return with_statistic(SHORT[time], statistic)
    return SHORT.get(metric.name, metric.name.replace("_", " "))


def _shape(work: Workload) -> str:
    parts = []
    if work.partition:
        parts.append(f"as {work.partition}")
    parts += wording.division(to_tree(work.parallelism))
    if work.parallelism.data_parallel_size > 1:
        parts.append(f"data parallel {work.parallelism.data_parallel_size}")
    if work.training is None:
        parts.append(wording.replicas(to_tree(work)))
    if work.nodes_per_replica > 1:
        parts.append(f"{work.nodes_per_replica} nodes")
    price = wording.price(to_tree(work))
    if work.watts is None:
        return f"{', '.join(parts)}     {price}"
    whose = "as its share of GPUs" if work.partition else "of GPUs"
    return f"{', '.join(parts)}     {price}, {format_quantity(work.watts, 'W')} {whose}"


def _memory(work: Workload) -> list[str]:
    memory, overhead = work.memory, wording.overhead(to_tree(work))
    used = [(name, getattr(memory, field), mark) for name, field, mark in PARTS]
    names = {"overhead": overhead}
    named = [f"{names.get(name, name)} {format_bytes(size)}" for name, size, _ in used if size]
    free = f"free {format_bytes(memory.free_bytes)}"
    head = f"{bar(memory)}  of {format_bytes(memory.capacity_bytes)}: "
    return [head + named[0], *named[1:], free] if named else [head + free]


def bar(memory: MemoryBudget) -> str:
    """The device's memory as a bar; any part that is not empty is seen."""
    filled, text = 0, ""
    for _, field, mark in PARTS:
        filled += getattr(memory, field)
        if getattr(memory, field):
            end = round(filled / memory.capacity_bytes * BAR)
            text += mark * max(1, end - len(text))
    return (text + "░" * BAR)[:BAR]


def _miss(metric: Metric) -> str:
    """`TTFT p95 1.4 s of 1 s`."""
    value, limit = format_apart(metric.estimate.value, metric.limit or 0.0, metric.unit)
    return f"{_name(metric)} {value} of {limit}"


def _expected(work: Workload) -> list[str]:
    items = [
        f"{_name(m)} {_estimate(m)}"
        + ("" if m.probability is None else f", met with {format_probability(m.probability)}")
        for m in work.metrics
    ]
    return [*items, f"bound by {work.bound_by}"]


def _estimate(metric: Metric) -> str:
    value, unit = metric.estimate, metric.unit
    low, high = format_quantity(value.low, unit), format_quantity(value.high, unit)
    return f"{format_quantity(value.value, unit)} ({low} to {high})"


def _rejected(item: Alternative) -> str:
    head = f"{item.gpu_count} × {item.gpu}" if item.gpu_count else item.gpu
    head += wording.on_nodes(to_tree(item))
    reasons = [wording.shortfall(to_tree(s)) for s in item.shortfalls[:1]]
    if not reasons:
        price = [] if item.usd_per_hour is None else [wording.alternative_price(to_tree(item))]
        if (wins := wording.wins_at(to_tree(item).get("flip"))) is not None:
            price.append(f"would win at {wins} a GPU")
        reasons = [", ".join(["fits", *price])] if price else []
    return f"{head}: {reasons[0] if reasons else item.gate.replace('_', ' ')}"


def _total(plan: Plan, paint: Paint, columns: int) -> Iterator[str]:
    for host in plan.hosts:
        if host.overrides:
            yield from _replaced(host.overrides, columns, f"on {host.name} ")
    yield _row("nodes", ", ".join(p.shape for p in plan.node_pools))
    several = len({p.price for p in plan.node_pools}) > 1
    for label, pool in zip(chain(("prices",), repeat("")), plan.node_pools, strict=False):
        if several or label:
            price = f"{pool.name}: {pool.price}" if several else pool.price
            yield from _wrapped(label, price.split("; "), columns, ";")
    for label, idle in zip(chain(("idle",), repeat("")), _idle(plan), strict=False):
        yield from _wrapped(label, idle.split(" or "), columns, " or")
    yield from _ordered(plan, columns)
    yield from _cost(plan, paint, columns)


def _cost(plan: Plan, paint: Paint, columns: int) -> Iterator[str]:
    cost = plan.cost
    if cost.power is not None:
        yield from _wrapped("power", cost.power.split(", "), columns, ",")
    if cost.usd_per_hour is None:
        yield _row("cost", "unpriced")
        return
    over = paint("red", " (over budget)") if cost.over_budget else ""
    *first, last = cost.amounts.split("; ")
    yield from _wrapped("cost", [*first, last + over], columns, ";")
    if any(pool.rented for pool in plan.node_pools):
        yield _row("", "of nodes; what else a month costs: `gpuplan cost`")


def _ordered(plan: Plan, columns: int) -> Iterator[str]:
    ordered = [f"{_count(plan, order)} of {order.name}" for order in plan.orders]
    if ordered:
        yield from _wrapped("order", [*ordered[:-1], f"{ordered[-1]}, by order.csv"], columns, ",")


def _count(plan: Plan, order: Order) -> str:
    pools = {machine.pool for machine in order.machines}
    return plural(sum(p.node_count for p in plan.node_pools if p.name in pools), "machine")


def _idle(plan: Plan) -> Iterator[str]:
    """Of each pool, named where there are several."""
    for pool in plan.node_pools:
        if pool.idle is not None:
            yield f"{pool.name}: {pool.idle}" if len(plan.node_pools) > 1 else pool.idle


def planned(plan: Plan) -> str:
    """That nothing was written, and whether a stack can be."""
    emitted = bool(TARGETS[plan.target].backends)
    then = "without --plan-only a stack is written" if emitted else "no backend emits for it yet"
    return f"planned {plan.name} for {plan.target}; nothing was written: {then}"


def written(stack: str, files: FileTree, changed: bool) -> str:
    """What became of the stack's folder, and the next verb: only a program is previewed."""
    count = f"{len(files.files)} files"
    state = f"wrote {stack}: {count}" if changed else f"{stack} is up to date: {count}"
    verb = "preview" if any(f.path == PROGRAM for f in files) else "check"
    return f"{state}     next: gpuplan {verb} {stack}"


def together(plans: Sequence[Plan]) -> Iterator[str]:
    """Of each manifest in several regions what its stacks are together."""
    for regions in regions_diffs((), plans):
        yield fitted(regions.sentence)
