"""How parts of a plan are said in words; over plain trees, so that no records are needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.units import (
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


def price(item: Tree) -> str:
    """`$1.20/h`, or `unpriced`: a price that is not known is never zero."""
    usd = item.get("usd_per_hour")
    return "unpriced" if usd is None else f"{format_usd(usd)}/h"


def replicas(work: Tree) -> str:
    return plural(work["replicas"], "replica")


def memory(budget: Tree) -> str:
    parts = [
        f"{name} {format_bytes(budget[f'{key}_bytes'])}"
        for key, name in (
            ("weights", "weights"),
            ("gradients", "gradients"),
            ("optimizer", "optimizer"),
            ("kv_cache", "KV cache"),
            ("activations", "workspace"),
            ("overhead", "overhead"),
        )
        if budget.get(f"{key}_bytes")
    ]
    return f"{', '.join(parts)} of {format_bytes(budget['capacity_bytes'])} a device"


def metric(item: Tree) -> str:
    e, unit = item["estimate"], item["unit"]
    text = f"{item['name'].replace('_', ' ')}  {format_quantity(e['value'], unit)}"
    text += f" ({format_quantity(e['low'], unit)} – {format_quantity(e['high'], unit)})"
    if item.get("limit") is not None:
        sign = "≤" if item.get("sense") == "at_most" else "≥"
        limit = f"{sign} {format_quantity(item['limit'], unit)}"
        chance = item.get("probability")
        met = None if chance is None else f", meets {limit} with {format_probability(chance)}"
        text += met or f", wanted {limit}"
    return f"{text}, {e['basis']}"


def override(item: Tree) -> str:
    value = item["value"]
    shown = value if isinstance(value, str) else format_quantity(value, item["unit"])
    derived = item.get("derived")
    was = "" if derived is None else f", derived was {format_quantity(derived, item['unit'])}"
    return f"{item['quantity']} = {shown}{was}"


def alternative(item: Tree) -> Iterator[str]:
    """The verdict on a candidate that was not chosen, as one or two lines."""
    head = f"{item['gpu_count']} × {item['gpu']}" if item["gpu_count"] else f"{item['gpu']}"
    head += on_nodes(item)
    if item.get("usd_per_hour") is not None:
        head += f" at {format_usd(item['usd_per_hour'])}/h"
    reasons = [shortfall(s) for s in item.get("shortfalls", ())]
    yield f"{head}: {'; '.join(reasons) or 'fits, ' + item['gate'].replace('_', ' ')}"
    flip = item.get("flip")
    if flip:
        verb, name = "fit" if reasons else "win", flip["quantity"]
        name = name if "." in name else name.replace("_", " ")  # a field as it is written
        needed, now = format_apart(flip["needed"], flip["now"], flip["unit"])
        yield f"  would {verb} with {name} {needed} instead of {now}"


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
    need, unit = item["requested"] + item["used"], item["unit"]
    name = item["resource"].replace("_", " ")
    unit = "1" if unit == item["resource"] else unit  # "nodes 25 of 2", not "25 nodes of 2 nodes"
    needed, capacity = format_apart(need, item["capacity"], unit)
    return f"{name} {needed} of {capacity}"
