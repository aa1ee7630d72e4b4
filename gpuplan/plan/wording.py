"""How parts of a plan are said in words; over plain trees, so that no records are needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.plan.costs.recurrence import most_starts
from gpuplan.plan.records import Lack
from gpuplan.plan.times import in_words
from gpuplan.units import (
    HOURS_PER_MONTH,
    format_apart,
    format_bytes,
    format_probability,
    format_quantity,
    format_seconds,
    format_usd,
    plural,
    significant,
)

Tree = Mapping[str, Any]
_LACKING: dict[Lack, str] = {
    "absent": "no {resource}",
    "unknown": "the catalogue does not know its {resource}",
    "unmeasured": "no measured {resource} stand for it",
    "unstated": "several nodes need {resource}, which is not stated",
    "undivided": "no layout divides its {resource} evenly over so many GPUs",
    "uneven": "{parts} do not divide {resource}",
}
LEAST_PRICE = 2  # a price below half of what is paid is no offer


def price(item: Tree) -> str:
    """`$1.20/h`, of work that ends also `$30 for the run`, or `unpriced`: a price that is not known
    is never zero."""
    usd = item.get("usd_per_hour")
    if usd is None:
        return "unpriced"
    return ", ".join([f"{format_usd(usd)}/h", *_run(item, float(usd))])


def _run(item: Tree, usd_per_hour: float) -> Iterator[str]:
    """What work that ends costs whole: its GPUs, and what its checkpoints lie on."""
    stored = item.get("usd_of_storage")
    for metric in item.get("metrics", ()):
        if metric["name"] == "time_to_finish":
            usd = usd_per_hour * _estimated(metric) / 3600 + float(stored or 0)
            of_storage = f" with {format_usd(stored)} of storage" if stored else ""
            yield f"{format_usd(usd)} for the run{of_storage}"
            yield from _again(item, usd, _estimated(metric) / 3600)
    if stored is None and any(v["purpose"] == "checkpoints" for v in item.get("volumes", ())):
        yield "checkpoints unpriced"


def _again(item: Tree, usd: float, hours: float) -> Iterator[str]:
    """What recurs, in the month with most starts: one run after the other."""
    if item.get("schedule"):
        starts = most_starts(item["schedule"])
        times = min(float(starts), HOURS_PER_MONTH / hours)
        full = "" if times == starts else ", as many as a month has time for"
        often = plural(starts, "start")
        yield f"at most {often} a month{full}: {format_usd(usd * times)}/month"


def interruption(lost: Tree) -> list[str]:
    """What each one adds to the price and the time that are printed, and how many leave a run in
    time."""
    usd = f" and {format_usd(lost['usd'])}" if lost.get("usd") is not None else ""
    items = [f"each adds {format_seconds(lost['seconds'])}{usd}"]
    times = lost.get("in_time")
    return items if times is None else [*items, f"in time with up to {times:,}"]


def replicas(work: Tree) -> str:
    """`3 replicas`; of pools `3 replicas: 2 prefill, 1 decodes`."""
    count = plural(work["replicas"], "replica")
    if not (pools := work.get("disaggregation")):
        return count
    prefill, decode = pools["prefill_replicas"], pools["decode_replicas"]
    doing = (("prefill", prefill), ("decode", decode))
    return f"{count}: " + ", ".join(f"{n} {verb}{'s' * (n == 1)}" for verb, n in doing)


def handed(pools: Tree) -> str:
    """What goes from one pool to the other, how long it takes, and how sure it all is."""
    size, rate = pools["prompt_cache_bytes"], pools["transfer_bytes_per_s"]
    return (
        f"a mean prompt's cache, {format_bytes(size)} of a GPU, goes over the fabric in"
        f" {format_seconds(size / rate)}; nothing of the pools is measured"
    )


def expected_memory(work: Tree) -> float | None:
    """Bytes of a device as they are predicted, without the margin that is kept; None where none
    is."""
    metrics = work.get("metrics", ())
    return next((_estimated(m) for m in metrics if m["name"] == "gpu_memory"), None)


def _estimated(metric: Tree) -> float:
    return float(metric["estimate"]["value"])


def overhead(work: Tree) -> str:
    """What the last part of the memory is called: it has the margin where there is one."""
    return "overhead" if expected_memory(work) is None else "overhead and margin"


def memory(work: Tree) -> str:
    budget = work["memory"]
    parts = [
        f"{name} {format_bytes(budget[f'{key}_bytes'])}"
        for key, name in (
            ("weights", "weights"),
            ("gradients", "gradients"),
            ("optimizer", "optimizer"),
            ("kv_cache", "KV cache"),
            ("activations", "workspace"),
            ("overhead", overhead(work)),
        )
        if budget.get(f"{key}_bytes")
    ]
    return f"{', '.join(parts)} of {format_bytes(budget['capacity_bytes'])} a device"


def division(parallelism: Tree) -> list[str]:
    """How a replica is divided over its GPUs: `tensor parallel 4`, `pipeline parallel 2`."""
    kinds = ("tensor", "context", "pipeline", "expert")
    sizes = ((kind, parallelism[f"{kind}_parallel_size"]) for kind in kinds)
    words = [f"{kind} parallel {size}" for kind, size in sizes if size > 1]
    copies = parallelism.get("state_copies")
    return [*words, f"{copies} copies of the states"] if copies else words


def layout(item: Tree) -> tuple[str, str, str]:
    """Kind of a run's layout, its sizes, and why it lost: slower, or too large for a GPU."""
    of = item["parallelism"]
    sizes = division(of)
    if of["data_parallel_size"] > 1:
        sizes.append(f"data parallel {of['data_parallel_size']}")
    sizes += [f"sharding {item['sharding']}", f"recompute {item['recompute']}"]
    why = f"{format_seconds(item['step_seconds'])} a step"
    if item["gate"] == "gpu_memory":
        why = f"{format_bytes(item['memory_bytes'])} on a GPU, more than fits"
    return item["kind"], ", ".join(sizes), why


def over_nodes(work: Tree) -> Iterator[str]:
    """How a served replica lies on several nodes, and what stands by for a run."""
    nodes = work.get("nodes_per_replica", 1)
    if spares := work.get("training", {}).get("spare_nodes"):
        yield plural(spares, "spare node")
    if nodes > 1 and work.get("serving"):
        if (groups := work["parallelism"]["data_parallel_size"]) > 1:
            yield f"data parallel {groups}"
        yield f"a replica on {nodes} nodes"


def served_layout(item: Tree) -> tuple[str, str, str]:
    """Kind of a service's layout, what it takes, and why it lost."""
    sizes = [*division(item["parallelism"]), *over_nodes({**item, "serving": True})]
    if item["gate"] not in ("cost", "room"):
        return item["kind"], ", ".join(sizes), "; ".join(map(shortfall, item["shortfalls"]))
    money = f"{item['gpu_count']} GPUs in {plural(item['replicas'], 'replica')}, {price(item)}"
    why = f"{money}, dearer" if item["gate"] == "cost" else f"{money}, with less room or slower"
    return item["kind"], ", ".join(sizes), why


def apart(item: Tree) -> tuple[str, ...]:
    """Pools of their own for prefill and for decode: what they take, cost, and how sure that is."""
    over = "with both in each" if item["over"] == "links" else "joined by the fabric"
    nodes = f"{plural(item['nodes'], 'node')}{on_nodes(item)}"
    return (
        f"two pools of {item['gpu']}",
        f"{item['prefill_replicas']} × {item['prefill_tensor_parallel_size']} GPU for prefill",
        f"{item['decode_replicas']} × {item['decode_tensor_parallel_size']} GPU for decode",
        nodes if item["nodes"] == 1 else f"{nodes} {over}",
        price(item),
        "not measured; `disaggregation: prefill_decode` asks for pools of one size each",
    )


def metric(item: Tree) -> str:
    e, unit = item["estimate"], item["unit"]
    text = f"{in_words(item['name'])}  {format_quantity(e['value'], unit)}"
    text += f" ({format_quantity(e['low'], unit)} – {format_quantity(e['high'], unit)})"
    if item.get("limit") is not None:
        sign = "≤" if item.get("sense") == "at_most" else "≥"
        limit = f"{sign} {format_quantity(item['limit'], unit)}"
        chance = item.get("probability")
        met = None if chance is None else f", meets {limit} with {format_probability(chance)}"
        text += met or f", wanted {limit}"
        text += ", an accepted miss" if item.get("accepted_miss") else ""
    return f"{text}, {e['basis']}"


def override(item: Tree) -> str:
    """`max_num_seqs 64 (sized 128)`: the manifest's value, and what it replaced."""

    def shown(value: float | str) -> str:
        return value if isinstance(value, str) else format_quantity(value, item["unit"])

    name = item["quantity"].partition(".")[2].removesuffix("_bytes")
    derived = item.get("derived")
    was = "nothing fits without" if derived is None else f"sized {shown(derived)}"
    return f"{name} {shown(item['value'])} ({was})"


def alternative(item: Tree) -> Iterator[str]:
    """The verdict on a candidate that was not chosen, as one or two lines."""
    head = f"{item['gpu_count']} × {item['gpu']}" if item["gpu_count"] else f"{item['gpu']}"
    head += on_nodes(item)
    if item.get("usd_per_hour") is not None:
        head += f" at {alternative_price(item)}"
    reasons = [shortfall(s) for s in item.get("shortfalls", ())]
    yield f"{head}: {'; '.join(reasons) or 'fits, ' + item['gate'].replace('_', ' ')}"
    flip = item.get("flip")
    if flip and flip["unit"] == "USD/h" and wins_at(flip) is None:
        return
    if flip:
        verb, name = "fit" if reasons else "win", flip["quantity"]
        name = name if "." in name else name.replace("_", " ")  # a field as it is written
        needed, now = format_apart(flip["needed"], flip["now"], flip["unit"])
        yield f"  would {verb} with {name} {needed} instead of {now}"


def alternative_price(item: Tree) -> str:
    """`$6.88/h`; of work that ends `$82.56 for the run of 12 h`."""
    hourly, seconds = float(item["usd_per_hour"]), item.get("seconds")
    if seconds is None:
        return f"{format_usd(hourly)}/h"
    return f"{format_usd(hourly * seconds / 3600)} for the run of {format_seconds(seconds)}"


def wins_at(flip: Tree | None) -> str | None:
    """The price of a GPU at which a candidate that fits would be chosen; None where there is none,
    or where nobody would offer it."""
    if not flip or flip["unit"] != "USD/h" or flip["needed"] * LEAST_PRICE < flip["now"]:
        return None
    return f"{format_usd(flip['needed'])}/h"


def on_nodes(item: Tree) -> str:
    """` on g2-standard-8`, of nodes that are bought."""
    return f" on {item['node_type']}" if item.get("node_type") else ""


def tradeoff(item: Tree) -> tuple[str, str, str, str]:
    """GPUs with their layout, price, latency and headroom."""
    gpus = f"{item['gpu_count']} × {item['gpu']}"
    gpus += f" as {item['partition']}" if item.get("partition") else ""
    gpus += on_nodes(item)
    parallel = item["tensor_parallel_size"]
    gpus += f", TP {parallel}" if parallel > 1 else ""
    latency = f"{format_seconds(item['request_latency'])} a request"
    return gpus, price(item), latency, f"{significant(item['headroom'])} × the peak"


def shortfall(item: Tree) -> str:
    """`gpu memory 74 GiB of 44 GiB`; what is no amount in words."""
    if item.get("lack"):
        return lacking(item)
    need, unit = item["requested"] + item["used"], item["unit"]
    name = in_words(item["resource"])
    unit = "1" if unit == item["resource"] else unit  # "nodes 25 of 2", not "25 nodes of 2 nodes"
    needed, capacity = format_apart(need, item["capacity"], unit)
    return f"{name} {needed} of {capacity}"


def lacking(item: Tree) -> str:
    """`no measured kernels stand for it`, `2 stages do not divide 61 layers`."""
    parts = f"{item['requested']:g} {item['unit']}"
    return _LACKING[item["lack"]].format(resource=item["resource"], parts=parts)
