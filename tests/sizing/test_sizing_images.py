"""Image services: what a person sees of their speed, and how sure it is."""

from __future__ import annotations

import pytest

from gpuplan.plan.model import Metric
from gpuplan.sizing.hardware.offers import Site
from tests.support.sizing_cases import IMAGE_BATCH, IMAGES, site, sized, work


def image_seconds(workload: str, where: Site) -> float:
    found = sized(workload, where).evidence
    return next(e.value for e in found if e.quantity == "work.batch_seconds")


def latency(workload: str, where: Site) -> Metric:
    return next(m for m in work(workload, where).metrics if m.name == "request_latency")


def test_attention_makes_large_images_slower_than_their_pixels() -> None:
    large = IMAGES.replace("1024x1024", "2048x2048").replace("15 s", "90 s")
    where = site("h100-sxm-80gb")
    ratio = image_seconds(large, where) / image_seconds(IMAGES, where)
    assert 5 < ratio < 8  # 4 times the pixels, 16 times the pairs of tokens


def test_an_image_in_fp8_is_faster_but_for_attention() -> None:
    where = site("h100-sxm-80gb")
    low = IMAGES.replace("load:", "precision: fp8\n    load:")
    assert 0.6 < image_seconds(low, where) / image_seconds(IMAGES, where) < 0.95


def test_a_pipeline_measured_on_the_gpu_is_surer_than_elsewhere() -> None:
    here, there = latency(IMAGES, site("h100-sxm-80gb")), latency(IMAGES, site("l40s"))
    assert (here.estimate.basis, there.estimate.basis) == ("calibrated", "extrapolated")

    def spread(found: Metric) -> float:
        return found.estimate.high / found.estimate.low

    assert spread(here) < 1.25
    assert spread(there) > 1.4


@pytest.mark.parametrize(("gpu", "rate"), [("h100-sxm-80gb", 2.04), ("l40s", 0.684)])
def test_sdxl_makes_what_was_measured(gpu: str, rate: float) -> None:
    found = work(IMAGE_BATCH, site(gpu))
    metric = next(m for m in found.metrics if m.name == "images_per_second")
    assert metric.estimate.value / found.replicas == pytest.approx(rate, rel=0.05)
    assert metric.estimate.basis == "calibrated"
