"""One replica of a diffusion pipeline: its time for a batch of images, and its memory."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.frozen import frozen
from gpuplan.models.model import Denoiser, Diffusion, Unet
from gpuplan.sizing.calibration.anchors import Anchors, Features, Field
from gpuplan.sizing.calibration.corrections import SteadyCorrection
from gpuplan.sizing.evidence.formula import Ledger, Quantity
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats
from gpuplan.sizing.memory.images import MEMORY, VIDEO_MEMORY, memory_scope, peak_scope
from gpuplan.sizing.physics.images.correction import BY_RATE, BY_TIME, correction
from gpuplan.sizing.physics.images.denoising import (
    BATCH,
    TRANSFORMER,
    UNET,
    Images,
    Runtime,
    image_scope,
)

TIMES = {Denoiser: TRANSFORMER + BATCH + BY_TIME, Unet: UNET + BATCH + BY_RATE}
# By what denoises, and by whether videos are made.
PLANNED = {
    (kind, memory is VIDEO_MEMORY): times + memory
    for kind, times in TIMES.items()
    for memory in (MEMORY, VIDEO_MEMORY)
}


@frozen
class Pipeline:
    """A pipeline on a device without its batch; `corrected` is what measured points say of it."""

    sheet: Sheet
    scope: Scope
    corrected: SteadyCorrection

    def at(self, batch: int) -> dict[str, float]:
        """Time of a batch, and memory where the pipeline has all its modules."""
        values = floats(self.scope) | self.corrected.input
        return self.sheet(values | {"batch": float(batch)})

    def record(self, ledger: Ledger, batch: Quantity, prefix: str = "") -> Scope:
        """The same as evidence."""
        inputs = self.corrected.record(ledger)
        return self.sheet.record(ledger, self.scope | inputs | {"batch": batch}, prefix)

    def near(self, anchors: Field, features: Features) -> Pipeline:
        """The same pipeline, corrected by other points, as one that stands elsewhere among them."""
        return replace(self, corrected=replace(self.corrected, anchors=anchors, features=features))


def denoising(
    denoiser: Denoiser | Unet,
    runtime: Runtime,
    images: Images,
    anchors: Anchors,
    cited: str,
) -> Pipeline:
    """Its time alone, of a denoiser whose dimensions are `cited`. Raises `NotMeasured`."""
    return Pipeline(
        sheet=TIMES[type(denoiser)],
        scope=image_scope(denoiser, runtime, images, cited),
        corrected=correction(denoiser, runtime, anchors),
    )


def pipeline(model: Diffusion, runtime: Runtime, images: Images, anchors: Anchors) -> Pipeline:
    """Time and memory of a model's. Raises `NotMeasured`."""
    timed = denoising(model.denoiser, runtime, images, anchors, model.source)
    memory = memory_scope(model, runtime.device, runtime.precision)
    peak = peak_scope(images.largest_pixels, images.memory)
    planned = PLANNED[type(model.denoiser), images.memory is not None]
    return replace(timed, sheet=planned, scope=timed.scope | memory | peak)
