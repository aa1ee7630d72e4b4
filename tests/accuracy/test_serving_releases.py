"""What a release of an engine fuses and overlaps, and what a step waits for of experts that lie
whole on their ranks."""

from __future__ import annotations

import pytest

from gpuplan.accuracy.metrics.serving import Served, served
from gpuplan.sizing.data import serving as constants
from tests.accuracy.test_accuracy_serving import case


def point(name: str, **row: str) -> Served:
    found = served(case(name, **row))
    assert isinstance(found, Served)
    return found


def unfused(name: str, release: str, engine: str = "sglang", **row: str) -> float | None:
    scope = point(name, engine=f"{engine} {release}", **row).replica.scope
    return scope["unfused_seconds"].value if "unfused_seconds" in scope else None


def test_an_exchange_and_its_norm_are_one_kernel_where_sglang_lists_the_architecture() -> None:
    apart = constants.UNFUSED_SECONDS
    h200 = {"gpu": "h200-sxm-141gb", "tp": "8"}
    assert unfused("qwen3-235b-a22b", "0.5.6", **h200) == apart
    assert unfused("qwen3-235b-a22b", "0.5.9.post1", **h200) is None
    assert unfused("llama3.1-70b", "0.5.19", **h200) == apart
    assert unfused("llama3.1-70b", "0.5.19", gpu="h200-sxm-141gb", tp="1") is None
    a100 = {"gpu": "a100-sxm-80gb", "tp": "8"}
    assert unfused("qwen3-235b-a22b", "0.5.9", **a100) == apart


def test_steps_of_a_model_that_is_not_listed_take_longer_by_its_exchanges() -> None:
    row = {"gpu": "h200-sxm-141gb", "tp": "8", "batch": "1"}
    old = point("qwen3-235b-a22b", engine="sglang 0.5.6", **row).replica.modelled(1.0)
    new = point("qwen3-235b-a22b", engine="sglang 0.5.9", **row).replica.modelled(1.0)
    longer = old["decode_seconds"] - new["decode_seconds"]
    assert longer == pytest.approx(2 * 94 * constants.UNFUSED_SECONDS)


@pytest.mark.parametrize(
    ("gpu", "release", "dp", "fused"),
    [
        ("h100-sxm-80gb", "0.16.0", "1", False),
        ("h100-sxm-80gb", "0.17.1", "1", True),
        ("h100-sxm-80gb", "0.19.0", "2", False),
        ("h100-sxm-80gb", "0.21.0", "2", True),
        ("b300-sxm-288gb", "0.18.0", "1", False),
        ("b300-sxm-288gb", "0.19.0", "1", True),
        ("a100-sxm-80gb", "0.21.0", "1", False),
        ("h100-sxm-80gb", "nightly-5b8c", "1", False),
    ],
)
def test_vllm_fuses_an_exchange_and_its_norm_from_a_release_on(
    gpu: str, release: str, dp: str, *, fused: bool
) -> None:
    """vllm-project/vllm#34299, #34392, #37755, #41458."""
    found = unfused("qwen3-235b-a22b", release, engine="vllm", gpu=gpu, tp="4", dp=dp)
    assert found == (None if fused else constants.UNFUSED_SECONDS)
    assert unfused("qwen3-235b-a22b", release, engine="vllm", gpu=gpu, tp="1") is None


def test_norms_over_the_heads_of_all_gpus_are_one_exchange_more_in_each_layer() -> None:
    row = {"gpu": "h100-sxm-80gb", "engine": "vllm 0.20.0", "precision": "fp8", "batch": "1"}
    for tensor, exchanges in (("1", None), ("4", 62.0)):
        scope = point("minimax-m2.5", **row, tp=tensor).replica.scope
        found = scope.get("unfused_exchanges")
        assert (found.value if found else None) == exchanges
    old = point("minimax-m2.5", **{**row, "engine": "vllm 0.16.0"}, tp="4").replica.scope
    assert old["unfused_exchanges"].value == 3 * 62


@pytest.mark.parametrize(
    ("engine", "gpu", "part"),
    [
        ("vllm 0.17.1", "h200-sxm-141gb", 1.0),
        ("vllm 0.18.0", "h200-sxm-141gb", constants.SCALED_WITHIN),
        ("sglang 0.5.9", "mi300x-192gb", 1.0),
        ("sglang 0.5.10", "mi300x-192gb", constants.SCALED_WITHIN),
        ("sglang 0.5.10", "h200-sxm-141gb", 1.0),
    ],
)
def test_a_release_scales_inputs_within_other_kernels(engine: str, gpu: str, part: float) -> None:
    """vllm-project/vllm#27883, #36551; sgl-project/sglang#12689, #18242."""
    replica = point("qwen3-235b-a22b", engine=engine, gpu=gpu, precision="fp8", tp="8").replica
    name = engine.split(maxsplit=1)[0]
    usual = constants.VENDOR["amd"] if gpu.startswith("mi") else constants.ENGINE[name]
    assert replica.scope["scaling_overhead"].value == pytest.approx(
        usual["scaling_overhead"] * part
    )


@pytest.mark.parametrize(
    ("name", "gpu", "engine", "precision", "longer"),
    [
        ("qwen3-235b-a22b", "mi300x-192gb", "sglang 0.5.7", "fp8", True),
        ("qwen3-235b-a22b", "mi300x-192gb", "sglang 0.5.12", "fp8", False),
        ("qwen3-235b-a22b", "mi300x-192gb", "sglang 0.5.7", "bf16", False),
        ("qwen3-235b-a22b", "h200-sxm-141gb", "sglang 0.5.7", "fp8", False),
        ("qwen3-coder-480b-a35b", "mi300x-192gb", "sglang 0.5.12", "fp8", True),
        ("minimax-m2.5", "mi300x-192gb", "vllm 0.20.0", "fp8", True),
        ("minimax-m2.5", "mi355x-288gb", "vllm 0.20.0", "fp8", False),
        ("deepseek-r1", "mi325x-256gb", "sglang 0.5.19", "fp8", False),
    ],
)
def test_prompts_take_longer_on_amds_gpus_where_nobody_tuned_their_products(
    name: str, gpu: str, engine: str, precision: str, *, longer: bool
) -> None:
    """Only those that are scaled in blocks, in shapes that AITER's tables do not have."""
    row = {"gpu": gpu, "engine": engine, "precision": precision, "tp": "8"}
    replica = point(name, **row).replica
    factor = replica.scope["prompt_factor"].value if "prompt_factor" in replica.scope else None
    assert factor == (constants.VENDOR["amd"]["untuned_prompts"] if longer else None)


def test_on_amds_gpus_prompts_stall_others_for_longer_but_take_no_longer_themselves() -> None:
    """A kernel of the stand-in's that takes as long stalls running tokens by more."""
    amd, usual = (
        point("qwen3-235b-a22b", gpu=gpu, tp="8", engine="sglang 0.5.12", input_len="8192").replica
        for gpu in ("mi300x-192gb", "h200-sxm-141gb")
    )
    more = amd.scope["interference"].value / usual.scope["interference"].value
    assert more == pytest.approx(constants.VENDOR["amd"]["interference"])
    busy = amd.modelled(64.0)
    stalled = busy["prompt_work_seconds"] / busy["prefill_work_seconds"]
    assert stalled == pytest.approx(amd.scope["interference"].value)


@pytest.mark.parametrize(
    ("engine", "mixed"),
    [
        ("vllm 0.7.3", False),
        ("vllm 0.8.0", True),
        ("trtllm 1.1.0rc2", True),
        ("sglang 0.5.12", False),
    ],
)
def test_a_prompt_stalls_others_by_what_it_adds_where_an_engine_mixes_steps(
    engine: str, *, mixed: bool
) -> None:
    """Beside 64 that decode it reads no weights of its own; in a step of its own it does."""
    row = {"tp": "1", "gpu": "h100-sxm-80gb", "engine": engine, "input_len": "256"}
    times = point("llama3.1-8b", **row).replica.modelled(64.0)
    weights = 8.0e9 / 3.35e12  # bytes of fp8 over the memory's rate
    growth = times["growth_seconds"]
    assert growth < times["prefill_work_seconds"] - weights / 2 if mixed else growth > weights
    assert growth > 256 * 2 * 8.0e9 / 1979e12  # no faster than at the peak


def test_from_0_14_on_vllm_waits_for_less_of_its_hosts_work() -> None:
    own = constants.ENGINE["vllm"]["sequence_overhead"]
    for release, part in (("0.13.0", 1.0), ("0.14.0", constants.OVERLAPPED), ("nightly-5b8c", 1.0)):
        scope = point("llama3.1-70b", engine=f"vllm {release}").replica.scope
        assert scope["sequence_overhead"].value == pytest.approx(own * part)
    staged = {"tp": "4", "pp": "2", "n_gpus": "8"}
    for release, part in (("0.14.1", 1.0), ("0.15.0", constants.OVERLAPPED)):
        scope = point("llama3.1-70b", engine=f"vllm {release}", **staged).replica.scope
        assert scope["sequence_overhead"].value == pytest.approx(own * part)


def test_the_wait_for_the_rank_with_the_most_experts_is_in_their_kernel_and_not_added_to_it() -> (
    None
):
    """MiniMax-M2 in fp8 blocks on eight H100, whole experts, vLLM: microseconds of a layer for so
    many tokens in aiconfigurator's tables, of the rank with the most."""
    row = {"gpu": "h100-sxm-80gb", "tp": "8", "ep": "8", "precision": "fp8", "engine": "vllm 0.20"}
    replica = point("minimax-m2.5", **row).replica
    for tokens, measured in ((1, 34.6), (16, 105.8), (64, 164.2), (256, 192.6)):
        step = replica.steps(float(tokens))[0]
        seconds = step["expert_seconds"] / step["expert_layers"]
        assert seconds == pytest.approx(measured * 1e-6, rel=0.13)
    seconds = [replica.steps(float(load))[0]["seconds"] for load in range(1, 257)]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize(
    ("release", "told", "length", "graphs"),
    [
        ("0.7.3", "", "128", False),
        ("0.9.2", "at most 64 sequences", "512", True),
        ("0.20.0", "at most 64 sequences", "128", True),
        ("0.20.0", "at most 64 sequences", "129", False),
        ("0.20.0", "more at once than the 10 sequences the server takes", "128", False),
        ("0.20.0", "", "512", True),
        ("0.20.0", "", "513", False),
        ("nightly-5b8c", "", "128", False),
    ],
)
def test_a_short_prompt_is_graphs_where_its_server_has_any_as_large(
    release: str, told: str, length: str, *, graphs: bool
) -> None:
    """Of a release, and from 0.10 on of twice the sequences that the server was told to take."""
    row = {"engine": f"vllm {release}", "notes": told, "input_len": length, "tp": "8"}
    replica = point("llama3.1-70b", **row).replica
    seconds = replica.modelled(1.0)["prefill_launch_seconds"]
    each = constants.PIECE_SECONDS if graphs else constants.ENGINE["vllm"]["eager_seconds"]
    assert seconds == pytest.approx(80 * each)
