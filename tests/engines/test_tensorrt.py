"""What TensorRT-LLM is told, held to the options of its command: no registry has its program."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuplan.catalog.load import load_catalog
from gpuplan.engines import tensorrt
from gpuplan.engines.container import CONFIG
from gpuplan.engines.launch import Launch
from gpuplan.engines.start import start
from gpuplan.errors import Rejected
from gpuplan.kubernetes.lower import lower
from gpuplan.plan.model import Parallelism, Workload
from gpuplan.render.commented import Because
from gpuplan.sizing.hardware.efficiency import unsupported
from tests.support.samples import serving_plan, serving_workload
from tests.support.sizing_cases import wanted

FACTS: dict[str, Any] = YAML(typ="safe").load(
    (Path(__file__).parent / "tensorrt.yaml").read_text("utf-8")
)
OPTIONS = FACTS["options"]


def work(**changes: Any) -> Workload:
    made = serving_workload(**changes)
    return replace(made, engine=replace(made.engine, name="tensorrt-llm", version="1.2.1"))


def launched(made: Workload) -> Launch:
    found = start(made, first="first-host")
    assert isinstance(found, Launch)
    return found


def told(made: Workload) -> dict[str, str]:
    """Options with their values; each is there once, and one that the command has."""
    found = launched(made)
    assert found.command == ("trtllm-serve", "serve")
    model, *words = [str(a.value if isinstance(a, Because) else a) for a in found.arguments]
    assert made.model is not None
    assert model == made.model.identifier
    pairs = [word.removeprefix("--").partition("=") for word in words]
    assert len({name for name, _, _ in pairs}) == len(pairs)
    for name, given, value in pairs:
        if name in OPTIONS["none"]:
            assert not given
        elif name in OPTIONS["count"]:
            assert value.isdecimal()
        elif name in OPTIONS["share"]:
            assert 0 < float(value) < 1
        else:
            assert name in OPTIONS["text"]
    return {name: value for name, _, value in pairs}


def settings(made: Workload) -> dict[str, Any]:
    ((name, text),) = launched(made).files
    assert name == tensorrt.FILE
    found: dict[str, Any] = YAML(typ="safe").load(text)
    assert set(found) <= set(FACTS["settings"])
    assert set(found["kv_cache_config"]) <= set(FACTS["cache"])
    assert set(found["cuda_graph_config"]) <= set(FACTS["graphs"])
    return found


def test_the_sizes_of_the_plan_are_told() -> None:
    made = work()
    assert made.serving is not None
    options = told(made)
    assert options["tp_size"] == str(made.parallelism.tensor_parallel_size)
    assert options["max_seq_len"] == str(made.serving.max_model_len)
    assert options["max_batch_size"] == str(made.serving.max_num_seqs)
    assert options["max_num_tokens"] == str(made.serving.max_num_batched_tokens)
    assert options["port"] == str(made.serving.port)
    assert options["extra_llm_api_options"] == f"{CONFIG}/{tensorrt.FILE}"
    assert "enable_chunked_prefill" in options
    assert "enable_attention_dp" not in settings(made)


def test_every_step_that_only_decodes_is_a_graph() -> None:
    made = work()
    assert made.serving is not None
    graphs = settings(made)["cuda_graph_config"]
    assert graphs == {"enable_padding": True, "max_batch_size": made.serving.max_num_seqs}


def test_the_cache_takes_what_the_plan_leaves_it_and_no_more() -> None:
    made = work()
    memory = made.memory
    beside = memory.weights_bytes + memory.activations_bytes + memory.overhead_bytes
    share = float(told(made)["free_gpu_memory_fraction"])
    cache = share * (memory.capacity_bytes - beside)
    assert memory.usable_bytes - beside >= cache > 0.999 * memory.kv_cache_bytes
    assert settings(made)["kv_cache_config"]["free_gpu_memory_fraction"] == share


def test_an_fp8_cache_is_one_of_the_file() -> None:
    made = work()
    assert made.serving is not None
    made = replace(made, serving=replace(made.serving, kv_cache_dtype="fp8"))
    assert settings(made)["kv_cache_config"]["dtype"] == "fp8"


def test_data_parallel_attention_counts_all_gpus_as_tensor_ranks() -> None:
    apart = Parallelism(tensor_parallel_size=2, data_parallel_size=4, expert_parallel_size=8)
    made = work(parallelism=apart)
    assert (told(made)["tp_size"], told(made)["ep_size"]) == ("8", "8")
    assert settings(made)["enable_attention_dp"] is True


def test_pods_mount_the_file_and_come_anew_with_another_one() -> None:
    plan = serving_plan(workloads=(work(),))
    objects = {o.kind: o for o in lower(plan).objects if o.key == "assistant"}
    config, pods = objects["ConfigMap"], objects["Deployment"]
    assert config.identity in pods.depends_on
    assert set(config.tree["data"]) == {tensorrt.FILE}
    template = pods.tree["spec"]["template"]
    (engine,) = template["spec"]["containers"]
    assert CONFIG in [m["mountPath"] for m in engine["volumeMounts"]]
    before = template["metadata"]["annotations"]
    made = work()
    assert made.serving is not None
    other = replace(made, serving=replace(made.serving, kv_cache_dtype="fp8"))
    after = lower(serving_plan(workloads=(other,))).objects
    (changed,) = (o for o in after if o.kind == "Deployment")
    assert before != changed.tree["spec"]["template"]["metadata"]["annotations"]


BF16 = """
    task: inference
    model: meta-llama/Llama-3.3-70B-Instruct
    engine: tensorrt-llm
    precision: fp8
    load: {requests_per_second: {mean: 1, peak: 2}, input_tokens: 500, output_tokens: 100}
    slo: {time_per_output_token: 50 ms}
"""


def test_weights_of_fewer_bits_have_to_be_published() -> None:
    with pytest.raises(Rejected) as problem:
        wanted(BF16, engine="tensorrt-llm")
    (said,) = problem.value.diagnostics
    assert "tensorrt-llm makes no weights in fp8" in said.message
    assert "quantization.md" in (said.label or "")
    assert wanted(BF16.replace("tensorrt-llm", "vllm"), engine="vllm")


@pytest.mark.parametrize(("gpu", "refused"), [("t4", True), ("a100-sxm-80gb", False)])
def test_gpus_older_than_ampere_are_refused(gpu: str, refused: bool) -> None:
    found = load_catalog().gpu(gpu)
    assert found is not None
    gates = unsupported(found, "bf16", "tensorrt-llm")
    assert [g.resource for g in gates] == ["compute capability for tensorrt-llm"] * refused
