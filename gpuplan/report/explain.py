"""`explain`: any number of a plan down to its sources.

Pure functions over the plan's plain tree: answering needs neither records nor a YAML library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpuplan.diagnostics import AGAIN, Diagnostic, did_you_mean, error
from gpuplan.plan import wording
from gpuplan.plan.wording import Tree
from gpuplan.render.text import COLUMNS
from gpuplan.report import balance, order, regions
from gpuplan.report.joining import clusters, join_facts
from gpuplan.report.measuring import measuring
from gpuplan.report.sharing import partition_facts
from gpuplan.units import format_probability, format_quantity, format_seconds


def unknown_quantity(name: str, known: Sequence[str]) -> Diagnostic:
    shorts = sorted({q.partition(".")[2] for q in known})
    return error(
        "GP006",
        f"the plan has no quantity '{name}'",
        help=did_you_mean(name, [*known, *shorts])
        or f"`gpuplan explain STACK` lists all {len(known)}",
    )


def no_evidence() -> Diagnostic:
    return error(
        "GP009",
        "the plan's numbers cannot be explained: no evidence.yaml lies beside it",
        help=AGAIN,
    )


def find(plan: Tree, name: str) -> list[Tree] | Diagnostic:
    """The evidence of every quantity called `name`, with or without its workload and its unit; of
    a field of the manifest, its last part is enough."""
    entries = plan.get("evidence")
    if entries is None:
        return no_evidence()
    entries = [*entries, *_texts(plan)]
    names = {name, f"{name}_bytes"}
    matches = [e for e in entries if names & {e["quantity"], _own(e)}]
    matches = matches or [e for e in entries if _own(e).endswith(f".{name}") and not e["formula"]]
    return matches or unknown_quantity(name, [e["quantity"] for e in entries])


def _texts(plan: Tree) -> Iterator[Tree]:
    """What was chosen and is no number, as evidence has numbers."""
    replaced = _overrides(plan)
    for work in plan["workloads"]:
        yield from _joins(plan, work)
        chosen = {
            "gpu": work["gpu"],
            "partition": work.get("partition", "none"),
            "kv_cache_dtype": work.get("serving", {}).get("kv_cache_dtype"),
        }
        for name, value in chosen.items():
            if value is None:
                continue
            entry = {
                "quantity": f"{work['name']}.{name}",
                "value": value,
                "unit": "",
                "formula": "",
            }
            override = replaced.get(entry["quantity"])
            facts = tuple(partition_facts(plan, work)) if name == "partition" else ()
            yield entry | {
                "facts": [{"name": n, "text": text} for n, text in facts],
                "source": "choice: `gpuplan explain STACK` shows what it was chosen over"
                if override is None
                else f"manifest: {wording.override(override)}",
            }


def _joins(plan: Tree, work: Tree) -> Iterator[Tree]:
    for join in clusters(plan, work):
        yield {
            "quantity": f"{work['name']}.join",
            "value": f"{join['kind']} {join['server']}",
            "unit": "",
            "formula": "",
            "facts": [{"name": n, "text": text} for n, text in join_facts(plan, work, join)],
            "source": "inventory: hypervisor.join",
        }


def _overrides(plan: Tree) -> dict[str, Tree]:
    owners = (*plan["workloads"], *plan.get("hosts", ()))
    return {o["quantity"]: o for owner in owners for o in owner.get("overrides", ())}


def _own(entry: Tree) -> str:
    """The quantity's name without its workload."""
    return str(entry["quantity"].partition(".")[2])


def group(plan: Tree, name: str) -> str:
    """The values of every quantity of a group or of a workload; empty when `name` is neither."""
    members = [
        (e["quantity"], exact(e["value"], e["unit"]))
        for e in plan.get("evidence", [])
        if f"{name}." in (e["quantity"][: len(name) + 1], _own(e)[: len(name) + 1])
    ]
    size = max((len(q) for q, _ in members), default=0)
    return "".join(f"{q:<{size}}  {value}\n" for q, value in members)


def exact(value: float | str, unit: str) -> str:
    """A value for people, with the exact one beside it when the first is rounded."""
    if isinstance(value, str):
        return value
    short = format_quantity(value, unit)
    plain = f"{value:,.0f}" if float(value).is_integer() else f"{value:.9g}"
    suffix = "" if unit == "1" else f" {unit}"
    return short if short == f"{plain}{suffix}" else f"{short} ({plain}{suffix})"


def quantity(plan: Tree, entry: Tree) -> str:
    """The derivation of one quantity, each used quantity explained once below it."""
    index = {e["quantity"]: e for e in (*plan.get("evidence", []), entry)}
    replaced = _overrides(plan)
    lines: list[str] = []
    queue, seen = [str(entry["quantity"])], set()
    while queue:
        name = queue.pop(0)
        if name in seen or name not in index:
            continue
        seen.add(name)
        lines += [*_derivation(index[name], replaced.get(name)), ""]
        sources = (i["source"] for i in index[name].get("inputs", ()))
        queue += [s.removeprefix("quantity:") for s in sources if s.startswith("quantity:")]
    return "\n".join(lines).rstrip() + "\n"


def _derivation(entry: Tree, override: Tree | None) -> Iterator[str]:
    head = f"{entry['quantity']} = {exact(entry['value'], entry['unit'])}"
    if override is not None and entry.get("overridden_by"):
        value = exact(override["value"], override["unit"])
        head += f"   derived value, replaced by {value}, {entry['overridden_by']}"
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
    for fact in entry.get("facts", ()):
        yield f"    {fact['name']:<9}  {fact['text']}"
    yield f"  {'formula' if entry['formula'] else 'source'}: {entry['source']}"


def summary(plan: Tree) -> str:
    """Why each workload got what it got, which gate rejected the others, what would flip it."""
    index = {e["quantity"]: e for e in plan.get("evidence", [])}
    pools = {pool["name"]: pool for pool in plan["node_pools"]}
    blocks = [_workload(w, index, pools[w["node_pool"]]) for w in plan["workloads"]]
    blocks += filter(None, [order.short(plan), regions.short(plan)])
    owners: dict[str, list[str]] = {}
    for entry in plan.get("evidence", []):
        owner, _, name = entry["quantity"].partition(".")
        owners.setdefault(owner, []).append(name)
    if owners:
        blocks.append("quantities: gpuplan explain STACK QUANTITY, or a GROUP of them")
        blocks += [_quantities(owner, names) for owner, names in owners.items()]
    return "\n".join(blocks)


def _quantities(owner: str, names: Sequence[str]) -> str:
    """The names of one owner; those that belong together as one group with its size."""
    single = [n for n in names if "." not in n]
    groups = dict.fromkeys(n.partition(".")[0] for n in names if "." in n)
    counted = [f"{g} ({sum(n.startswith(g + '.') for n in names)})" for g in groups]
    lines = [f"  {owner}", *_columns(single)]
    if counted:
        lines += ["    groups", *_columns(counted, indent=6)]
    return "\n".join(lines) + "\n"


def _workload(work: Tree, index: Mapping[str, Tree], pool: Tree) -> str:
    lines = [
        f"{work['name']}: {work['gpu_count']} × {work['gpu']}"
        + (f" as {work['partition']}" if work.get("partition") else "")
        + "".join(f", {text}" for text in wording.division(work["parallelism"]))
        + "".join(f", {text}" for text in wording.over_nodes(work))
        + f", {wording.replicas(work)}, {wording.price(work)}",
        f"  bound by  {work['bound_by']}",
        f"  memory    {wording.memory(work)}",
    ]
    if pools := work.get("disaggregation"):
        lines.append(f"  pools     {wording.handed(pools)}")
    lines += [f"  {wording.metric(m)}" for m in work.get("metrics", ())]
    lines += _corrected(work, index)
    lines += measuring(work, index, pool)
    confidence = index.get(f"{work['name']}.slo.confidence")
    if confidence and any(m.get("probability") is not None for m in work.get("metrics", ())):
        wanted, source = format_probability(confidence["value"]), confidence["source"]
        lines.append(f"  every objective must be met with {wanted} ({source})")
    lines += [f"  overridden  {wording.override(o)}" for o in work.get("overrides", ())]
    lines += balance.short(work)
    lines += _tradeoffs(work)
    lines += _layouts(work)
    lines += _served_layouts(work)
    alternatives = work.get("alternatives", ())
    if alternatives:
        lines.append("  instead of")
        lines += [f"    {line}" for a in alternatives for line in wording.alternative(a)]
    if pools := work.get("cheaper_split"):
        *where, sure = wording.apart(pools)
        lines += ["  cheaper", f"    {', '.join(where)}", f"    {sure}"]
    return "\n".join(lines) + "\n"


CORRECTED = {
    "token_correction": "time per output token",
    "first_correction": "time to first token",
    "step_correction": "step time",
}


def _corrected(work: Tree, index: Mapping[str, Tree]) -> Iterator[str]:
    """How far measured points move what the formulas say, and whether any is near."""
    for name, time in CORRECTED.items():
        if entry := index.get(f"{work['name']}.{name}"):
            more = entry["value"] - 1
            moved = f"{abs(more) * 100:.1f} % {'longer' if more > 0 else 'shorter'}"
            near = next((i for i in entry.get("inputs", ()) if i["name"].startswith("near_")), None)
            points = near["source"].removeprefix("constant: ") if near else ""
            why = f"by {points}" if near else "by farther points alone: none is near"
            yield f"  corrected  {time} {moved} than the formulas say, {why}"


def _tradeoffs(work: Tree) -> Iterator[str]:
    """The layouts that nothing beats, and the chosen one, where there is more than one."""
    layouts = work.get("tradeoffs", ())
    if len(layouts) > 1:
        yield "  trade-offs of price, latency and room; → is the chosen one"
        rows = [wording.tradeoff(item) for item in layouts]
        widths = [max(len(row[n]) for row in rows) for n in range(3)]
        for item, row in zip(layouts, rows, strict=True):
            mark = "→" if item["chosen"] else " "
            cells = (f"{c:<{w}}" for c, w in zip(row, widths, strict=False))
            yield f"  {mark} {'  '.join(cells)}  {row[3]}"


def _layouts(work: Tree) -> Iterator[str]:
    """Of a run, the best of each other kind of layout on as many GPUs."""
    if layouts := work.get("layouts", ()):
        run = work["training"]
        step = next(m["estimate"]["value"] for m in work["metrics"] if m["name"] == "step_seconds")
        yield f"  other layouts on as many GPUs; the chosen one takes {format_seconds(step)} a step"
        yield f"    (sharding {run['sharding']}, recompute {run['recompute']})"
        for kind, sizes, why in map(wording.layout, layouts):
            yield f"    {kind}: {why}"
            yield f"      {sizes}"


def _served_layouts(work: Tree) -> Iterator[str]:
    """Of a service whose replicas may lie on several nodes, the best of each other kind."""
    if layouts := work.get("served_layouts", ()):
        nodes = work.get("nodes_per_replica", 1)
        where = f"{nodes} nodes" if nodes > 1 else "one node"
        yield f"  other layouts on the same nodes; the chosen one has a replica on {where}"
        for kind, sizes, why in map(wording.served_layout, layouts):
            yield f"    {kind}: {why}"
            if sizes:
                yield f"      {sizes}"


def _columns(names: Sequence[str], indent: int = 4) -> list[str]:
    if not names:
        return []
    gap = 2
    column = max(len(n) for n in names) + gap
    per_row = max(1, (COLUMNS - indent + gap) // column)
    rows = [names[i : i + per_row] for i in range(0, len(names), per_row)]
    return [" " * indent + "".join(f"{n:<{column}}" for n in row).rstrip() for row in rows]
