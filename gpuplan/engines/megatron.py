"""Megatron-Bridge: the recipe of a model, and what the plan sets of its configuration.

A run is `scripts/training/run_recipe.py` under torchrun; any field of the recipe's configuration is
an argument `KEY=VALUE`. Source: NVIDIA-NeMo/Megatron-Bridge at tag v0.4.0 (scripts/training/
README.md, docs/training/megatron-fsdp.md and checkpointing.md, src/megatron/bridge/training/
config.py, recipes/llama/llama3.py). What no size depends on is left to the recipe.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.engines.container import folder
from gpuplan.engines.launch import Argument
from gpuplan.engines.pretraining import warm_up_steps
from gpuplan.engines.rendezvous import rendezvous
from gpuplan.plan.model import Training, Workload
from gpuplan.render.commented import Because

ROOT = "/opt/Megatron-Bridge"  # WORKDIR of docker/Dockerfile.ci, which the image is built on
# What `megatron.bridge.recipes` exports at v0.4.0 as NAME_pretrain_config and NAME_sft_config;
# models of one shape share one.
RECIPES = {
    "meta-llama/Llama-3.2-1B": "llama32_1b",
    "meta-llama/Llama-3.2-1B-Instruct": "llama32_1b",
    "meta-llama/Llama-3.2-3B": "llama32_3b",
    "meta-llama/Llama-3.2-3B-Instruct": "llama32_3b",
    "meta-llama/Meta-Llama-3-8B": "llama3_8b",
    "meta-llama/Meta-Llama-3-8B-Instruct": "llama3_8b",
    "meta-llama/Meta-Llama-3-70B": "llama3_70b",
    "meta-llama/Meta-Llama-3-70B-Instruct": "llama3_70b",
    "meta-llama/Llama-3.1-8B": "llama31_8b",
    "meta-llama/Llama-3.1-8B-Instruct": "llama31_8b",
    "meta-llama/Llama-3.1-70B": "llama31_70b",
    "meta-llama/Llama-3.1-70B-Instruct": "llama31_70b",
    "meta-llama/Llama-3.3-70B-Instruct": "llama31_70b",
    "meta-llama/Llama-3.1-405B": "llama31_405b",
    "meta-llama/Llama-3.1-405B-Instruct": "llama31_405b",
    "Qwen/Qwen3-0.6B": "qwen3_600m",
    "Qwen/Qwen3-1.7B": "qwen3_1p7b",
    "Qwen/Qwen3-4B": "qwen3_4b",
    "Qwen/Qwen3-8B": "qwen3_8b",
    "Qwen/Qwen3-14B": "qwen3_14b",
    "Qwen/Qwen3-32B": "qwen3_32b",
    "Qwen/Qwen3-30B-A3B": "qwen3_30b_a3b",
    "Qwen/Qwen3-235B-A22B": "qwen3_235b_a22b",
}
# Of them mixtures of experts: their recipes divide the experts as suits their own layout.
MIXTURES = {"qwen3_30b_a3b", "qwen3_235b_a22b"}
# Of them those whose recipe sets `comm_overlap`, with buffers for its own layout.
OVERLAPPED = {
    "llama3_70b_pretrain_config",
    "llama31_70b_pretrain_config",
    "llama31_405b_pretrain_config",
    "llama31_405b_sft_config",
}
# Its last stage puts off gradients of the embedding, which a run without stages is refused for.
DEFERRED = "llama31_405b_sft_config"
FSDP = {
    "zero2": "optim_grads",
    "zero3": "optim_grads_params",
    "hsdp": "optim_grads_params",
}
# Of its mixed precisions (docs/training/mixed-precision.md): those that were measured. None: the
# recipes' own.
PRECISIONS = {"bf16": None, "fp8": "bf16_with_fp8_current_scaling_mixed"}
# Granularity, method and layers (megatron/core/transformer/transformer_config.py of Megatron Core
# 0.17.0, which refuses others together); the parts that are recomputed are attention's cores.
RECOMPUTE = {
    "none": ("null", "null", "null"),
    "selective": ("selective", "null", "null"),
    "full": ("full", "uniform", "1"),
}
NAME = "megatron-bridge"


def starts(model: str) -> bool:
    """Whether the release has recipes for a model."""
    return model in RECIPES


def recipe(workload: Workload) -> str | None:
    """The name of the recipe; None where the release has none."""
    training, model = workload.training, workload.model
    if training is None or model is None or training.method not in ("full", "pretraining"):
        return None
    name = RECIPES.get(model.identifier)
    kind = "pretrain" if training.method == "pretraining" else "sft"
    return None if name is None else f"{name}_{kind}_config"


def emitted(workload: Workload) -> bool:
    """Whether precision and optimizer are those that recipes are started with."""
    training = workload.training
    return (
        workload.precision in PRECISIONS and training is not None and training.optimizer == "adamw"
    )


def data(workload: Workload) -> str:
    """Where the data lie: the prefix of an indexed corpus, or a folder with training.jsonl."""
    training = workload.training
    assert training is not None
    name = training.dataset or "dataset"
    if name.startswith("/"):
        return name
    base = f"{folder(workload, 'dataset', 'checkpoints')}/{name.rpartition('/')[2]}"
    return f"{base}_text_document" if training.method == "pretraining" else base


def pretrained(workload: Workload) -> str:
    """Where the weights that are tuned lie, in Megatron's format."""
    return f"{folder(workload, 'checkpoints')}/pretrained"


def arguments(workload: Workload, first: str) -> tuple[Argument, ...]:
    """`first` is the host name of the first process."""
    training, name = workload.training, recipe(workload)
    assert training is not None
    assert name is not None
    kind = "llm-pretrain" if training.method == "pretraining" else "llm-finetune-preloaded"
    return (
        "torchrun",
        *rendezvous(workload, first),
        f"--nproc-per-node={workload.gpus_per_node}",
        f"{ROOT}/scripts/training/run_recipe.py",
        f"--recipe={name}",
        f"--dataset={kind}",
        f"--seq_length={training.sequence_length}",
        *_layout(workload, training),
        *_run(workload, training, name),
        *_checkpoints(workload, training),
    )


def _layout(workload: Workload, training: Training) -> Iterator[Argument]:
    of = workload.parallelism
    tensor, pipeline = of.tensor_parallel_size, of.pipeline_parallel_size
    batch = (
        f"{of.data_parallel_size} replicas × {training.gradient_accumulation_steps} micro-batches"
        f" of {training.micro_batch} = {training.global_batch} sequences a step"
    )
    yield Because(f"model.tensor_model_parallel_size={tensor}", batch)
    yield f"model.sequence_parallel={_flag(tensor > 1)}"
    yield f"model.pipeline_model_parallel_size={pipeline}"
    stages = training.virtual_pipeline_stages
    yield f"model.virtual_pipeline_model_parallel_size={'null' if stages is None else stages}"
    ends = _flag(training.ends_are_layers is True)
    yield f"model.account_for_embedding_in_pipeline_split={ends}"
    yield f"model.account_for_loss_in_pipeline_split={ends}"
    yield f"model.context_parallel_size={of.context_parallel_size}"
    if of.context_parallel_size > 1 and training.method == "full":
        yield "model.calculate_per_token_loss=true"
        yield "ddp.average_in_collective=false"
    if workload.model is not None and RECIPES.get(workload.model.identifier) in MIXTURES:
        whole = of.expert_parallel_size > 1  # experts on some ranks, else parts of each on all
        yield f"model.expert_model_parallel_size={of.expert_parallel_size}"
        yield f"model.expert_tensor_parallel_size={1 if whole else tensor}"
    # recipes of large models have it on
    granularity, method, layers = RECOMPUTE[training.recompute]
    yield f"model.recompute_granularity={granularity}"
    yield f"model.recompute_method={method}"
    yield f"model.recompute_num_layers={layers}"
    yield from _sharding(training, of.state_copies)


def _sharding(training: Training, copies: int | None) -> Iterator[Argument]:
    """Strategies of Megatron-FSDP: docs/user-guide/parallelism-guide.md and megatron/core/
    distributed/distributed_data_parallel_config.py of Megatron Core 0.17.0."""
    yield "ddp.use_distributed_optimizer=true"
    yield "optimizer.use_distributed_optimizer=true"
    yield "ddp.grad_reduce_in_fp32=true"
    strategy = FSDP.get(training.sharding)
    if strategy is not None:
        yield "dist.use_megatron_fsdp=true"
        yield "ddp.use_megatron_fsdp=true"
        yield f"ddp.data_parallel_sharding_strategy={strategy}"
        if copies is not None:
            reason = "groups of whole nodes, each of which holds all states"
            yield Because(f"ddp.num_distributed_optimizer_instances={copies}", reason)
        yield "ddp.average_in_collective=false"
        yield "model.init_model_with_meta_device=true"
        yield "checkpoint.ckpt_format=fsdp_dtensor"


def _run(workload: Workload, training: Training, name: str) -> Iterator[Argument]:
    assert workload.model is not None
    yield f"model.seq_length={training.sequence_length}"
    if (precision := PRECISIONS[workload.precision or "bf16"]) is not None:
        yield Because(f"mixed_precision={precision}", "products of 8 bits, states of 32")
    yield f"train.train_iters={training.steps}"
    yield f"train.global_batch_size={training.global_batch}"
    yield f"train.micro_batch_size={training.micro_batch}"
    reason = "not sized: a tenth of the run, 2,000 steps at most"
    yield Because(f"scheduler.lr_warmup_iters={warm_up_steps(training)}", reason)
    if name in OVERLAPPED:
        yield Because(
            "comm_overlap.tp_comm_overlap=false", "the recipe's buffers are those of its own layout"
        )
    if name == DEFERRED and workload.parallelism.pipeline_parallel_size == 1:
        reason = "the recipe's stages put it off; this run has none"
        yield Because("comm_overlap.defer_embedding_wgrad_compute=false", reason)
    yield "tokenizer.tokenizer_type=HuggingFaceTokenizer"
    yield f"tokenizer.tokenizer_model={workload.model.identifier}"
    field = "data_path" if training.method == "pretraining" else "dataset_root"
    yield f"dataset.{field}={data(workload)}"


def _checkpoints(workload: Workload, training: Training) -> Iterator[Argument]:
    """Megatron counts steps, the plan seconds; the predicted step converts."""
    kept = f"{folder(workload, 'checkpoints')}/run"
    if training.method == "full":
        yield f"checkpoint.pretrained_checkpoint={pretrained(workload)}"
    yield f"checkpoint.save={kept}"
    yield Because(f"checkpoint.load={kept}", "a pod that starts again goes on")
    yield Because("checkpoint.most_recent_k=2", "as the volume is sized")
    interval = training.checkpoint_interval_seconds
    seconds = next((m.estimate.value for m in workload.metrics if m.name == "step_seconds"), None)
    if interval and seconds:
        steps = max(1, round(interval / seconds))
        reason = f"about {interval:g} s at the predicted {seconds:.3g} s a step"
        yield Because(f"checkpoint.save_interval={steps}", reason)


def _flag(value: bool) -> str:
    return "true" if value else "false"
