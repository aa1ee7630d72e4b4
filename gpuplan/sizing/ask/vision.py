"""What a workload that reads images says that cannot all be true, or that nothing predicts."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Change, Diagnostic
from gpuplan.manifest.v1 import Workload
from gpuplan.models.model import EMBEDDING, Vision
from gpuplan.sizing.ask.fields import LOOKING, VISION, Kind
from gpuplan.sizing.ask.messages import contradiction, missing_field, unpredicted
from gpuplan.sizing.physics.vision.classifier import known_alone
from gpuplan.source import Origin

PRECISIONS = ("bf16", "fp16")
VLLM_SOURCE = "vllm-project/vllm, docs/models/pooling_models/embed.md, read 2026-11-23"


def vision_problems(
    workload: Workload, kind: Kind, model: Vision, at: Origin
) -> Iterator[Diagnostic]:
    if kind in VISION:
        yield from _read(workload, model, at)
    elif kind in LOOKING:
        yield from _run(workload, model, at)


def _read(workload: Workload, model: Vision, at: Origin) -> Iterator[Diagnostic]:
    if workload.precision not in (None, *PRECISIONS):
        yield unpredicted(
            f"how fast {model.identifier} is in {workload.precision}",
            at.child("precision"),
            f"only in {' and '.join(PRECISIONS)} was its like measured",
            "leave it out",
        )
    if workload.task == "inference" and not known_alone(model):
        yield unpredicted(
            f"the latency of {model.identifier}",
            at.child("task"),
            "steps with few images were measured of plain vision transformers and of ResNet-50",
            "plan it as `task: batch`, or choose one of those",
        )


def _run(workload: Workload, model: Vision, at: Origin) -> Iterator[Diagnostic]:
    """Of a training run."""
    run = workload.training
    if run is not None and run.epochs is None and run.steps is None:
        where = at.child("training")
        yield missing_field("training.epochs", workload.task, where, "write epochs or steps")
    if run is not None and run.epochs is not None and run.steps is not None:
        where = at.child("training", "epochs")
        yield contradiction(
            "'steps' and 'epochs' both say how long the run is",
            where,
            "two lengths",
            "keep one of them",
            Change(where, None),
        )
    if workload.precision not in (None, *PRECISIONS):
        yield unpredicted(
            f"how fast {model.identifier} is trained in {workload.precision}",
            at.child("precision"),
            f"only in {' and '.join(PRECISIONS)} was its like measured",
            "leave it out",
        )


def unread_by_vllm(workload: Workload, model: Vision, at: Origin) -> Iterator[Diagnostic]:
    """What vLLM does not do with images."""
    where, listed = at.child("engine"), " and ".join(EMBEDDING)
    if not model.embeds:
        yield contradiction(
            f"engine 'vllm' does not read images with a {model.architecture}",
            where,
            f"of such models it has {listed} ({VLLM_SOURCE})",
            "leave 'engine' out to take triton",
            Change(where, None),
        )
    elif workload.task == "batch" and not workload.command:
        yield contradiction(
            "engine 'vllm' does not read images from a file of requests as vectors",
            where,
            "its server does",
            "write 'command', the program that reads them, or plan a service",
        )
    images = workload.load.images if workload.load else None
    if images is not None and (images.count or 1) > 1 and not workload.command:
        at_count = at.child("load", "images", "count")
        yield contradiction(
            f"engine 'vllm' gives one vector for a request, which brings {images.count} images",
            at_count,
            f"a text or an image ({VLLM_SOURCE})",
            "send each image as a request of its own",
            Change(at_count, None),
        )
