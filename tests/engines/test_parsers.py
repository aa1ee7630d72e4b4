"""What is emitted, read by the engines' own parsers at the releases that the catalogue pins.

Not only the names of flags: vLLM and SGLang make their whole configuration of them, with a model's
own, and refuse what goes together with nothing. What they would run with is held to the plan.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from bench.orders import manifest, planned
from gpuplan.engines.launch import Launch
from gpuplan.engines.start import start
from gpuplan.plan.model import Parallelism, Plan, Workload
from tests.backends.test_groups import plan as grouped
from tests.support.plans import read_plan
from tests.support.require import require
from tests.support.stack_plans import lora_plan, modelopt_plan, sglang_plan
from tests.tools.parsers import hub, install, places
from tests.tools.parsers.words import Start, expanded, starts
from tests.tools.program import ROOT

pytestmark = pytest.mark.parsers

STACKS = sorted(p.parent for p in (ROOT / "stacks").glob("*/plan.yaml"))
MANIFESTS = int(os.environ.get("GPUPLAN_MANIFESTS", "40"))
SEED = int(os.environ.get("GPUPLAN_SEED", "12"))


@dataclass(frozen=True)
class Case:
    name: str
    plan: Plan
    start: Start

    @property
    def engine(self) -> str:
        return self.start.workload.engine.name


@pytest.fixture(scope="module")
def parsers() -> None:
    if missing := install.absent():
        require("parsers", missing)


@cache
def cases() -> tuple[Case, ...]:
    """Of the stacks, of samples with what few manifests lead to, and of generated manifests."""
    samples = {
        "groups of a pipeline": grouped(),
        "groups of experts": experts("vllm"),
        "groups of SGLang": experts("sglang"),
        "sglang": sglang_plan(),
        "modelopt": modelopt_plan(),
        "lora": lora_plan(),
    }
    plans = itertools.chain(
        ((s.name, read_plan(s)) for s in STACKS),
        samples.items(),
        generated(MANIFESTS, SEED),
    )
    return tuple(Case(name, plan, s) for name, plan in plans for s in starts(plan))


def experts(engine: str) -> Plan:
    """A mixture of experts over two nodes, whose attention is in sixteen groups."""
    sizes = Parallelism(data_parallel_size=16, expert_parallel_size=16)
    plan = grouped(parallelism=sizes, replicas=1)
    (work,) = plan.workloads
    assert work.model is not None
    model = replace(work.model, identifier="deepseek-ai/DeepSeek-V3", revision=None)
    changed = replace(work, model=model, engine=replace(work.engine, name=engine))
    return replace(plan, workloads=(changed,))


def generated(count: int, seed: int) -> Iterator[tuple[str, Plan]]:
    """Of every second one SGLang is the engine of its services."""
    for number in range(count):
        tree = manifest(number, seed)
        for work in tree["workloads"] if number % 2 else ():
            if work["task"] == "inference":
                work["engine"] = {"name": "sglang"}
        for work in tree["workloads"]:
            if work["task"] == "finetuning":  # without one a warning says that nothing starts
                work["dataset"] = {"name": "example-org/dialogues"}
        plan = planned(tree)
        if plan is not None:
            yield f"manifest {number} of seed {seed}", plan


def models(of: Iterable[Case]) -> set[tuple[str, str | None]]:
    """Identifiers and revisions."""
    wanted = set()
    for case in of:
        work = case.start.workload
        if work.model is not None:
            wanted.add((work.model.identifier, work.model.revision))
        drafts = work.serving.speculative if work.serving else None
        if drafts is not None and drafts.model is not None:
            wanted.add((drafts.model, drafts.revision))
    return wanted


def asked(engine: str, folder: Path) -> list[tuple[Case, dict[str, Any]]]:
    """Each case of an engine, with its answer."""
    mine = [c for c in cases() if c.engine == engine]
    python = places.folder() / "bin" / "python"
    said = subprocess.run(
        [python, "-P", places.HERE / "ask_types.py"], capture_output=True, text=True, check=True
    ).stdout
    there = hub.write(folder, json.loads(said.splitlines()[-1]), models(mine))
    mine = [
        c for c in mine if c.start.workload.model and c.start.workload.model.identifier in there
    ]
    skipped = 3 if engine == "sglang" else 1  # python3 -m sglang.launch_server, vllm
    words = [list(c.start.words[skipped:]) for c in mine]
    return list(zip(mine, install.ask(engine, words, folder), strict=True))


def refused(answers: Iterable[tuple[Case, dict[str, Any]]]) -> list[str]:
    return [
        f"{case.name}, {case.start.workload.name}: {answer['error']}\n{case.start.words}"
        for case, answer in answers
        if "error" in answer
    ]


def differences(case: Case, answer: dict[str, Any]) -> Iterator[str]:
    """What the engine would run with, and the plan says otherwise."""
    work, serving = case.start.workload, case.start.workload.serving
    assert serving is not None
    sizes = work.parallelism
    expected: dict[str, Any] = {"pipeline": sizes.pipeline_parallel_size}
    if work.model is not None and work.model.revision is not None:
        expected["revision"] = work.model.revision
    if serving.images is None:
        expected |= {
            "max_model_len": serving.max_model_len,
            "max_num_batched_tokens": serving.max_num_batched_tokens,
            "data": sizes.data_parallel_size,
        }
    expected["max_num_seqs"] = serving.max_num_seqs
    for name, value in expected.items():
        if answer[name] != value:
            yield f"{case.name}, {work.name}: {name} is {answer[name]}, planned {value}"


@pytest.mark.usefixtures("parsers")
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_servers_take_what_they_are_told(engine: str, tmp_path: Path) -> None:
    answers = asked(engine, tmp_path)
    assert len(answers) >= 10
    assert refused(answers) == []
    assert [d for case, answer in answers for d in differences(case, answer)] == []


@pytest.mark.usefixtures("parsers")
def test_sglang_reads_each_checkpoint_as_what_made_it_says(tmp_path: Path) -> None:
    """Without the flag it would run experts of NVFP4 by kernels that some GPUs have not, and with
    it alone a model that drafts as if it were of NVFP4 too."""
    ((_, answer),) = [(c, a) for c, a in asked("sglang", tmp_path) if c.name == "modelopt"]
    assert (answer["quantization"], answer["quantization_of_drafts"]) == ("modelopt_fp4", None)
    assert answer["moe_runner_backend"] == "flashinfer_cutlass"


@pytest.mark.usefixtures("parsers")
def test_parts_of_a_replica_are_parts_of_one_engine(tmp_path: Path) -> None:
    """Both make one configuration with as many ranks, each its own."""
    found = [(c, a) for c, a in asked("vllm", tmp_path) if c.start.workload.nodes_per_replica > 1]
    assert {c.start.index for c, _ in found} == {0, 1}
    for case, answer in found:
        work = case.start.workload
        groups = work.parallelism.data_parallel_size
        if groups > 1:
            here = groups // work.nodes_per_replica
            assert answer["local"] == here, case
            assert answer["start"] == here * case.start.index, case
        else:
            assert answer["nodes"] == work.nodes_per_replica, case
            assert answer["rank"] == case.start.index, case


@pytest.mark.usefixtures("parsers")
def test_prompts_and_answers_are_engines_that_hand_caches_over(tmp_path: Path) -> None:
    """One of each kind, by the connector that their release has."""
    found = [a["transfer"] for c, a in asked("vllm", tmp_path) if c.start.workload.disaggregation]
    assert {tuple(t) for t in found} == {
        ("NixlConnector", "kv_producer"),
        ("NixlConnector", "kv_consumer"),
    }


def painters() -> list[Case]:
    """The services of images, one of them on two GPUs and of another size, one of videos."""
    mine = [c for c in cases() if c.engine == "vllm-omni"]
    made = []
    for case in mine:
        work = case.start.workload
        assert work.image_generation is not None
        images = replace(work.image_generation, width=1536, height=640, steps=7)
        sizes = replace(work.parallelism, tensor_parallel_size=2)
        changed = replace(work, image_generation=images, parallelism=sizes)
        (other,) = starts(replace(case.plan, workloads=(changed,)))
        film = replace(work, image_generation=replace(work.image_generation, frames=81))
        (video,) = starts(replace(case.plan, workloads=(film,)))
        made += [case, Case(f"{case.name}, changed", case.plan, other)]
        made += [Case(f"{case.name}, of videos", case.plan, video)]
    return made


@pytest.mark.usefixtures("parsers")
def test_vllm_omni_takes_what_it_is_told() -> None:
    mine = painters()
    questions = [list(c.start.words[1:]) for c in mine]
    answers = install.ask("vllm-omni", [*questions, [*questions[0], "--max-pixels=1"]])
    assert "unrecognized arguments: --max-pixels=1" in answers.pop()["error"]
    assert len(mine) >= 2
    assert refused(zip(mine, answers, strict=True)) == []
    for case, answer in zip(mine, answers, strict=True):
        work = case.start.workload
        images = work.image_generation
        assert images is not None
        assert work.model is not None
        assert answer["omni"]
        assert answer["port"] == images.port
        assert answer["name"] == [work.model.identifier]
        assert answer["tensor"] == work.parallelism.tensor_parallel_size
        usual = {"num_inference_steps": images.steps}
        if images.frames is None:
            assert answer["pixels"] == images.width * images.height
        else:
            size = {"width": images.width, "height": images.height}
            usual |= {**size, "num_frames": images.frames}
        assert json.loads(answer["sampling"]) == {"0": usual}
        assert set(usual) <= set(answer["sampled"])


@pytest.mark.usefixtures("parsers")
def test_axolotl_takes_its_configuration_and_starts_torchrun() -> None:
    mine = [c for c in cases() if c.engine == "axolotl"]
    answers = install.ask("axolotl", [_question(c) for c in mine])
    found = list(zip(mine, answers, strict=True))
    assert len(found) >= 5
    assert refused(found) == []
    for case, answer in found:
        work = case.start.workload
        assert answer["unknown"] == [], case.name
        assert work.training is not None
        assert answer["steps"] == work.training.steps
        assert answer["micro_batch"] == work.training.micro_batch
        told = answer["command"]
        assert told["module"] == "axolotl.cli.train"
        assert told["gpus"] == str(work.gpus_per_node)
        assert told["nodes"] == str(work.nodes_per_replica)
        assert told["standalone"] == (work.nodes_per_replica == 1)
        if work.nodes_per_replica > 1:
            assert told["rank"] == case.start.index


def _question(case: Case) -> dict[str, Any]:
    work = case.start.workload
    return {
        "configuration": _configuration(work),
        "words": list(case.start.words[1:]),
        "gpus": work.gpus_per_node * work.nodes_per_replica,
        "nodes": work.nodes_per_replica,
    }


def _configuration(work: Workload) -> str:
    launch = start(work, first="first")
    assert isinstance(launch, Launch)
    return dict(launch.files)["axolotl.yaml"]


@pytest.mark.usefixtures("parsers")
def test_the_parsers_refuse_what_is_wrong(tmp_path: Path) -> None:
    """Else the tests above could not fail."""
    vllm = next(c for c in cases() if c.name == "assistant-70b" and c.engine == "vllm")
    hub.write(tmp_path, {"LlamaForCausalLM": "llama"}, models([vllm]))
    words = [w for w in vllm.start.words[1:] if not w.startswith("--tensor-parallel-size")]
    wrong = (
        ("--no-such-flag=1", "unrecognized arguments"),
        ("--tensor-parallel-size=7", "must be divisible by tensor parallel size"),
        ("--max-model-len=99999999", "greater than the derived max_model_len"),
    )
    answers = install.ask("vllm", [[*words, more] for more, _ in wrong], tmp_path)
    for (_, said), answer in zip(wrong, answers, strict=True):
        assert said in answer["error"]
    (tuned,) = install.ask(
        "axolotl", [_question(_tuning()) | {"configuration": "sequence_length: 5"}]
    )
    assert "error" in tuned


def _tuning() -> Case:
    return next(c for c in cases() if c.engine == "axolotl")


def test_the_kubelet_expands_what_a_pod_is_told() -> None:
    assert expanded("$(A)-$$(A)-$(B)", {"A": "1"}) == "1-$(A)-$(B)"
