"""`explain`: any number of a plan down to its sources.

Pure functions over the plan's plain tree: answering needs neither records nor a YAML library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuplan.diagnostics import Diagnostic, did_you_mean, error
from gpuplan.units import format_bytes, format_quantity, format_seconds, format_usd

Tree = Mapping[str, Any]


def unknown_quantity(name: str, known: Sequence[str]) -> Diagnostic:
    shorts = sorted({q.partition(".")[2] for q in known})
    return error(
        "GP006",
        f"the plan has no quantity '{name}'",
        help=did_you_mean(name, [*known, *shorts])
        or f"`gpuplan explain STACK` lists all {len(known)}",
    )


def find(plan: Tree, name: str) -> list[Tree] | Diagnostic:
    """The evidence of every quantity called `name`, with or without its workload."""
    entries = plan.get("evidence", [])
    found = [e for e in entries if name in (e["quantity"], e["quantity"].partition(".")[2])]
    return found or unknown_quantity(name, [e["quantity"] for e in entries])


def exact(value: float, unit: str) -> str:
    """A value for people, with the exact one beside it when the first is rounded."""
    short = format_quantity(value, unit)
    plain = f"{value:,.0f}" if float(value).is_integer() else f"{value:.9g}"
    suffix = "" if unit == "1" else f" {unit}"
    return short if short == f"{plain}{suffix}" else f"{short} ({plain}{suffix})"


def quantity(plan: Tree, entry: Tree) -> str:
    """The derivation of one quantity, each used quantity explained once below it."""
    index = {e["quantity"]: e for e in plan.get("evidence", [])}
    lines: list[str] = []
    queue, seen = [str(entry["quantity"])], set()
    while queue:
        name = queue.pop(0)
        if name in seen or name not in index:
            continue
        seen.add(name)
        lines += [*_derivation(index[name]), ""]
        sources = (i["source"] for i in index[name].get("inputs", ()))
        queue += [s.removeprefix("quantity:") for s in sources if s.startswith("quantity:")]
    return "\n".join(lines).rstrip() + "\n"


def _derivation(entry: Tree) -> Iterator[str]:
    head = f"{entry['quantity']} = {exact(entry['value'], entry['unit'])}"
    if entry.get("overridden_by"):
        head += f"   derived value, replaced by {entry['overridden_by']}"
    yield head
    if entry["formula"]:
        yield f"  = {entry['formula']}"
    inputs = entry.get("inputs", ())
    names = max((len(i["name"]) for i in inputs), default=0)
    values = [format_quantity(i["value"], i["unit"]) for i in inputs]
    size = max((len(v) for v in values), default=0)
    for item, value in zip(inputs, values, strict=True):
        source = item["source"]
        shown = f"see {source.removeprefix('quantity:')}" if "quantity:" in source else source
        yield f"    {item['name']:<{names}}  {value:>{size}}  {shown}"
    yield f"  {'formula' if entry['formula'] else 'source'}: {entry['source']}"


def summary(plan: Tree) -> str:
    """Why each workload got what it got, which gate rejected the others, what would flip it."""
    blocks = [_workload(w) for w in plan["workloads"]]
    names = [e["quantity"] for e in plan.get("evidence", [])]
    if names:
        blocks.append(f"quantities (gpuplan explain STACK QUANTITY)\n{_columns(names)}\n")
    return "\n".join(blocks)


def _workload(work: Tree) -> str:
    parallel = work["parallelism"]["tensor_parallel_size"]
    lines = [
        f"{work['name']}: {work['gpu_count']} × {work['gpu']}"
        + (f" as {work['partition']}" if work.get("partition") else "")
        + (f", tensor parallel {parallel}" if parallel > 1 else "")
        + f", {work['replicas']} replica{'s' if work['replicas'] > 1 else ''}, {_price(work)}",
        f"  bound by  {work['bound_by']}",
        f"  memory    {_memory(work['memory'])}",
    ]
    lines += [f"  {_metric(m)}" for m in work.get("metrics", ())]
    lines += [f"  override  {_override(o)}" for o in work.get("overrides", ())]
    alternatives = work.get("alternatives", ())
    if alternatives:
        lines.append("  instead of")
        lines += [f"    {line}" for a in alternatives for line in alternative(a)]
    return "\n".join(lines) + "\n"


def _price(work: Tree) -> str:
    price = work.get("usd_per_hour")
    return "unpriced" if price is None else f"{format_usd(price)}/h"


def _memory(budget: Tree) -> str:
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


def _metric(metric: Tree) -> str:
    e, unit = metric["estimate"], metric["unit"]
    text = f"{metric['name'].replace('_', ' ')}  {format_quantity(e['value'], unit)}"
    text += f" ({format_quantity(e['low'], unit)} – {format_quantity(e['high'], unit)})"
    if metric.get("limit") is not None:
        sign = "≤" if metric.get("sense") == "at_most" else "≥"
        text += f", wanted {sign} {format_quantity(metric['limit'], unit)}"
    if metric.get("probability") is not None:
        text += f", met with {metric['probability'] * 100:.0f} %"
    return f"{text}, {e['basis']}"


def _override(item: Tree) -> str:
    value = item["value"]
    shown = value if isinstance(value, str) else format_quantity(value, item["unit"])
    derived = item.get("derived")
    was = "" if derived is None else f", derived was {format_quantity(derived, item['unit'])}"
    return f"{item['quantity']} = {shown}{was}"


def alternative(item: Tree) -> Iterator[str]:
    """The verdict on a candidate that was not chosen, as one or two lines."""
    head = f"{item['gpu_count']} × {item['gpu']}" if item["gpu_count"] else f"{item['gpu']}"
    if item.get("usd_per_hour") is not None:
        head += f" at {format_usd(item['usd_per_hour'])}/h"
    reasons = [_shortfall(s) for s in item.get("shortfalls", ())]
    yield f"{head}: {'; '.join(reasons) or 'fits, ' + item['gate'].replace('_', ' ')}"
    flip = item.get("flip")
    if flip:
        yield (
            f"  would win with {flip['quantity'].replace('_', ' ')}"
            f" {_flip(flip['needed'], flip['unit'])} instead of {_flip(flip['now'], flip['unit'])}"
        )


def _shortfall(item: Tree) -> str:
    need, unit = item["requested"] + item["used"], item["unit"]
    name = item["resource"].replace("_", " ")
    return f"{name} {format_quantity(need, unit)} of {format_quantity(item['capacity'], unit)}"


def _flip(value: float, unit: str) -> str:
    return format_seconds(value) if unit == "s" else format_quantity(value, unit)


def _columns(names: Sequence[str], width: int = 78) -> str:
    column = max(len(n) for n in names) + 2
    per_row = max(1, width // column)
    rows = [names[i : i + per_row] for i in range(0, len(names), per_row)]
    return "\n".join("  " + "".join(f"{n:<{column}}" for n in row).rstrip() for row in rows)
