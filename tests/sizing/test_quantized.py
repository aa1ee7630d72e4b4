"""Published quantized checkpoints by name, and what Ampere runs of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuplan.engines.launch import Launch
from gpuplan.engines.start import start
from gpuplan.models.load import BUNDLED
from gpuplan.pipeline import compile_files
from gpuplan.plan.model import Workload
from gpuplan.render.commented import Because

MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: quantized
platform: {{target: kubernetes, provider: aws, gpus: [{gpu}]}}
workloads:
- name: chat
  task: inference
  model: {model}
  load:
    requests_per_second: {{mean: 1, peak: 2}}
    input_tokens: {{mean: 700, p95: 1500}}
    output_tokens: {{mean: 200, p95: 400}}
  engine: {engine}
  slo: {{time_to_first_token: 5 s, time_per_output_token: 150 ms}}
"""
AWQ = """\
{"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
 "max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 32,
 "num_key_value_heads": 8, "vocab_size": 128256,
 "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}
"""


def planned(folder: Path, gpu: str, model: str, engine: str = "vllm") -> Workload | str:
    """The workload, or the messages of a refusal."""
    path = folder / "quantized.yaml"
    path.write_text(MANIFEST.format(gpu=gpu, model=model, engine=engine), encoding="utf-8")
    result = compile_files([path], plan_only=True)
    if result.stacks:
        one: Workload = result.stacks[0].plan.workloads[0]
        return one
    return "\n".join(str(d) for d in result.problems)


@pytest.mark.parametrize(
    ("model", "precision", "gigabytes"),
    [
        ("Qwen/Qwen3-32B-FP8", "fp8", 34.3),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", "fp8", 72.7),
        ("Qwen/Qwen3-30B-A3B-FP8", "fp8", 31.2),
    ],
)
def test_a_checkpoint_in_fp8_is_served_as_it_is_stored(
    tmp_path: Path, model: str, precision: str, gigabytes: float
) -> None:
    found = planned(tmp_path, "h200-sxm-141gb", model)
    assert isinstance(found, Workload), found
    assert found.precision == precision
    assert found.memory.weights_bytes * found.parallelism.gpus == pytest.approx(
        gigabytes * 1e9, rel=0.02
    )


def test_ampere_holds_weights_in_fp8_and_computes_in_bf16(tmp_path: Path) -> None:
    found = planned(tmp_path, "a100-sxm-80gb", "Qwen/Qwen3-32B-FP8")
    assert isinstance(found, Workload), found
    assert found.precision == "fp8"
    assert found.memory.weights_bytes * found.parallelism.gpus == pytest.approx(34.3e9, rel=0.02)


def test_an_engine_not_known_to_widen_fp8_is_refused_on_ampere(tmp_path: Path) -> None:
    found = planned(tmp_path, "a100-sxm-80gb", "Qwen/Qwen3-32B-FP8", "sglang")
    assert isinstance(found, str)
    assert "fp8" in found


def test_four_bit_integers_run_on_ampere(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(AWQ, encoding="utf-8")
    found = planned(tmp_path, "a10g", "{name: x/awq, path: ./config.json}")
    assert isinstance(found, Workload), found
    assert found.precision == "int4"
    assert found.memory.weights_bytes < 6e9


@pytest.mark.parametrize("gpu", ["b200-sxm-180gb", "rtx-pro-6000-server"])
def test_sglang_is_told_what_the_model_optimizer_made(tmp_path: Path, gpu: str) -> None:
    found = planned(tmp_path, gpu, "nvidia/Qwen3-235B-A22B-NVFP4", "sglang")
    assert isinstance(found, Workload), found
    launch = start(found, first="first-host")
    assert isinstance(launch, Launch)
    reasoned = [a.value for a in launch.arguments if isinstance(a, Because)]
    assert "--quantization=modelopt_fp4" in reasoned


RUNNER = "--moe-runner-backend=flashinfer_cutlass"
OPTIMIZED = {"quant_method": "modelopt", "quant_algo": "NVFP4"}


def arguments(workload: Workload) -> dict[str, str | None]:
    """What the engine is told, with the reason where there is one."""
    launch = start(workload, first="first-host")
    assert isinstance(launch, Launch)
    reasons = (
        (a.value, a.reason) if isinstance(a, Because) else (a, None) for a in launch.arguments
    )
    return {str(text): why for text, why in reasons}


@pytest.mark.parametrize("gpu", ["b200-sxm-180gb", "b300-sxm-288gb"])
@pytest.mark.parametrize("model", ["nvidia/MiniMax-M2.5-NVFP4", "nvidia/MiniMax-M2.7-NVFP4"])
def test_sglang_is_told_the_kernels_of_experts_that_it_does_not_choose(
    tmp_path: Path, gpu: str, model: str
) -> None:
    """Without them its server starts and ends with NotImplementedError in the first step."""
    found = planned(tmp_path, gpu, model, "sglang")
    assert isinstance(found, Workload), found
    assert arguments(found)[RUNNER]


@pytest.mark.parametrize(
    ("gpu", "model", "engine"),
    [
        ("b200-sxm-180gb", "nvidia/Qwen3-235B-A22B-NVFP4", "sglang"),  # flashinfer_trtllm
        ("b200-sxm-180gb", "nvidia/MiniMax-M2.5-NVFP4", "vllm"),
        ("b200-sxm-180gb", "MiniMaxAI/MiniMax-M2.5", "sglang"),  # fp8
        ("rtx-pro-6000-server", "nvidia/MiniMax-M2.5-NVFP4", "sglang"),  # chooses it by itself
    ],
)
def test_kernels_of_experts_are_left_to_the_engine_where_it_has_some(
    tmp_path: Path, gpu: str, model: str, engine: str
) -> None:
    found = planned(tmp_path, gpu, model, engine)
    assert isinstance(found, Workload), found
    assert not [text for text in arguments(found) if "moe-runner" in text]


def optimized(name: str, **changed: object) -> str:
    """A bundled model in NVFP4, as a manifest has it."""
    config = json.loads((BUNDLED / f"{name}.json").read_text("utf-8"))["config"]
    quantized = config | changed | {"quantization_config": OPTIMIZED}
    return json.dumps({"name": "here/optimized", "config": quantized})


@pytest.mark.parametrize("gpu", ["b200-sxm-180gb", "rtx-pro-6000-server"])
def test_experts_that_no_kernels_of_sglang_run_are_refused(tmp_path: Path, gpu: str) -> None:
    """Llama 4 weighs the inputs of its experts (sgl-project/sglang#34192)."""
    llama = optimized("meta-llama--Llama-4-Scout-17B-16E-Instruct")
    found = planned(tmp_path, gpu, llama, "sglang")
    assert isinstance(found, str)
    assert "no kernels of sglang 0.5.16 for nvfp4 experts of Llama4" in found
    assert "name another engine" in found
    assert isinstance(planned(tmp_path, gpu, llama, "vllm"), Workload)


@pytest.mark.parametrize(("gpus", "taken"), [(4, True), (8, False)])
def test_parts_of_experts_that_the_named_kernels_do_not_take_are_refused(
    tmp_path: Path, gpus: int, taken: bool
) -> None:
    """The scales of the two halves of an expert's part fill 128 rows, or the server stops."""
    model = optimized("MiniMaxAI--MiniMax-M2.5", intermediate_size=768)
    split = f"sglang\n  overrides: {{tensor_parallel_size: {gpus}}}"
    found = planned(tmp_path, "b200-sxm-180gb", model, split)
    assert isinstance(found, Workload) is taken, found
    assert taken or "8 GPUs do not divide 12 times 64 rows of an expert" in str(found)


def test_nvfp4_needs_blackwell(tmp_path: Path) -> None:
    found = planned(tmp_path, "h100-sxm-80gb", "nvidia/Qwen3-235B-A22B-NVFP4")
    assert isinstance(found, str)
    assert "nvfp4" in found
