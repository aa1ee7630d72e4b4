"""The formulas of a training run, line by line, on small numbers that differ.

What is on the right is the formula with the numbers in it: a product takes 2 FLOP, bf16 2 bytes,
fp32 4.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.sizing.kinds.training import needs
from gpuplan.sizing.memory.margin import margin
from gpuplan.sizing.memory.training import memory
from gpuplan.sizing.physics.training.time import Terms, time
from tests.support.formulas import agree

TRAINING = {
    "tokens": 64.0,
    "global_batch": 96.0,
    "data_parallel_size": 4.0,
    "micro_batch": 3.0,
    "gradient_accumulation_steps": 8.0,
    "trained_passes": 3.0,
    "recompute": 0.5,
    "passes": 3.5,
    "tensor_parallel_size": 2.0,
    "pipeline_parallel_size": 3.0,
    "context_parallel_size": 4.0,
    "expert_parallel_size": 5.0,
    "model_shards": 6.0,
    "virtual_stages": 2.0,
    "layers": 10.0,
    "whole_layers": 12.0,
    "expert_layers": 9.0,
    "prediction_layers": 1.0,
    "prediction_heads": 1.5,
    "rank_tokens": 20.0,
    "unrouted_parameters": 700.0,
    "routed_parameters": 300.0,
    "parameters": 1300.0,
    "trained_parameters": 50.0,
    "linear_parameters": 900.0,
    "expert_parameters_held": 100.0,
    "rank_parameters": 170.0,
    "frozen_bytes": 640.0,
    "peak": 1000.0,
    "compute": 0.5,
    "expert_compute": 0.25,
    "bf16_peak": 800.0,
    "bf16_compute": 0.4,
    "attention_compute": 0.3,
    "attention_recompute": 0.75,
    "bandwidth": 50.0,
    "vocabulary": 30.0,
    "hidden_size": 16.0,
    "full_width": 11.0,
    "window_width": 13.0,
    "sequence_length": 48.0,
    "attended_window": 18.0,
    "operand_factor": 1.5,
    "operand_width": 70.0,
    "elementwise_bytes": 14.0,
    "streams_factor": 1.2,
    "residual_streams": 4.0,
    "weight_traffic": 9.0,
    "routing_factor": 1.7,
    "logits_bytes": 7.0,
    "logits_seconds": 0.1,
    "adapter_factor": 2.2,
    "routed_width": 35.0,
    "exchanged_width": 15.0,
    "active_experts": 3.0,
    "mamba_bytes": 6.0,
    "mamba_width": 21.0,
    "tensor_exposed": 0.6,
    "context_bytes": 44.0,
    "inside_rate": 25.0,
    "network_rate": 5.0,
    "dispatch_exposed": 0.7,
    "remote_exposed": 0.8,
    "dispatch_bytes": 500.0,
    "expert_domains": 2.5,
    "domain_gpus": 4.0,
    "hop_overhead": 0.07,
    "last_stage": 0.9,
    "dequantize_seconds_each": 0.003,
    "fabric_rate": 2.0,
    "gpus_per_node": 24.0,
    "gpus": 64.0,
    "device_seconds": 3.0,
    "host_seconds": 0.9,
    "micro_seconds": 1.6,
    "bubble": 0.9,
    "compute_seconds": 14.0,
    "exchange_bytes": 400.0,
    "link_rate": 6.0,
    "hidden_part": 0.5,
    "gradients_exposed": 0.3,
    "exchange_seconds": 5.0,
    "update_factor": 1.3,
    "gradient_bytes_each": 4.0,
    "optimizer_bytes_each": 12.0,
    "optimizer_shards": 8.0,
    "update_seconds": 0.4,
    "step_overhead": 0.2,
    "scale_overhead": 0.05,
    "slower": 1.15,
    "roofline_seconds": 2.0,
    "modelled_step_seconds": 9.0,
    "step_correction": 0.9,
    "step_seconds": 8.5,
    "steps": 1000.0,
    "lost_share": 0.05,
}
MIXTURE = Terms(
    moe=True,
    adapter=False,
    quantized=True,
    exchange="weights",
    across=True,
    mamba=True,
    tensor=True,
    context=True,
    pipeline=True,
    expert=True,
)
RING = 3 / 4  # of 4 ranks


def test_the_seconds_of_a_micro_batch() -> None:
    agree(
        time(MIXTURE),
        TRAINING,
        {
            "gradient_accumulation_steps": 96 / (4 * 3),
            "passes": 3 + 0.5,
            "model_shards": 2 * 3,
            "rank_tokens": 64 / 4 * 1.1,
            "matmul_seconds": 2 * 700 * 20 * 3.5 / (1000 * 0.5 * 6),
            "head_seconds": 2 * 30 * 16 * 20 * 3 * 2.5 / (800 * 0.4 * 6),
            # a window of 18 tokens is less than half a sequence of 48
            "attention_seconds": 2 * (11 * 48 + 2 * 13 * 18) * 20 * 4.25 / (800 * 0.3 * 6),
            "expert_seconds": 2 * 300 * 20 * 3.5 / (1000 * 0.5 * 0.25 * 6),
            "rank_parameters": 1200 / 6 + 100 / (3 * 5),
            "operand_seconds": 1.5 * 2 * 70 * 20 * 3.5 / (6 * 50),
            "elementwise_seconds": 14 * 16 * 10 * 1.2**2 * 20 * 2.5 / (6 * 50),
            "weight_seconds": 9 * 170 / 50,
            "logits_seconds": 7 * 30 * 20 * 2.5 / (50 * 6),
            "routing_seconds": 1.7 * 2 * 35 * 20 * 2.5 / (6 * 50),
            "mamba_seconds": 6 * 21 * 20 * 3 / (6 * 50),
            # four gathers and four scatters of bf16 activations a layer
            "tensor_seconds": 0.6 * 8 * 2 * 16 * (1 / 2) * 20 * 10 / 3 / 25 * 1.25,
            "context_seconds": 44 * 20 * 3 * 10 / (3 * 25),
            "dispatch_bytes": 4 * 2 * 20 * 15 * 9 / 6,
            "expert_domains": 5 * 2 / 4,
            # of five ranks the four others, each with a chance of 1 - 0.8³ to hold one of three
            "dispatch_seconds": 0.7 * 500 * 4 * (1 - 0.8**3) / 25
            + 0.8 * 500 * 1.5 * (1 - 0.6**3) / 5,
            "hop_seconds": 0.07 * 2,
            "dequantize_seconds": 3 * 0.003 * 900,
            "micro_seconds": (3**3 + (0.9 * 12 / 3) ** 3) ** (1 / 3),
        },
    )


def test_all_stages_wait_for_the_one_with_the_output_layer() -> None:
    stages = TRAINING | {"head_seconds": 0.3, "pipeline_parallel_size": 4.0}
    agree(time(MIXTURE), stages | {"layers": 12.0}, {"last_seconds": 0.9 * (0.3 + 0.1) * 3})
    # the last of four has fewer of 14 layers, as many fewer as it takes
    agree(time(MIXTURE), stages | {"layers": 14.0}, {"last_seconds": 0.0})


def test_the_device_does_all_parts_of_a_micro_batch() -> None:
    parts = "matmul head attention expert operand elementwise weight logits routing mamba tensor"
    names = [f"{part}_seconds" for part in f"{parts} context dispatch hop last dequantize".split()]
    inputs = {name: 2.0**n for n, name in enumerate(names)}
    agree(time(MIXTURE), inputs, {"device_seconds": 2.0 ** len(names) - 1})


def test_the_seconds_of_a_step() -> None:
    agree(
        time(MIXTURE),
        TRAINING,
        {
            # three rings of 24 / (2 × 4) cards
            "link_rate": min(25, 2 * 3),
            "compute_seconds": (8 + 0.9 * 2 / 2) * 1.6,
            "exchange_bytes": 3 * 2 * 1300 / 6 * 8 * RING,
            "exchange_seconds": 400 / 6 - 0.5 * 14,
            "update_seconds": 1.3 * (2 + 4 + 12) * 170 / 8 / 50,
            "roofline_seconds": 2 * 1000 * 20 * 3.5 * 8 / (1000 * 6),
            "modelled_step_seconds": 1.15 * (14 + 5 + 0.4 + 0.2 + 0.05 * 3),
            "step_seconds": 0.9 * 9,
            "tokens_per_second": 96 * 48 / 8.5,
            "time_to_finish": 1000 * 8.5 * 1.05,
        },
    )


def terms(exchange: str, *, adapter: bool = False) -> Terms:
    return Terms(moe=False, adapter=adapter, quantized=False, exchange=exchange, across=False)


def test_the_seconds_of_a_step_of_few_gpus() -> None:
    agree(
        time(terms("gradients")),
        TRAINING | {"gpus": 2.0},
        {
            "rank_parameters": 1300 / 6,
            "compute_seconds": 8 * 1.6,
            "exchange_bytes": 2 * 2 * 170 * RING,
            "exchange_seconds": 0.3 * 400 / 6,
            "roofline_seconds": 2 * 700 * 20 * 3.5 * 8 / (1000 * 6),
            "modelled_step_seconds": 1.15 * (14 + 5 + 0.4 + 0.2),
        },
    )
    agree(time(terms("none")), TRAINING, {"exchange_seconds": 0.0})
    adapters, frozen = terms("adapters", adapter=True), terms("frozen", adapter=True)
    agree(
        time(adapters),
        TRAINING,
        {
            "adapter_seconds": 2.2 * 2 * 70 * 20 / (6 * 50),
            "exchange_bytes": 2 * 2 * 50 * RING,
            "exchange_seconds": 0.3 * 400 / 6,
            "modelled_step_seconds": 1.15 * (14 + 5 + 0.2 + 0.05 * 3),
        },
    )
    agree(time(frozen), TRAINING, {"exchange_bytes": 2 * 640 * 8 * RING})


GROUPS = TRAINING | {"state_copies": 4.0, "weight_shards": 5.0, "copied_bytes": 60.0}


def test_ranks_that_divide_gradients_sum_them_each_micro_batch() -> None:
    agree(time(terms("divided")), TRAINING, {"exchange_bytes": 2 * 170 * (8 + 1) * RING})


def test_groups_exchange_weights_inside_and_gradients_between_them() -> None:
    """64 GPUs are four groups; each has 16, which are 2 nodes of 8."""
    groups = replace(MIXTURE, exchange="copies")
    held = {**GROUPS, "gpus_per_node": 8.0, "group_nodes": 2.0}
    agree(
        time(groups),
        held,
        {
            "group_nodes": 64 / (4 * 8),
            "exchange_bytes": 3 * 2 * 1300 / 6 * 8 * (4 / 5),
            "copied_bytes": 2 * 2 * 1300 / (6 * 5) * (3 / 4),
            # over the nodes of a group, at 6 B/s; each GPU's card to the other groups, at 2
            "exchange_seconds": 400 / 6 - 0.5 * 14 + 0.3 * 60 / 2,
        },
    )
    inside = 400 / 25 - 0.5 * 14 + 0.3 * 60 / 2
    agree(time(groups), held | {"group_nodes": 1.0}, {"exchange_seconds": inside})
    agree(time(groups), held | {"link_rate": 50.0}, {"exchange_seconds": inside})
    hidden = {"hidden_part": 50.0, "fabric_rate": 99.0}
    agree(time(groups), held | hidden, {"exchange_seconds": 0.3 * 60 / 25})


def test_cards_of_a_node_carry_what_its_gpus_send_to_others() -> None:
    sent = GROUPS | {"group_nodes": 3.0, "node_gpus": 8.0, "data_bytes_per_s": 96.0}
    rings = 400 * 2 * 4
    agree(needs.RINGS, sent, {"ring_bytes": rings})
    agree(needs.COPIES, sent, {"ring_bytes": rings + 60 * 8})
    agree(needs.COPIES, sent | {"group_nodes": 1.0}, {"ring_bytes": 60 * 8})
    agree(needs.COPIES, sent | {"group_nodes": 1.5}, {"ring_bytes": rings / 2 + 60 * 8})
    agree(needs.STAGES, sent, {"stage_bytes": 2 * 2 * 16 * 20 / 2 * 2 * 8 * 8})
    agree(needs.EXCHANGED, sent, {"pcie_bytes_per_s": 400 / 8.5 + 96 / 64})


def test_no_bound_of_a_step_is_passed() -> None:
    """What hides costs nothing, not less; links are no faster than inside a node; no step beats its
    roofline; a short sequence has no window."""
    quick = TRAINING | {"link_rate": 1e6, "fabric_rate": 1e6, "gpus_per_node": 1.0}
    agree(time(MIXTURE), quick, {"exchange_seconds": 0.0, "link_rate": 25.0})
    lone = TRAINING | {"gpus_per_node": 1.0}
    agree(time(MIXTURE), lone, {"link_rate": 2.0})
    low = TRAINING | {
        "roofline_seconds": 99.0,
        "sequence_length": 20.0,
        "expert_parallel_size": 1.0,
    }
    agree(
        time(MIXTURE),
        low,
        {
            "step_seconds": 99.0,
            "modelled_step_seconds": 99.0,
            "attention_seconds": 2 * (11 * 20 + 2 * 13 * 10) * 20 * 4.25 / (800 * 0.3 * 6),
            "expert_domains": 1.0,
        },
    )
    many = TRAINING | {"active_experts": 10.0, "expert_domains": 1.0}
    agree(time(MIXTURE), many, {"dispatch_seconds": 0.7 * 500 * 4 * (1 - 0.8**10) / 25})


# --- memory of a training run ---------------------------------------------------------------------

HELD = TRAINING | {
    "local_parameters": 210.5,
    "group_parameters": 20.0,
    "weight_shards": 4.0,
    "gradient_shards": 4.0,
    "step_bytes_each": 6.0,
    "lora_rank": 8.0,
    "adapter_width": 9.0,
    "trained_parameters": 73.0,
    "other_parameters": 33.0,
    "frozen_bytes_each": 0.55,
    "mlp_matrices": 3.0,
    "expert_width": 2.0,
    "experts": 7.0,
    "loss_bytes": 10.0,
    "sequence_length": 32.0,
    "hidden_bytes_each": 34.0,
    "wide_bytes_each": 5.0,
    "mlp_width": 40.0,
    "checkpoint_bytes_each": 2.5,
    "layer_hidden_bytes_each": 17.0,
    "layer_wide_bytes_each": 8.0,
    "loss_output_bytes": 1000.0,
    "stored_bytes": 4000.5,
    "step_bytes": 300.0,
    "fixed_bytes": 100.0,
    "unpacked_copies": 1.5,
    "gathered_bytes": 111.0,
    "memory_correction": 1.1,
    "weights_bytes": 200.0,
    "gradients_bytes": 300.0,
    "optimizer_bytes": 400.0,
    "activations_bytes": 500.0,
    "own_bytes": 50.0,
    "gpu_memory": 1600.5,
    "memory_high": 1.21,
    "memory_z": 0.8225,
    "overhead_bytes": 160.0,
    "memory_bytes": 2000.0,
    "usable_fraction": 0.9374,
}
FULL = {"adapter": False, "quantized": False, "gathered": False, "recompute": "none"}
ROUTED = 3 * 16 * 2 * 7 * 9  # parameters of all experts


def test_states_of_experts_lie_on_the_gpus_that_hold_them() -> None:
    """Expert parallelism divides the experts once more than their replicas do, and not twice: all
    states together are twelve bytes of each weight."""
    states = memory(**FULL, parallel=True, moe=True)  # type: ignore[arg-type]
    sizes = {"tensor_parallel_size": 2.0, "pipeline_parallel_size": 3.0}
    dense, routed, ranks = 9000.0, float(ROUTED), 8.0
    for expert in (1.0, 4.0, 16.0):
        held = HELD | sizes | {"optimizer_shards": ranks, "expert_parallel_size": expert}
        got = states(held | {"parameters": dense + routed, "optimizer_bytes_each": 12.0})
        assert got["optimizer_bytes"] == pytest.approx(12 * (dense + routed) / (6 * ranks), abs=1)
    undivided = HELD | sizes | {"optimizer_shards": 1.0, "expert_parallel_size": 4.0}
    got = states(undivided | {"parameters": dense + routed, "optimizer_bytes_each": 12.0})
    assert got["optimizer_bytes"] == pytest.approx(12 * (dense / 6 + routed / (3 * 4)), abs=1)


def test_states_of_a_full_training_run() -> None:
    agree(
        memory(**FULL),  # type: ignore[arg-type]
        HELD,
        {
            "local_parameters": 1300.0,
            "weights_bytes": 106,  # 2 × 210.5 / 4 = 105.25, and so on
            "gradients_bytes": 211,
            "optimizer_bytes": 316,
            "step_bytes": 6 * 20.0,
            "own_bytes": 100.0,
            "usable_bytes": 1874.0,
            "gpu_memory": 1.1 * 1450,
            "overhead_bytes": 361,  # ⌈1600.5 × √1.21⌉ - 1400
            "used_bytes": 1560.0,
        },
    )
    few = HELD | {"group_parameters": 1e6, "memory_high": 0.01}
    sheet = memory(**FULL)  # type: ignore[arg-type]
    agree(sheet, few, {"step_bytes": 6 * 210.5 / 8, "overhead_bytes": 0.0})


def test_states_are_divided_over_groups() -> None:
    divided = FULL | {"parallel": True}
    agree(
        memory(**divided),  # type: ignore[arg-type]
        HELD,
        {"local_parameters": 1300 / 6},
    )
    agree(
        memory(**divided, moe=True),  # type: ignore[arg-type]
        HELD | {"parameters": 9000.0},
        {"local_parameters": (9000 - ROUTED) / 6 + ROUTED / (5 * 3)},
    )


def test_states_of_adapters() -> None:
    adapters = FULL | {"adapter": True}
    agree(
        memory(**adapters),  # type: ignore[arg-type]
        HELD,
        {
            "trained_parameters": 8 * 9,
            "frozen_bytes": 900 * 0.55 + 33 * 2,
            "weights_bytes": 197,  # (640 + 2 × 73) / 4 = 196.5
            "gradients_bytes": 73,
            "optimizer_bytes": 110,  # 12 × 73 / 8 = 109.5
            "step_bytes": 6 * 73 / 8,
        },
    )
    agree(
        memory(**adapters, parallel=True),  # type: ignore[arg-type]
        HELD,
        # ⌈(640 + 146 / 6) / 4⌉: frozen weights are divided with the adapters
        {"gradients_bytes": 13, "optimizer_bytes": 19, "step_bytes": 6 * 73 / 6 / 8},
    )


def test_activations_of_a_training_run() -> None:
    width = 34 * 16 + 5 * 40
    full = FULL | {"recompute": "full"}
    selective = FULL | {"recompute": "selective"}
    layer = (17 * 16 + 8 * 40) * 64
    stored = {
        "none": (FULL, 10 * 64 * width + 1000),
        "full": (full, 10 * 64 * 2.5 * 16 + layer),
        "selective": (selective, 10 * 64 * 4.5 * 16 + layer),
    }
    for shape, expected in stored.values():
        sheet = memory(**shape)  # type: ignore[arg-type]
        agree(sheet, HELD, {"stored_bytes": expected})
        agree(
            sheet,
            HELD,
            {"tokens": 3 * 32, "loss_output_bytes": 10 * 30 * 64, "activations_bytes": 4001},
        )
        agree(sheet, HELD | {"step_bytes": 5000.5}, {"activations_bytes": 5001})
    sheet = memory(**full)  # type: ignore[arg-type]
    loss = HELD | {"loss_output_bytes": 1e6}
    agree(sheet, loss, {"stored_bytes": 10 * 64 * 2.5 * 16 + 1e6})


def test_activations_are_divided_and_wait_in_a_pipeline() -> None:
    """Over 2 × 4 GPUs; of 3 stages, each cut in two, the first keeps 1 + 2 / 6 micro-batches."""
    sheet = memory(**FULL, parallel=True)  # type: ignore[arg-type]
    kept = 10 * 64 * (34 * 16 + 5 * 40) / 8
    agree(
        sheet,
        HELD,
        {"stored_bytes": kept * (1 + 2 / 6) + 1000, "loss_output_bytes": 10 * 30 * 64 / 8},
    )
    agree(sheet, HELD | {"virtual_stages": 1.0}, {"stored_bytes": kept + 1000})
    agree(sheet, HELD | {"virtual_stages": 4.0}, {"stored_bytes": kept * (1 + 2 / 12) + 1000})
    full = memory(**FULL | {"recompute": "full"}, parallel=True)  # type: ignore[arg-type]
    layer = (17 * 16 + 8 * 40) * 64 / 8
    stages = HELD | {"virtual_stages": 1.0, "loss_output_bytes": 1.0}
    agree(full, stages, {"stored_bytes": 10 * 64 * 2.5 * 16 / 8 + layer})


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 100.0),
        ({"quantized": True}, 100 + 2 * 16 * 40 * 1.5),
        ({"gathered": True}, 100 + 2 * (3 * 210.5 / 10 + 30 * 16)),
        ({"gathered": True, "adapter": True}, 100 + 3 * 640 / 10),
    ],
)
def test_what_a_framework_takes(changes: dict[str, bool], expected: float) -> None:
    sheet = memory(**FULL | changes)  # type: ignore[arg-type]
    agree(sheet, HELD, {"own_bytes": expected})


def test_gathered_layers_of_adapters_lie_in_a_buffer() -> None:
    sheet = memory(**FULL | {"gathered": True, "adapter": True})  # type: ignore[arg-type]
    agree(sheet, HELD | {"frozen_bytes": 10.0}, {"own_bytes": 100 + 111})


def test_memory_that_is_not_exceeded() -> None:
    sheet = margin("weights_bytes + kv_cache_bytes")
    held = HELD | {"kv_cache_bytes": 700.0}
    agree(sheet, held, {"gpu_memory": 950.0, "overhead_bytes": 861.0, "used_bytes": 1060.0})
