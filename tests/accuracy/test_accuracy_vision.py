"""Vision networks and diffusion: what is predicted, from which facts, and what is refused."""

from __future__ import annotations

from dataclasses import fields

import pytest

from gpuplan.accuracy.points.denoisers import find_denoiser
from gpuplan.accuracy.points.points import Case, Point, _point
from gpuplan.accuracy.predict import predict, reckon
from gpuplan.accuracy.reckon import Reckoned
from gpuplan.models.images.networks import find_network
from gpuplan.plan.model import Estimate
from gpuplan.sizing.calibration.anchors import Anchors

TIMM = {
    "kind": "inference",
    "model": "vit_base_patch16_224",
    "gpu": "RTX-4090-24GB",
    "n_gpus": "1",
    "precision": "amp fp16",
    "input_len": "224px",
    "batch": "512",
    "engine": "timm pt2.4",
    "metric": "images_per_s",
}
VIDEO = {
    "kind": "inference",
    "model": "hunyuanvideo-13b",
    "gpu": "H20-96GB",
    "n_gpus": "1",
    "precision": "bf16",
    "input_len": "1280x720x129f",
    "output_len": "50 steps",
    "batch": "1",
    "engine": "xDiT",
    "metric": "video_latency",
}
SDXL = {
    "kind": "inference",
    "model": "stable-diffusion-xl",
    "gpu": "H100-SXM-80GB",
    "n_gpus": "8",
    "precision": "fp8",
    "engine": "TensorRT 10.2.0, CUDA 12.4",
    "metric": "mlperf_offline_samples_per_s",
}


def point(row: dict[str, str], **changed: str) -> Point:
    columns = ("tp", "pp", "cp", "ep", "dp", "sharding", "recompute", "method", "seq_len", "unit")
    blank = dict.fromkeys((*columns, "input_len", "output_len", "batch", "global_batch"), "")
    found = _point(blank | {"notes": "", "value": "1"} | row | changed)
    assert found is not None
    return found


def estimate(row: dict[str, str], **changed: str) -> Estimate:
    found = predict(point(row, **changed), Anchors())
    assert isinstance(found, Estimate), found
    return found


def refused(row: dict[str, str], **changed: str) -> str:
    found = predict(point(row, **changed), Anchors())
    assert isinstance(found, str)
    return found


def test_attention_of_a_vit_is_counted_from_its_dimensions() -> None:
    network = find_network("vit_base_patch16_224")
    assert network is not None
    profile = network.at(224)
    tokens, width, blocks, heads = 196, 768, 12, 12
    assert profile.attention_macs == pytest.approx(2 * blocks * tokens**2 * width, rel=1e-4)
    assert profile.attention_activations == pytest.approx(blocks * heads * tokens**2, rel=1e-4)


def test_swin_attends_within_its_windows() -> None:
    narrow, wide = find_network("swinv2_base_window8_256"), find_network("swinv2_base_window16_256")
    assert narrow is not None
    assert wide is not None
    ratio = wide.at(256).attention_activations / narrow.at(256).attention_activations
    assert 3.5 < ratio < 4  # four times the pairs, but for the last stage, which is 8 x 8


def test_a_size_that_is_not_in_the_table_is_scaled() -> None:
    network = find_network("resnet50")
    assert network is not None
    assert 320 not in {p.pixels for p in network.profiles}
    assert network.at(320).macs == pytest.approx(network.at(288).macs * (320 / 288) ** 2)
    vit = find_network("vit_base_patch16_224")
    assert vit is not None
    assert vit.at(448).attention_macs == pytest.approx(16 * vit.at(224).attention_macs)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("vit_base_patch32_224_sam", "vit_base_patch32_224"),
        ("vit_base_patch16_224.augreg_in21k", "vit_base_patch16_224"),
        ("deit3_large_patch16_384_in21ft1k_no", ""),
    ],
)
def test_training_tags_change_no_dimension(name: str, same: str) -> None:
    found, wanted = find_network(name), find_network(same)
    assert (found and found.profiles) == (wanted and wanted.profiles)


def test_what_other_blocks_cost_more_is_slower() -> None:
    plain = estimate(TIMM, model="vit_base_patch16_clip_224")
    assert estimate(TIMM, model="vit_base_patch16_clip_quickgelu_224").value < 0.9 * plain.value
    assert estimate(TIMM, gpu="RTX-3090-24GB").value < 0.6 * estimate(TIMM).value
    assert estimate(TIMM, model="vit_base_patch16_384", input_len="384px").value < plain.value / 3


def test_networks_and_gpus_never_measured_get_a_wide_interval() -> None:
    known, other = estimate(TIMM), estimate(TIMM, model="regnety_160")
    assert known.basis == "calibrated"
    assert known.high / known.low < 1.15
    assert (other.basis, estimate(TIMM, gpu="L40S-48GB").basis) == ("extrapolated", "extrapolated")
    assert other.high / other.low > 2


def test_no_prediction_beats_the_peak() -> None:
    for name in ("vit_base_patch16_224", "resnet50", "convnextv2_base", "efficientnet_b0"):
        answer = reckon(point(TIMM, model=name))
        assert isinstance(answer, Reckoned)
        assert answer.best is not None
        assert answer.value < answer.best


def test_training_is_slower_than_three_times_inference() -> None:
    row = {"kind": "training", "seq_len": "224px", "gpu": "RTX-3090-24GB", "engine": "timm pt1.12"}
    once = estimate(TIMM, gpu="RTX-3090-24GB").value
    assert once / 6 < estimate(TIMM | row).value < once / 2.5


def test_a_video_takes_what_its_tokens_take() -> None:
    denoiser = find_denoiser("hunyuanvideo-13b")
    assert denoiser is not None
    assert 1280 * 720 * 129 / denoiser.token_pixels(129) == 33 * 45 * 80
    one, eight = estimate(VIDEO), estimate(VIDEO, n_gpus="8")
    assert one.low < 6639 < one.high
    assert one.value / 8 < eight.value < one.value / 6
    assert estimate(VIDEO, input_len="640x360x129f").value < one.value / 8


def test_attention_of_a_newer_gpu_is_not_as_fast_as_its_peak() -> None:
    h20, h100 = estimate(VIDEO), estimate(VIDEO, gpu="H100-SXM-80GB")
    assert 3 < h20.value / h100.value < 5  # the peaks differ 6.7 times
    assert h100.basis == "extrapolated"


def test_what_is_not_given_is_said() -> None:
    assert refused(VIDEO, output_len="") == "the number of denoising steps is not given"
    assert refused(VIDEO, input_len="1280x720") == "the number of frames is not given"
    assert refused(VIDEO, input_len="") == "the resolution is not given"
    assert "not planned" in refused(VIDEO, precision="fp8", gpu="A100-SXM-80GB")
    assert "not planned" in refused(VIDEO, precision="fp32")
    assert refused(TIMM, input_len="") == "the size of the images is not given"
    assert "fp32" in refused(SDXL, precision="fp32")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("FLUX.1-schnell", "black-forest-labs/FLUX.1-schnell"),
        (
            "stable-diffusion-3-medium",
            "stabilityai/stable-diffusion-3-medium-diffusers",
        ),
        ("Wan-AI/Wan2.1-T2V-14B-Diffusers", "wan-14b"),
        ("wan2.1-t2v-1.3b", "wan-1.3b"),
        ("CogVideoX1.5-5B", "cogvideox1.5-5b"),
        ("pixart-sigma", "PixArt-alpha/PixArt-Sigma-XL-2-1024-MS"),
        ("hunyuanvideo-1.5", None),
        ("llama3-8b", None),
    ],
)
def test_names_of_pipelines(name: str, known: str | None) -> None:
    found = find_denoiser(name)
    assert (found.identifier if found else None) == known


def test_sdxl_at_the_server_is_slower_and_of_newer_releases_faster() -> None:
    offline = estimate(SDXL)
    assert offline.value == pytest.approx(16.3, rel=0.02)
    server = estimate(SDXL, metric="mlperf_server_samples_per_s")
    assert 0.9 * offline.value < server.value < offline.value
    newer = estimate(SDXL, gpu="H200-SXM-141GB", engine="TensorRT 10.8, CUDA 12.8")
    assert newer.value > 1.05 * estimate(SDXL, gpu="H200-SXM-141GB").value


def test_an_estimate_never_sees_the_value() -> None:
    assert "value" not in {f.name for f in fields(Case)}
    found = [predict(point(TIMM, value=v), Anchors()) for v in ("1", "9999")]
    assert found[0] == found[1]


def test_images_are_trained_or_classified_as_the_row_says() -> None:
    assert refused(TIMM, kind="") == "the column 'kind' says neither 'training' nor 'inference'"
    row = {name: text for name, text in TIMM.items() if name != "kind"}
    assert refused(row) == refused(TIMM, kind="")
