"""Whether Axolotl takes a configuration and a command.

A question has `configuration`, the text of a file, `words`, the arguments of `axolotl`, and how
many `gpus` and `nodes` there are. The answer has `unknown` keys, which Axolotl passes over in
silence, some settings, and `command`, what its launcher would start. Runs in the environment of the
parsers, knows no gpuplan.
"""

from __future__ import annotations

import tempfile
from typing import Any

import answers
import yaml
from axolotl.cli.main import cli
from axolotl.cli.utils import train as starting
from axolotl.utils.config import validate_config
from axolotl.utils.dict import DictDefault
from axolotl.utils.schemas.config import AxolotlInputConfig
from torch.distributed.run import get_args_parser

KNOWN = {
    name
    for field, about in AxolotlInputConfig.model_fields.items()
    for name in (field, about.alias)
    if name
}


def parse(question: dict[str, Any]) -> dict[str, Any]:
    tree = yaml.safe_load(question["configuration"])
    machine = {
        "bf16": True,
        "fp8": True,
        "tf32": True,
        "n_gpu": question["gpus"],
        "n_node": question["nodes"],
        "compute_capability": "sm_90",
    }
    environment = {"torch_version": "2.12.0"}
    made = validate_config(DictDefault(tree), capabilities=machine, env_capabilities=environment)
    return {
        "unknown": sorted(set(tree) - KNOWN),
        "steps": made.max_steps,
        "micro_batch": made.micro_batch_size,
        "accumulation": made.gradient_accumulation_steps,
        "sequence": made.sequence_len,
        "adapter": made.adapter,
        "command": command(question["words"], question["configuration"]),
    }


def command(words: list[str], text: str) -> dict[str, Any]:
    """What torchrun is told by `axolotl train`, as its own parser reads it. The configuration is
    the one word of the command that is another: a file that is here."""
    said: list[list[str]] = []
    starting.os.execvpe = lambda program, told, _: said.append(told)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        here = [file.name if word.endswith("/axolotl.yaml") else word for word in words]
        cli.main(here, standalone_mode=False)
    assert said[0][0] == "torchrun"
    told = get_args_parser().parse_args(said[0][1:])
    return {
        "nodes": told.nnodes,
        "rank": told.node_rank,
        "gpus": told.nproc_per_node,
        "first": told.master_addr,
        "standalone": told.standalone,
        "module": told.training_script,
    }


if __name__ == "__main__":
    answers.answer(parse)
