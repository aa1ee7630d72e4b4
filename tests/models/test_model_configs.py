"""Configurations that cannot be counted: refused, with all that is wrong, by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.manifest.parts import ModelDimensions
from gpuplan.models.configs import from_config
from gpuplan.models.load import BUNDLED
from gpuplan.models.model import Transformer
from gpuplan.resolve.models import find_model
from gpuplan.source import Origin

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def model(config: dict[str, Any]) -> Transformer:
    return from_config(config, "some/model", None, "a test", Origin("config.json"))


def bundled_config(identifier: str) -> dict[str, Any]:
    path = BUNDLED / f"{identifier.replace('/', '--')}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["config"])


def rejected(config: dict[str, Any]) -> tuple[Diagnostic, ...]:
    with pytest.raises(Rejected) as caught:
        model(config)
    return caught.value.diagnostics


def test_unknown_architecture_is_refused_by_name() -> None:
    (problem,) = rejected(LLAMA | {"architectures": ["LlamaForCasualLM"]})
    assert problem.rule == "GP011"
    assert "'LlamaForCasualLM'" in problem.message
    assert problem.help == "did you mean 'LlamaForCausalLM'?"
    assert problem.origin == Origin("config.json", ("architectures",))
    (problem,) = rejected({"architectures": ["RwkvForCausalLM"]})
    assert "Qwen3ForCausalLM" in problem.help


@pytest.mark.parametrize("named", [[], ["A", "B"], "LlamaForCausalLM", [7]])
def test_one_architecture_is_wanted(named: object) -> None:
    (problem,) = rejected(LLAMA | {"architectures": named})
    assert (problem.rule, problem.label) == ("GP012", "a list of one name is wanted")


def test_no_architecture() -> None:
    (problem,) = rejected({"_class_name": "FluxPipeline"})
    assert (problem.rule, problem.origin) == ("GP012", Origin("config.json"))


@pytest.mark.parametrize("field", sorted(LLAMA.keys() - {"architectures", "num_key_value_heads"}))
def test_missing_dimension_is_named(field: str) -> None:
    (problem,) = rejected({k: v for k, v in LLAMA.items() if k != field})
    assert problem.rule == "GP012"
    assert f"'{field}'" in problem.message
    assert problem.origin == Origin("config.json", (field,))


def test_missing_number_of_kv_heads() -> None:
    """Llama has as many as query heads then; the class of Mistral would say 8."""
    fields = {k: v for k, v in LLAMA.items() if k != "num_key_value_heads"}
    assert model(fields).kv_heads == 32
    mistral = {"architectures": ["MistralForCausalLM"], "sliding_window": None}
    (problem,) = rejected(fields | mistral)
    assert "'num_key_value_heads'" in problem.message


@pytest.mark.parametrize("value", [0, -1, 10**9, "4096", 4096.0, True, [4096]])
def test_absurd_dimension_is_named_with_what_is_wanted(value: object) -> None:
    (problem,) = rejected(LLAMA | {"hidden_size": value})
    assert problem.rule == "GP012"
    assert repr(value) in problem.message
    assert problem.label == "a whole number from 1 to 400,000 is wanted"


def test_all_problems_are_reported_at_once_and_each_once() -> None:
    fields = bundled_config("deepseek-ai/DeepSeek-V3")
    fields |= {"num_hidden_layers": 0, "qk_rope_head_dim": None, "n_routed_experts": "many"}
    problems = rejected(fields | {"tie_word_embeddings": "no"})
    assert sorted(p.origin.path[0] for p in problems if isinstance(p.origin, Origin)) == [
        "n_routed_experts",
        "num_hidden_layers",
        "qk_rope_head_dim",
        "tie_word_embeddings",
    ]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"num_key_value_heads": 5}, "'num_attention_heads' (32) is not a multiple of"),
        ({"hidden_size": 4097}, "'hidden_size' (4097) is not a multiple of"),
    ],
)
def test_dimensions_that_do_not_go_together(fields: dict[str, Any], words: str) -> None:
    (problem,) = rejected(LLAMA | fields)
    assert words in problem.message


def test_more_experts_than_there_are() -> None:
    (problem,) = rejected(bundled_config("openai/gpt-oss-20b") | {"num_experts_per_tok": 33})
    assert "'num_experts_per_tok' (33) is more than 'num_local_experts' (32)" in problem.message


@pytest.mark.parametrize(("stated", "streams"), [({"hc_mult": 2}, 2), ({}, 4)])
def test_residual_streams_are_those_that_are_stated(stated: dict[str, int], streams: int) -> None:
    config = bundled_config("deepseek-ai/DeepSeek-V4-Flash")
    assert model(config | stated).residual_streams == streams
    assert model(bundled_config("Qwen/Qwen3-30B-A3B")).residual_streams == 1


COUNTED = Path(__file__).with_name("model_counts.jsonl")
CONFIGS = [
    bundled_config(name)
    for name in (
        "deepseek-ai/DeepSeek-V3",
        "google/gemma-2-9b-it",
        "meta-llama/Llama-3.1-8B",
        "microsoft/phi-4",
        "mistralai/Mixtral-8x7B-v0.1",
        "openai/gpt-oss-20b",
        "Qwen/Qwen2.5-7B-Instruct",
        "Qwen/Qwen3-30B-A3B",
        "Qwen/Qwen3-VL-2B-Instruct",
        "Qwen/Qwen3.5-27B",
        "MiniMaxAI/MiniMax-M3",
        "XiaomiMiMo/MiMo-V2-Flash",
        "deepseek-ai/DeepSeek-V4-Flash",
        "google/gemma-3-4b-it",
        "google/gemma-4-26B-A4B",
        "meta-llama/Llama-4-Scout-17B-16E-Instruct",
        "moonshotai/Kimi-K2.5",
        "moonshotai/Kimi-Linear-48B-A3B-Instruct",
        "nvidia/Llama-3_3-Nemotron-Super-49B-v1",
        "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
        "zai-org/GLM-5.2",
    )
] + [
    case["config"]
    for case in map(json.loads, COUNTED.read_text("utf-8").splitlines())
    if "layer_types" not in case["config"]
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)


@given(st.data())
def test_whatever_a_configuration_says_it_is_counted_or_refused(data: st.DataObject) -> None:
    fields = dict(data.draw(st.sampled_from(CONFIGS)))
    parts = [name for name, value in fields.items() if isinstance(value, dict)]
    whole = fields
    if parts and data.draw(st.booleans()):
        part = data.draw(st.sampled_from(parts))
        whole = fields | {part: dict(fields[part])}
        fields = whole[part]
    for name in data.draw(st.sets(st.sampled_from(sorted(fields)), max_size=4)):
        fields[name] = data.draw(JSON)
    try:
        found = model(whole)
    except Rejected as refusal:
        rules = {d.rule for d in refusal.diagnostics}
    else:
        rules = set()
        assert 0 < found.active_parameters <= found.parameters
        assert found.active_linear_parameters <= found.linear_parameters < found.parameters
    assert rules <= {"GP011", "GP012"}


@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "T5ForConditionalGeneration"])
def test_an_encoder_is_no_model_of_a_manifest(architecture: str) -> None:
    """Its parameters can be counted, but it neither writes text nor has a vector or a score."""
    configs = [c for c in CONFIGS if c["architectures"] == [architecture]]
    spec = ModelDimensions(name="some/encoder", config=configs[0])
    with pytest.raises(Rejected) as caught:
        find_model(spec, Path(), Origin("manifest.yaml"))
    (problem,) = caught.value.diagnostics
    assert problem.rule == "GP007"
    assert architecture in problem.message


@pytest.mark.parametrize(
    ("identifier", "field", "part"),
    [
        ("Qwen/Qwen3.5-27B", "layer_types", "text_config"),
        ("google/gemma-4-31B-it", "layer_types", "text_config"),
    ],
)
def test_a_kind_of_layer_that_nobody_counts_is_refused_by_its_field(
    identifier: str, field: str, part: str
) -> None:
    config = bundled_config(identifier)
    within = config.get(part, config)
    within[field] = ["spiral_attention", *within[field][1:]]
    (problem,) = rejected(config)
    assert problem.rule == "GP012"
    assert "full_attention" in problem.label
    assert isinstance(problem.origin, Origin)
    assert problem.origin.path[-1] == field


@pytest.mark.parametrize("named", [[[[]]], [{}], [None], "LlamaForCausalLM", []])
def test_an_architecture_that_is_no_name_is_refused(named: object) -> None:
    (problem,) = rejected(LLAMA | {"architectures": named})
    assert problem.origin == Origin("config.json", ("architectures",))


@pytest.mark.parametrize("form", [[], {}, [[]]])
def test_a_format_that_is_no_name_is_refused(form: object) -> None:
    config = {"quant_method": "compressed-tensors", "format": form, "config_groups": {}}
    assert rejected(LLAMA | {"quantization_config": config})
