"""Which kind a workload is: by its task, its model and what the manifest wants of that."""

from __future__ import annotations

from gpuplan.manifest.v1 import Workload
from gpuplan.models.model import Diffusion, Model, Pooling, Speech, Transformer, Vision
from gpuplan.sizing.ask.fields import Kind


def kind_of(workload: Workload, model: Model | None) -> Kind:
    """What is sized; where the model is unknown, the load tells images from tokens."""
    if workload.task == "notebook":
        return "notebook"
    if workload.task in ("training", "finetuning"):
        return "vision training" if isinstance(model, Vision) else "training"
    if isinstance(model, Diffusion) and model.makes_videos:
        return "video batch" if workload.task == "batch" else "video service"
    images = isinstance(model, Diffusion) or (
        model is None and workload.load is not None and workload.load.images is not None
    )
    if isinstance(model, Speech):
        return "speech batch" if workload.task == "batch" else "speech service"
    if isinstance(model, Vision):
        return "vision batch" if workload.task == "batch" else "vision service"
    pooled = not images and pooling_of(workload, model) is not None
    if workload.task == "batch":
        return "image batch" if images else "pooling batch" if pooled else "batch"
    return "image service" if images else "pooling service" if pooled else "serving"


def pooling_of(workload: Workload, model: Model | None) -> Pooling | None:
    """What a text becomes where none is written: as the manifest says, else the architecture."""
    return workload.pooling or (model.pooling if isinstance(model, Transformer) else None)


def reading_task(model: Vision, task: str) -> str:
    """What an engine has to do with images, as the catalogue names it: services of vectors have
    servers that know their models, everything else is a program of one's own."""
    if task in ("training", "finetuning"):
        return "vision-training"
    return "image-embedding" if model.embeds and task == "inference" else "vision"
