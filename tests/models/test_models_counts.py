"""Parameters of every architecture, held against an implementation that is not ours.

`model_counts.jsonl` has configurations and the parameters that the modelling code of transformers
5.23.0 makes of them on PyTorch's meta device (2026-11-21). Biases by which routers correct their
scores are buffers there and parameters here: checkpoints hold them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.models.configs import from_config
from gpuplan.models.families.registry import architectures
from gpuplan.models.further import aliases, further, further_names
from gpuplan.models.load import bundled, bundled_names
from gpuplan.models.model import Transformer
from gpuplan.source import Origin

COUNTS = [
    json.loads(line)
    for line in Path(__file__).with_name("model_counts.jsonl").read_text("utf-8").splitlines()
]
# Models that bring their own modelling code: published totals alone. Sources: keras
# (keras-team/keras-hub@71453d08), hub (huggingface.co/api/models/NAME, safetensors.total), card.
FURTHER = {
    "bert-large": 335_141_888,  # keras
    "bloom-560m": 559_214_592,  # keras
    "falcon-180b": 179e9,  # arXiv 2311.16867
    "gemma-4-e2b": 4_628_569_344,  # transformers, its text model
    "gemma-4-e4b": 7_463_013_376,  # transformers, its text model
    "gemma3-1b": 999_885_952,  # keras
    "gemma-7b": 8_537_680_896,  # keras
    "gpt2-xl": 1_557_611_200,  # keras
    "gpt3-175b": 175e9,  # arXiv 2005.14165
    "ministral-3-14b": 13.5e9,  # card, its language model
    "mistral-7b": 7_241_732_096,  # keras
    "nemotron4-340b": 341e9,  # arXiv 2406.11704
    "pythia-12b": 11_846_072_320,  # EleutherAI/pythia, README
    "pythia-6.9b": 6_857_302_016,  # EleutherAI/pythia, README
    "qwen1.5-moe-a2.7b": 14_315_784_192,  # keras
    "step-3.5-flash": 196_956_130_368,  # transformers, Step 3.7's text model
    "t5-v1.1-xl": 2_849_757_184,  # keras
    "t5-v1.1-xxl": 11_135_332_352,  # keras
}


def model(config: dict[str, Any]) -> Transformer:
    return from_config(config, "some/model", None, "a test", Origin("config.json"))


def router_biases(found: Transformer) -> int:
    return found.experts.layers * found.experts.count if found.experts else 0


@pytest.mark.parametrize(
    "case", COUNTS, ids=[f"{i}-{c['config']['architectures'][0]}" for i, c in enumerate(COUNTS)]
)
def test_parameters_are_those_of_the_modelling_code(case: dict[str, Any]) -> None:
    found = model(case["config"])
    assert found.parameters - case["parameters"] in {0, router_biases(found)}


def test_every_architecture_has_a_model_that_was_counted() -> None:
    counted = {case["config"]["architectures"][0] for case in COUNTS}
    counted |= {further(name).architecture for name in further_names().values()}
    models = [bundled(name) for name in bundled_names()]
    counted |= {found.architecture for found in models if isinstance(found, Transformer)}
    variants = {"ChatGLMForConditionalGeneration", "Llama4ForCausalLM"}
    variants |= {"MiniMaxM1ForCausalLM", "MiniMaxText01ForCausalLM"}  # of one network
    variants |= set(HEADLESS) | set(SCORING)  # see the tests below
    assert set(architectures()) - counted <= variants


@pytest.mark.parametrize("name", FURTHER)
def test_models_of_the_table_have_their_published_parameters(name: str) -> None:
    assert further(name).parameters == pytest.approx(FURTHER[name], rel=0.006)
    if isinstance(FURTHER[name], int):
        assert further(name).parameters == FURTHER[name]


@pytest.mark.parametrize("name", sorted(set(further_names().values())))
def test_models_of_the_table_can_be_read(name: str) -> None:
    found = further(name)
    assert found.source.startswith(f"model: {name} (")
    assert found.linear_parameters < found.parameters


def test_other_names_are_of_bundled_models() -> None:
    assert set(aliases().values()) <= set(bundled_names())


# Decoders without their head for tokens, and what has that head.
HEADLESS = {
    "LlamaModel": "LlamaForCausalLM",
    "MistralModel": "MistralForCausalLM",
    "Qwen2Model": "Qwen2ForCausalLM",
    "Qwen3Model": "Qwen3ForCausalLM",
}
DECODER = {
    "hidden_size": 2048,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 5504,
    "vocab_size": 160000,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "sliding_window": None,
}


@pytest.mark.parametrize("architecture", HEADLESS)
def test_a_headless_decoder_lacks_the_head_alone(architecture: str) -> None:
    bare = model({**DECODER, "architectures": [architecture]})
    whole = model({**DECODER, "architectures": [HEADLESS[architecture]]})
    assert bare.parameters == whole.parameters - 160000 * 2048
    assert (bare.pooling, whole.pooling) == ("embed", None)


# Classifiers: what they have beside the network without a head, by width and labels. Modelling code
# of huggingface/transformers 5.23.
SCORING = {
    "BertForSequenceClassification": ("BertModel", lambda h, n: (h + 1) * n),
    "RobertaForSequenceClassification": ("RobertaModel", lambda h, n: (h + 1) * n),
    "ModernBertForSequenceClassification": (
        "ModernBertModel",
        lambda h, n: h * h + h + (h + 1) * n,
    ),
    "Qwen3ForSequenceClassification": ("Qwen3Model", lambda h, n: h * n),
}


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("architecture", SCORING)
def test_a_classifier_has_a_layer_more(architecture: str, labels: int) -> None:
    base, more = SCORING[architecture]
    names = {str(n): f"LABEL_{n}" for n in range(labels)}
    fields = {**DECODER, "num_key_value_heads": 16, "local_attention": 128}
    bare = model({**fields, "architectures": [base]})
    whole = model({**fields, "architectures": [architecture], "id2label": names})
    assert whole.parameters == bare.parameters + more(2048, labels)
    assert whole.pooling == "score"
