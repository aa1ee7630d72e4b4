"""A run that trains a network on images, worked out a second time by hand: what its ranks exchange,
what its loader brings, and what it is held up by."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from gpuplan.models.load import known
from gpuplan.models.model import Vision
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.sizing.data.vision import UNSEEN_FACTORS
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import inverse
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.physics.vision.correction import features
from gpuplan.sizing.physics.vision.training import MODE, Looking
from tests.support.sizing_cases import offer

LINK, INSIDE, FABRIC, STORAGE = 300e9, 200e9, 40e9, 2e9  # B/s
GLOBAL, PIXELS, FILE, STEPS = 1024.0, 2e5, 1.1e5, 5000.0
WAYS = {
    "alone": (1, 1, {}),
    "two": (2, 1, {"link_rate": LINK}),
    "a node": (8, 1, {"link_rate": LINK}),
    "two nodes": (16, 2, {"inside_rate": INSIDE, "fabric_rate": FABRIC}),
    "slow links": (16, 2, {"inside_rate": INSIDE / 20, "fabric_rate": FABRIC}),
}


def run(way: str, storage: float | None = STORAGE) -> Looking:
    gpus, nodes, rates = WAYS[way]
    model = known("google/vit-large-patch16-224")
    assert isinstance(model, Vision)
    load = {
        "global_batch": GLOBAL,
        "pixels_mean": PIXELS,
        "file_bytes": FILE,
        "steps": STEPS,
        "gpus": float(gpus),
        "nodes": float(nodes),
        **rates,
        **({} if storage is None else {"storage_bytes_per_s": storage}),
    }
    return Looking(
        model=model,
        device=whole(offer("h100-sxm-80gb")),
        load={name: Quantity(number, "1", "a test") for name, number in load.items()},
        usable=Quantity(0.9, "1", "a test"),
        confidence=0.5,
        anchors=Anchors(),
    )


def exchanged(way: str, gradients: float) -> float:
    """Each rank sends all but its own part of the gradients twice: reduced, and gathered again."""
    gpus, _, rates = WAYS[way]
    sent = 2 * gradients * (1 - 1 / gpus)
    return sent / min(rates.values()) if rates else 0.0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("micro", [4.0, 16.0])
def test_a_step_computes_and_exchanges(way: str, micro: float) -> None:
    told = run(way).compute(micro)
    weights = 4 * told["parameters"]
    assert told["weights_bytes"] == told["gradients_bytes"] == weights
    assert told["optimizer_bytes"] == 2 * weights
    kept = told["gpu_memory"] - 4 * weights - told["context_bytes"]
    assert kept == pytest.approx(4 * micro * told["activations"], abs=1)
    assert told["usable_bytes"] == int(told["memory_bytes"] * 0.9)
    gpus = WAYS[way][0]
    assert told["gradient_accumulation_steps"] == pytest.approx(GLOBAL / gpus / micro)
    image = max(told["least_seconds"], told["image_seconds"] / told["rate_correction"])
    assert told["gpu_image_seconds"] == pytest.approx(image)
    assert told["compute_seconds"] == pytest.approx(image * GLOBAL / gpus)
    assert told["exchange_seconds"] == pytest.approx(exchanged(way, weights))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("storage", [None, STORAGE, STORAGE / 1000])
@pytest.mark.parametrize("cores", [0.2, 8.0])
def test_the_slowest_of_gpus_cores_and_storage_holds_a_step_up(
    way: str, storage: float | None, cores: float
) -> None:
    gpus, nodes, _ = WAYS[way]
    told = run(way, storage).at(16.0, cores)
    ahead = told["compute_seconds"] + told["exchange_seconds"]
    decoded = GLOBAL * PIXELS / told["decode_rate"] / (gpus * cores)
    stored = 0.0 if storage is None else GLOBAL * FILE / (storage * nodes)
    seconds = max(ahead, decoded, stored)
    assert told["decoded_seconds"] == pytest.approx(decoded)
    assert told["stored_seconds"] == pytest.approx(stored)
    assert told["step_seconds"] == pytest.approx(seconds)
    assert told["time_to_finish"] == pytest.approx(STEPS * seconds)
    for name, taken in (("", seconds), ("gpu_", ahead), ("decoded_", decoded)):
        assert told[f"{name}images_per_second"] == pytest.approx(GLOBAL / taken), name
    if storage is None:
        assert "stored_images_per_second" not in told
    else:
        assert told["stored_images_per_second"] == pytest.approx(GLOBAL / stored)


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("google/vit-large-patch16-224", math.log2(1024)),
        ("timm/resnet50.a1_in1k", math.log2(25_560_000) / 2 - 4),  # of its weights: it has none
    ],
)
def test_a_network_stands_among_the_measured_ones_by_its_width(name: str, width: float) -> None:
    model = known(name)
    assert isinstance(model, Vision)
    place = features(model.network, model.profile, f"h100-sxm-80gb {MODE}")
    assert place["width"] == pytest.approx(width)
    assert place["pixels"] == pytest.approx(math.log2(224))
    assert place["gpu"] == "h100-sxm-80gb"


@pytest.mark.parametrize(("gpu", "corrected"), [("rtx-3090-24gb", True), ("h100-sxm-80gb", False)])
def test_points_correct_the_runs_of_the_gpu_that_they_are_of(gpu: str, *, corrected: bool) -> None:
    """Elsewhere the formulas stand alone, with the interval of what was not measured."""
    there = replace(run("alone"), device=whole(offer(gpu)))
    factors, basis = there.interval
    unseen = inverse(UNSEEN_FACTORS)
    assert (there.corrected.factor == 1.0) != corrected
    assert (factors == unseen) != corrected
    assert basis == ("calibrated" if corrected else "extrapolated")
