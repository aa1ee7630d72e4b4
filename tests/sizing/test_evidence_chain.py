"""Evidence holds together: each number is that of its formula, each input is the number that it
points at, and the plan's figures are those of the evidence."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from gpuplan.plan.model import Evidence
from gpuplan.plan.times import PLAIN
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity, canonical, evaluate
from gpuplan.sizing.hardware.offers import Site
from tests.sizing.formulas.test_dimensions import MORE
from tests.sizing.test_kinds_told import KINDS, POOLS
from tests.sizing.test_nodes import LARGE, MIXTURE
from tests.sizing.test_offers import shaped
from tests.sizing.test_parallel_runs import BRIDGE, LLAMA_405B, MIXTRAL, TWO_NODES, demand
from tests.support.sizing_cases import (
    BATCH,
    CASES,
    CHAT_8B,
    CHAT_70B,
    FULL_8B,
    IB,
    NOTEBOOKS,
    site,
    size,
    sized,
)

STORED = Quantity(2e9, "B/s", "test")
PRICE = Quantity(0.5, "USD/GB/month", "test")
BOUGHT = Site(target="kubernetes", gpus=(shaped(8, "spot"),), storage_bytes_per_s=STORED, fabric=IB)
RACKS = site(
    "h100-sxm-80gb",
    cards_bytes_per_s=400e9,
    rack_watts=Quantity(30e3, "W", "test"),
    node_watts=Quantity(10.2e3, "W", "test"),
)
SPARE = FULL_8B.replace("tokens: 1e9", "tokens: 1e9, spare_nodes: 2")
SPARE += "    overrides: {gpu_count: 16}\n"
SOME = "    overrides: {{{}}}\n"
# Runs whose engine divides the model; whether failures are counted.
DIVIDED = {
    "dense run that is divided": (f"{LLAMA_405B}    overrides: {{gpu_count: 1024}}\n", STORED),
    "mixture that is divided": (MIXTRAL, None),
    "run of two nodes": (TWO_NODES, STORED),
}
LOOSE = "{mean: 99 s, p50: 99 s, p95: 99 s, p99: 99 s}"
POOLED = POOLS.replace("{time_to_first_token: 1 s", "{time_to_first_token: %s, request_latency: %s")
CHANGED = {
    "pools with percentiles": POOLED % (LOOSE, LOOSE),
    "pools with a pace": POOLS.replace("token: 40 ms", "token: {mean: 40 ms, p95: 60 ms}"),
    "pools with a percentile": POOLED % ("9 s", "{p95: 99 s}"),
    "replicas": CHAT_8B + SOME.format("replicas: 7, max_num_seqs: 9, cpu_cores_per_gpu: 3"),
    "sizes": CHAT_8B + SOME.format("tensor_parallel_size: 2, max_num_batched_tokens: 4096"),
    "room": CHAT_8B + SOME.format("max_model_len: 9000, gpu_memory_utilization: 0.7"),
    "run": FULL_8B + SOME.format("gpu_count: 16, micro_batch: 1, checkpoint_storage: 900 GB"),
    "notebooks": NOTEBOOKS + SOME.format("home_storage: 99 GB, shared_memory: 1 GB"),
}
USERS = CHAT_8B.replace("requests_per_second: 2", "concurrency: {users: 40, think_time: 15 s}")
TOKENS = "    slo: {tokens_per_second: 9000}\n"
DRAFTS = "accepted_tokens: 2, draft_tokens: 3, draft_cost: 0.1, draft_memory: 3 GiB"
# Loads and engines of other kinds.
ASKED = {
    "users": USERS,
    "tokens a second": CHAT_8B + TOKENS,
    "tokens of users": USERS + TOKENS,
    "tokens of a batch": BATCH.replace("24 h", "24 h, tokens_per_second: 9000"),
    "tokens of an archive": BATCH.replace("finish_within: 24 h", "tokens_per_second: 9000"),
    "archive": BATCH.replace("    slo: {finish_within: 24 h}\n", ""),
    "grown": CHAT_8B + "    growth: {factor: 1.5}\n",
    "drafts": f"{CHAT_70B}    speculative: {{{DRAFTS}, method: draft_model, model: a/b}}\n",
    "bursts": CHAT_70B.replace("peak: 20}", "peak: 20}, burst: 3"),
    "hits": CHAT_70B.replace("load: {", "load: {prefix_cache: 0.5, "),
    "small cache": CHAT_70B + SOME.format("kv_cache_dtype: fp8"),
    "part": CHAT_8B.replace("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-0.6B")
    + "    tenancy: {isolation: shared}\n",
}
WHERE = {
    **{name: (text, None) for name, text in {**CASES, **MORE, **KINDS, **CHANGED, **ASKED}.items()},
    **{
        f"{name} that is stopped": (KINDS[name] + "    preemptible: true\n", BOUGHT)
        for name in KINDS
    },
    **{
        name: (text, replace(site("h100-sxm-80gb", node_count=128), storage_bytes_per_s=rate))
        for name, (text, rate) in DIVIDED.items()
    },
    "stages over nodes": (LARGE, site("h100-sxm-80gb")),
    "groups over nodes": (MIXTURE, site("h100-sxm-80gb")),
    "racks": (CHAT_8B, RACKS),
    "run in racks": (SPARE, replace(RACKS, storage_bytes_per_s=STORED)),
    "spares": (SPARE, replace(site("h100-sxm-80gb"), storage_bytes_per_s=STORED)),
    "priced": (
        SPARE,
        replace(RACKS, storage_bytes_per_s=STORED, storage_usd_per_gb_month=PRICE),
    ),
}


@cache
def answer(name: str) -> Sized:
    text, where = WHERE[name]
    if name not in DIVIDED:
        return sized(text, where or site("h200-sxm-141gb", "l40s"))
    made = size(demand(text), where or site())
    assert isinstance(made, Sized)
    return made


def by_name(found: Sized) -> dict[str, Evidence]:
    return {entry.quantity: entry for entry in found.evidence}


@pytest.mark.parametrize("name", WHERE)
def test_each_number_is_that_of_its_formula_and_its_inputs_are_what_they_name(name: str) -> None:
    """But where an override stands in its place."""
    entries = by_name(answer(name))
    pointed = 0
    for entry in entries.values():
        assert entry.quantity.startswith("work.")
        values = {each.name: each.value for each in entry.inputs}
        if entry.formula and not entry.overridden_by:
            assert entry.value == evaluate(entry.formula, values), entry.quantity
        for each in entry.inputs:
            assert each.source, f"{entry.quantity} of {each.name}"
            if each.source.startswith("quantity:"):
                of = entries[each.source.removeprefix("quantity:")]
                assert (each.value, each.unit) == (of.value, of.unit), (
                    f"{entry.quantity} of {each.name}: {each.source}"
                )
                pointed += 1
    assert pointed > 5


@pytest.mark.parametrize("name", WHERE)
def test_a_number_stands_once_and_is_not_made_of_itself(name: str) -> None:
    """An input is recorded before what is made of it."""
    found = answer(name).evidence
    assert max(Counter(entry.quantity for entry in found).values()) == 1
    seen = set[str]()
    for entry in found:
        sources = {each.source.removeprefix("quantity:") for each in entry.inputs}
        assert entry.quantity not in sources
        later = {s for s in sources if s.startswith("work.")} - seen
        assert not later, f"{entry.quantity}: {later}"
        seen.add(entry.quantity)


@pytest.mark.parametrize("name", WHERE)
def test_what_the_plan_shows_is_what_the_evidence_says(name: str) -> None:
    """Or the override in its place."""
    found = answer(name)
    work, entries = found.workload, by_name(found)
    replaced = {override.quantity: override for override in work.overrides}

    def value(quantity: str) -> float | None:
        key = f"work.{quantity}"
        if key in replaced:
            return float(replaced[key].value)
        return entries[key].value if key in entries else None

    assert work.usd_per_hour is None or value("usd_per_hour") == float(work.usd_per_hour)
    assert value("gpu_count") == work.gpu_count
    assert value("replicas") in (None, work.replicas)
    assert value("watts") == work.watts
    resources = work.resources
    assert value("cpu_cores") == resources.cpu_cores
    for amount in ("host_memory", "shared_memory", "scratch"):
        assert value(f"{amount}_bytes") == getattr(resources, f"{amount}_bytes")
    for part in ("weights", "activations", "kv_cache", "gradients", "optimizer", "overhead"):
        if f"work.{part}_bytes" in entries:
            assert value(f"{part}_bytes") == getattr(work.memory, f"{part}_bytes")
    for metric in work.metrics:
        assert metric.estimate.value == canonical(value(metric.name) or 0.0), metric.name


@pytest.mark.parametrize("name", WHERE)
def test_what_an_override_replaced_stands_in_the_evidence_and_is_marked(name: str) -> None:
    found = answer(name)
    entries = by_name(found)
    replaced = {o.quantity: o for o in found.workload.overrides if o.quantity in entries}
    for quantity, override in replaced.items():
        entry = entries[quantity]
        assert override.derived in (None, entry.value)
        assert override.unit == entry.unit
    assert {e.quantity for e in found.evidence if e.overridden_by} == set(replaced)


@pytest.mark.parametrize("name", DIVIDED)
def test_a_run_that_is_divided_is_told_as_it_is_counted(name: str) -> None:
    found = answer(name)
    work, entries = found.workload, by_name(found)
    run = work.training
    assert run is not None
    counted = {q.removeprefix("work."): e.value for q, e in entries.items()}
    for entry in entries.values():
        counted |= {each.name: each.value for each in entry.inputs}
    of = work.parallelism
    for part in ("tensor", "pipeline", "context", "expert", "data"):
        size = counted.get(f"{part}_parallel_size", 1.0)
        assert getattr(of, f"{part}_parallel_size") == size
    ranks = of.tensor_parallel_size * of.pipeline_parallel_size * of.context_parallel_size
    assert work.gpu_count == ranks * of.data_parallel_size
    assert (of.state_copies or 1) == counted.get("state_copies", 1.0)
    assert (run.virtual_pipeline_stages or 1) == counted.get("virtual_stages", 1.0)
    assert run.virtual_pipeline_stages != 1
    assert work.model is not None
    layers = {"405B": 126, "Mixtral": 32, "32B": 64}
    (count,) = (n for part, n in layers.items() if part in work.model.identifier)
    stages = of.pipeline_parallel_size * (run.virtual_pipeline_stages or 1)
    assert (run.ends_are_layers is None) == (count % stages == 0)
    assert (count + 2 * bool(run.ends_are_layers)) % stages == 0
    micro = run.micro_batch * of.data_parallel_size
    assert run.global_batch == micro * run.gradient_accumulation_steps
    assert run.steps == counted["steps"]
    assert work.nodes_per_replica == -(-work.gpu_count // 8)
    assert work.engine.name in (BRIDGE.name, "axolotl")
    failures = DIVIDED[name][1] is not None and work.nodes_per_replica > 1
    every = counted["saved_every"] if failures else 3600
    assert run.checkpoint_interval_seconds == every
    assert ("work.lost_share" in entries) == failures
    assert ("work.needs.network_bytes_per_s" in entries) == (work.nodes_per_replica > 1)


@pytest.mark.parametrize("name", ["pools with percentiles", "percentiles", "percentiles of images"])
def test_percentiles_stand_in_their_order_around_the_mean(name: str) -> None:
    work = answer(name).workload
    told = {metric.name: metric.estimate.value for metric in work.metrics}
    times = {n.removesuffix("_p50") for n in told if n.endswith("_p50")}
    assert times
    for time in times:
        plain = PLAIN[time]
        of = {s: told[time if s == plain else f"{time}_{s}"] for s in ("mean", "p50", "p95", "p99")}
        assert of["p50"] <= of["p95"] <= of["p99"]
        assert of["mean"] <= of["p95"]
        assert 0.3 * of["mean"] < of["p50"] < 1.5 * of["mean"]


# What a plan says itself; beside fields of the manifest, points that lie near, what to measure.
SAID = {
    "gpu_count",
    "gpu_memory_utilization",
    "max_model_len",
    "max_num_seqs",
    "memory_bytes",
    "micro_batch",
    "node_gpus",
    "precision",
    "replicas",
    "request_latency_p95",
    "scratch_bytes",
    "tensor_parallel_size",
}
FIELDS = ("load.", "slo.", "training.", "checkpoint.", "notebook.", "measuring.")


@pytest.mark.parametrize("name", WHERE)
def test_no_number_is_given_that_nothing_is_made_of(name: str) -> None:
    found = answer(name).evidence
    used = {each.source.removeprefix("quantity:") for e in found for each in e.inputs}
    idle = {e.quantity.removeprefix("work.") for e in found if not e.formula}
    idle -= {quantity.removeprefix("work.") for quantity in used}
    assert {n for n in idle if not n.startswith(FIELDS) and "_nearest." not in n} <= SAID
