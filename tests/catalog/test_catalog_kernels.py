"""What is said of engines' kernels: sound, and of models and GPUs that are known."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from ruamel.yaml import YAML

from gpuplan.catalog.compile import DATA
from gpuplan.catalog.compiling.consistency import check_kernels
from gpuplan.catalog.documents.file import CatalogFile
from gpuplan.catalog.kernels import engine_kernels, tuned_products
from gpuplan.catalog.load import load_catalog
from gpuplan.models.families.registry import architectures

GPUS = (
    "h100-sxm-80gb",
    "b200-sxm-180gb",
    "b300-sxm-288gb",
    "rtx-pro-6000-server",
    "mi300x-192gb",
    "mi355x-288gb",
)


def document(name: str, before: str = "", after: str = "") -> Any:
    """A checked file of the catalogue, with one of its texts replaced."""
    text = (DATA / f"{name}.yaml").read_text("utf-8")
    assert not before or text.count(before) == 1
    tree = YAML(typ="safe", pure=True).load(text.replace(before, after) if before else text)
    return CatalogFile.model_validate(tree).root


@pytest.mark.parametrize(
    ("name", "before", "after", "problem"),
    [
        ("aiter", "architecture: cdna4", "architecture: cdna9", "GPU of architecture 'cdna9'"),
        ("vllm", '"10.3", since', '"11.", since', "GPU of compute capability '11.'"),
        ("sglang", '"9.", models', '"9.9", models', "GPU of compute capability '9.9'"),
    ],
)
def test_they_speak_of_gpus_that_are_there(
    name: str, before: str, after: str, problem: str
) -> None:
    gpus = {gpu: document(f"gpus/{gpu}") for gpu in GPUS}
    sound = document(f"kernels/{name}")
    assert list(check_kernels({"gpus": gpus, "kernels": {name: sound}})) == []
    changed = document(f"kernels/{name}", before, after)
    problems = list(check_kernels({"gpus": gpus, "kernels": {name: changed}}))
    assert problems == [f"kernels/{name}.yaml: no {problem}"]


@pytest.mark.parametrize(
    ("name", "before", "after", "problem"),
    [
        ("aiter", "architecture: cdna4", "architecture: cdna3", "architecture twice: cdna3"),
        ("vllm", '"10.3", since', '"9.", since', "capability twice: 9."),
        ("vllm", '{capability: "10.", models', "{models", "for a capability or for a vendor"),
        ("vllm", "source: stages}", "source: drafts}", "a source that nothing names: stages"),
        ("vllm", 'since: "0.18"', 'since: "18"', "scaled_within.since"),
        ("vllm", 'until: "0.11"', 'until: "0.8"', "launched_attention ends before it begins"),
        ("sglang", "[Qwen3NextForCausalLM,", "[GptOssForCausalLM,", "twice: GptOssForCausalLM"),
        ("sglang", "models: [MiniMaxM2ForC", "models: [Qwen3MoeForC", "model twice: Qwen3MoeFor"),
        ("sglang", 'since: "0.5.13"', 'since: "0.5.21"', "missing_experts ends before it"),
    ],
)
def test_a_file_that_is_not_sound_is_refused(
    name: str, before: str, after: str, problem: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        document(f"kernels/{name}", before, after)
    assert problem in str(caught.value)


def test_every_model_that_they_name_is_one_that_can_be_planned() -> None:
    known = architectures()
    files = {n: document(f"kernels/{n}") for n in ("aiter", "sglang", "vllm")}
    named = [m for f in files.values() for row in f.fused_models or () for m in row.models]
    begin = [m for f in files.values() for row in f.fused_by_recipes for m in row.models]
    begin += [m for f in files.values() for row in f.tuned_products for m in row.models]
    begin += [m for f in files.values() if f.exchanged_norms for m in f.exchanged_norms.models]
    begin += [m for f in files.values() for row in f.graphed_steps for m in row.models or ()]
    assert len(named) == 14
    rows = [row for f in files.values() for row in (*f.chosen_experts, *f.missing_experts)]
    named += [model for row in rows for model in row.models]
    assert set(named) <= set(known)
    assert {b for b in begin if not any(name.startswith(b) for name in known)} == set()


def test_the_longest_beginning_of_a_capability_says_the_release() -> None:
    catalog, vllm = load_catalog(), engine_kernels("vllm")
    assert vllm is not None
    since = {
        name: vllm.fused_since(gpu, "LlamaForCausalLM")
        for name in ("h100-sxm-80gb", "b200-sxm-180gb", "b300-sxm-288gb", "l40s", "mi300x-192gb")
        if (gpu := catalog.gpu(name))
    }
    assert since == {
        "h100-sxm-80gb": (0, 17),
        "b200-sxm-180gb": (0, 17),
        "b300-sxm-288gb": (0, 19),
        "l40s": None,
        "mi300x-192gb": None,
    }


@pytest.mark.parametrize(
    ("gpu", "model", "release", "told"),
    [
        ("b200-sxm-180gb", "MiniMaxM2ForCausalLM", (0, 5, 15), False),  # CUTLASS's kernels
        ("b200-sxm-180gb", "MiniMaxM2ForCausalLM", (0, 5, 16), True),
        ("gb300-288gb", "MiniMaxM2ForCausalLM", (0, 5, 17), True),
        ("b200-sxm-180gb", "MiniMaxM2ForCausalLM", (0, 5, 18), False),  # it chooses TRT-LLM's
        ("b200-sxm-180gb", "MixtralForCausalLM", (0, 5, 18), True),
        ("b200-sxm-180gb", "DeepseekV3ForCausalLM", (0, 5, 16), False),
        ("rtx-pro-6000-server", "MiniMaxM2ForCausalLM", (0, 5, 16), False),
        ("h200-sxm-141gb", "MiniMaxM2ForCausalLM", (0, 5, 16), False),  # Marlin's
    ],
)
def test_sglang_is_told_kernels_of_experts_where_a_release_chooses_none(
    gpu: str, model: str, release: tuple[int, ...], told: bool
) -> None:
    known, sglang = load_catalog().gpu(gpu), engine_kernels("sglang")
    assert known is not None
    assert sglang is not None
    assert (sglang.experts.told(release, known, model) is not None) is told


@pytest.mark.parametrize(
    ("gpu", "release", "lacks"),
    [
        ("b200-sxm-180gb", (0, 5, 15), False),
        ("b200-sxm-180gb", (0, 5, 16), True),
        ("rtx-pro-6000-server", (0, 5, 13), True),
        ("rtx-pro-6000-server", (0, 5, 21), False),
    ],
)
def test_sglang_runs_no_experts_of_llama_4_in_some_releases(
    gpu: str, release: tuple[int, ...], lacks: bool
) -> None:
    known, sglang = load_catalog().gpu(gpu), engine_kernels("sglang")
    assert known is not None
    assert sglang is not None
    assert sglang.experts.lacks(release, known, "Llama4ForConditionalGeneration") is lacks
    assert not sglang.experts.lacks(release, known, "MiniMaxM2ForCausalLM")


def test_recipes_are_of_a_capability_or_of_a_maker() -> None:
    catalog, sglang = load_catalog(), engine_kernels("sglang")
    assert sglang is not None
    asked = {
        (name, model)
        for name in ("h200-sxm-141gb", "mi355x-288gb", "l40s")
        for model in ("DeepseekV3ForCausalLM", "Qwen3_5MoeForConditionalGeneration")
        if (gpu := catalog.gpu(name)) and sglang.asked(gpu, model)
    }
    assert asked == {
        ("h200-sxm-141gb", "DeepseekV3ForCausalLM"),
        ("h200-sxm-141gb", "Qwen3_5MoeForConditionalGeneration"),
        ("mi355x-288gb", "Qwen3_5MoeForConditionalGeneration"),
    }


def test_kernels_are_tuned_for_a_hidden_size_on_an_architecture() -> None:
    gpus = load_catalog()
    mi300x, mi355x = gpus.gpu("mi300x-192gb"), gpus.gpu("mi355x-288gb")
    assert mi300x is not None
    assert mi355x is not None
    assert tuned_products(mi300x, "Qwen3MoeForCausalLM", 4096)
    assert not tuned_products(mi300x, "Qwen3MoeForCausalLM", 6144)
    assert not tuned_products(mi300x, "MiniMaxM2ForCausalLM", 3072)
    assert tuned_products(mi355x, "MiniMaxM2ForCausalLM", 3072)
    assert engine_kernels("tei") is None


@pytest.mark.parametrize(
    ("release", "model", "told", "tokens"),
    [
        ((0, 9, 2), "LlamaForCausalLM", 64, 512),
        ((0, 10), "LlamaForCausalLM", 64, 128),
        ((0, 20), "LlamaForCausalLM", 1024, 512),
        ((0, 20), "LlamaForCausalLM", None, 512),
        ((0, 10, 1), "GptOssForCausalLM", 64, 128),
        ((0, 11, 2), "GptOssForCausalLM", 64, 992),
        ((0, 12), "GptOssForCausalLM", 64, 1024),
    ],
)
def test_a_release_says_up_to_how_many_tokens_steps_are_graphs(
    release: tuple[int, ...], model: str, told: float | None, tokens: int
) -> None:
    vllm = engine_kernels("vllm")
    assert vllm is not None
    row = vllm.graphed(release, model)
    assert row is not None
    assert row.most(told) == tokens


def test_no_release_before_the_engine_that_splits_graphs_has_any() -> None:
    vllm, sglang = engine_kernels("vllm"), engine_kernels("sglang")
    assert vllm is not None
    assert sglang is not None
    assert vllm.graphed((0, 7, 3), "LlamaForCausalLM") is None
    assert sglang.graphed((0, 5, 9), "LlamaForCausalLM") is None


@pytest.mark.parametrize(
    ("release", "model", "tokens"),
    [
        ((0, 5, 10), "LlamaForCausalLM", 2048),
        ((0, 5, 14), "DeepseekV3ForCausalLM", 2048),
        ((0, 5, 15), "DeepseekV3ForCausalLM", 0),
        ((0, 5, 14), "Qwen3NextForCausalLM", 0),
        ((0, 5, 15), "Qwen3NextForCausalLM", 2048),
        ((0, 5, 15), "Qwen3_5MoeForConditionalGeneration", 0),
        ((0, 5, 16), "Qwen3_5MoeForConditionalGeneration", 2048),
    ],
)
def test_sglang_leaves_models_out_until_their_prompts_can_be_recorded(
    release: tuple[int, ...], model: str, tokens: int
) -> None:
    sglang = engine_kernels("sglang")
    assert sglang is not None
    row = sglang.graphed(release, model)
    assert row is not None
    assert row.most(None) == tokens
