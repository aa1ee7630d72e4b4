"""Image pipelines: what is scored is what plans say, and more GPUs and scenarios than they have."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gpuplan.accuracy.metrics.benchmarks import CONVERGENCE, STEP, Load, reference
from gpuplan.accuracy.metrics.video import DIVIDED
from gpuplan.accuracy.predict import reckon
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.sizing.evidence.formula import CONSTANTS, Quantity
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.kinds.images.search import replica
from gpuplan.sizing.physics.images.denoising import Images, Runtime
from gpuplan.sizing.physics.images.pipeline import pipeline
from gpuplan.sizing.physics.vision.network import INFERENCE, TRAINING
from tests.accuracy.test_accuracy_vision import SDXL, estimate, point
from tests.support.dimensions import dimension, parse, same
from tests.support.sizing_cases import IMAGES, offer, wanted

FLUX = {
    "kind": "inference",
    "model": "flux.1-dev",
    "gpu": "H100-SXM-80GB",
    "n_gpus": "1",
    "precision": "bf16",
    "input_len": "1024px",
    "output_len": "28 steps",
    "batch": "1",
    "engine": "xDiT torch.compile",
    "metric": "image_latency",
}


def reckoned(row: dict[str, str], **changed: str) -> Reckoned:
    answer = reckon(point(row, **changed))
    assert isinstance(answer, Reckoned)
    return answer


@pytest.mark.parametrize(("precision", "batch"), [("bf16", 1), ("bf16", 4), ("fp8", 1)])
def test_an_image_is_scored_with_the_time_and_interval_of_a_plan(
    precision: str, batch: int
) -> None:
    demand = cast(Any, wanted(IMAGES.replace("load:", f"precision: {precision}\n    load:")))
    planned = replica(demand, whole(offer("h100-sxm-80gb")))
    (low, high), basis = planned.corrected.interval
    found = estimate(FLUX, precision=precision, batch=str(batch))
    seconds = planned.at(batch)["batch_seconds"]
    assert found.value == pytest.approx(seconds, rel=1e-8)
    assert (found.low, found.high) == pytest.approx((seconds * low, seconds * high), rel=1e-8)
    assert found.basis == basis


def test_mlperf_s_images_are_scored_with_the_rate_of_a_plan() -> None:
    pixels = Quantity(1024.0**2, "1", "test")
    of = Images(pixels=pixels, largest_pixels=pixels, denoising_steps=Quantity(20.0, "1", "test"))
    runtime = Runtime(device=whole(offer("h100-sxm-80gb")), precision="fp8", engine="tensorrt")
    model = point(SDXL).case.model  # type: ignore[union-attr]
    planned = pipeline(cast(Any, model), runtime, of, Anchors())
    found = estimate(SDXL)
    assert found.value == pytest.approx(8 / planned.at(1)["batch_seconds"], rel=1e-8)
    (low, high), basis = planned.corrected.interval
    assert (found.low, found.high) == pytest.approx((found.value / high, found.value / low))
    assert found.basis == basis == "calibrated"


def test_scenarios_are_relative_to_what_a_plan_assumes() -> None:
    offline = reckoned(SDXL)
    server = reckoned(SDXL, metric="mlperf_server_samples_per_s")
    assert server.value == pytest.approx(0.95 * offline.value)
    newer = reckoned(SDXL, engine="TensorRT 10.8, CUDA 12.8")
    assert newer.value == pytest.approx(1.09 * offline.value)
    assert reckoned(SDXL, engine="TensorRT 10.7").value == offline.value
    saving = reckoned(SDXL, locator="8xH100_MaxQ/sdxl")
    assert saving.value == pytest.approx(0.76 * offline.value)
    card = reckoned(SDXL, gpu="H100-PCIe-80GB")
    cards = reckoned(SDXL, gpu="H100-PCIe-80GB", metric="mlperf_server_samples_per_s")
    assert cards.value == pytest.approx(0.87 * card.value)
    assert reckoned(SDXL, n_gpus="1").value == pytest.approx(offline.value / 8)
    assert offline.best is not None
    assert offline.best > offline.value
    place = reckoned(SDXL, notes="MLPerf v4.1 closed ACME scenario", engine="shark-ai 1.0").features
    assert (place["submitter"], place["engine"], place["own"]) == ("ACME", "shark-ai", "shark-ai")


def test_several_gpus_divide_the_tokens_and_exchange_them() -> None:
    """Eight bytes a token and unit of width are exchanged by two GPUs at 60 % of 450 GB/s."""
    one, two = reckoned(FLUX), reckoned(FLUX, n_gpus="2")
    decode = 1024**2 * (4.3e-7 + 7.9e7 / 989.4e12)
    exchange = 28 * 57 * (8 * 4096 / 2 * 3072 / 2 / (0.6 * 450e9))
    assert two.value - 0.145 - decode == pytest.approx(
        (one.value - 0.145 - decode) / 2 + exchange, rel=1e-3
    )
    ring = reckoned(FLUX, n_gpus="2", notes="Ring-2")
    assert ring.value - two.value == pytest.approx(28 * 57 * 6e-5, rel=1e-6)
    assert two.best == pytest.approx(cast(float, one.best) / 2)
    assert (one.features["gpus"], two.features["gpus"]) == (0, 1)


def test_a_compiler_spares_what_lies_between_products() -> None:
    eager, compiled = reckoned(FLUX, engine="xDiT"), reckoned(FLUX)
    moved = 28 * 57 * 4096 * 3072 * 176 / 3.35e12
    assert eager.value - compiled.value == pytest.approx(moved, rel=1e-2)


def test_what_was_measured_of_no_kind_is_said_widely() -> None:
    answer = reckon(point(FLUX, precision="fp8"))
    assert isinstance(answer, Estimate)
    assert answer.basis == "extrapolated"
    assert answer.high / answer.low == pytest.approx(1.7 / 0.7)


UNITS = {
    "peak": "FLOP/s",
    "bf16_peak": "FLOP/s",
    "bandwidth": "B/s",
    "exchange_rate": "B/s",
    "elementwise_bytes": "B",
    "update_bytes": "B",
    "sample_flop": "FLOP",
    "pixel_decode_flop": "FLOP",
} | dict.fromkeys(
    (
        "pixel_decode_seconds",
        "start_seconds",
        "ring_step_seconds",
        "image_launch_seconds",
        "step_overhead",
        "scale_overhead",
    ),
    "s",
)


@pytest.mark.parametrize("sheet", [DIVIDED, INFERENCE, TRAINING, STEP, STEP + CONVERGENCE])
def test_every_line_has_the_unit_of_its_text(sheet: Sheet) -> None:
    units = UNITS | {name: quantity.unit for name, quantity in CONSTANTS.items()}
    for name, formula in sheet.lines:
        known = {n: units.get(n, "1") for n in formula.names}
        same(dimension(formula.expression, known), parse(formula.unit), name)
        units[name] = formula.unit


def test_a_step_of_mlperf_training_is_its_samples_and_what_grows_with_the_gpus() -> None:
    step = {
        "sample_flop": 2e12,
        "bf16_peak": 1e15,
        "fraction": 0.5,
        "software": 2.0,
        "global_batch": 640.0,
        "gpus": 64.0,
        "step_overhead": 0.01,
        "scale_overhead": 0.002,
    }
    values = STEP(dict(step))
    assert values["sample_seconds"] == 0.004
    assert values["step_seconds"] == pytest.approx(2 * (10 * 0.004 + 0.01 + 3 * 0.002))
    assert values["samples_per_second"] == pytest.approx(640 / 0.112)
    few = STEP(step | {"gpus": 4.0})
    assert few["step_seconds"] == pytest.approx(2 * (160 * 0.004 + 0.01))
    numbers = {
        "reference_samples": 2000.0,
        "excess": 1.1,
        "precision_samples": 1.5,
        "samples_per_second": 3.0,
    }
    values = CONVERGENCE(numbers)
    assert values["samples_needed"] == pytest.approx(3300)
    assert values["seconds_to_train"] == pytest.approx(1100)


@pytest.mark.parametrize(
    ("of_round", "batch", "samples"),
    [
        (4.0, 256, 2561066),  # the smallest batch of the round has 384
        (4.1, 256, 2048000),
        (5.1, 256, 1706667),  # what 5.0 found
        (5.0, 3000, 4002690),  # no larger one
        (5.0, 768, 2471000),
    ],
)
def test_samples_to_the_target_are_of_the_reference(
    of_round: float, batch: float, samples: float
) -> None:
    load = Load(benchmark="sd", gpus=8, batch=batch, round=of_round, software="usual")
    assert reference(load) == pytest.approx(samples, rel=2e-3)
