"""What must hold of every prediction: monotony, the roofline, and evidence that adds up."""

from __future__ import annotations

import gc
import importlib
import math
import pkgutil
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import gpuplan
from gpuplan.catalog.model import Fact
from gpuplan.models.load import bundled
from gpuplan.models.model import Transformer
from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, canonical, evaluate
from gpuplan.sizing.evidence.intervals import normal, probability, quantile
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.training.division import Division, Method
from gpuplan.sizing.physics.training.prepared import prepare
from gpuplan.sizing.physics.training.run import Run
from tests.support.sizing_cases import (
    CASES,
    CHAT_8B,
    CHAT_70B,
    DEEPSEEK,
    offer,
    site,
    size,
    sized,
    wanted,
)
from tests.support.sizing_cases import replica as replica_of

SERVED = {"dense": CHAT_70B, "small": CHAT_8B, "latent": DEEPSEEK}
GPUS = ("l40s", "a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb")
SIZES = (1, 2, 4, 8)

workloads = st.sampled_from(sorted(SERVED))
gpus = st.sampled_from(GPUS)
sizes = st.sampled_from(SIZES)
batches = st.integers(min_value=1, max_value=400)
prompts = st.integers(min_value=16, max_value=100_000)


def replica(name: str, gpu: str, ranks: int, **lengths: float) -> Replica:
    """A replica of a case on a GPU, at bf16 where the GPU lacks fp8."""
    parts = ("mean", "p95")
    changed = {f"load.{field}.{part}": n for field, n in lengths.items() for part in parts}
    demand = wanted(SERVED[name], numbers=changed)
    assert isinstance(demand, LanguageDemand)
    if unsupported(offer(gpu).gpu, demand.precision):
        demand = replace(demand, precision="bf16")
    return replica_of(demand, gpu, ranks)


@settings(max_examples=60)
@given(workloads, gpus, sizes, batches, prompts)
@example("latent", "l40s", 1, 11, 37)  # whose first tokens wait for next to nothing
def test_more_sequences_never_need_less_nor_go_faster(
    name: str, gpu: str, ranks: int, batch: int, prompt: int
) -> None:
    one = replica(name, gpu, ranks, input_tokens=prompt)
    few, many = one.needs(batch), one.needs(batch + 7)
    assert few["used_bytes"] <= many["used_bytes"]
    slow, fast = one.times(batch + 7), one.times(batch)
    assert fast["time_per_output_token"] <= slow["time_per_output_token"]
    # Of equal prompts, the tail of a long queue falls by parts in 100,000 while its mean grows.
    assert fast["time_to_first_token"] <= slow["time_to_first_token"] * (1 + 1e-5)


@settings(max_examples=60)
@given(workloads, gpus, sizes, batches, prompts)
def test_a_longer_context_never_needs_less(
    name: str, gpu: str, ranks: int, batch: int, prompt: int
) -> None:
    short = replica(name, gpu, ranks, input_tokens=prompt)
    long = replica(name, gpu, ranks, input_tokens=prompt + 999)
    assert short.needs(batch)["used_bytes"] <= long.needs(batch)["used_bytes"]
    assert short.times(batch)["decode_seconds"] <= long.times(batch)["decode_seconds"]
    assert short.times(batch)["prefill_seconds"] <= long.times(batch)["prefill_seconds"]


@st.composite
def loads(draw: st.DrawFn) -> dict[str, float]:
    """Numbers of a manifest's load and objectives."""
    rate, prompt = draw(st.floats(0.01, 300)), draw(st.integers(1, 20_000))
    output = draw(st.integers(1, 4_000))
    numbers = {
        "load.requests_per_second.mean": rate,
        "load.requests_per_second.peak": rate,
        "load.input_tokens.mean": prompt,
        "load.input_tokens.p95": prompt * draw(st.floats(1, 4)),
        "load.output_tokens.mean": output,
        "load.output_tokens.p95": output,
        "overrides.max_model_len": 131072,
        "slo.confidence": draw(st.floats(0.5, 0.99)),
    }
    limit = draw(st.sampled_from((None, 0.02, 0.06))) if output > 1 else None
    return numbers if limit is None else numbers | {"slo.time_per_output_token": limit}


@settings(max_examples=80)
@given(workloads, loads())
def test_what_is_sized_fits_and_meets_its_objectives(name: str, load: dict[str, float]) -> None:
    text = SERVED[name].partition("    slo:")[0]
    answer = size(wanted(text, numbers=load), site())
    if isinstance(answer, tuple):
        assert [d.rule for d in answer] == ["GP010"]
        return
    found = answer.workload
    assert found.memory.used_bytes <= found.memory.usable_bytes
    for metric in found.metrics:
        assert metric.estimate.low < metric.estimate.value < metric.estimate.high
        if metric.limit is not None:
            assert metric.probability is not None
            assert metric.probability >= load["slo.confidence"] - 1e-3


@settings(max_examples=40)
@given(workloads, st.sampled_from(GPUS[2:]), sizes, batches)
def test_a_lower_precision_never_needs_more(name: str, gpu: str, ranks: int, batch: int) -> None:
    demand = wanted(SERVED[name])
    assert isinstance(demand, LanguageDemand)
    used = [
        replica_of(replace(demand, precision=p), gpu, ranks).needs(batch)["weights_bytes"]
        for p in ("bf16", "fp8", "int4")
    ]
    assert used == sorted(used, reverse=True)


@settings(max_examples=40)
@given(workloads, gpus, batches, prompts)
def test_splitting_never_raises_a_gpus_weights(
    name: str, gpu: str, batch: int, prompt: int
) -> None:
    weights = [
        replica(name, gpu, ranks, input_tokens=prompt).needs(batch)["weights_bytes"]
        for ranks in SIZES
    ]
    assert weights == sorted(weights, reverse=True)


@settings(max_examples=40)
@given(workloads, gpus, sizes, batches, st.floats(1.01, 4))
def test_more_bandwidth_is_never_slower(
    name: str, gpu: str, ranks: int, batch: int, factor: float
) -> None:
    slow = replica(name, gpu, ranks)
    rate = slow.device.gpu.memory_bytes_per_s
    better = replace(
        slow.device.gpu, memory_bytes_per_s=Fact(value=rate.value * factor, unit="B/s", source="x")
    )
    device = replace(slow.device, offer=replace(slow.device.offer, gpu=better))
    fast = Replica(replace(slow.service, device=device))
    for quantity in ("decode_seconds", "prefill_seconds", "time_per_output_token"):
        assert fast.times(batch)[quantity] <= slow.times(batch)[quantity] * (1 + 1e-9)


@settings(max_examples=80)
@given(workloads, gpus, sizes, batches, prompts)
def test_no_step_beats_the_roofline(
    name: str, gpu: str, ranks: int, batch: int, prompt: int
) -> None:
    """Reads at peak bandwidth and products at the dense peak, counted anew from the model."""
    one = replica(name, gpu, ranks, input_tokens=prompt)
    model, card = one.service.model, one.device.gpu
    times = one.times(batch)
    width = 2 if one.service.precision == "bf16" else 1
    dense = model.linear_parameters
    if model.experts:
        each = 3 * model.hidden_size * model.experts.intermediate_size
        dense -= model.experts.layers * model.experts.count * each
    read = dense * width / ranks / card.memory_bytes_per_s.value
    peak = card.peak_fp8 if width == 1 and card.peak_fp8 else card.peak_bf16
    computed = 2 * model.active_linear_parameters * batch / ranks / peak.value
    assert times["decode_seconds"] > max(read, computed)
    prompt_products = 2 * model.active_linear_parameters * prompt / ranks / peak.value
    assert times["prefill_seconds"] > max(read, prompt_products)


@settings(max_examples=40)
@given(
    st.sampled_from(("h100-sxm-80gb", "a100-sxm-80gb")),
    st.sampled_from((1, 2, 4, 8)),
    st.sampled_from((512, 4096, 32768)),
    st.booleans(),
)
def test_no_training_step_beats_the_roofline(
    gpu: str, micro: int, length: int, recompute: bool
) -> None:
    run, model = training_run(gpu, length, recompute=recompute)
    values = run.at(micro)
    passes = 4 if recompute else 3
    card = offer(gpu).gpu
    flop = 2 * model.linear_parameters * micro * length * passes
    each = flop / card.peak_bf16.value
    assert values["step_seconds"] > each * values["gradient_accumulation_steps"]


@settings(max_examples=40)
@given(st.sampled_from((1, 2, 4)), st.sampled_from((512, 4096)), st.booleans())
def test_recomputation_trades_memory_for_time(micro: int, length: int, adapter: bool) -> None:
    stored, _ = training_run("h100-sxm-80gb", length, recompute=False, adapter=adapter)
    again, _ = training_run("h100-sxm-80gb", length, recompute=True, adapter=adapter)
    assert again.needs(micro)["activations_bytes"] <= stored.needs(micro)["activations_bytes"]
    assert again.at(micro)["step_seconds"] > stored.at(micro)["step_seconds"]
    assert stored.needs(micro)["used_bytes"] <= stored.needs(2 * micro)["used_bytes"]


@pytest.mark.parametrize("adapter", [False, True])
def test_more_sharding_never_needs_more(adapter: bool) -> None:
    used = []
    for sharding in ("none", "zero1", "zero2", "zero3"):
        run, _ = training_run("h100-sxm-80gb", 2048, sharding=sharding, adapter=adapter)
        needs = run.needs(1)
        used.append(needs["weights_bytes"] + needs["gradients_bytes"] + needs["optimizer_bytes"])
    assert used == sorted(used, reverse=True)


def training_run(
    gpu: str,
    length: int,
    *,
    recompute: bool = False,
    sharding: str = "zero3",
    adapter: bool = False,
    name: str = "meta-llama/Llama-3.1-8B",
) -> tuple[Run, Transformer]:
    model = bundled(name)
    assert isinstance(model, Transformer)
    rank = Quantity(16.0, "1", "test") if adapter else None
    how = Method(
        adapter=adapter, quantized=False, precision="bf16", optimizer="adamw", lora_rank=rank
    )
    numbers = {
        "sequence_length": length,
        "global_batch": 64,
        "steps": 10,
        "lost_share": 0,
        "link_rate": 450e9,
        "usable_fraction": 0.9,
    }
    prepared = prepare(model, whole(offer(gpu)), how, "axolotl", many=True)
    given_scope = {name: Quantity(float(n), "1", "test") for name, n in numbers.items()}
    division = Division(8, sharding, "full" if recompute else "none")  # type: ignore[arg-type]
    return Run(prepared.given(given_scope), division), model


# --- evidence -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "flop_per_token"),
    [
        # Six FLOP a weight and token (Kaplan 2020) of 6.98e9 weights in layers, 0.53e9 in the head.
        ("meta-llama/Llama-3.1-8B-Instruct", 6 * (32 * (2 * 4096 * 5120 + 3 * 4096 * 14336))),
        # Attention, router, and 8 of 128 experts of 48 layers.
        ("Qwen/Qwen3-30B-A3B", 6 * 48 * (2 * 2048 * 4608 + 2048 * 128 + 8 * 3 * 2048 * 768)),
    ],
)
def test_a_step_multiplies_with_all_weights_that_a_token_passes(
    name: str, flop_per_token: float
) -> None:
    run, _ = training_run("h100-sxm-80gb", 2048, name=name)
    step = run.modelled(1)
    tokens = step["global_batch"] * step["sequence_length"] / step["gpus"]
    assert step["roofline_seconds"] == pytest.approx(flop_per_token * tokens / step["peak"])


def test_an_update_holds_a_group_of_parameters_at_a_time() -> None:
    """An fp32 gradient and two temporaries of DeepSpeed's 1e9 parameters, or of a GPU's part."""
    parted, model = training_run("h200-sxm-141gb", 512)
    whole, _ = training_run("h200-sxm-141gb", 512, sharding="none")
    assert parted.needs(1)["step_bytes"] == 12 * min(model.parameters / 8, 1e9)
    small, little = training_run("h200-sxm-141gb", 512, name="Qwen/Qwen3-0.6B")
    assert small.needs(1)["step_bytes"] == pytest.approx(12 * little.parameters / 8)
    assert whole.needs(1)["step_bytes"] == 12e9
    assert whole.needs(1)["activations_bytes"] >= 12e9


@pytest.mark.parametrize(
    "name", ["meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B", "deepseek-ai/DeepSeek-V3"]
)
def test_no_line_of_a_run_takes_the_name_of_a_number_that_it_is_given(name: str) -> None:
    run, _ = training_run("h200-sxm-141gb", 2048, name=name)
    lines = [n for s in (run.prepared.shape, run.memory, run.time) for n, _ in s.lines]
    assert len(lines) == len(set(lines))
    assert not set(lines) & set(run.scope)


def test_every_formula_is_arithmetic() -> None:
    """Formulas are compiled when they are first used; here all of them are."""
    modules = [m.name for m in pkgutil.walk_packages(gpuplan.__path__, "gpuplan.")]
    for name in modules:
        if name.startswith(("gpuplan.sizing", "gpuplan.placement")):
            importlib.import_module(name)
    formulas = [o for o in gc.get_objects() if isinstance(o, Formula)]
    assert len(formulas) > 100
    assert all(f.names or f.expression for f in formulas)


@pytest.mark.parametrize("gpu", ["rtx-pro-6000-server", "l40s", "h100-sxm-80gb"])
def test_fewer_output_tokens_hardly_need_more_gpus(gpu: str) -> None:
    """Where prompts are long, each of a few tokens waits for more of other requests' prompts, as
    replays show; that must hardly outweigh that there are fewer."""
    counts = []
    for output in (5, 10, 20, 40, 80, 160, 320, 640):
        text = f"""
    task: inference
    model: openai/gpt-oss-20b
    load: {{requests_per_second: 10, input_tokens: {{mean: 8000, p95: 16000}},
           output_tokens: {{mean: {output}, p95: {2 * output}}}}}
    slo: {{time_per_output_token: 50 ms, request_latency: 60 s}}
"""
        counts.append(sized(text, site(gpu, node_count=1000)).workload.gpu_count)
    assert all(few <= 2 * min(counts[place:]) for place, few in enumerate(counts))


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_number_evaluates_from_its_own_formula_and_inputs(name: str) -> None:
    answer = sized(CASES[name])
    values = {e.quantity: e.value for e in answer.evidence}
    overridden = {e.quantity for e in answer.evidence if e.overridden_by}
    assert len(values) == len(answer.evidence) > 20
    for entry in answer.evidence:
        if entry.formula:
            inputs = {i.name: i.value for i in entry.inputs}
            assert evaluate(entry.formula, inputs) == entry.value, entry.quantity
        else:
            kinds = ("manifest: ", "default: ", "catalog: ", "constant: ", "choice: ")
            assert entry.source.startswith((*kinds, "solved: ", "platform: ", "test")), entry
        for item in entry.inputs:
            kind, _, quantity = item.source.partition(":")
            if kind == "quantity" and quantity not in overridden:
                assert values[quantity] == item.value, (entry.quantity, item)


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_plans_numbers_are_those_of_the_evidence(name: str) -> None:
    answer = sized(CASES[name])
    values = {e.quantity.removeprefix("work."): e.value for e in answer.evidence}
    found = answer.workload
    for metric in found.metrics:
        assert values[metric.name] == metric.estimate.value
    for field in ("weights_bytes", "activations_bytes", "overhead_bytes"):
        if field in values:
            assert values[field] == getattr(found.memory, field)
    assert values["gpu_count"] == found.gpu_count
    if found.usd_per_hour is not None:
        assert values["usd_per_hour"] == pytest.approx(float(found.usd_per_hour))
    assert found.memory.used_bytes <= found.memory.usable_bytes


def test_a_sheet_computes_what_its_formulas_record() -> None:
    one = replica("latent", "h200-sxm-141gb", 8)
    searched = one.times(17)
    ledger = Ledger("x")
    given_scope = {"tensor_parallel_size": one.scope["tensor_parallel_size"]}
    scope = one.record(ledger, given_scope)
    recorded = one.record_times(ledger, scope | {"sequences": Quantity(17.0, "1", "test")})
    for name in ("decode_seconds", "time_to_first_token", "request_latency"):
        assert recorded[name].value == pytest.approx(searched[name], rel=1e-7)


def test_a_sheet_runs_lines_in_order() -> None:
    lines = (("a", Formula("x * 2", "1", "t")), ("b", Formula("a + 1", "1", "t")))
    assert Sheet(lines)({"x": 3.0}) == {"x": 3.0, "a": 6.0, "b": 7.0}


# --- intervals ----------------------------------------------------------------------------------


@given(st.floats(0.01, 0.99))
def test_quantiles_invert_the_normal_distribution(p: float) -> None:
    assert normal(quantile(p)) == pytest.approx(p, abs=1e-6)


@given(st.floats(0.1, 10), st.floats(0.1, 10))
def test_probabilities_follow_the_interval(value: float, limit: float) -> None:
    factors = (0.8, 1.3)
    below = probability(value, limit, factors, "at_most")
    above = probability(value, limit, factors, "at_least")
    assert below + above == pytest.approx(1, abs=1e-5)
    assert (below > 0.5) == (limit > value) or math.isclose(limit, value)


def test_the_ends_of_the_interval_are_five_and_ninety_five_percent() -> None:
    assert probability(1.0, 1.3, (0.8, 1.3), "at_most") == pytest.approx(0.95, abs=1e-3)
    assert probability(1.0, 0.8, (0.8, 1.3), "at_most") == pytest.approx(0.05, abs=1e-3)
    assert canonical(quantile(0.5)) == pytest.approx(0, abs=1e-6)
