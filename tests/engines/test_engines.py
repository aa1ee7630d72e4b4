"""What engines are given is written for no target; each target writes it in its own syntax."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuplan.diagnostics import Diagnostic
from gpuplan.engines.container import CONFIG, NOTEBOOK_PORT, SCRATCH, listening_port, variables
from gpuplan.engines.launch import Indexed, Launch
from gpuplan.engines.start import shortcomings, start
from gpuplan.kubernetes.lower import lower
from gpuplan.plan.model import EnvironmentVariable, Parallelism, Plan, Speculative, Workload
from gpuplan.render.commented import Because
from tests.support.samples import serving_plan, serving_workload, training_plan
from tests.support.stack_plans import (
    KUBERNETES,
    batch_plan,
    lora_plan,
    mixture_plan,
    modelopt_plan,
    notebook_plan,
    sglang_plan,
)

DOLLARS = "costs $(HOME) $5 and $$"


def launch_of(workload: Workload) -> Launch:
    launch = start(workload, first="first-host")
    assert isinstance(launch, Launch), launch
    return launch


def texts(launch: Launch) -> list[str]:
    arguments = (a.value if isinstance(a, Because) else a for a in launch.arguments)
    return [f"{a.before}#{a.after}" if isinstance(a, Indexed) else str(a) for a in arguments]


def container(plan: Plan) -> Any:
    kinds = ("Deployment", "StatefulSet", "Job")
    (item,) = (o for o in lower(plan).objects if o.kind in kinds)
    return item.tree["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("name", KUBERNETES)
def test_nothing_of_kubernetes_is_in_a_launch(name: str) -> None:
    for workload in KUBERNETES[name]().workloads:
        launch = launch_of(replace(workload, environment=()))
        said = [*launch.command, *texts(launch), *(v for _, v in launch.environment)]
        assert not [t for t in said if "$$" in t or "$(JOB_" in t]


def test_texts_are_as_they_were_written_and_kubernetes_doubles_the_dollar() -> None:
    note = EnvironmentVariable(name="NOTE", value=DOLLARS)
    work = serving_workload(command=("sh", "-c", DOLLARS), environment=(note,))
    launch = launch_of(work)
    assert launch.command == ("sh", "-c", DOLLARS)
    assert variables(work, launch)["NOTE"] == DOLLARS
    made = container(serving_plan(workloads=(work,)))
    assert made["command"][-1] == DOLLARS.replace("$", "$$")
    assert {"name": "NOTE", "value": DOLLARS.replace("$", "$$")} in made["env"]


def test_a_models_name_is_data_too() -> None:
    work = serving_workload()
    assert work.model is not None
    odd = replace(work, model=replace(work.model, identifier="org/$(SECRET)"))
    assert texts(launch_of(odd))[0] == "org/$(SECRET)"
    assert container(serving_plan(workloads=(odd,)))["args"][0] == "org/$$(SECRET)"


def test_the_index_of_a_process_is_left_to_the_target() -> None:
    (work,) = batch_plan().workloads
    work = replace(work, command=(), volumes=())
    assert f"--input-file={SCRATCH}/requests-#.jsonl" in texts(launch_of(work))
    arguments = container(replace(batch_plan(), workloads=(work,)))["args"]
    assert f"--input-file={SCRATCH}/requests-$(JOB_COMPLETION_INDEX).jsonl" in arguments
    (run,) = training_plan().workloads
    assert "--node-rank=#" in texts(launch_of(run))
    assert "--master-addr=first-host" in texts(launch_of(run))


def test_a_run_brings_its_configuration() -> None:
    (run,) = training_plan().workloads
    launch = launch_of(run)
    assert dict(launch.files).keys() == {"axolotl.yaml", "deepspeed.json"}
    assert f"{CONFIG}/axolotl.yaml" in texts(launch)
    assert f"{CONFIG}/deepspeed.json" in dict(launch.files)["axolotl.yaml"]
    assert launch_of(replace(run, command=("python3", "train.py"))).files == ()


def test_ports_are_those_that_clients_use() -> None:
    ports = {w.task: listening_port(w) for w in notebook_plan().workloads}
    assert ports["notebook"] == NOTEBOOK_PORT
    (served,) = serving_plan().workloads
    assert served.serving is not None
    assert launch_of(served).port == listening_port(served) == served.serving.port
    assert launch_of(served).health == "/health"
    (run,) = training_plan().workloads
    assert listening_port(run) is None


def test_the_manifests_variables_replace_the_engines() -> None:
    own = EnvironmentVariable(name="VLLM_NO_USAGE_STATS", value="0")
    (work,) = serving_plan().workloads
    assert dict(launch_of(work).environment)["VLLM_NO_USAGE_STATS"] == "1"
    changed = replace(work, environment=(own,))
    assert variables(changed, launch_of(changed))["VLLM_NO_USAGE_STATS"] == "0"


def test_sglang_takes_for_all_groups_what_the_plan_counts_for_one() -> None:
    """It divides both by its groups of attention (tests/engines/test_parsers.py)."""
    work = sglang_plan().workloads[0]
    assert work.serving is not None
    sizes = Parallelism(data_parallel_size=4, expert_parallel_size=4)
    said = texts(launch_of(replace(work, parallelism=sizes)))
    assert f"--max-running-requests={work.serving.max_num_seqs * 4}" in said
    assert f"--chunked-prefill-size={work.serving.max_num_batched_tokens * 4}" in said
    assert f"--cuda-graph-max-bs-decode={work.serving.max_num_seqs}" in said  # of a group
    plain = texts(launch_of(replace(work, parallelism=Parallelism(tensor_parallel_size=4))))
    assert f"--max-running-requests={work.serving.max_num_seqs}" in plain


@pytest.mark.parametrize(
    ("release", "flag"),
    [
        ("0.5.13", "--cuda-graph-max-bs"),
        ("0.5.14", "--cuda-graph-max-bs-decode"),
        ("v0.5.16-cu130", "--cuda-graph-max-bs-decode"),
        ("nightly", "--cuda-graph-max-bs-decode"),
    ],
)
def test_sglangs_graphs_are_of_all_requests_that_it_takes(release: str, flag: str) -> None:
    """By default of 24 on a GPU of 24 GB and of 32 on one of 48 (server_args.py)."""
    work = sglang_plan().workloads[0]
    assert work.serving is not None
    made = replace(work, engine=replace(work.engine, version=release))
    assert f"{flag}={work.serving.max_num_seqs}" in texts(launch_of(made))


def test_the_ranks_of_a_group_of_sglang_share_a_graph_evenly() -> None:
    """It leaves out sizes that are no multiple of its ranks (get_batch_sizes_to_capture)."""
    work = sglang_plan().workloads[0]
    assert work.serving is not None
    sizes = Parallelism(tensor_parallel_size=2, data_parallel_size=2, expert_parallel_size=4)
    odd = replace(work, parallelism=sizes, serving=replace(work.serving, max_num_seqs=33))
    assert "--cuda-graph-max-bs-decode=34" in texts(launch_of(odd))
    assert "--max-running-requests=66" in texts(launch_of(odd))


@pytest.mark.parametrize(
    ("engine", "method", "stored", "told"),
    [
        ("sglang", "modelopt", "nvfp4", ["--quantization=modelopt_fp4"]),
        ("sglang", "modelopt", "fp8", ["--quantization=modelopt_fp8"]),
        ("sglang", "compressed-tensors", "nvfp4", []),  # which SGLang refuses with either
        ("sglang", "fp8", "fp8", []),
        ("vllm", "modelopt", "nvfp4", []),
        ("tensorrt-llm", "modelopt", "nvfp4", []),
    ],
)
def test_sglang_is_told_what_the_model_optimizer_made(
    engine: str, method: str, stored: str, told: list[str]
) -> None:
    """It chooses kernels by the flag (catalog/data/engines/sglang.yaml)."""
    (work,) = serving_plan().workloads
    assert work.model is not None
    model = replace(work.model, checkpoint_precision=stored, quant_method=method)
    made = replace(work, model=model, precision=stored, engine=replace(work.engine, name=engine))
    assert [t for t in texts(launch_of(made)) if "quantization" in t] == told


def test_a_model_that_drafts_is_not_read_as_the_one_it_drafts_for() -> None:
    (work,) = modelopt_plan().workloads
    told = [t for t in texts(launch_of(work)) if "quantization" in t]
    apart = "--speculative-draft-model-quantization=unquant"
    assert told == ["--quantization=modelopt_fp4", apart]
    assert work.serving is not None
    itself = replace(work.serving, speculative=Speculative(method="mtp", model=None, tokens=1))
    assert apart not in texts(launch_of(replace(work, serving=itself)))


def test_what_no_engine_can_start_is_said() -> None:
    (work,) = serving_plan().workloads
    unknown = start(replace(work, engine=replace(work.engine, name="ollama")), "first-host")
    assert isinstance(unknown, Diagnostic)
    assert "ollama has no known start" in unknown.message
    assert "vllm" in unknown.help
    (image,) = mixture_plan().workloads
    deeper = replace(image.parallelism, context_parallel_size=2)
    (said,) = shortcomings(replace(image, parallelism=deeper))
    assert "no setting for context parallelism" in said.message
    assert [*shortcomings(replace(image, parallelism=deeper, command=("serve",)))] == []


def test_training_that_recurs_is_told_that_it_goes_on_where_it_ended() -> None:
    (workload,) = lora_plan().workloads
    before = [d.message for d in shortcomings(workload)]
    again = [d.message for d in shortcomings(replace(workload, schedule="0 3 1 * *"))]
    (said,) = [m for m in again if m not in before]
    assert "/run: where that had taken its last step, it ends at once" in said
