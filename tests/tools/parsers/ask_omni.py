"""Whether vLLM-Omni takes arguments: the parser of its `serve`, upon that of the vLLM below it.

A question is the arguments after `vllm`. The answer has what it understood. The server, which its
module imports and no parser calls, is left out. Runs in the environment of the parsers, knows no
gpuplan.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import answers
import gpu

gpu.modules(
    *("vllm._C_stable_libtorch", "vllm._qutlass_C", "vllm._C", "vllm._moe_C"),
    *("vllm.vllm_flash_attn._vllm_fa2_C", "vllm.vllm_flash_attn._vllm_fa3_C"),
)
gpu.kernels("_C", "_moe_C", "_C_cache_ops", "_C_custom_ar", "_vllm_fa2_C", "_vllm_fa3_C")

import vllm.platforms  # noqa: E402
from vllm.platforms.cuda import CudaPlatformBase  # noqa: E402
from vllm.platforms.interface import DeviceCapability  # noqa: E402

PACKAGES = ("vllm_omni", "vllm_omni.entrypoints", "vllm_omni.entrypoints.cli")
SERVER = ("vllm_omni.entrypoints.openai", "vllm_omni.entrypoints.openai.api_server")


class Platform(CudaPlatformBase):  # type: ignore[misc]
    """vLLM's own for NVIDIA's GPUs, on a stand-in for them."""

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> Any:
        return DeviceCapability(*gpu.CAPABILITY)

    @classmethod
    def device_count(cls) -> int:
        return gpu.COUNT


vllm.platforms._current_platform = Platform()


def packages() -> None:
    """Those on the way to `serve.py`, without what they load first: models and the server."""
    found = importlib.util.find_spec("vllm_omni")
    assert found is not None
    assert found.origin is not None
    for name in PACKAGES:
        made = types.ModuleType(name)
        made.__path__ = [str(Path(found.origin).parent.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = made
    for name in SERVER:
        sys.modules[name] = gpu.Anything(name)


packages()

from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: E402
from vllm_omni.entrypoints.cli.serve import OmniServeCommand  # noqa: E402
from vllm_omni.inputs.data import OmniDiffusionSamplingParams  # noqa: E402

PARSER = FlexibleArgumentParser()
OmniServeCommand().subparser_init(PARSER.add_subparsers(required=False, dest="subparser"))


def parse(words: list[str]) -> dict[str, Any]:
    told = PARSER.parse_args(words)
    return {
        "model": told.model_tag,
        "name": told.served_model_name,
        "omni": told.omni,
        "port": told.port,
        "tensor": told.tensor_parallel_size,
        "pixels": told.max_generated_image_size,
        "sampling": told.default_sampling_params,
        "sampled": sorted(OmniDiffusionSamplingParams.__dataclass_fields__),
    }


answers.answer(parse)
