"""Image pipelines, number by number: times, memory, corrections and the replicas that they take."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu
from gpuplan.models.load import bundled
from gpuplan.models.model import Denoiser, Diffusion, Unet
from gpuplan.sizing.calibration.anchors import Anchors, Field
from gpuplan.sizing.calibration.corrections import SteadyCorrection
from gpuplan.sizing.data.images import UNMEASURED
from gpuplan.sizing.evidence.formula import CONSTANTS, Ledger, Quantity
from gpuplan.sizing.hardware.devices import Device, partitions, whole
from gpuplan.sizing.hardware.measured import NotMeasured
from gpuplan.sizing.kinds.images.load import CAPACITY, FINISH, ROOM, needed, room, served_by
from gpuplan.sizing.kinds.images.search import SizedPipeline, load_limit, replica
from gpuplan.sizing.physics.images.correction import (
    correction,
    denoiser_features,
    unet_features,
)
from gpuplan.sizing.physics.images.denoising import Images, Runtime, unet_part, unmeasured
from gpuplan.sizing.physics.images.pipeline import Pipeline, pipeline
from tests.support.dimensions import dimension, parse, same
from tests.support.sizing_cases import (
    IMAGE_BATCH,
    IMAGES,
    failure,
    offer,
    site,
    sized,
    wanted,
    work,
)

H100_BF16, H100_FP8, H100_BYTES_PER_S = 989.4e12, 1978.9e12, 3.35e12  # the datasheet's
FLUX = "black-forest-labs/FLUX.1-dev"
SDXL = "stabilityai/stable-diffusion-xl-base-1.0"
FLUX_LINEAR = 2 * 12 * 3072**2 * 57 * 4608  # 64 x 64 patches and 512 tokens of text
FLUX_ATTENTION = 2 * 2 * 57 * 3072 * 4608**2
BATCH_16 = IMAGE_BATCH.replace("    precision: fp8\n", "")


def model(name: str) -> Diffusion:
    found = bundled(name)
    assert isinstance(found, Diffusion)
    return found


def gpu(name: str) -> Gpu:
    found = load_catalog().gpu(name)
    assert found is not None
    return found


def images(side: int, largest: int | None = None, steps: int = 20) -> Images:
    return Images(
        pixels=Quantity(float(side * side), "1", "test"),
        largest_pixels=Quantity(float((largest or side) ** 2), "1", "test"),
        denoising_steps=Quantity(float(steps), "1", "test"),
    )


def runtime(
    card: str = "h100-sxm-80gb", precision: str = "bf16", engine: str = "vllm-omni"
) -> Runtime:
    return Runtime(device=whole(offer(card)), precision=precision, engine=engine)


def uncorrected(name: str, on: Runtime, of: Images) -> Pipeline:
    made = pipeline(model(name), on, of, Anchors())
    return replace(made, corrected=replace(made.corrected, anchors=None))


def field(factor: float, low: float = 0.9, high: float = 1.2, *, known: bool = True) -> Field:
    """Points that say the same everywhere."""
    says = SimpleNamespace(factor=factor, low=low, high=high, known=known)
    stub = SimpleNamespace(factor=lambda _: factor, correction=lambda _: says)
    return cast(Field, stub)


def slice_of_h100() -> Device:
    """One of seven slices."""
    return next(partitions(offer("h100-sxm-80gb"), site(target="kubernetes")))


# --- time of a transformer ------------------------------------------------------------------------


def test_a_step_of_flux_takes_its_tokens_through_weights_and_attention() -> None:
    values = uncorrected(FLUX, runtime(), images(1024, steps=28)).at(1)
    assert values["tokens"] == 4096
    assert values["linear_flop"] == FLUX_LINEAR
    assert values["attention_flop"] == FLUX_ATTENTION
    assert values["elementwise_seconds"] == 0
    step = (FLUX_LINEAR / 0.705 + FLUX_ATTENTION / 0.36) / H100_BF16
    assert values["step_seconds"] == pytest.approx(step, rel=1e-3)
    decode = 1024**2 * (4.3e-7 + 7.9e7 / H100_BF16)
    assert values["decode_seconds"] == pytest.approx(decode, rel=1e-3)
    assert values["formula_seconds"] == pytest.approx(0.145 + 28 * step + decode, rel=1e-3)
    least = 28 * (FLUX_LINEAR + FLUX_ATTENTION) / H100_BF16
    assert values["least_seconds"] == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize(
    ("card", "products", "attention", "flop_per_s"),
    [
        ("a100-sxm-80gb", 0.80, 0.65, 312e12),
        ("l40s", 0.55, 0.45, 362.05e12),
        ("l40", 0.75, 0.65, 181.05e12),
        ("h200-sxm-141gb", 0.705, 0.36, H100_BF16),
        ("h20-96gb", 0.85, 0.60, 148e12),
        ("b200-sxm-180gb", 0.58, 0.50, 2250e12),
    ],
)
def test_each_gpu_reaches_its_measured_parts_of_the_peak(
    card: str, products: float, attention: float, flop_per_s: float
) -> None:
    values = uncorrected(FLUX, runtime(card), images(1024)).at(1)
    step = (FLUX_LINEAR / products + FLUX_ATTENTION / attention) / flop_per_s
    assert values["step_seconds"] == pytest.approx(step, rel=1e-2)


def test_guidance_takes_every_token_twice() -> None:
    values = uncorrected("stable-diffusion-3.5-large", runtime(), images(1024)).at(1)
    tokens = 64 * 64 + 333
    assert values["linear_flop"] == 2 * 2 * 12 * 2432**2 * 38 * tokens
    assert values["attention_flop"] == 2 * 2 * 2 * 38 * 2432 * tokens**2


@pytest.mark.parametrize(("engine", "seconds"), [("vllm-omni", 0.0), ("diffusers", 0.0377)])
def test_an_engine_that_does_not_fuse_moves_what_lies_between_products(
    engine: str, seconds: float
) -> None:
    values = uncorrected(FLUX, runtime(engine=engine), images(1024)).at(1)
    assert values["elementwise_seconds"] == pytest.approx(seconds, rel=1e-2)
    moved = 57 * 4096 * 3072 * 176 / H100_BYTES_PER_S
    assert seconds in (0.0, pytest.approx(moved, rel=1e-2))
    fused = uncorrected(FLUX, runtime(), images(1024)).at(1)["step_seconds"]
    assert values["step_seconds"] == pytest.approx(fused + seconds, rel=1e-2)


def test_in_fp8_attention_and_decoder_stay_in_bf16() -> None:
    low = uncorrected(FLUX, runtime(precision="fp8"), images(1024)).at(1)
    step = FLUX_LINEAR / (0.705 * 0.57 * H100_FP8) + FLUX_ATTENTION / (0.36 * H100_BF16)
    assert low["step_seconds"] == pytest.approx(step, rel=1e-3)
    wide = uncorrected(FLUX, runtime(), images(1024)).at(1)
    assert low["decode_seconds"] == wide["decode_seconds"]
    least = 20 * (FLUX_LINEAR + FLUX_ATTENTION) / H100_FP8
    assert low["least_seconds"] == pytest.approx(least, rel=1e-3)


def test_a_batch_and_a_slice_take_as_much_longer() -> None:
    one, three = (uncorrected(FLUX, runtime(), images(1024)).at(n) for n in (1, 3))
    start = 0.145
    assert three["formula_seconds"] - start == pytest.approx(3 * (one["formula_seconds"] - start))
    assert three["least_seconds"] == pytest.approx(3 * one["least_seconds"])
    part = Runtime(device=slice_of_h100(), precision="bf16", engine="vllm-omni")
    sliced = uncorrected(FLUX, part, images(1024)).at(1)
    assert sliced["formula_seconds"] - start == pytest.approx(7 * (one["formula_seconds"] - start))
    assert sliced["least_seconds"] == pytest.approx(7 * one["least_seconds"])


# --- time of a UNet -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("precision", "rate"), [("bf16", 0.413 * H100_BF16), ("fp8", 0.289 * H100_FP8)]
)
def test_a_unet_grows_with_its_pixels_and_its_attention_with_their_square(
    precision: str, rate: float
) -> None:
    on, attention = runtime(precision=precision), 4 * (10 * 4096**2 * 640 + 60 * 1024**2 * 1280)
    for side, ratio in ((1024, 1), (2048, 4)):
        values = uncorrected(SDXL, on, images(side)).at(1)
        linear = 2 * (6_761_236_398_080 - attention) * ratio
        squared = 2 * attention * ratio**2
        assert values["linear_flop"] == linear
        assert values["attention_flop"] == squared
        step, decode = (linear + squared) / rate, 10_581_550_927_872 * ratio / rate
        assert values["step_seconds"] == pytest.approx(step, rel=1e-3)
        assert values["decode_seconds"] == pytest.approx(decode, rel=1e-3)
        assert values["formula_seconds"] == pytest.approx(20 * step + decode, rel=1e-3)


def test_small_cards_are_held_by_their_power_before_their_peak() -> None:
    measured, small = gpu("l40s"), gpu("l4")
    assert unet_part(measured, 1.0) == 0.263
    low = small.peak_fp8
    assert low is not None
    assert small.watts.value == 72
    assert unet_part(small, low.value) == pytest.approx(5.62e11 * 72 / low.value)
    assert unet_part(small, 1e12) == pytest.approx(0.287)
    assert unet_part(gpu("b200-sxm-180gb"), 1.0) == 0.231


# --- what measured points say of it ---------------------------------------------------------------


def test_times_and_rates_are_corrected_and_never_below_the_peak() -> None:
    for name, on, slower in ((FLUX, runtime(), 2.0), (SDXL, runtime(precision="fp8"), 0.5)):
        made = pipeline(model(name), on, images(1024), Anchors())
        plain = made.at(1)
        changed = made.near(field(slower), made.corrected.features).at(1)
        assert changed["batch_seconds"] == pytest.approx(2 * plain["formula_seconds"])
        fast = made.near(field(1e-3 if slower > 1 else 1e3), made.corrected.features).at(1)
        assert fast["batch_seconds"] == fast["least_seconds"]


@pytest.mark.parametrize(
    ("name", "precision", "corrected"),
    [(FLUX, "bf16", True), (FLUX, "fp8", False), (SDXL, "bf16", False), (SDXL, "fp8", True)],
)
def test_points_correct_transformers_in_16_bits_and_unets_in_8(
    name: str, precision: str, corrected: bool
) -> None:
    of = correction(model(name).denoiser, runtime(precision=precision), Anchors())
    assert (of.anchors is not None) == corrected
    assert of.name == ("time" if name == FLUX else "rate")
    assert not of.partition
    if not corrected:
        assert of.factor == 1
        assert of.interval == ((0.7, 1.7), "extrapolated")
        evidence = of.record(Ledger("work"))
        assert evidence[f"{of.name}_correction"].value == 1


def test_an_interval_of_a_rate_is_that_of_its_time_upside_down() -> None:
    low, high = 0.8, 1.1
    time = SteadyCorrection("time", {}, field(1.0, low, high), UNMEASURED)
    rate = SteadyCorrection("rate", {}, field(1.0, low, high, known=False), UNMEASURED)
    assert time.interval == ((low, high), "calibrated")
    assert rate.interval == ((1 / high, 1 / low), "extrapolated")


def test_a_slice_is_less_sure_than_the_gpu_that_was_measured() -> None:
    part = Runtime(device=slice_of_h100(), precision="bf16", engine="vllm-omni")
    of = correction(model(FLUX).denoiser, part, Anchors())
    assert of.partition
    assert of.interval == ((0.7, 1.7), "extrapolated")
    assert of.factor != 1
    assert correction(model(FLUX).denoiser, runtime(), Anchors()).interval[1] == "calibrated"


def test_where_a_pipeline_stands_among_the_measured_ones() -> None:
    dev, schnell = model(FLUX).denoiser, model("FLUX.1-schnell").denoiser
    assert isinstance(dev, Denoiser)
    assert isinstance(schnell, Denoiser)
    assert denoiser_features(dev, gpu("l40s")) == {
        "model": "57x3072 image",
        "gpu": "l40s",
        "gpus": 0.0,
    }
    assert denoiser_features(schnell, gpu("l40s"), 2.0)["gpus"] == 2
    assert denoiser_features(schnell, gpu("l40s"))["model"] == "57x3072 image"
    features = unet_features(gpu("h100-pcie-80gb"), engine="tensorrt")
    assert features["form"] == "pcie"
    assert (features["own"], features["engine"]) == ("", "tensorrt")
    assert (features["release"], features["power"]) == ("older", "full")
    assert (features["scenario"], features["submitter"]) == ("offline", "")
    newer = unet_features(gpu("h100-sxm-80gb"), engine="vllm-omni", newer=True, saving=True)
    assert (newer["form"], newer["own"]) == ("sxm", "vllm-omni")
    assert (newer["release"], newer["power"]) == ("newer", "saving")


def test_a_gpu_for_which_no_measured_pipeline_stands_is_left_out() -> None:
    unknown = replace(gpu("l40s"), identifier="some", architecture="none", measured_as=())
    transformer, unet = model(FLUX).denoiser, model(SDXL).denoiser
    assert unmeasured(transformer, unknown, "bf16")[0].resource == "image pipelines"
    assert unmeasured(unet, unknown, "fp8")[0].resource == "image pipelines"
    assert unmeasured(unet, unknown, "bf16") == unmeasured(unet, unknown, "fp16") == ()
    for denoiser, precision in ((transformer, "bf16"), (transformer, "fp8"), (unet, "fp8")):
        assert unmeasured(denoiser, gpu("l40s"), precision) == ()
    with pytest.raises(NotMeasured, match="image pipelines"):
        unet_part(unknown, 1e15)


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("precision", "bytes_each"), [("bf16", 2), ("fp8", 1)])
def test_all_modules_stay_in_memory_and_the_decoder_peaks(precision: str, bytes_each: int) -> None:
    values = uncorrected(FLUX, runtime(precision=precision), images(1024, largest=2048)).at(2)
    flux, rest = 11_901_408_320, 4_969_190_819
    assert values["weights_bytes"] == flux * bytes_each + 2 * rest
    assert values["activations_bytes"] == 2 * 4 * 3e9
    assert values["overhead_bytes"] == 1e9
    assert values["used_bytes"] == flux * bytes_each + 2 * rest + 24e9 + 1e9
    assert values["usable_bytes"] == int(0.9 * gpu("h100-sxm-80gb").memory_bytes.value)


def test_part_of_a_byte_takes_a_byte() -> None:
    """2,567,463,684 weights of nine sixteenths of a byte are a quarter over."""
    on = runtime("b200-sxm-180gb", "nvfp4")
    unet, rest = 2_567_463_684, 3_468_837_867 - 2_567_463_684
    made = uncorrected(SDXL, on, images(1024)).at(1)
    assert made["weights_bytes"] == -(-unet * 9 // 16) + 2 * rest


def test_the_record_is_what_the_search_computed() -> None:
    for workload, card in ((IMAGES, "h100-sxm-80gb"), (IMAGE_BATCH, "h100-sxm-80gb")):
        demand = cast(Any, wanted(workload))
        made, ledger = replica(demand, whole(offer(card))), Ledger("work")
        made.record(ledger, Quantity(3.0, "1", "test"))
        searched = made.at(3)
        for name, _ in made.sheet.lines:
            recorded = ledger.entries[f"work.{name}"].value
            assert searched[name] == pytest.approx(recorded, rel=1e-7), name


@pytest.mark.parametrize("workload", [IMAGES, IMAGE_BATCH, BATCH_16])
def test_every_number_of_images_has_the_unit_of_its_text(workload: str) -> None:
    evidence = [e for e in sized(workload, site("h100-sxm-80gb")).evidence if e.formula]
    assert len(evidence) > 20
    for entry in evidence:
        units = {i.name: i.unit for i in entry.inputs}
        units |= {name: quantity.unit for name, quantity in CONSTANTS.items()}
        same(dimension(entry.formula, units), parse(entry.unit), f"{entry.quantity}")


# --- replicas -------------------------------------------------------------------------------------


def test_an_m_d_1_queue_waits_for_what_the_objective_leaves() -> None:
    """Load L waits L / (2 (1 - L)) times a batch: 3 s of 2 s are L = 0.75."""
    values = ROOM({"latency_limit": 10.0, "slowness": 2.0, "batch_seconds": 2.0})
    assert values["queue_room"] == 3
    assert values["load_limit"] == pytest.approx(0.75)
    roomy = ROOM({"latency_limit": 1e6, "slowness": 1.0, "batch_seconds": 2.0})
    assert roomy["load_limit"] == 0.95
    served = {"sized_rate": 3.0, "batch_seconds": 2.0, "batch": 2.0, "replicas": 4.0}
    values = served_by(cast(Any, wanted(IMAGES)))(dict(served))
    assert values["replica_load"] == 0.75
    assert values["request_latency"] == 2 * (1 + 0.75 / 0.5)
    assert values["concurrency"] == 15
    assert CAPACITY(dict(served))["images_per_second"] == 4
    finish = {"all_requests": 800.0, "batch_seconds": 2.0, "batch": 4.0, "replicas": 5.0}
    assert FINISH(finish)["time_to_finish"] == 80


def test_replicas_are_as_many_as_the_peak_or_the_deadline_takes() -> None:
    shared = {"growth": 1.5, "slowness": 1.25, "batch_seconds": 4.0}
    sheet, _ = needed(cast(Any, wanted(IMAGES)))
    served = shared | {"peak_rate": 2.0, "batch": 2.0, "load_limit": 0.75}
    assert sheet(dict(served))["sized_rate"] == 3
    assert sheet(dict(served))["replicas"] == 10  # 3/s x 5 s over 1.5
    assert sheet(served | {"peak_rate": 2.01})["replicas"] == 11
    assert sheet(served | {"peak_rate": 1e-6})["replicas"] == 1
    sheet, inputs = needed(cast(Any, wanted(IMAGE_BATCH)))
    assert inputs["requests"].value == 100_000
    limited = shared | {"requests": 1000.0, "batch": 4.0, "time_limit": 625.0}
    assert sheet(dict(limited))["replicas"] == 3  # 1,500 x 5 s over 2,500 s
    assert sheet(limited | {"requests": 1001.0})["replicas"] == 4
    assert sheet(limited | {"requests": 1.0})["replicas"] == 1
    endless = IMAGE_BATCH.replace("    slo: {finish_within: 10 h}\n", "")
    sheet, inputs = needed(cast(Any, wanted(endless)))
    assert "time_limit" not in inputs
    assert sheet(shared | {"requests": 1e9})["replicas"] == 1


def test_without_a_latency_a_replica_is_busy_four_fifths_of_its_time() -> None:
    asked = IMAGES.replace("    slo: {request_latency: 15 s}\n", "")
    demand = cast(Any, wanted(asked))
    made = replica(demand, whole(offer("h100-sxm-80gb")))
    layout = SizedPipeline(made, 1, made.at(1))
    assert load_limit(demand, layout) == 0.8
    unlimited = room(demand)
    assert unlimited is not None
    sheet, inputs = unlimited
    assert sheet.lines == ()
    assert inputs["load_limit"].value == 0.8
    limited = cast(Any, wanted(IMAGES.replace("15 s", "1 s")))
    assert load_limit(limited, layout) == 0
    assert 0 < load_limit(cast(Any, wanted(IMAGES)), layout) < 0.95


def test_a_service_makes_one_image_at_a_time_and_a_batch_the_most_that_fit() -> None:
    where = site("h100-sxm-80gb")
    for workload, batch in ((IMAGES, 1), (IMAGE_BATCH, 8)):
        generation = work(workload, where).image_generation
        assert generation is not None
        assert generation.max_num_seqs == batch
    large = BATCH_16.replace("1024x1024, steps", "2048x2048, steps")
    generation = work(large, site("h100-sxm-80gb")).image_generation
    assert generation is not None
    assert generation.max_num_seqs == 4  # 12 GB an image beside 7 GB of weights
    chosen = IMAGE_BATCH + "    overrides: {max_num_seqs: 3}\n"
    generation = work(chosen, where).image_generation
    assert generation is not None
    assert generation.max_num_seqs == 3


def test_what_does_not_fit_is_said_with_what_it_needs() -> None:
    """37.7 GB of modules, decoder and context in nine tenths of a GPU are 39.1 GiB."""
    assert "a GPU with 39.1 GiB" in failure(IMAGES, site("l4")).help
    slow = failure(IMAGES.replace("15 s", "1 s"), site("h100-sxm-80gb")).help
    assert slow.startswith(
        "no allowed GPU reaches slo.request_latency 1 s: the best is 4.39 s on h100"
    )
    few = failure(IMAGES + "    overrides: {replicas: 1}\n", site("h100-sxm-80gb")).help
    assert few == "without it: 6 × h100-sxm-80gb at $32.00/h, with replicas 6"


def test_a_gpu_that_cannot_compute_the_precision_is_refused() -> None:
    low = IMAGES.replace("load:", "precision: fp8\n    load:")
    assert work(low, site("a100-sxm-80gb", "l40s")).gpu == "l40s"
    (refused,) = work(low, site("a100-sxm-80gb", "l40s")).alternatives
    assert refused.gpu == "a100-sxm-80gb"
    assert refused.shortfalls[0].resource == "compute capability for fp8"


def test_more_replicas_than_needed_are_taken_as_written() -> None:
    where = site("h100-sxm-80gb")
    needs = work(IMAGES, where).replicas
    more = work(IMAGES + f"    overrides: {{replicas: {needs + 2}}}\n", where)
    assert more.replicas == more.gpu_count == needs + 2
    assert work(IMAGES + f"    overrides: {{replicas: {needs}}}\n", where).replicas == needs


def test_a_plan_says_what_its_pipelines_do() -> None:
    found = work(IMAGES, site("h100-sxm-80gb"))
    entries = sized(IMAGES, site("h100-sxm-80gb")).evidence
    numbers = {e.quantity.removeprefix("work."): e.value for e in entries}
    metrics = {m.name: m for m in found.metrics}
    latency, rate = metrics["request_latency"], metrics["images_per_second"]
    assert (latency.limit, latency.sense) == (15, "at_most")
    assert (rate.limit, rate.sense) == (1, "at_least")
    assert (latency.unit, rate.unit) == ("s", "1/s")
    assert rate.estimate.value == pytest.approx(found.replicas / numbers["batch_seconds"])
    spread = latency.estimate.high / latency.estimate.value
    assert rate.estimate.low == pytest.approx(rate.estimate.value / spread, rel=1e-6)
    assert found.concurrency == numbers["concurrency"]
    assert found.resources.cpu_cores == numbers["cpu_cores_per_gpu"]
    assert found.resources.host_memory_bytes == numbers["host_memory_per_gpu"]
    assert numbers["mean_load"] == pytest.approx(0.5 / rate.estimate.value)
    assert found.memory is not None
    assert found.memory.weights_bytes == numbers["weights_bytes"] == 33_741_198_278
    assert found.memory.activations_bytes == 3_000_000_000
    assert found.memory.overhead_bytes == 1_000_000_000
    assert found.image_generation is not None
    assert (found.image_generation.width, found.image_generation.height) == (1024, 1024)
    (models,) = [v for v in found.volumes if v.purpose == "models"]
    assert models.shared
    batch = work(IMAGE_BATCH, site("h100-sxm-80gb"))
    finish = next(m for m in batch.metrics if m.name == "time_to_finish")
    assert finish.limit == 36_000
    assert batch.concurrency == 8 * batch.replicas
    assert finish.estimate.value < 36_000


def test_a_unet_states_operations_and_a_transformer_its_dimensions() -> None:
    unet = model(SDXL).denoiser
    assert isinstance(unet, Unet)
    assert (unet.passes, unet.reference_pixels) == (2, 1024**2)
    video = replace(cast(Denoiser, model(FLUX).denoiser), frame_stride=4)
    assert video.network == "57x3072 video"
    assert video.token_pixels(129) == 256 * 129 / 33
    assert video.token_pixels() == 256
    assert replace(video, identifier="step-video").token_pixels(17) == 256 * 17 / 3
