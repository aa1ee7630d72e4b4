"""Runs of Megatron-Bridge: the arguments of a recipe, held to the release's own configuration, and
what it has no recipe for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.orders import planned
from gpuplan.diagnostics import Diagnostic
from gpuplan.engines import megatron
from gpuplan.engines.launch import Indexed, Launch
from gpuplan.engines.start import shortcomings, start
from gpuplan.plan.model import Parallelism, Workload
from gpuplan.render.commented import Because
from tests.support.plans import read_plan
from tests.support.require import require
from tests.support.samples import training_plan
from tests.tools.parsers import hub, install
from tests.tools.program import ROOT

# Fields that recipes, scripts and documents of Megatron-Bridge set at tag v0.4.0 by these names.
NAMED = """
checkpoint.ckpt_format checkpoint.load checkpoint.most_recent_k checkpoint.pretrained_checkpoint
checkpoint.save checkpoint.save_interval comm_overlap.defer_embedding_wgrad_compute
comm_overlap.tp_comm_overlap dataset.data_path dataset.dataset_root ddp.average_in_collective
ddp.data_parallel_sharding_strategy ddp.grad_reduce_in_fp32
ddp.num_distributed_optimizer_instances ddp.use_distributed_optimizer ddp.use_megatron_fsdp
dist.use_megatron_fsdp model.account_for_embedding_in_pipeline_split
model.account_for_loss_in_pipeline_split model.calculate_per_token_loss
model.context_parallel_size model.expert_model_parallel_size model.expert_tensor_parallel_size
model.init_model_with_meta_device model.pipeline_model_parallel_size model.recompute_granularity
model.recompute_method model.recompute_num_layers model.seq_length model.sequence_parallel
model.tensor_model_parallel_size model.virtual_pipeline_model_parallel_size
optimizer.use_distributed_optimizer scheduler.lr_warmup_iters tokenizer.tokenizer_model
tokenizer.tokenizer_type train.global_batch_size train.micro_batch_size train.train_iters
"""
FIELDS = frozenset(NAMED.split())


def work(model: str, **changes: object) -> Workload:
    (made,) = training_plan().workloads
    assert made.model is not None
    assert made.training is not None
    run = replace(
        made.training,
        method="pretraining",
        sharding="zero1",
        optimizer="adamw",
        virtual_pipeline_stages=2,
        ends_are_layers=True,
        **changes,  # type: ignore[arg-type]
    )
    return replace(
        made,
        model=replace(made.model, identifier=model),
        engine=replace(made.engine, name="megatron-bridge", version="0.4.0"),
        precision="bf16",
        training=run,
        parallelism=Parallelism(
            tensor_parallel_size=4, pipeline_parallel_size=2, data_parallel_size=2
        ),
    )


def settings(made: Workload) -> tuple[list[str], dict[str, str]]:
    launch = start(made, first="first-host")
    assert isinstance(launch, Launch), launch
    plain = [a.value if isinstance(a, Because) else a for a in launch.arguments]
    words = [f"{a.before}#" if isinstance(a, Indexed) else str(a) for a in plain]
    script = next(n for n, word in enumerate(words) if word.endswith("run_recipe.py"))
    pairs = (tuple(word.split("=", 1)) for word in words[script + 1 :] if not word.startswith("--"))
    return words, dict(pairs)


def test_a_run_is_the_recipe_with_the_layout_of_the_plan() -> None:
    made = work("meta-llama/Llama-3.1-405B")
    words, fields = settings(made)
    assert words[0] == "torchrun"
    assert "--recipe=llama31_405b_pretrain_config" in words
    assert {"--nnodes=2", "--node-rank=#", "--master-addr=first-host"} <= set(words)
    assert set(fields) <= FIELDS
    assert fields["model.tensor_model_parallel_size"] == "4"
    assert fields["model.sequence_parallel"] == "true"
    assert fields["model.pipeline_model_parallel_size"] == "2"
    assert fields["model.virtual_pipeline_model_parallel_size"] == "2"
    # 126 layers do not divide by 4; with the embedding and the output layer, 128 do
    assert fields["model.account_for_embedding_in_pipeline_split"] == "true"
    assert fields["model.account_for_loss_in_pipeline_split"] == "true"
    assert made.training is not None
    assert fields["train.train_iters"] == str(made.training.steps)
    assert fields["train.global_batch_size"] == str(made.training.global_batch)
    assert fields["comm_overlap.tp_comm_overlap"] == "false"
    assert "dist.use_megatron_fsdp" not in fields


def test_whole_sharding_is_megatron_fsdp_with_its_own_checkpoints() -> None:
    made = work("Qwen/Qwen3-32B")
    assert made.training is not None
    _, fields = settings(replace(made, training=replace(made.training, sharding="zero3")))
    assert set(fields) <= FIELDS
    assert fields["ddp.data_parallel_sharding_strategy"] == "optim_grads_params"
    assert fields["checkpoint.ckpt_format"] == "fsdp_dtensor"
    assert "comm_overlap.tp_comm_overlap" not in fields  # its recipe has no such buffers


def test_products_of_8_bits_are_a_mixed_precision_of_the_release() -> None:
    made = work("meta-llama/Llama-3.1-405B")
    _, plain = settings(made)
    assert "mixed_precision" not in plain
    _, fields = settings(replace(made, precision="fp8"))
    assert fields.pop("mixed_precision") == "bf16_with_fp8_current_scaling_mixed"
    assert fields == plain


@pytest.mark.parametrize(
    ("sharding", "copies", "strategy"),
    [("zero2", None, "optim_grads"), ("hsdp", 2, "optim_grads_params")],
)
def test_gradients_and_groups_of_nodes_are_strategies_of_megatron_fsdp(
    sharding: str, copies: int | None, strategy: str
) -> None:
    made = work("Qwen/Qwen3-32B")
    assert made.training is not None
    run = replace(made.training, sharding=sharding)
    of = replace(made.parallelism, pipeline_parallel_size=1, state_copies=copies)
    _, fields = settings(replace(made, training=run, parallelism=of))
    assert set(fields) <= FIELDS
    assert fields["ddp.data_parallel_sharding_strategy"] == strategy
    assert fields.get("ddp.num_distributed_optimizer_instances") == (copies and str(copies))


def test_tuning_starts_from_weights_that_must_be_there() -> None:
    made = work("meta-llama/Llama-3.1-70B", dataset="org/dialogues")
    assert made.training is not None
    tuned = replace(made, training=replace(made.training, method="full"))
    words, fields = settings(tuned)
    assert "--recipe=llama31_70b_sft_config" in words
    assert fields["checkpoint.pretrained_checkpoint"] == megatron.pretrained(tuned)
    (said,) = shortcomings(tuned)
    assert fields["checkpoint.pretrained_checkpoint"] in said.message
    assert f"{fields['dataset.dataset_root']}/training.jsonl" in said.message
    assert "convert_checkpoints.py import --hf-model meta-llama/Llama-3.1-70B" in said.help


@pytest.mark.parametrize(
    ("model", "precision", "said"),
    [
        ("mistralai/Mixtral-8x7B-v0.1", "bf16", "has no recipe for mistralai/Mixtral-8x7B-v0.1"),
        ("meta-llama/Llama-3.1-405B", "fp16", "is started in bf16 or fp8 with adamw only"),
    ],
)
def test_what_no_recipe_runs_is_refused_with_its_layout(
    model: str, precision: str, said: str
) -> None:
    found = start(replace(work(model), precision=precision), first="first-host")
    assert isinstance(found, Diagnostic)
    assert found.rule == "GP016"
    assert said in found.message
    assert "tensor parallel 4, pipeline parallel 2, data parallel 2" in found.message
    assert "--plan-only" in found.help


TYPES = {
    "LlamaForCausalLM": "llama",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
}
# Nodes of 8 GPUs, tokens of a sequence, sequences of a step.
SHAPES = ((4, 8192, 64), (32, 32768, 128))


def manifest(model: str, task: str, nodes: int, sequence: int, batch: int) -> dict[str, Any]:
    tuned = task == "finetuning"
    told = {"sequence_length": sequence, "global_batch": batch}
    made_of = {"name": "example-org/corpus", "size": "8 GB"}
    run = {
        "name": "run",
        "task": task,
        "model": model,
        "precision": "bf16",
        "engine": {"name": "megatron-bridge"},
        "training": told | ({"epochs": 1} if tuned else {"tokens": 2e9}),
        "dataset": made_of | ({"tokens": 2e9} if tuned else {}),
    }
    platform = {
        "target": "kubernetes",
        "gpus": ["h100-sxm-80gb"],
        "node": {"gpus": 8, "cpu_cores": 112, "memory": "2 TiB", "count": nodes},
        "fabric": {"kind": "infiniband", "bandwidth_per_gpu": "400 Gb/s"},
        "storage": {"class": "shared", "shared": True, "bandwidth": "10 GB/s"},
    }
    head = {"apiVersion": "gpuplan.dev/v1", "name": "runs", "platform": platform}
    return head | {"workloads": [run]}


def runs() -> Iterator[Workload]:
    """Of the stacks, and of each model that has a recipe as it is planned on few and many nodes."""
    for stack in sorted((ROOT / "stacks").glob("*/plan.yaml")):
        yield from (w for w in read_plan(stack.parent).workloads if w.engine.name == megatron.NAME)
    for model, task, shape in itertools.product(
        megatron.RECIPES, ("training", "finetuning"), SHAPES
    ):
        plan = planned(manifest(model, task, *shape))
        yield from plan.workloads if plan else ()


def question(made: Workload) -> dict[str, Any]:
    words, _ = settings(made)
    script = next(n for n, word in enumerate(words) if word.endswith("run_recipe.py"))
    return {"words": words[script + 1 :], "processes": made.gpus_per_node * made.nodes_per_replica}


def wanted(made: Workload) -> dict[str, Any]:
    training, sizes, model = made.training, made.parallelism, made.model
    assert training is not None
    assert model is not None
    return {
        "tensor": sizes.tensor_parallel_size,
        "pipeline": sizes.pipeline_parallel_size,
        "virtual": training.virtual_pipeline_stages,
        "context": sizes.context_parallel_size,
        "expert": sizes.expert_parallel_size,
        "data": sizes.data_parallel_size,
        "sequence": training.sequence_length,
        "steps": training.steps,
        "batch": training.global_batch,
        "micro_batch": training.micro_batch,
        "recompute": None if training.recompute == "none" else training.recompute,
        "fsdp": training.sharding in megatron.FSDP,
        "dataset": [megatron.data(made)],
    }


@pytest.mark.parsers
def test_the_release_makes_the_planned_run_of_its_arguments(tmp_path: Path) -> None:
    """Its recipes, fields and checks of what goes with what, for as many processes as planned."""
    if missing := install.absent():
        require("parsers", missing)
    hub.write(tmp_path, TYPES, {(name, None) for name in (*megatron.RECIPES, *hub.RENAMED)})
    made = [*runs(), work("meta-llama/Llama-3.1-405B")]
    asked = [question(w) for w in made]
    broken = asked[-1] | {"words": [*asked[-1]["words"], "model.tensor_parallel=2"]}
    answers = install.ask(megatron.NAME, [*asked, broken], tmp_path)
    assert "tensor_parallel" in answers.pop()["error"]
    found = list(zip(made, answers, strict=True))
    assert len({w.model.identifier for w in made if w.model}) > len(megatron.RECIPES) / 2
    assert {w.training.method for w in made if w.training} == {"full", "pretraining"}
    assert [(w.model, asked[n], a) for n, (w, a) in enumerate(found) if "error" in a] == []
    for each, answer in found:
        assert {k: answer[k] for k in wanted(each)} == wanted(each), each.model
