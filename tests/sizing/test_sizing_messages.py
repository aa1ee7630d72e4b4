"""What the sizing says to people, and what it looks measured points up by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.models.load import bundled
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Lack, Shortfall
from gpuplan.sizing.calibration.gaussian import NOBODYS
from gpuplan.sizing.calibration.served import features
from gpuplan.sizing.decide.messages import describe
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.memory.training import framework_memory
from gpuplan.units import GIB
from tests.support.sizing_cases import (
    CHAT_8B,
    FULL_8B,
    IMAGES,
    LORA_70B,
    NOTEBOOKS,
    offer,
    refusals,
    site,
    sized,
)


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (
            "    task: inference\n    model: meta-llama/Llama-3.1-8B\n",
            "an inference workload needs",
        ),
        ("    task: training\n    model: meta-llama/Llama-3.1-8B\n", "a training workload needs"),
        ("    task: notebook\n", "a notebook workload needs 'notebook"),
        ("    task: batch\n    model: meta-llama/Llama-3.1-8B\n", "a batch workload needs 'load"),
    ],
)
def test_what_a_task_needs_reads_as_a_sentence(workload: str, words: str) -> None:
    assert refusals(workload)[0].label.startswith(words)


def test_what_a_task_does_not_use_is_said_with_who_does() -> None:
    (refusal,) = refusals(NOTEBOOKS + "    precision: bf16\n")
    assert refusal.message == "'precision' is not used by a notebook workload"
    assert refusal.help.startswith("remove it; it belongs to: ")
    (refusal,) = refusals(CHAT_8B + "    training: {steps: 3}\n")
    assert refusal.message == "'training.steps' is not used by an inference workload"


def test_images_for_a_language_model_are_to_be_counted_as_tokens() -> None:
    """Removed alone, they would be work that nobody sized."""
    images = (
        "    load: {requests_per_second: 2, output_tokens: 9, input_tokens: 9, images: 64x64}\n"
    )
    text = "    task: inference\n    model: Qwen/Qwen3-VL-8B-Instruct\n" + images
    refusal = refusals(text)[0]
    assert refusal.message == "'load.images.mean' is not used by an inference workload"
    assert refusal.help.endswith("count the tokens of a request's images in 'load.input_tokens'")


def test_training_of_a_model_of_images_is_refused_by_its_name() -> None:
    text = FULL_8B.replace("meta-llama/Llama-3.1-8B", "black-forest-labs/FLUX.1-dev")
    (refusal,) = refusals(text)
    assert "an image model (black-forest-labs/FLUX.1-dev)" in refusal.message


@pytest.mark.parametrize(("storage", "said"), [(None, True), (1e9, False)])
def test_a_dataset_with_a_rate_asks_what_the_storage_gives(
    storage: float | None, said: bool
) -> None:
    read = FULL_8B + "    dataset: {name: a/b, size: 1 TB, rate: 10 MB/s}\n"
    given = None if storage is None else Quantity(storage, "B/s", "test")
    made = sized(read, replace(site(), storage_bytes_per_s=given))
    told = [d for d in made.diagnostics if "the bandwidth of the storage" in d.message]
    assert bool(told) == said


@pytest.mark.parametrize(
    ("storage", "gpus", "said"), [(None, 16, True), (1e9, 16, False), (None, 8, False)]
)
def test_a_run_over_nodes_asks_how_fast_its_checkpoints_are_written(
    storage: float | None, gpus: int, said: bool
) -> None:
    """On one node it is not counted."""
    given = None if storage is None else Quantity(storage, "B/s", "test")
    text = f"{FULL_8B}    overrides: {{gpu_count: {gpus}}}\n"
    made = sized(text, replace(site("h100-sxm-80gb"), storage_bytes_per_s=given))
    assert made.workload.nodes_per_replica == gpus // 8
    told = [d for d in made.diagnostics if "the bandwidth of the storage" in d.message]
    assert bool(told) == said


@pytest.mark.parametrize(
    ("lack", "resource", "unit", "words"),
    [
        (None, "gpu_memory", "B", "gpu_memory: needs 74 GiB, has 44 GiB"),
        ("unknown", "fp8 peak", "1", "the catalogue does not know its fp8 peak"),
        ("unmeasured", "kernels", "1", "no measured kernels stand for it"),
        ("unstated", "fabric", "1", "several nodes need fabric, which is not stated"),
    ],
)
def test_a_gate_is_said_with_its_numbers_or_in_words(
    lack: Lack | None, resource: str, unit: str, words: str
) -> None:
    short = Shortfall(
        resource=resource,
        requested=70.0 * GIB,
        used=4.0 * GIB,
        capacity=44.0 * GIB,
        unit=unit,
        lack=lack,
    )
    assert describe(short) == words


def notes(workload: str, *gpus: str, **changes: object) -> list[str]:
    """All but that the checkpoints' storage has no price, which is said of every run here."""
    said = (d.message for d in sized(workload, site(*gpus, **changes)).diagnostics)
    return [message for message in said if "is not priced" not in message]


def test_a_run_of_more_than_two_weeks_that_nothing_limits_is_said() -> None:
    def long_runs(text: str) -> list[str]:
        return [n for n in notes(text, "h100-sxm-80gb") if "cheapest way to run it" in n]

    long = FULL_8B.replace("1e9", "1e12")
    (said,) = long_runs(long.replace("slo: {finish_within: 2 d}", ""))
    assert said.startswith("'work' takes ")
    assert long_runs(long.replace("2 d", "60000 d")) == []
    assert long_runs(FULL_8B.replace("slo: {finish_within: 2 d}", "")) == []


def test_a_dataset_of_unknown_size_has_no_volume_and_that_is_said() -> None:
    (said,) = notes(LORA_70B.replace(", size: 1 GB", ""), "h200-sxm-141gb")
    assert "the size of the dataset" in said
    assert notes(LORA_70B, "h200-sxm-141gb") == []


def test_idle_hours_are_said_with_their_price() -> None:
    (answer,) = (sized(IMAGES, site("h100-sxm-80gb")),)
    (said,) = (d.message for d in answer.diagnostics if "idle" in d.message)
    assert answer.workload.usd_per_hour is not None
    daily = float(answer.workload.usd_per_hour) * 10
    assert said == f"'work' is idle 10 h a day, ${daily:,.0f} a day: nothing scales it"


def point(name: str, engine: str = "vllm", **changes: object) -> dict[str, str | float]:
    model = bundled(name)
    assert isinstance(model, Transformer)
    gpu = offer("h100-sxm-80gb").gpu
    values = {"concurrency": 32.0, "input": 1024.0, "output": 256.0, "tp": 4} | changes
    return features(model, gpu, engine, "0.11", "fp8", **values)  # type: ignore[arg-type]


def test_a_served_model_stands_among_measured_ones_by_its_kind_and_load() -> None:
    dense = point("meta-llama/Llama-3.1-8B-Instruct", dp=2, pp=2)
    assert (dense["kind"], dense["generation"], dense["version"]) == ("dense", "hopper", "0.11")
    load = [dense[name] for name in ("batch", "input", "output", "gpus")]
    assert load == [5.0, 10.0, 8.0, 4.0]
    assert str(dense["layout"]).endswith("|h100-sxm-80gb|vllm|fp8|tp 4|dp 2|ep 1|pp 2")
    assert point("deepseek-ai/DeepSeek-V3")["kind"] == "mixture"


@pytest.mark.parametrize(
    ("model", "engine", "recorded"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "vllm", True),
        ("meta-llama/Llama-3.1-8B-Instruct", "tensorrt-llm", True),
        ("meta-llama/Llama-3.1-8B-Instruct", "sglang", False),
        ("deepseek-ai/DeepSeek-V3", "tensorrt-llm", False),
        ("deepseek-ai/DeepSeek-V3", "vllm", True),
    ],
)
def test_settings_that_sources_leave_out_set_points_apart(
    model: str, engine: str, recorded: bool
) -> None:
    assert (point(model, engine)["unrecorded"] == NOBODYS) == recorded


def test_bytes_of_a_weight_that_is_not_trained() -> None:
    def frozen(*, quantized: bool) -> tuple[float, str]:
        scope = framework_memory("trainer", "adamw", None, adapter=True, quantized=quantized)
        each = scope["frozen_bytes_each"]
        return round(each.value, 3), each.source

    assert frozen(quantized=False) == (2.0, "constant: bf16")
    assert frozen(quantized=True) == (0.516, "constant: a frozen weight, nf4")


def test_adapters_have_states_of_their_own_and_quantized_runs_more_of_the_frameworks() -> None:
    full = framework_memory("trainer", "adamw-8bit", None, adapter=False, quantized=False)
    lora = framework_memory("trainer", "adamw-8bit", None, adapter=True, quantized=True)
    names = ("gradient_bytes_each", "optimizer_bytes_each", "step_bytes_each")
    assert [full[n].value for n in names] == [2, 2, 12]
    assert [lora[n].value for n in names] == [2, 12, 8]
    assert full["optimizer_bytes_each"].source == "constant: adamw-8bit"
    assert "adapters" in lora["optimizer_bytes_each"].source
    assert lora["fixed_bytes"].value == pytest.approx(2.122e9 + 0.4478e9)
    assert (full["loss_bytes"].value, lora["loss_bytes"].value) == (16.17, 9.034)


def test_two_lengths_of_a_run_are_both_named() -> None:
    (refusal,) = refusals(FULL_8B.replace("tokens: 1e9", "tokens: 1e9, steps: 4"))
    assert "both say how long the run is" in f"{refusal.message} {refusal.label}"
    assert "'training.steps'" in f"{refusal.message} {refusal.label}"
    assert "'training.tokens'" in f"{refusal.message} {refusal.label}"
