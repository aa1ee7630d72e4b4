"""What a run on one's own machines would tell of a planned service, and save."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.plan.wording import Tree
from gpuplan.units import format_quantity, format_usd, plural

SHORTEST_SECONDS = 60.0  # of a run: shorter ones measure how a server starts
_NAMES = (
    "sequences",
    "token_seconds",
    "interval_low",
    "interval_high",
    "replicas",
    "run_seconds",
)


def measuring(work: Tree, index: Mapping[str, Tree], pool: Tree) -> Iterator[str]:
    """Which run, how long, how much narrower the interval then is, and what that is worth; nothing
    where the plan has no evidence of it."""
    entries = [index.get(f"{work['name']}.measuring.{name}") for name in _NAMES]
    token = next((m for m in work.get("metrics", ()) if m["name"] == "time_per_output_token"), None)
    values = [float(entry["value"]) for entry in entries if entry is not None]
    if token is None or len(values) < len(_NAMES):
        return
    sequences, likely, low, high, replicas, seconds = values
    planned = token["estimate"]
    now, then = (
        f"{format_quantity(likely * least, 's')} – {format_quantity(likely * most, 's')}"
        for least, most in (
            (planned["low"] / planned["value"], planned["high"] / planned["value"]),
            (low, high),
        )
    )
    gpus = work["gpu_count"] // work["replicas"]
    lasts = format_quantity(max(seconds, SHORTEST_SECONDS), "s")
    many = plural(max(round(sequences), 1), "request")
    prompt, answer = (
        format(round(float(index[f"{work['name']}.load.{part}_tokens.mean"]["value"])), ",")
        for part in ("input", "output")
    )
    yield f"  measuring  one replica on {gpus} × {work['gpu']}, {many} at once,"
    yield f"    prompts of {prompt} tokens, answers of {answer}, {lasts},"
    yield f"    narrows the time per output token there from {now} to {then};"
    worth = _worth(work, int(replicas), pool)
    yield f"    where it is {format_quantity(likely, 's')} as predicted, {worth}"
    cache = work["serving"]["kv_cache_dtype"]
    yield f"    (`gpuplan accuracy CSV --calibrate DIR`, whose row has kv_cache_dtype {cache},"
    yield "    then `platform.calibration: DIR`)"


def _worth(work: Tree, replicas: int, pool: Tree) -> str:
    fewer = spared(work, replicas, pool)
    return fewer or "as many replicas are needed"


def spared(work: Tree, replicas: int, pool: Tree) -> str:
    """That fewer `replicas` are enough, and what that saves: whole nodes of its `pool`, with what
    is idle on them already; empty where as many are needed."""
    count = work["replicas"]
    if replicas >= count:
        return ""
    free = (count - replicas) * work["gpu_count"] // count
    nodes = (free + pool.get("idle_gpus", 0)) // pool["gpus_per_node"]
    saved = f": {plural(free, 'GPU')} of paid nodes to spare" if free else ""
    if nodes:
        usd = pool.get("usd_per_hour")
        saved = f": {format_usd(nodes * usd)}/h less" if usd else f": {plural(nodes, 'node')} less"
    verb = "is" if replicas == 1 else "are"
    return f"{plural(replicas, 'replica')} instead of {count} {verb} enough{saved}"
