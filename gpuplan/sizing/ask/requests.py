"""The demands of workloads that write no text: what they ask for beside what all have in common."""

from __future__ import annotations

from typing import Any

from gpuplan.manifest.v1 import Workload
from gpuplan.sizing.ask import fields as f
from gpuplan.sizing.ask.demand import (
    ImageBatchDemand,
    ImageServiceDemand,
    PoolingBatchDemand,
    PoolingServiceDemand,
    SpeechBatchDemand,
    SpeechServiceDemand,
    VideoBatchDemand,
    VideoServiceDemand,
    VisionBatchDemand,
    VisionRunDemand,
    VisionServiceDemand,
)
from gpuplan.sizing.ask.fields import Kind
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.ask.kinds import pooling_of
from gpuplan.sizing.ask.numbers import Numbers, objectives, open_loop, time_limit
from gpuplan.sizing.ask.parts import Dataset


def pooling(
    workload: Workload, kind: Kind, numbers: Numbers, common: dict[str, Any]
) -> PoolingServiceDemand | PoolingBatchDemand:
    common |= {
        "pooling": pooling_of(workload, common["model"]),
        "texts": numbers(f.TEXTS),
        "input_mean": numbers(f.INPUT_MEAN),
        "input_p95": numbers(f.INPUT_P95),
        "max_model_len": numbers(f.MAX_MODEL_LEN),
        "gpu_memory_utilization": numbers(f.GPU_MEMORY_UTILIZATION),
    }
    if kind == "pooling batch":
        return PoolingBatchDemand(**common, **_counted(workload, numbers))
    return PoolingServiceDemand(**common, **_arriving(workload, numbers))


def speech(
    workload: Workload, kind: Kind, numbers: Numbers, common: dict[str, Any]
) -> SpeechServiceDemand | SpeechBatchDemand:
    common |= {
        "audio": numbers(f.AUDIO),
        "output_mean": numbers(f.OUTPUT_MEAN),
        "gpu_memory_utilization": numbers(f.GPU_MEMORY_UTILIZATION),
    }
    if kind == "speech batch":
        return SpeechBatchDemand(**common, **_counted(workload, numbers))
    return SpeechServiceDemand(**common, **_arriving(workload, numbers))


def images(
    workload: Workload, kind: Kind, numbers: Numbers, common: dict[str, Any]
) -> ImageServiceDemand | ImageBatchDemand:
    assert workload.load is not None
    assert workload.load.images is not None
    sizes = workload.load.images
    common |= {
        "pixels_mean": numbers(f.IMAGE_MEAN),
        "pixels_p95": numbers(f.IMAGE_P95),
        "denoising_steps": numbers(f.IMAGE_STEPS),
        "size": sizes.p95 or sizes.mean,
    }
    if kind == "image batch":
        return ImageBatchDemand(**common, **_counted(workload, numbers))
    return ImageServiceDemand(**common, **_arriving(workload, numbers))


def videos(
    workload: Workload, kind: Kind, numbers: Numbers, common: dict[str, Any]
) -> ImageServiceDemand | ImageBatchDemand:
    assert workload.load is not None
    assert workload.load.videos is not None
    sizes, frames = workload.load.videos, numbers(f.VIDEO_FRAMES)
    common |= {
        "pixels_mean": _of_all(numbers(f.VIDEO_MEAN), frames),
        "pixels_p95": _of_all(numbers(f.VIDEO_P95), frames),
        "denoising_steps": numbers(f.VIDEO_STEPS),
        "size": sizes.p95 or sizes.mean,
        "frames": frames,
        "video_memory": numbers(f.VIDEO_MEMORY),
    }
    if kind == "video batch":
        return VideoBatchDemand(**common, **_counted(workload, numbers))
    return VideoServiceDemand(**common, **_arriving(workload, numbers))


def _of_all(pixels: Given, frames: Given) -> Given:
    """Pixels of all frames."""
    source = f"{pixels.source}, of {frames.value:g} frames"
    return Given(pixels.value * frames.value, "1", source, pixels.field)


def vision(
    workload: Workload, kind: Kind, numbers: Numbers, common: dict[str, Any]
) -> VisionServiceDemand | VisionBatchDemand:
    common |= {
        "pixels_mean": numbers(f.IMAGE_MEAN),
        "images": numbers(f.IMAGE_COUNT),
        "gpu_memory_utilization": numbers(f.GPU_MEMORY_UTILIZATION),
    }
    if kind == "vision batch":
        return VisionBatchDemand(**common, **_counted(workload, numbers))
    return VisionServiceDemand(**common, **_arriving(workload, numbers))


def looking(workload: Workload, numbers: Numbers, common: dict[str, Any]) -> VisionRunDemand:
    dataset = workload.dataset
    return VisionRunDemand(
        pixels_mean=numbers(f.DATASET_PIXELS),
        dataset_images=numbers(f.DATASET_IMAGES),
        global_batch=numbers(f.GLOBAL_BATCH),
        epochs=numbers.optional(f.EPOCHS),
        steps=numbers.optional(f.STEPS),
        dataset=Dataset(
            name=dataset.name if dataset else None, size=numbers.optional(f.DATASET_SIZE)
        ),
        checkpoint_interval=numbers(f.CHECKPOINT_INTERVAL),
        limit=time_limit(workload, numbers),
        **common,
    )


def _counted(workload: Workload, numbers: Numbers) -> dict[str, Any]:
    """What a batch asks for beside its kind."""
    return {"requests": numbers(f.REQUESTS), "limit": time_limit(workload, numbers)}


def _arriving(workload: Workload, numbers: Numbers) -> dict[str, Any]:
    """What a service asks for beside its kind."""
    kept, may = objectives(workload, numbers)
    return {
        "arrivals": open_loop(numbers),
        "objectives": kept,
        "accepted": may,
        "idle": numbers.optional(f.IDLE),
    }
