"""Axolotl: its configuration file, DeepSpeed's, and the command that starts a run.

Keys are those of `AxolotlInputConfig` at v0.18.0. What the plan sized is set from it; what no size
depends on is left to Axolotl's defaults, except for the learning rate, which has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from gpuplan.engines import pretraining
from gpuplan.engines.container import CONFIG, folder
from gpuplan.engines.launch import Argument
from gpuplan.engines.rendezvous import rendezvous
from gpuplan.plan.model import Training, Workload
from gpuplan.render import commented
from gpuplan.render.commented import Because, Tree, strip

# Axolotl refuses to start without one. Source: its examples llama-3/fft-8b.yaml and lora-1b.yml.
LEARNING_RATES = {
    "full": Decimal("0.00002"),
    "lora": Decimal("0.0002"),
    "qlora": Decimal("0.0002"),
}
CHAT_TEMPLATE = "tokenizer_default_fallback_chatml"
STAGES = {"zero1": 1, "zero2": 2, "zero3": 3}


def optimizer(training: Training) -> str | None:
    """Axolotl's name of the plan's optimizer, or None where it does not go with the sharding:
    DeepSpeed keeps 32-bit optimizer states."""
    if training.optimizer == "adamw":
        return "adamw_torch_fused"
    if training.optimizer == "adamw-8bit":
        return "adamw_bnb_8bit"
    if training.optimizer == "adamw-bf16" and deepspeed_stage(training) is None:
        return "adamw_torch_fused"  # its states have the type of the weights: bf16
    return None


def deepspeed_stage(training: Training) -> int | None:
    """The ZeRO stage, None without DeepSpeed. All weights in training need 32-bit copies, which
    DeepSpeed keeps also where it shards nothing (stage 1 on one GPU)."""
    full = training.method in ("full", "pretraining")
    keeps_copies = full and training.optimizer == "adamw"
    return STAGES.get(training.sharding, 1 if keeps_copies else None)


def files(workload: Workload, training: Training) -> Iterator[tuple[str, str]]:
    """Names and texts."""
    yield "axolotl.yaml", _yaml(workload, training)
    if (stage := deepspeed_stage(training)) is not None:
        yield "deepspeed.json", json.dumps(_deepspeed(stage), indent=2) + "\n"


def _yaml(workload: Workload, training: Training) -> str:
    tree, comments = strip(_config(workload, training))
    title = f"Axolotl configuration of {workload.name}; sizes come from plan.yaml"
    return commented.dumps(tree, dict(comments), title)


def _config(workload: Workload, training: Training) -> Tree:
    model = workload.model
    assert model is not None
    stage = deepspeed_stage(training)
    batch = (
        f"× {training.gradient_accumulation_steps} steps accumulated"
        f" × {workload.parallelism.data_parallel_size} ranks"
        f" = {training.global_batch} sequences a step"
    )
    return {
        "base_model": model.identifier,
        "revision_of_model": model.revision,
        **(pretraining.weights() if training.method == "pretraining" else {}),
        **_data(training),
        "dataset_prepared_path": f"{folder(workload, 'dataset', 'checkpoints')}/prepared",
        "output_dir": f"{folder(workload, 'checkpoints')}/run",
        "sequence_len": training.sequence_length,
        "sample_packing": Because(
            value=True, reason="full sequences, as the memory and the speed are sized"
        ),
        "pad_to_sequence_len": True,
        "micro_batch_size": Because(training.micro_batch, batch),
        "gradient_accumulation_steps": training.gradient_accumulation_steps,
        "max_steps": training.steps,
        "optimizer": optimizer(training),
        **_schedule(workload, training),
        "bf16": True,
        "attn_implementation": "flash_attention_2",
        **_recompute(training),
        **_adapter(training),
        "deepspeed": f"{CONFIG}/deepspeed.json" if stage is not None else None,
        **_checkpoints(workload, training),
        "auto_resume_from_checkpoints": Because(
            value=True, reason="a pod that starts again goes on"
        ),
    }


def _data(training: Training) -> Tree:
    if training.dataset is None:
        return {"datasets": []}
    if training.method == "pretraining":
        return pretraining.corpus(training.dataset)
    kind = Because("chat_template", "the dataset has a column `messages`")
    reason = "the tokenizer's own template; tokenizers of base models have none"
    return {
        "datasets": [{"path": training.dataset, "type": kind}],
        "chat_template": Because(CHAT_TEMPLATE, reason),
    }


def _schedule(workload: Workload, training: Training) -> Tree:
    if training.method == "pretraining":
        return pretraining.schedule(workload, training)
    reason = "not sized: Axolotl's example for this method; memory and speed do not depend on it"
    return {"learning_rate": Because(LEARNING_RATES[training.method], reason)}


def _recompute(training: Training) -> Tree:
    if training.recompute == "full":
        return {"gradient_checkpointing": True}
    if training.recompute == "selective":
        return {
            "gradient_checkpointing": Because(
                value=True, reason="layers run again in the backward pass, but not their attention"
            ),
            # Axolotl's default is the reentrant kind, which keeps nothing selectively.
            "gradient_checkpointing_kwargs": {"use_reentrant": False},
            "selective_checkpointing": True,
        }
    return {"gradient_checkpointing": False}


def _adapter(training: Training) -> Tree:
    if training.method not in ("lora", "qlora"):
        return {}
    rank = training.lora_rank
    return {
        "adapter": training.method,
        "load_in_4bit": True if training.method == "qlora" else None,
        "lora_r": rank,
        "lora_alpha": Because(rank, "not sized: a scale of 1"),
        "lora_target_linear": True,
    }


def _checkpoints(workload: Workload, training: Training) -> Tree:
    """Axolotl counts steps, the plan seconds; the predicted speed converts."""
    interval = training.checkpoint_interval_seconds
    speed = next(
        (m.estimate.value for m in workload.metrics if m.name == "tokens_per_second"), None
    )
    if interval is None or not speed:
        return {}
    tokens = training.global_batch * training.sequence_length
    steps = max(1, round(interval * speed / tokens))
    reason = f"about {interval:g} s at the predicted {speed:,.0f} tokens/s"
    return {"save_steps": Because(steps, reason), "save_total_limit": 2}


def _deepspeed(stage: int) -> dict[str, Any]:
    """`auto` takes the trainer's own value."""
    zero: dict[str, Any] = {"stage": stage, "overlap_comm": True, "contiguous_gradients": True}
    if stage == 3:
        zero["stage3_gather_16bit_weights_on_model_save"] = True
    return {
        "zero_optimization": zero,
        "bf16": {"enabled": True},
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
    }


def arguments(workload: Workload, first: str) -> tuple[Argument, ...]:
    """`axolotl train` under torchrun. `first` is the host name of the first process; the index of
    each is its rank."""
    return (
        "axolotl",
        "train",
        f"{CONFIG}/axolotl.yaml",
        "--launcher=torchrun",
        "--",
        *rendezvous(workload, first),
        f"--nproc-per-node={workload.gpus_per_node}",
    )
