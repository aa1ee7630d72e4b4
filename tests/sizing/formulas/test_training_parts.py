"""How a training run is divided, how fast its GPU is, and the widths of its model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.sizing.data.training_speed import CONSTANTS
from gpuplan.sizing.model import widths
from gpuplan.sizing.physics.training.division import Division, divisors
from gpuplan.sizing.physics.training.speed import (
    DISPATCHED,
    GRAPHS,
    LATE,
    MIDDLE,
    MIDDLE_ROUND,
    Traits,
    doubt,
    factors,
    slower,
    supported,
    traits,
    weight_traffic,
)
from tests.support.models import transformer
from tests.support.sizing_cases import offer

H100 = offer("h100-sxm-80gb").gpu
B200 = offer("b200-sxm-180gb").gpu


# --- division -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sharding", "shards"),
    [("none", (1, 1, 1)), ("zero1", (1, 1, 4)), ("zero2", (1, 4, 4)), ("zero3", (4, 4, 4))],
)
def test_a_stage_of_zero_divides_what_it_says(
    sharding: str, shards: tuple[float, float, float]
) -> None:
    division = Division(48, sharding, "none", tensor=2, pipeline=3, context=2)  # type: ignore[arg-type]
    assert division.replicas == 4
    scope = {name: quantity.value for name, quantity in division.scope.items()}
    names = ("weight_shards", "gradient_shards", "optimizer_shards")
    assert tuple(scope[name] for name in names) == shards
    assert (scope["gpus"], scope["data_parallel_size"]) == (48, 4)


@pytest.mark.parametrize(
    ("sharding", "gpus", "full", "adapters"),
    [
        ("zero3", 1, "none", "none"),
        ("zero3", 2, "weights", "frozen"),
        ("zero2", 2, "divided", "adapters"),
        ("zero1", 2, "gradients", "adapters"),
        ("hsdp", 2, "copies", "frozen"),
        ("none", 2, "gradients", "adapters"),
    ],
)
def test_ranks_send_each_other_what_they_divide(
    sharding: str, gpus: int, full: str, adapters: str
) -> None:
    division = Division(gpus, sharding, "none")  # type: ignore[arg-type]
    assert division.exchange(adapter=False) == full
    assert division.exchange(adapter=True) == adapters


@pytest.mark.parametrize(
    ("recompute", "passes"), [("none", (0, 0)), ("selective", (1, 0)), ("full", (1, 1))]
)
def test_full_recomputation_repeats_attention_too(
    recompute: str, passes: tuple[float, float]
) -> None:
    scope = Division(1, "none", recompute).scope  # type: ignore[arg-type]
    assert (scope["recompute"].value, scope["attention_recompute"].value) == passes


def test_divisors() -> None:
    assert divisors(12, 6) == (1, 2, 3, 4, 6)
    assert divisors(4, 100) == (1, 2, 4)
    assert divisors(7, 1) == (1,)


# --- speed ----------------------------------------------------------------------------------------

# Numbers that multiply to something of their own.
KNOWN = {name: 2.0 + n / 7 for n, name in enumerate(CONSTANTS)}


def of(**changes: object) -> Traits:
    known = traits(
        transformer("meta-llama/Llama-3.1-8B"),
        H100,
        "bf16",
        "trainer",
        adapter=False,
        quantized=False,
        many=False,
    )
    return replace(known, **changes)  # type: ignore[arg-type]


def test_the_traits_of_a_run() -> None:
    dense = of()
    assert (dense.generation, dense.stand_in, dense.gpu) == ("hopper", "", "h100-sxm-80gb")
    assert (dense.capability, dense.superchip) == ("9.0", False)
    assert (dense.mixture, dense.hybrid, dense.release) == (False, False, MIDDLE)
    fixed = {"adapter": False, "quantized": False, "many": False}
    mixture = traits(transformer("deepseek-ai/DeepSeek-V3"), H100, "fp8", "trainer", **fixed)
    assert (mixture.mixture, mixture.precision) == (True, "fp8")


def test_the_rates_of_a_plain_run() -> None:
    plain = factors(of(), KNOWN)
    assert plain["compute"] == plain["bf16_compute"] == KNOWN["compute.hopper.bf16"]
    assert plain["attention_compute"] == KNOWN["attention.hopper"]
    assert plain["operand_factor"] == KNOWN["operands.hopper"]
    assert plain["elementwise_bytes"] == KNOWN["elementwise"]
    assert plain["expert_compute"] == KNOWN["expert.bf16"]
    assert plain["host_seconds"] == KNOWN["host.full"]
    assert plain["slower"] == KNOWN["trainer"]


@pytest.mark.parametrize(
    ("changes", "bytes_each"),
    [
        ({}, 2 * 2 + 2 * 4),  # read twice in bf16, and an fp32 gradient read and written
        ({"framework": "megatron-bridge"}, 2 * 2 + 2 * 2),
        ({"framework": "mlperf", "precision": "fp8"}, 2 * 1 + 2 * 2),
        ({"framework": "mlperf", "precision": "nvfp4"}, 2 * (0.5 + 1 / 16) + 2 * 2),
        ({"adapter": True}, 2 * 2),
        ({"adapter": True, "precision": "fp8"}, 2 * 1),
    ],
)
def test_a_micro_batch_reads_weights_and_adds_to_gradients(
    changes: dict[str, object], bytes_each: float
) -> None:
    assert weight_traffic(of(**changes)) == pytest.approx(bytes_each)


@pytest.mark.parametrize(
    ("changes", "early"),
    [
        ({"framework": "megatron-bridge", "release": 1.0}, True),
        ({"framework": "megatron-bridge", "release": 2.0}, False),
        ({"framework": "mlperf", "release": LATE}, True),
        ({"framework": "mlperf", "release": 6.0}, False),
        ({"framework": "torchtitan"}, False),
    ],
)
def test_blackwell_had_slower_kernels_of_attention_at_first(
    changes: dict[str, object], early: bool
) -> None:
    rate = factors(of(generation="blackwell", capability="", **changes), KNOWN)
    slower = KNOWN["attention.early.blackwell"] if early else 1.0
    assert rate["attention_compute"] == pytest.approx(KNOWN["attention.blackwell"] * slower)
    old = factors(of(**changes), KNOWN)
    assert old["attention_compute"] == KNOWN["attention.hopper"], "Hopper's were known"


def test_low_precision_is_faster_and_casts() -> None:
    low = factors(of(precision="fp8", mixture=True), KNOWN)
    assert low["compute"] == KNOWN["compute.hopper.fp8"]
    assert low["bf16_compute"] == KNOWN["compute.hopper.bf16"]
    assert low["operand_factor"] == KNOWN["operands.hopper"] * KNOWN["cast"]
    assert low["elementwise_bytes"] == KNOWN["elementwise"] * KNOWN["elementwise_mixture"]
    assert low["expert_compute"] == KNOWN["expert"]
    four = factors(of(generation="blackwell", precision="nvfp4"), KNOWN)
    assert four["operand_factor"] == KNOWN["operands.blackwell"] * KNOWN["cast.nvfp4"]


def test_siblings_of_a_generation_are_faster() -> None:
    b300 = of(generation="blackwell", capability="10.3", superchip=True, precision="nvfp4")
    faster = KNOWN["capability.10.3"] * KNOWN["superchip.blackwell"]
    rates = factors(b300, KNOWN)
    assert rates["bf16_compute"] == pytest.approx(KNOWN["compute.blackwell.bf16"] * faster)
    assert rates["attention_compute"] == pytest.approx(KNOWN["attention.blackwell"] * faster)
    higher = KNOWN["capability.10.3.nvfp4"]
    assert rates["compute"] == pytest.approx(KNOWN["compute.blackwell.nvfp4"] * faster * higher)
    amd = factors(of(generation="cdna3", capability="", gpu="mi325x-256gb"), KNOWN)
    assert amd["compute"] == KNOWN["compute.cdna3.bf16"] * KNOWN["gpu.mi325x-256gb"]
    old = factors(of(framework="llm-foundry"), KNOWN)
    assert old["attention_compute"] == KNOWN["attention.hopper"] * KNOWN["foundry_attention"]


BRIDGE = {"framework": "megatron-bridge", "mixture": True}


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"adapter": True}, ("host.lora",)),
        ({"adapter": True, "quantized": True}, ("host.qlora",)),
        (BRIDGE, ("host.experts",)),
        (BRIDGE | {"release": GRAPHS}, ("host.experts", "host.graphs")),
        (BRIDGE | {"release": GRAPHS - 0.01}, ("host.experts",)),
        (BRIDGE | {"superchip": True}, ("host.experts",)),
        (
            BRIDGE | {"superchip": True, "generation": "blackwell"},
            ("host.experts.superchip.blackwell",),
        ),
    ],
)
def test_a_host_feeds_the_gpu_in_its_own_time(
    changes: dict[str, object], names: tuple[str, ...]
) -> None:
    expected = 1.0
    for name in names:
        expected *= KNOWN[name]
    assert factors(of(**changes), KNOWN)["host_seconds"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changes", "plain"),
    [
        ({"release": DISPATCHED - 0.01}, True),
        ({"release": DISPATCHED}, False),
        ({"release": DISPATCHED - 0.01, "superchip": True}, False),
        ({"release": DISPATCHED - 0.01, "capability": "9.0"}, False),
        ({"release": DISPATCHED - 0.01, "capability": "8.0"}, False),
        ({"release": DISPATCHED - 0.01, "framework": "mlperf"}, False),
    ],
)
def test_experts_of_other_nodes_were_reached_by_plain_exchanges_at_first(
    changes: dict[str, object], plain: bool
) -> None:
    """Of Megatron-Bridge on Blackwell's HGX; others were known by capability."""
    rates = factors(of(**{**BRIDGE, "capability": "10.0", **changes}), KNOWN)
    assert rates["remote_exposed"] == KNOWN["remote.plain" if plain else "remote"]


def test_the_host_of_other_frameworks_is_no_limit() -> None:
    for framework in ("torchtune", "megatron-bridge", "mlperf"):
        assert factors(of(framework=framework), KNOWN)["host_seconds"] == 0


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, KNOWN["trainer"]),
        ({"many": True}, KNOWN["trainer"]),
        ({"adapter": True}, KNOWN["trainer"] * KNOWN["trainer_adapter"]),
        (
            {"adapter": True, "many": True},
            KNOWN["trainer"] * KNOWN["trainer_adapter"] * KNOWN["trainer_parallel"],
        ),
        ({"framework": "other"}, 1.0),
        ({"framework": "other", "adapter": True}, KNOWN["adapter"]),
        ({"framework": "torchtune"}, KNOWN["torchtune"]),
        ({"framework": "torchtune", "adapter": True}, KNOWN["torchtune"] * KNOWN["adapter"]),
        ({"framework": "mlperf", "release": LATE}, KNOWN["mlperf"]),
        (
            {"framework": "mlperf", "release": LATE, "generation": "blackwell"},
            KNOWN["mlperf"] / KNOWN["mlperf_late.blackwell"],
        ),
        (
            {"framework": "mlperf", "release": LATE - 0.1, "generation": "blackwell"},
            KNOWN["mlperf"],
        ),
        ({"framework": "megatron-bridge"}, 1.0),
        ({"framework": "megatron-bridge", "release": MIDDLE + 2}, 1 / KNOWN["release"] ** 2),
        (BRIDGE | {"release": MIDDLE - 1}, KNOWN["release_mixture"]),
        (
            BRIDGE | {"release": GRAPHS, "generation": "blackwell", "asked": "mxfp8"},
            1 / KNOWN["release_mixture"] ** (GRAPHS - MIDDLE) / KNOWN["graphs.blackwell"],
        ),
        (
            BRIDGE
            | {"release": GRAPHS, "generation": "blackwell", "asked": "mxfp8", "hybrid": True},
            1 / KNOWN["release_mixture"] ** (GRAPHS - MIDDLE),
        ),
        (
            BRIDGE | {"release": GRAPHS, "generation": "blackwell", "asked": "nvfp4"},
            1 / KNOWN["release_mixture"] ** (GRAPHS - MIDDLE),
        ),
        (
            {"framework": "mlperf", "release": MIDDLE_ROUND - 1},
            KNOWN["mlperf"] * KNOWN["mlperf_early"] ** 10,
        ),
        (
            {"framework": "torchtitan", "precision": "fp8", "eager": True},
            KNOWN["torchtitan"] * KNOWN["torchtitan.fp8"] * KNOWN["eager"],
        ),
        ({"framework": "other", "power": 0.5}, 2 ** KNOWN["power"]),
    ],
)
def test_a_framework_slows_a_step(changes: dict[str, object], expected: float) -> None:
    assert slower(of(**changes), KNOWN) == pytest.approx(expected)


def test_a_run_of_the_trainer_on_several_gpus_is_doubted() -> None:
    """By what adapters lose there: these may lose nothing, full runs as much."""
    lost = CONSTANTS["trainer_parallel"]
    assert doubt(of()) == (1, 1)
    assert doubt(of(many=True)) == (1, lost)
    assert doubt(of(many=True, adapter=True)) == (1 / lost, 1)
    assert doubt(of(many=True, framework="torchtune")) == (1, 1)


def test_a_precision_that_was_not_measured_counts_as_the_next() -> None:
    assert supported(H100, "nvfp4", mixture=False) == "fp8"
    assert supported(B200, "nvfp4", mixture=False) == "nvfp4"
    assert supported(B200, "nvfp4", mixture=True) == "mxfp8"
    assert supported(offer("a100-sxm-80gb").gpu, "fp8", mixture=False) == "bf16"
    assert supported(H100, "bf16", mixture=True) == "bf16"


# --- widths ---------------------------------------------------------------------------------------


def test_the_widths_of_llama_8b() -> None:
    """4,096 wide; 32 layers, 32 heads of 128, 8 of keys and values, MLPs of 14,336."""
    got = {
        name: quantity.value
        for name, quantity in widths.inputs(transformer("meta-llama/Llama-3.1-8B")).items()
    }
    attention = 2 * (4096 + 4096) + 2 * (4096 + 1024)
    mlp = 3 * (4096 + 14336)
    assert got["adapter_width"] == got["operand_width"] == 32 * (attention + mlp)
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
    assert got["unrouted_parameters"] == got["linear_parameters"] == 32 * layer
    assert (got["full_width"], got["window_width"]) == (32 * 32 * 128, 0)
    assert (got["whole_layers"], got["residual_streams"], got["mamba_width"]) == (32, 1, 0)
    assert "routed_parameters" not in got


def test_the_widths_of_deepseek_v3() -> None:
    """7,168 wide, 61 layers, 58 with 256 experts of 2,048, 8 of them and a shared one a token."""
    got = {
        name: quantity.value
        for name, quantity in widths.inputs(transformer("deepseek-ai/DeepSeek-V3")).items()
    }
    one = 58 * 3 * 7168 * 2048
    assert got["routed_parameters"] == 8 * one
    assert got["expert_parameters_held"] == 256 * one
    assert got["routed_width"] == 58 * 3 * 8 * (7168 + 2048)
    assert (got["exchanged_width"], got["active_experts"], got["expert_layers"]) == (7168, 8, 58)
    assert got["full_width"] == 61 * 128 * (128 + 64 + 128) / 2
    key, value = 128 * (128 + 64), 128 * (128 + 128)
    attention = (7168 + 1536) + (1536 + key) + (7168 + 576) + (512 + value) + (128 * 128 + 7168)
    mlps = 3 * 3 * (7168 + 18432) + 58 * 3 * (7168 + 2048)
    assert got["adapter_width"] == 61 * attention + mlps
    products = 7168 * 1536 + 1536 * key + 7168 * 576 + 512 * value + 128 * 128 * 7168
    dense = 61 * products + 3 * 3 * 7168 * 18432 + one
    assert got["unrouted_parameters"] == pytest.approx(dense + 7168 * 256 * 58)
