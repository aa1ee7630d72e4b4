"""Whether Megatron-Bridge takes the arguments of a run, and what configuration it makes of them.

A question has `words`, the arguments of `scripts/training/run_recipe.py`, and how many `processes`
torchrun starts. What that script does with them is done here, since the wheel does not have it: the
recipe by its name, its data replaced, the fields written over it, and the release's own checks of
the whole, at which the one thing that must be there is a folder that is. Runs in the environment of
the parsers, knows no gpuplan.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import sys
import types
import typing
from pathlib import Path
from typing import Any

import answers
import gpu
import typing_extensions

# Kernels, trackers and readers of pictures, which modules on the way import and no check calls.
gpu.modules(
    *("causal_conv1d", "datasets", "fla", "mamba_ssm", "megatron.energon", "modelopt", "peft"),
    *("tensorboard", "transformer_engine", "transformer_engine_torch", "wandb", "webdataset"),
    "megatron.bridge.diffusion",
)
gpu.device()
typing.override = typing_extensions.override  # the wheels are for Python 3.12
sys.modules["torch.utils.tensorboard"] = gpu.Anything("torch.utils.tensorboard")
sys.modules["torch.utils.tensorboard.writer"] = gpu.Anything("torch.utils.tensorboard.writer")
VERSION = importlib.metadata.version
TRANSFORMER_ENGINE = "2.12.0"


def _version(name: str) -> str:
    return TRANSFORMER_ENGINE if name.startswith("transformer-engine") else VERSION(name)


importlib.metadata.version = _version


def _without_siblings(name: str) -> None:
    """A package whose own first lines, which load the recipes of pictures too, are left out."""
    parent = importlib.util.find_spec("megatron.bridge")
    assert parent is not None
    assert parent.submodule_search_locations is not None
    made = types.ModuleType(name)
    made.__path__ = [str(Path(parent.submodule_search_locations[0]) / name.rpartition(".")[2])]
    sys.modules[name] = made


_without_siblings("megatron.bridge.recipes")

from megatron.bridge.recipes import llama, qwen  # noqa: E402
from megatron.bridge.recipes.utils.dataset_utils import (  # noqa: E402
    DATASET_TYPES,
    apply_dataset_override,
)
from megatron.bridge.training.config import runtime_config_update  # noqa: E402
from megatron.bridge.training.utils.omegaconf_utils import (  # noqa: E402
    process_config_with_overrides,
)

PRETRAINED = "checkpoint.pretrained_checkpoint="
PARSER = argparse.ArgumentParser()
PARSER.add_argument("--recipe", required=True)
PARSER.add_argument("--dataset", choices=DATASET_TYPES)
PARSER.add_argument("--seq_length", type=int)


def dataset(made: Any) -> list[str]:
    """The prefixes of an indexed corpus, or the folder of a file with dialogues."""
    return made.blend[0] if hasattr(made, "blend") else [str(made.dataset_root)]


def parse(question: dict[str, Any]) -> dict[str, Any]:
    os.environ["WORLD_SIZE"] = str(question["processes"])
    words = [f"{PRETRAINED}/tmp" if w.startswith(PRETRAINED) else w for w in question["words"]]
    told, fields = PARSER.parse_known_args(words)
    builder = getattr(llama, told.recipe, None) or getattr(qwen, told.recipe)
    made = apply_dataset_override(
        builder(), dataset_type=told.dataset, seq_length=told.seq_length, cli_overrides=fields
    )
    made = process_config_with_overrides(made, cli_overrides=fields)
    runtime_config_update(made)
    model, train = made.model, made.train
    return {
        "layers": model.num_layers,
        "hidden": model.hidden_size,
        "tensor": model.tensor_model_parallel_size,
        "pipeline": model.pipeline_model_parallel_size,
        "virtual": model.virtual_pipeline_model_parallel_size,
        "context": model.context_parallel_size,
        "expert": model.expert_model_parallel_size,
        "data": made.data_parallel_size,
        "sequence": made.dataset.seq_length,
        "steps": train.train_iters,
        "batch": train.global_batch_size,
        "micro_batch": train.micro_batch_size,
        "recompute": model.recompute_granularity,
        "warm_up": made.scheduler.lr_warmup_iters,
        "save": made.checkpoint.save,
        "load": made.checkpoint.load,
        "fsdp": made.ddp.use_megatron_fsdp,
        "dataset": dataset(made.dataset),
    }


if __name__ == "__main__":
    answers.answer(parse)
