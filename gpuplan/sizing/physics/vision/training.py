"""A training step of a network that reads images, over ranks of data parallelism: compute,
gradients that are exchanged, and what the loader brings.

The time of an image is that of timm's points: forward, backward and an update in PyTorch 1.12, on
one GPU. Nothing overlaps the exchange; the loader works beside the GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from gpuplan.models.model import Vision
from gpuplan.plan.model import Basis
from gpuplan.sizing.calibration.anchors import Anchors, Features, Field
from gpuplan.sizing.calibration.corrections import SteadyCorrection
from gpuplan.sizing.data import loading
from gpuplan.sizing.data import vision as fitted
from gpuplan.sizing.data.images import CONTEXT_BYTES
from gpuplan.sizing.data.vision_steps import TRAINED
from gpuplan.sizing.evidence.formula import Ledger, Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors, inverse
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats, sheet
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.memory.margin import interval, margin
from gpuplan.sizing.physics.vision.correction import features
from gpuplan.sizing.physics.vision.network import TRAINING, network_scope

QUANTITY = "vision_training"
MODE = "eager 1.12"  # of the points
INTERVAL = (0.85, 1.25)
_NO_MEMORY = "assumption: no memory of training a vision network was measured"
_BATCHES = (
    "the largest batches that timm's benchmark fits into 24 GB leave 4.07 bytes an activation of a"
    " ResNet-50, more of others (benchmark-train-amp-nhwc-pt112-cu113-rtx3090.csv, 2026-08-08)"
)
MEMORY = (
    sheet("""
    weights_bytes: B = parameters * fp32_bytes  # that the optimizer updates, and a rank's own
    gradients_bytes: B = parameters * fp32_bytes  # of all of them, on every rank
    optimizer_bytes: B = 2 * parameters * fp32_bytes  # both moments of AdamW
    activations_bytes: B = ceil(micro_batch * activations * activation_bytes)
        # kept from forward to backward
    own_bytes: B = context_bytes  # context and allocator
""")
    + margin("weights_bytes + gradients_bytes + optimizer_bytes + activations_bytes")
    + sheet("""
    usable_bytes: B = floor(memory_bytes * usable_fraction)  # what tensors may fill
""")
)
_COMPUTE = TRAINING + sheet("""
    gpu_image_seconds: s = max(least_seconds, image_seconds / rate_correction)
        # as the measured rates near it correct it
    gradient_accumulation_steps: 1 = global_batch / (gpus * micro_batch)
        # backward passes of a step
    compute_seconds: s = gradient_accumulation_steps * micro_batch * gpu_image_seconds
        # each rank's images of a step
    decode_seconds: s = pixels_mean / decode_rate  # one image, decoded on one core
""")
_EXCHANGE = {
    "none": "exchange_seconds: s = 0 * compute_seconds  # one rank keeps its gradients",
    "inside": """
    exchange_seconds: s = 2 * (gpus - 1) / gpus * gradients_bytes / link_rate
        # a ring in which every rank passes on its gradients twice (NCCL)
""",
    "across": """
    exchange_seconds: s = 2 * (gpus - 1) / gpus * gradients_bytes / min(inside_rate, fabric_rate)
        # a ring in which every rank passes on its gradients twice (NCCL), at its slowest part
""",
}
_LOADER = """
    decoded_seconds: s = global_batch / gpus * decode_seconds / decode_cores
        # the images of a step, on the cores of each GPU
    stored_seconds: s = {stored}
    step_seconds: s = max(compute_seconds + exchange_seconds, decoded_seconds, stored_seconds)
        # the loader works ahead: the slowest one holds up the rest
    images_per_second: 1/s = global_batch / step_seconds  # of all GPUs
    gpu_images_per_second: 1/s = global_batch / (compute_seconds + exchange_seconds)
        # of all GPUs, with images at hand
    decoded_images_per_second: 1/s = global_batch / decoded_seconds  # of all cores
    time_to_finish: s = steps * step_seconds  # all steps
"""
_STORED = """global_batch * file_bytes / (storage_bytes_per_s * nodes)
        # the files of a step, at the nodes' bandwidth"""
_NOT_STATED = """0 * compute_seconds  # no bandwidth of the storage is stated"""
_RATE = sheet("""
    stored_images_per_second: 1/s = global_batch / stored_seconds  # of the storage
""")


@dataclass(frozen=True)
class Looking:
    """A run on `gpus` ranks. `load` has `global_batch`, `steps`, `pixels_mean`, `file_bytes`,
    `nodes`, `gpus`, the rates of the links and, where it is stated, of the storage."""

    model: Vision
    device: Device
    load: Scope
    usable: Quantity
    confidence: float
    anchors: Anchors
    field: Field | None = None
    place: Features | None = None

    @cached_property
    def _network(self) -> tuple[Scope, bool]:
        model, gpu = self.model, self.device.gpu
        return network_scope(model.network, model.profile, gpu, MODE, model.source)

    @cached_property
    def scope(self) -> Scope:
        """Without `micro_batch` and cores. Raises `ValueError` where no GPU of its line was
        measured."""
        fit = {
            name: constant(value, "B" if name.endswith("_bytes") else "1", fitted.SOURCE)
            for name, value in fitted.TRAINING.items()
        }
        decode = constant(float(f"{loading.DECODE_RATE:.4g}"), "1/s", loading.DECODE_SOURCE)
        return {
            **self._network[0],
            **fit,
            **interval(INTERVAL[1], self.confidence, _NO_MEMORY),
            "activation_bytes": constant(4.0, "B", _BATCHES),
            "context_bytes": constant(CONTEXT_BYTES, "B", "CUDA context and allocator"),
            "decode_rate": decode,
            "memory_bytes": self.device.memory_bytes,
            "usable_fraction": self.usable,
            **self.load,
        }

    @cached_property
    def corrected(self) -> SteadyCorrection:
        model, gpu = self.model, self.device.gpu
        own = features(model.network, model.profile, f"{gpu.identifier} {MODE}")
        known = model.network.original and self._network[1] and gpu.identifier in TRAINED
        field = self.field or (self.anchors(QUANTITY) if known else None)
        unseen = inverse(fitted.UNSEEN_FACTORS)
        return SteadyCorrection("rate", self.place or own, field, unseen)

    def near(self, field: Field, place: Features) -> Looking:
        """The same, corrected by other points, as one that stands elsewhere among them."""
        return replace(self, field=field, place=place)

    @property
    def interval(self) -> tuple[Factors, Basis]:
        return self.corrected.interval

    @cached_property
    def _compute(self) -> Sheet:
        way = "across" if "fabric_rate" in self.load else "inside"
        way = way if "link_rate" in self.load or way == "across" else "none"
        return MEMORY + _COMPUTE + sheet(_EXCHANGE[way])

    @cached_property
    def _loader(self) -> Sheet:
        stated = "storage_bytes_per_s" in self.load
        made = sheet(_LOADER.format(stored=_STORED if stated else _NOT_STATED))
        return made + _RATE if stated else made

    def compute(self, micro_batch: float) -> dict[str, float]:
        """Bytes, and what the GPUs take for a step."""
        values = floats(self.scope) | self.corrected.input
        return self._compute(values | {"micro_batch": micro_batch, "batch": micro_batch})

    def at(self, micro_batch: float, cores: float) -> dict[str, float]:
        """The whole run."""
        return self._loader(self.compute(micro_batch) | {"decode_cores": cores})

    def record_compute(self, ledger: Ledger, micro_batch: Quantity) -> Scope:
        """The same as evidence."""
        scope = self.scope | self.corrected.record(ledger)
        scope |= {"micro_batch": micro_batch, "batch": micro_batch}
        return self._compute.record(ledger, scope)

    def record(self, ledger: Ledger, scope: Scope, cores: Quantity) -> Scope:
        """The rest."""
        return self._loader.record(ledger, scope | {"decode_cores": cores})
