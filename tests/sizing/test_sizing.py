"""What a person gets from the sizing engine: known points, honest verdicts, visible choices."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal

import pytest

from gpuplan.placement.pools.together import size_all
from gpuplan.plan.model import Fabric
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.units import GB, GIB
from tests.support.sizing_cases import (
    BATCH,
    CASES,
    CHAT_8B,
    CHAT_70B,
    DEEPSEEK,
    FULL_8B,
    IMAGE_BATCH,
    IMAGES,
    LORA_70B,
    NOTEBOOKS,
    PRICES,
    failure,
    offer,
    refusals,
    site,
    size,
    sized,
    wanted,
    work,
)
from tests.support.work import calls


def value(workload: str, quantity: str, where: object = None) -> float:
    answer = sized(workload, where)  # type: ignore[arg-type]
    return next(e.value for e in answer.evidence if e.quantity == f"work.{quantity}")


def replaced(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


# --- language models ----------------------------------------------------------------------------


def test_llama_70b_in_fp8_weighs_what_a_checkpoint_in_fp8_does() -> None:
    """68.5 G linear parameters of one byte and 2.1 G of two."""
    weights = value(CHAT_70B, "weights_bytes") * value(CHAT_70B, "tensor_parallel_size")
    assert 72e9 < weights < 73.5e9


def test_the_volume_holds_the_weights_as_they_are_published() -> None:
    """70.55 G parameters of two bytes, whatever they are served in; DeepSeek-V3's are in fp8."""
    assert value(CHAT_70B, "checkpoint_bytes") == 2 * 70_553_706_496
    published = value(DEEPSEEK, "checkpoint_bytes", site("h200-sxm-141gb"))
    assert 671e9 < published < 690e9


@pytest.mark.parametrize(
    ("model", "precision", "remedy"),
    [
        ("deepseek-ai/DeepSeek-V3", "bf16", "write precision: fp8"),
        ("openai/gpt-oss-20b", "fp8", "write precision: mxfp4"),
        ("meta-llama/Llama-3.3-70B-Instruct", "int4", "config.json"),
    ],
)
def test_a_precision_that_no_engine_makes_of_the_published_weights_is_refused(
    model: str, precision: str, remedy: str
) -> None:
    text = replaced(CHAT_70B, "meta-llama/Llama-3.3-70B-Instruct", model)
    text = replaced(text, "precision: fp8", f"precision: {precision}")
    found = refusals(text)
    assert [p.rule for p in found] == ["GP007"]
    assert remedy in found[0].help


def test_a_model_is_served_as_it_is_published_unless_told_otherwise() -> None:
    text = replaced(CHAT_70B, "    precision: fp8\n", "")
    assert wanted(text).precision == "bf16"
    text = replaced(text, "meta-llama/Llama-3.3-70B-Instruct", "openai/gpt-oss-120b")
    assert wanted(text).precision == "mxfp4"


@pytest.mark.parametrize(("dtype", "kib"), [("auto", 320), ("fp8", 160)])
def test_llama_70b_keeps_80_layers_of_8_heads_a_token(dtype: str, kib: int) -> None:
    text = CHAT_70B + f"    overrides: {{kv_cache_dtype: {dtype}}}\n"
    per_gpu = value(text, "kv_bytes_per_token", site("h100-sxm-80gb"))
    gpus = value(text, "tensor_parallel_size", site("h100-sxm-80gb"))
    assert per_gpu * gpus == kib * 1024


@pytest.mark.parametrize("gpu", ["l4", "a10", "l40s"])
def test_llama_8b_runs_on_small_gpus(gpu: str) -> None:
    found = work(CHAT_8B, site(gpu))
    memory = found.memory
    assert memory.used_bytes <= memory.usable_bytes < memory.capacity_bytes
    whole = memory.weights_bytes * found.parallelism.tensor_parallel_size
    assert 15.5e9 < whole < 16.5e9


def test_deepseek_v3_fits_8_h200_and_not_8_h100() -> None:
    found = work(DEEPSEEK, site("h200-sxm-141gb"))
    assert found.parallelism.tensor_parallel_size == 8
    assert found.memory.weights_bytes * 8 > 671e9
    refused = failure(DEEPSEEK, replace(site("h100-sxm-80gb"), fabric=None))
    assert refused.rule == "GP010"
    assert "h100-sxm-80gb: gpu_memory: needs" in refused.label


def test_a_replica_meets_its_objectives_at_the_peak() -> None:
    found = work(CHAT_70B)
    metrics = {m.name: m for m in found.metrics}
    for name, limit in (("time_to_first_token", 1.0), ("time_per_output_token", 0.04)):
        metric = metrics[name]
        assert metric.limit == limit
        assert metric.estimate.low < metric.estimate.value < metric.estimate.high
        assert metric.estimate.value < limit
        assert metric.probability is not None
        assert metric.probability >= 0.8
    capacity = metrics["requests_per_second"]
    assert capacity.estimate.value >= 20
    assert capacity.probability is not None
    assert capacity.probability >= 0.8


def test_more_confidence_takes_no_fewer_gpus() -> None:
    careful = replaced(CHAT_70B, "40 ms}", "40 ms, confidence: 0.99}")
    where = site("h100-sxm-80gb")
    assert work(careful, where).gpu_count > work(CHAT_70B, where).gpu_count


def test_growth_is_served_at_the_end_of_its_horizon() -> None:
    grown = CHAT_70B + "    growth: {factor: 3, horizon: 12 months}\n"
    assert value(grown, "sized_rate") == 60
    assert work(grown).gpu_count > 2 * work(CHAT_70B).gpu_count


def test_tokens_per_second_raise_the_replicas() -> None:
    text = replaced(CHAT_70B, "40 ms}", "40 ms, tokens_per_second: 30000}")
    found = work(text)
    metric = next(m for m in found.metrics if m.name == "output_tokens_per_second")
    assert metric.limit == 30000
    assert metric.estimate.value > 30000
    assert found.replicas > work(CHAT_70B).replicas


def test_the_cheapest_gpu_wins_and_says_what_would_flip_it() -> None:
    found = work(CHAT_70B)
    assert found.usd_per_hour is not None
    dearer = [a for a in found.alternatives if a.gate == "cost"]
    assert dearer
    for other in dearer:
        assert other.usd_per_hour is not None
        assert other.usd_per_hour >= found.usd_per_hour
        assert other.flip is not None
    best = dearer[0]
    assert best.flip is not None
    cheaper = Quantity(best.flip.needed * 0.98, "USD/h", "test")
    offers = tuple(
        replace(o, usd_per_gpu_hour=cheaper) if o.gpu.identifier == best.gpu else o
        for o in site().gpus
    )
    assert work(CHAT_70B, replace(site(), gpus=offers)).gpu == best.gpu


def test_an_unpriced_gpu_comes_after_every_priced_one() -> None:
    offers = (offer("h100-sxm-80gb", usd_per_gpu_hour=None), offer("l40s"))
    found = work(CHAT_8B, replace(site(), gpus=offers))
    assert found.gpu == "l40s"
    assert [a.gate for a in found.alternatives] == ["price unknown"]
    only = work(CHAT_8B, replace(site(), gpus=offers[:1]))
    assert only.usd_per_hour is None


def test_every_other_gpu_type_has_its_gate() -> None:
    found = work(CHAT_70B)
    assert {a.gpu for a in found.alternatives} | {found.gpu} == {
        o.gpu.identifier for o in site().gpus
    }
    gates = {a.gpu: a for a in found.alternatives}
    assert gates["a100-sxm-80gb"].gate == "cost"  # vLLM computes with fp8 weights in bf16 there
    slow = gates["l40s"]
    assert slow.shortfalls[0].requested > slow.shortfalls[0].capacity
    assert slow.flip is not None
    assert slow.flip.quantity.startswith("slo.")


def test_too_few_nodes_is_a_gate() -> None:
    refused = failure(CHAT_70B, site("h100-sxm-80gb", node_count=1))
    assert re.search(r"nodes: needs [23], has 1", refused.label)


def test_what_cannot_fit_names_the_precision_that_does() -> None:
    text = replaced(CHAT_70B, "precision: fp8", "precision: bf16")
    apart = replace(site("l40s", gpus_per_node=2), fabric=None)
    refused = failure(text, apart)
    assert "gpu_memory" in refused.label
    slow = "slo: {time_to_first_token: 1 s, time_per_output_token: 40 ms}"
    easy = replaced(text, slow, "slo: {time_per_output_token: 500 ms}")
    assert "`precision: fp8` takes" in failure(easy, apart).help


def test_a_batch_finishes_in_time_for_the_least_money() -> None:
    found = work(BATCH)
    finish = next(m for m in found.metrics if m.name == "time_to_finish")
    assert finish.limit == 86400
    assert finish.estimate.value < 86400
    relaxed = work(replaced(BATCH, "24 h", "60 d"))
    hurried = work(replaced(BATCH, "24 h", "2 h"))
    assert relaxed.usd_per_run is not None
    assert found.usd_per_run is not None
    assert hurried.usd_per_run is not None
    cents = [round(w.usd_per_run or 0, 2) for w in (relaxed, found, hurried)]
    assert cents == sorted(cents)


def test_a_model_on_a_shared_gpu_takes_a_partition() -> None:
    shared = CHAT_8B + "    tenancy: {isolation: shared}\n"
    found = work(shared, site("h100-sxm-80gb", node_count=1))
    assert found.partition == "3g.40gb"
    assert found.node_pool == "h100-sxm-80gb"
    assert found.usd_per_hour == Decimal("2")
    assert work(CHAT_8B, site("h100-sxm-80gb")).partition is None


def test_whole_nodes_are_paid_whole() -> None:
    found = work(CHAT_8B + "    tenancy: {isolation: node}\n", site("h100-sxm-80gb"))
    assert found.usd_per_hour == Decimal("32")


# --- training -----------------------------------------------------------------------------------


def test_a_full_fine_tune_reaches_its_global_batch_exactly() -> None:
    found = work(FULL_8B)
    run = found.training
    assert run is not None
    reached = run.micro_batch * run.gradient_accumulation_steps
    assert reached * found.parallelism.data_parallel_size == run.global_batch == 128
    assert run.steps == math.ceil(1e9 / (128 * 4096))
    finish = next(m for m in found.metrics if m.name == "time_to_finish")
    assert finish.estimate.value < 2 * 86400


def test_full_states_of_an_8b_model_take_18_bytes_a_parameter() -> None:
    found = work(FULL_8B + "    overrides: {gpu_count: 8}\n", site("h100-sxm-80gb"))
    memory, run = found.memory, found.training
    assert run is not None
    divided = {"zero1": 2, "zero2": 1, "zero3": 0}[run.sharding]
    states = memory.weights_bytes + memory.gradients_bytes + memory.optimizer_bytes
    expected = {2: (6 + 12 / 8), 1: (2 + 16 / 8), 0: 18 / 8}[divided] * 8.03e9
    assert states == pytest.approx(expected, rel=0.01)


def test_lora_of_70b_divides_the_frozen_weights() -> None:
    found = work(LORA_70B, site("h100-sxm-80gb"))
    assert found.training is not None
    assert found.training.sharding == "zero3"
    assert 4 <= found.gpu_count <= 8
    assert found.memory.weights_bytes * found.gpu_count > 141e9
    assert {v.purpose for v in found.volumes} == {"models", "checkpoints", "dataset"}


def test_volumes_hold_what_is_downloaded_and_what_is_made_of_it() -> None:
    def sizes(text: str) -> dict[str, int]:
        found = work(text, site("h100-sxm-80gb"))
        return {v.purpose: v.size_bytes for v in found.volumes}

    said = sizes(LORA_70B)
    weights = 2 * 70.55e9
    assert said["models"] > 1.1 * (weights + 1e9)
    # 1 GB of files, its text, and 5e7 tokens of 13 bytes and twice of 21 with their positions.
    assert 1.1 * (1e9 + 2e9 + 5e7 * 55) < said["dataset"] < 1.2 * (3e9 + 5e7 * 55)
    guessed = sizes(replaced(FULL_8B, "slo:", "dataset: {name: a/b, size: 1 GB}\n    slo:"))
    assert guessed["dataset"] > 1.1 * (3e9 + 2e9 / 4 * 55)


def test_qlora_of_70b_fits_one_gpu() -> None:
    text = replaced(LORA_70B, "lora: 16", "lora: {rank: 16, quantized: true}")
    one = replace(site("h100-sxm-80gb"), gpus=(offer("h100-sxm-80gb", gpus_per_node=1),))
    found = work(text, replace(one, fabric=None))
    assert found.training is not None
    assert found.training.method == "qlora"
    assert found.gpu_count == 1
    whole = work(text, site("h100-sxm-80gb", node_count=1))
    assert whole.gpu_count == 8, "of a node of eight all are paid: they end it sooner"
    assert 35 * GB < found.memory.weights_bytes < 45 * GB


def test_less_time_costs_no_less_and_takes_the_gpus_that_make_it() -> None:
    where = site("h100-sxm-80gb")
    hurried = work(replaced(FULL_8B, "2 d", "2 h"), where)
    relaxed = work(FULL_8B, where)
    assert hurried.usd_per_run is not None
    assert relaxed.usd_per_run is not None
    assert hurried.usd_per_run >= relaxed.usd_per_run
    eight = f"{replaced(FULL_8B, '2 d', '2 h')}    overrides: {{gpu_count: 8}}\n"
    assert "time_to_finish" in failure(eight, where).label, "one node is too slow"
    assert "time_to_finish" in failure(replaced(FULL_8B, "2 d", "1 min"), where).label


@pytest.mark.parametrize("model", ["Qwen/Qwen3-30B-A3B", "meta-llama/Llama-3.1-8B"])
def test_a_run_without_a_limit_takes_the_gpus_that_cost_least(model: str) -> None:
    """Whole nodes are paid as long as it takes."""
    text = replaced(FULL_8B, "    slo: {finish_within: 2 d}\n", "")
    text, where = replaced(text, "meta-llama/Llama-3.1-8B", model), site("h100-sxm-80gb")
    chosen = work(text, where).gpu_count
    hours = {
        gpus: gpus * value(f"{text}    overrides: {{gpu_count: {gpus}}}\n", "time_to_finish", where)
        for gpus in (chosen // 2, chosen, 2 * chosen)
        if 8 <= gpus <= 128 and (model == "meta-llama/Llama-3.1-8B" or gpus >= 16)
    }
    assert hours[chosen] == min(hours.values())


def test_several_nodes_need_a_fabric_that_is_known() -> None:
    where = replace(site("h100-sxm-80gb"), fabric=None)
    hurried = failure(replaced(FULL_8B, "2 d", "2 h"), where)
    assert "fabric" in hurried.label or "time_to_finish" in hurried.label
    assert work(FULL_8B, where).nodes_per_replica == 1


def test_a_slower_fabric_is_never_faster() -> None:
    text = f"{FULL_8B}    overrides: {{gpu_count: 32}}\n"
    steps = []
    for rate in (1e9, 5e9, 25e9, 100e9):
        fabric = Fabric(kind="infiniband", bytes_per_s_per_gpu=rate, resource=None)
        where = replace(site("h100-sxm-80gb"), fabric=fabric)
        steps.append(value(text, "step_seconds", where))
    assert steps == sorted(steps, reverse=True)
    assert steps[0] > 1.2 * steps[-1]


def test_selective_recomputation_saves_memory_and_costs_time() -> None:
    steps, stored = [], []
    for recompute in ("none", "selective", "full"):
        text = replaced(FULL_8B, "tokens: 1e9", f"tokens: 1e9, recompute: {recompute}")
        text += "    overrides: {gpu_count: 16, micro_batch: 1}\n"
        steps.append(value(text, "step_seconds", site("h100-sxm-80gb")))
        stored.append(value(text, "activations_bytes", site("h100-sxm-80gb")))
    assert steps == sorted(steps)
    assert stored == sorted(stored, reverse=True)
    assert len({*steps, *stored}) == 6


def test_more_replicas_than_are_planned_one_by_one_are_refused() -> None:
    found = failure(replaced(CHAT_70B, "peak: 20", "peak: 3e7"), site("h100-sxm-80gb"))
    assert "has 10,000" in found.label


def test_a_slow_storage_is_a_gate() -> None:
    text = replaced(LORA_70B, "size: 1 GB", "size: 1 GB, rate: 20 GB/s")
    where = replace(
        site("h100-sxm-80gb", node_count=1), storage_bytes_per_s=Quantity(5e9, "B/s", "test")
    )
    assert "storage_bytes_per_s: needs 20 GB/s, has 5 GB/s" in failure(text, where).label


# --- images and notebooks -----------------------------------------------------------------------


def test_flux_takes_4_seconds_an_image_on_h100() -> None:
    seconds = value(IMAGES, "batch_seconds", site("h100-sxm-80gb"))
    assert seconds == pytest.approx(4.3, rel=0.05)
    found = work(IMAGES, site("h100-sxm-80gb"))
    assert found.image_generation is not None
    assert (found.image_generation.width, found.image_generation.steps) == (1024, 28)
    assert found.replicas > 4


def test_sdxl_makes_two_images_a_second_on_h100() -> None:
    found = work(IMAGE_BATCH, site("h100-sxm-80gb"))
    rate = next(m for m in found.metrics if m.name == "images_per_second").estimate.value
    assert rate / found.replicas == pytest.approx(2.04, rel=0.1)


def test_idle_hours_are_priced_and_not_silent() -> None:
    answer = sized(IMAGES)
    note = next(d for d in answer.diagnostics if "idle" in d.message)
    assert note.rule == "GP014"
    cost = answer.workload.usd_per_hour
    assert cost is not None
    idle = next(e for e in answer.evidence if e.quantity == "work.usd_per_day_idle")
    assert idle.value == pytest.approx(float(cost) * 10)


@pytest.mark.parametrize(
    ("target", "partition"), [("kubernetes", "1g.10gb"), ("libvirt", "H100XM-10C")]
)
def test_notebooks_share_gpus_as_the_target_can(target: str, partition: str) -> None:
    found = work(NOTEBOOKS, site("h100-sxm-80gb", target=target))
    assert found.partition == partition
    assert found.replicas == 10
    assert found.gpu_count == 2
    assert found.memory.capacity_bytes >= 9 * GIB


def test_notebooks_of_their_own_gpu() -> None:
    found = work(NOTEBOOKS + "    tenancy: {isolation: gpu}\n", site("l4"))
    assert found.partition is None
    assert found.gpu_count == 10


# --- what stands beside a GPU -------------------------------------------------------------------


def test_hosts_give_cores_and_memory_for_each_gpu() -> None:
    found = work(CHAT_70B, site("h100-sxm-80gb"))
    gpus = found.gpus_per_node
    assert found.resources.cpu_cores == 6 * gpus
    assert found.resources.host_memory_bytes >= 79 * GIB * gpus
    few = work(CHAT_70B, site("h100-sxm-80gb", cpu_cores_per_node=36))
    assert few.resources.cpu_cores == 4 * few.gpus_per_node
    small = work(CHAT_70B, site("h100-sxm-80gb", memory_bytes_per_node=256 * GIB))
    assert small.resources.host_memory_bytes < 32 * GIB * small.gpus_per_node


def test_the_model_volume_holds_the_checkpoint() -> None:
    found = work(CHAT_70B)
    models = next(v for v in found.volumes if v.purpose == "models")
    assert models.size_bytes > 1.09 * value(CHAT_70B, "checkpoint_bytes")


# --- speed --------------------------------------------------------------------------------------


def test_many_workloads_together_cost_no_more_than_each_alone_and_fill_nodes() -> None:
    """Seven types for each of eight: too many combinations to weigh every one."""
    asked = [replace(wanted(CHAT_8B), name=f"work-{n}") for n in range(8)]
    together = [a.workload for a in size_all(asked, site())[0] if isinstance(a, Sized)]
    alone = work(CHAT_8B).usd_per_hour
    costs = [w.usd_per_hour or Decimal(0) for w in together]
    assert alone is not None
    assert sum(costs) < len(asked) * alone
    for gpu, room in ((o.gpu.identifier, o.gpus_per_node) for o in site().gpus):
        used = sum(w.gpu_count for w in together if w.gpu == gpu)
        price = PRICES[gpu]
        paid = float(sum(w.usd_per_hour or 0 for w in together if w.gpu == gpu))
        assert paid == pytest.approx(math.ceil(used / room) * room * price, abs=1e-4)


def test_a_batch_of_any_size_is_answered_at_once() -> None:
    asked = wanted(replaced(FULL_8B, "global_batch: 128", "global_batch: 999999937"))
    platform = site()
    assert calls(lambda: size(asked, platform)) < 3_000_000


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_same_demand_gives_the_same_answer(name: str) -> None:
    assert sized(CASES[name]) == sized(CASES[name])
