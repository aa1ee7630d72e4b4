"""Runs whose engine divides a model: what divides what, against the runs one by one, and what more
nodes do."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from gpuplan.models.load import bundled
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Engine, Fabric
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate, best
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training import grid, layouts, parallel
from gpuplan.sizing.kinds.training.judge import SizedRun
from tests.support.sizing_cases import FULL_8B, IB, offer, site, wanted

BRIDGE = Engine(name="megatron-bridge", version="0", image="i", digest=None, source="test")
RUN = """
    task: training
    model: {model}
    precision: bf16
    training: {{global_batch: {batch}, sequence_length: {length}, tokens: {tokens}}}
"""


def run(model: str, *, batch: int = 1024, length: int = 8192, tokens: str = "2e12") -> str:
    return RUN.format(model=model, batch=batch, length=length, tokens=tokens)


LLAMA_405B = run("meta-llama/Llama-3.1-405B")
MIXTRAL = run("mistralai/Mixtral-8x7B-v0.1", batch=256, length=4096, tokens="1e11")


def demand(text: str) -> TrainingDemand:
    found = wanted(text)
    assert isinstance(found, TrainingDemand)
    return replace(found, others=(BRIDGE,))


def candidates(text: str, where: Site) -> list[Candidate]:
    ((_, group),) = tried(demand(text), where)
    return list(group)


def chosen(text: str, where: Site) -> SizedRun:
    winner = best(candidates(text, where))
    assert winner is not None
    assert isinstance(winner.detail, SizedRun)
    return winner.detail


@pytest.mark.parametrize(
    "name",
    [
        "meta-llama/Llama-3.1-405B",
        "mistralai/Mixtral-8x7B-v0.1",
        "Qwen/Qwen3-235B-A22B",
        "deepseek-ai/DeepSeek-V3",
        "Qwen/Qwen2.5-0.5B-Instruct",
    ],
)
def test_layouts_divide_heads_layers_experts_sequences_and_batch(name: str) -> None:
    model = bundled(name)
    assert isinstance(model, Transformer)
    device = whole(offer("h100-sxm-80gb"))
    shapes = list(grid.shapes(model, device, 8192))
    rows = grid.columns(shapes, 96, 8, 768)
    assert rows["gpus"].size > 50
    for tensor, context, pipeline, virtual, expert, gpus, micro in zip(
        *(
            rows[n].astype(int)
            for n in (
                "tensor",
                "context",
                "pipeline",
                "virtual",
                "expert",
                "gpus",
                "micro_batch",
            )
        ),
        strict=True,
    ):
        replicas = gpus // (tensor * context * pipeline)
        assert replicas * tensor * context * pipeline == gpus
        assert model.attention_heads % tensor == 0
        assert model.latent is not None or model.kv_heads % tensor == 0
        assert 0 in (model.layers % (pipeline * virtual), (model.layers + 2) % (pipeline * virtual))
        assert tensor * context <= 8  # one NVLink domain
        assert virtual <= 8  # with more of them stages wait for each other
        assert 96 % (replicas * micro) == 0
        assert virtual == 1 or (96 // (replicas * micro)) % pipeline == 0
        assert model.experts is not None or expert == 1
        assert model.experts is None or model.experts.count % expert == 0
        assert (replicas * context) % expert == 0
        assert gpus <= 8 or gpus % 8 == 0


def test_layouts_are_no_wider_than_those_that_are_known() -> None:
    """64 stages and groups of experts, micro-batches of 8 sequences: 65 and 9 divide as well."""
    one = grid.Shape(tensor=1, context=1, pipeline=1, virtual=1, expert=1)
    assert {*grid.columns([one], 1152, 8, 8)["micro_batch"]} == {1, 2, 3, 4, 6, 8}
    assert max(grid.stages(128)) == 64
    model, device = bundled("mistralai/Mixtral-8x7B-v0.1"), whole(offer("h100-sxm-80gb"))
    assert isinstance(model, Transformer)
    assert model.experts is not None
    for count, widest in ((128, 64), (130, 26)):
        wide = replace(model, experts=replace(model.experts, count=count))
        assert max(shape.expert for shape in grid.shapes(wide, device, 8192)) == widest


def test_experts_are_divided_among_replicas_and_parts_of_a_sequence_together() -> None:
    """Four groups of experts: two replicas of two parts have them, and one replica alone not."""
    shape = grid.Shape(tensor=1, context=2, pipeline=1, virtual=1, expert=4)
    rows = grid.columns([shape], 8, 8, 8)
    assert {*rows["gpus"]} == {4, 8}
    for_each = grid.columns([replace(shape, expert=1)], 8, 8, 8)
    assert {*for_each["gpus"]} == {2, 4, 8}


@pytest.mark.parametrize("text", [LLAMA_405B, MIXTRAL])
def test_arrays_say_of_every_layout_what_a_run_alone_says(text: str) -> None:
    asked, where = demand(text), site("h100-sxm-80gb", node_count=16)
    tables = list(parallel.evaluated(asked, where, whole(where.gpus[0]), BRIDGE.name))
    assert {t.sharding for t in tables} == {"zero1", "zero2", "zero3", "hsdp"}
    random = np.random.default_rng(7)
    for table in tables:
        for row in random.choice(table.columns["gpus"].size, 25):
            alone, micro = table.run(int(row), table.prepared, asked.confidence.value)
            needs = alone.needs(micro)
            assert table.values["used_bytes"][row] == pytest.approx(needs["used_bytes"])
            step = alone.modelled(micro)["modelled_step_seconds"]
            assert table.values["modelled_step_seconds"][row] == pytest.approx(step)


def test_a_run_that_no_rank_holds_is_divided_and_ends_as_the_world_knows_it() -> None:
    """2e12 tokens on 1,024 H100 at 40 % of their peak take 139 days."""
    where = site("h100-sxm-80gb", node_count=128)
    made = chosen(LLAMA_405B + "    overrides: {gpu_count: 1024}\n", where)
    division, days = made.run.division, made.values["time_to_finish"] / 86400
    assert division.gpus == 1024
    assert division.sharding == "zero3" or division.tensor * division.pipeline >= 16
    assert made.values["used_bytes"] <= made.values["usable_bytes"]
    assert 110 < days < 160


@pytest.mark.parametrize("text", [LLAMA_405B, MIXTRAL])
@pytest.mark.parametrize("within", ["", "    slo: {finish_within: 400 d}\n"])
def test_more_nodes_never_make_a_run_slower(text: str, within: str) -> None:
    times = []
    for nodes in (4, 8, 16, 24, 32, 64, 128):
        found = best(candidates(text + within, site("h100-sxm-80gb", node_count=nodes)))
        if found is not None:
            assert isinstance(found.detail, SizedRun)
            times.append(found.detail.values["time_to_finish"])
    assert len(times) > 1
    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(("nodes", "rate"), [*product((2, 16), (12.5e9, 50e9, 400e9))])
def test_no_exchange_is_faster_than_the_wire(nodes: int, rate: float) -> None:
    """Rings of all groups of a node together take at most what its cards carry, and none more
    than NVLink."""
    fabric = Fabric(kind="roce", bytes_per_s_per_gpu=rate, resource=None)
    where = replace(site("h100-sxm-80gb", node_count=nodes), fabric=fabric)
    asked = demand(run("meta-llama/Llama-3.1-8B", batch=128, tokens="1e9"))
    inside = where.gpus[0].gpu.link_bytes_per_s.value
    for table in parallel.evaluated(asked, where, whole(where.gpus[0]), BRIDGE.name):
        rows = np.flatnonzero(table.columns["gpus"] > 8)
        for row in rows[:: max(1, rows.size // 20)]:
            alone, micro = table.run(int(row), table.prepared, 0.5)
            values = alone.modelled(micro)
            if values.get("exchange_bytes"):
                groups = alone.division.tensor * alone.division.context
                assert values["link_rate"] <= inside
                assert values["link_rate"] * groups <= 8 * max(rate, inside / 8 * groups)
                assert values["link_rate"] * min(groups, 8) <= 8 * rate * (1 + 1e-9)


def test_of_each_other_kind_the_best_layout_is_told_with_its_reason() -> None:
    asked, where = demand(LLAMA_405B), site("h100-sxm-80gb", node_count=128)
    winner = best(candidates(LLAMA_405B + "    overrides: {gpu_count: 1024}\n", where))
    assert winner is not None
    assert isinstance(winner.detail, SizedRun)
    own = layouts.kind(winner.detail.run.division)
    told = layouts.rivals(asked, where, winner)
    kinds = [item.kind for item in told]
    assert own not in kinds
    assert len(set(kinds)) == len(kinds)
    assert {"data parallel", "fully sharded"} <= set(kinds)
    reasons = {item.kind: item.gate for item in told}
    assert reasons["data parallel"] == "gpu_memory"  # 405 B of weights on each GPU
    for item in told:
        slower = item.step_seconds >= winner.detail.values["step_seconds"] * 0.9
        assert slower if item.gate == "step" else item.memory_bytes > 0.85 * 85e9


def test_a_model_that_one_node_trains_keeps_the_usual_engine() -> None:
    made = candidates(FULL_8B, site("h100-sxm-80gb"))
    runs = [c.detail.run for c in made if isinstance(c.detail, SizedRun)]
    assert {run.prepared.subject.framework for run in runs} == {"trainer"}


def test_groups_that_are_copies_of_each_other_are_whole_nodes() -> None:
    asked, where = demand(LLAMA_405B), site("h100-sxm-80gb", node_count=48)
    tables = parallel.evaluated(asked, where, whole(where.gpus[0]), BRIDGE.name)
    rows = [t for t in tables if t.sharding == "hsdp"]
    assert rows
    for table in rows:
        gpus, copies = table.columns["gpus"], table.columns["copies"]
        assert (copies > 1).all()
        assert (gpus % (8 * copies) == 0).all()
        assert ((gpus / copies) % (table.columns["tensor"] * table.columns["context"]) == 0).all()


def test_where_the_fabric_is_slow_groups_inside_a_node_gather_weights_over_nvlink() -> None:
    """Whole sharding sends all weights over the fabric in every micro-batch, groups of one node
    only their parts of the gradients, once a step."""
    text = run("Qwen/Qwen3-8B", batch=256, length=4096, tokens="1e10")
    text += "    overrides: {gpu_count: 128, micro_batch: 1}\n"
    for rate, groups in ((2.5e9, True), (50e9, False)):
        fabric = Fabric(kind="roce", bytes_per_s_per_gpu=rate, resource=None)
        where = replace(site("h100-sxm-80gb", node_count=16), fabric=fabric)
        best_of = dict[str, tuple[float, float]]()
        for table in parallel.evaluated(demand(text), where, whole(where.gpus[0]), BRIDGE.name):
            plain = table.columns["tensor"] * table.columns["context"] == 1
            rows = np.flatnonzero(plain & (table.values["used_bytes"] < 60e9))
            for row in rows if table.sharding in ("zero3", "hsdp") else ():
                step = float(table.values["modelled_step_seconds"][row])
                found = (step, float(table.columns["copies"][row]))
                best_of[table.sharding] = min(best_of.get(table.sharding, found), found)
        assert (best_of["hsdp"][0] < 0.8 * best_of["zero3"][0]) == groups
        if groups:
            assert best_of["hsdp"][1] == 16  # one node each


def test_gradients_that_are_divided_take_less_memory_and_are_sent_more_often() -> None:
    asked, where = demand(LLAMA_405B), site("h100-sxm-80gb", node_count=16)
    tables = list(parallel.evaluated(asked, where, whole(where.gpus[0]), BRIDGE.name))
    by = {(t.sharding, t.recompute): t for t in tables if (t.columns["gpus"] > 8).any()}
    kept, divided = by["zero1", "full"], by["zero2", "full"]
    names = tuple(kept.columns)
    at = {
        tuple(int(divided.columns[n][row]) for n in names): row
        for row in range(divided.columns["gpus"].size)
    }
    seen = 0
    for row in range(kept.columns["gpus"].size):
        other = at.get(tuple(int(kept.columns[n][row]) for n in names))
        if other is None:
            continue
        seen += 1
        assert divided.values["used_bytes"][other] < kept.values["used_bytes"][row]
        steps = (t.values["modelled_step_seconds"] for t in (divided, kept))
        assert next(steps)[other] >= next(steps)[row]
    assert seen > 10


def test_runs_are_slower_only_beyond_the_switch_whose_uplinks_carry_less() -> None:
    asked = demand(run("Qwen/Qwen3-32B", batch=256, length=4096, tokens="1e10"))
    even = site("h100-sxm-80gb", node_count=16)
    assert even.fabric is not None
    above = replace(even.fabric, oversubscription=8.0, nodes_per_switch=4)
    uneven = replace(even, fabric=above)

    def steps(where: Site) -> dict[int, float]:
        tables = list(parallel.evaluated(asked, where, whole(where.gpus[0]), BRIDGE.name))
        counts = {int(n) for t in tables for n in t.columns["gpus"]}
        return {n: found[0][0] for n in counts if (found := parallel.fitting(tables, n))}

    here, there = steps(even), steps(uneven)
    assert here.keys() == there.keys()
    for gpus, seconds in here.items():
        assert there[gpus] >= seconds
        if gpus <= 32:
            assert there[gpus] == seconds
    assert any(there[gpus] > 1.02 * here[gpus] for gpus in here if gpus > 32)


@pytest.mark.parametrize(("gpu", "told"), [("h100-sxm-80gb", True), ("a100-sxm-80gb", False)])
def test_what_products_of_8_bits_would_save_is_that_of_the_run_itself(gpu: str, told: bool) -> None:
    given = "    overrides: {gpu_count: 1024}\n"
    where = site(gpu, node_count=128)
    winner = best(candidates(LLAMA_405B + given, where))
    assert winner is not None
    assert isinstance(winner.detail, SizedRun)
    eight = layouts.in_eight_bits(demand(LLAMA_405B), where, winner)
    assert (eight is not None) == told
    if eight is not None:
        assert eight.values["time_to_finish"] < winner.detail.values["time_to_finish"]
        asked = LLAMA_405B.replace("precision: bf16", "precision: fp8") + given
        assert chosen(asked, where).values["time_to_finish"] == eight.values["time_to_finish"]


TWO_NODES = run("Qwen/Qwen3-32B", batch=64, length=4096, tokens="1e10")


def engines(text: str, where: Site, *, unstarted: bool) -> dict[str, set[str]]:
    """Of each GPU type those of the runs that were weighed, which fit."""
    asked = replace(demand(text), unstarted=(BRIDGE.name,) if unstarted else ())
    return {
        o.gpu.identifier: {
            c.detail.run.prepared.subject.framework
            for c in group
            if isinstance(c.detail, SizedRun) and c.feasible
        }
        for o, group in tried(asked, where)
    }


def test_runs_that_no_engine_starts_are_taken_where_nothing_else_holds_the_model() -> None:
    """With states divided over two nodes of H100 the usual engine holds 32 B weights, those of
    405 B nowhere; whatever other GPUs do."""
    both = Site(
        target="kubernetes",
        gpus=(offer("l4", node_count=4), offer("h100-sxm-80gb", node_count=16)),
        fabric=IB,
    )
    large, small = "h100-sxm-80gb", "l4"
    of_all = engines(TWO_NODES, both, unstarted=False)
    assert of_all[large] == {"trainer", BRIDGE.name}
    assert engines(TWO_NODES, both, unstarted=True) == {small: set(), large: {"trainer"}}
    bridged = {large: {BRIDGE.name}}
    where = site(large, node_count=64)
    assert engines(LLAMA_405B, where, unstarted=False) == bridged
    assert engines(LLAMA_405B, where, unstarted=True) == bridged


def test_measured_points_tell_the_four_fastest_layouts_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where they say that each is faster than the one before it, the fourth is taken: what formulas
    call slower is taken whatever points say of others."""
    asked, where = demand(LLAMA_405B), site("h100-sxm-80gb", node_count=128)
    device, plain = whole(where.gpus[0]), parallel.sized
    tables = list(parallel.evaluated(asked, where, device, BRIDGE.name, 1024))
    order = [
        table.run(row, table.prepared, 0.5) for _, table, row in parallel.fitting(tables, 1024)
    ]
    taken = list[SizedRun]()

    def faster(*args: Any) -> SizedRun:
        made = plain(*args)
        taken.append(replace(made, values=made.values | {"step_seconds": 1.0 - len(taken) / 100}))
        return taken[-1]

    monkeypatch.setattr(parallel, "sized", faster)
    best_one = min(parallel.corrected(asked, where, device, tables, 1024), key=_step)
    fourth, micro = order[3]
    assert len(order) > 4
    assert (best_one.run.division, best_one.micro_batch) == (fourth.division, micro)


def _step(run: SizedRun) -> float:
    return run.values["step_seconds"]


def test_more_gpus_are_weighed_until_several_more_are_much_dearer() -> None:
    """Two numbers in a row that cost a quarter more than the cheapest; of a run with a time limit
    what is late is weighed on, since more of them may not be."""
    where = site("h100-sxm-80gb", node_count=512)
    device = whole(where.gpus[0])
    for text in (LLAMA_405B, f"{LLAMA_405B}    slo: {{finish_within: 200 d}}\n"):
        asked = demand(text)
        weighed, every = (
            list(parallel.candidates(asked, where, device, BRIDGE, patience))
            for patience in (2, math.inf)
        )
        assert [c.gpus for c in weighed] == [c.gpus for c in every][: len(weighed)]
        assert len(weighed) < len(every)
        costs = [float(c.whole_gpus) * c.weight for c in weighed if c.feasible]
        dear = [cost > 1.25 * min(costs[: n + 1]) for n, cost in enumerate(costs)]
        assert dear[-2:] == [True, True]
        assert all(not (a and b) for a, b in pairwise(dear[:-1]))
        assert weighed[-1].feasible
        late = [c.gpus for c in weighed if not c.feasible]
        assert bool(late) == ("finish_within" in text)
        assert max(late, default=0) < min(c.gpus for c in weighed if c.feasible)
