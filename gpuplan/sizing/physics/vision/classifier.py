"""One replica that reads images: times of the GPU, of the host's cores, and memory; for a search
and as evidence.

A step takes all images that wait. With few in it, it takes as long as its launches; from then on
each image adds its own time, which is that of timm's points.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from gpuplan.models.model import Vision
from gpuplan.plan.model import Basis
from gpuplan.sizing.calibration.anchors import Anchors, Features, Field
from gpuplan.sizing.calibration.corrections import SteadyCorrection
from gpuplan.sizing.data import loading
from gpuplan.sizing.data import pooling as serving
from gpuplan.sizing.data import vision as fitted
from gpuplan.sizing.data import vision_steps as steps
from gpuplan.sizing.evidence.formula import Ledger, Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors, inverse
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats, sheet
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.memory.vision import MEMORY, memory_scope
from gpuplan.sizing.physics.vision.correction import QUANTITY, features
from gpuplan.sizing.physics.vision.network import INFERENCE, network_scope

STEP = INFERENCE + sheet("""
    gpu_image_seconds: s = max(least_seconds, image_seconds / rate_correction) / compute_share
        # one image of a large batch, as the measured rates near it correct it
    step_seconds: s = max(fixed_seconds, batch * gpu_image_seconds)
        # all images of a step; it takes its launches at least
    decode_seconds: s = pixels_mean / decode_rate  # one image, decoded on one core
""")
CORES = sheet("""
    wanted_cores: 1 = max(usual_cores, ceil(decode_seconds / gpu_image_seconds))
        # as many as decode what the GPU reads
""")
_FILES = sheet("""
    storage_seconds: s = images * file_bytes * readers / storage_bytes_per_s
        # its files, of which all replicas of a node read at once
""")
_NO_FILES = sheet("""
    storage_seconds: s = 0 * images * second
        # requests bring their images, or no bandwidth is stated
""")
_REQUEST = sheet("""
    request_seconds: s = images * step_seconds / batch  # its part of full steps
    host_seconds: s = server_seconds + images * decode_seconds / decode_cores
        # the cores decode several images beside each other
    answered_seconds: s = server_seconds + decode_seconds * max(1, images / decode_cores)
        # of one request that finds them idle
    service_seconds: s = max(request_seconds, host_seconds, storage_seconds)
        # GPU, cores and storage work beside each other: the slowest one holds up the rest
    added_seconds: s = images * gpu_image_seconds  # by which it makes a longer step longer
    size_variation: 1 = 0 * images  # every image is cut to the same size
    gpu_images_per_second: 1/s = images / request_seconds  # of one replica's GPU
    decoded_images_per_second: 1/s = images / host_seconds  # of its cores
""")
_STORED = sheet("""
    stored_images_per_second: 1/s = images / storage_seconds  # of its part of the storage
""")
ONE_CORE = constant(1.0, "1", "assumption: vLLM's API server is one process, and holds up the rest")


@dataclass(frozen=True)
class Classifier:
    """A model on a device. `load` has `images`, `pixels_mean` and, of what reads from storage,
    `storage_bytes_per_s` of a node with so many `readers`."""

    model: Vision
    device: Device
    engine: str
    load: Scope
    utilization: Quantity
    confidence: float
    anchors: Anchors
    mode: str = steps.MODE
    field: Field | None = None
    place: Features | None = None

    @cached_property
    def _network(self) -> tuple[Scope, bool]:
        model, gpu = self.model, self.device.gpu
        return network_scope(model.network, model.profile, gpu, self.mode, model.source)

    @cached_property
    def scope(self) -> Scope:
        """Raises `ValueError` where no GPU of its line was measured."""
        scope = self._network[0] | memory_scope(
            self.model, self.device, self.engine, self.confidence
        )
        server = constant(0.0, "s", serving.HOST_UNKNOWN)
        if self.one_process:
            known = float(f"{serving.HOST_SECONDS['vllm']:.4g}")
            server = constant(known, "s", f"{serving.HOST_SOURCE}, vllm")
        scope |= {
            "compute_share": self.device.compute_share,
            "fixed_seconds": fixed_seconds(self.model),
            "server_seconds": server,
            "decode_rate": constant(
                float(f"{loading.DECODE_RATE:.4g}"), "1/s", loading.DECODE_SOURCE
            ),
            "file_bytes": file_bytes(self.load["pixels_mean"]),
            "gpu_memory_utilization": self.utilization,
        }
        return scope | self.load

    @property
    def measured(self) -> bool:
        """Whether its GPU was measured, and a network whose blocks are the same."""
        return self.model.network.original and self._network[1]

    @cached_property
    def corrected(self) -> SteadyCorrection:
        model, gpu = self.model, self.device.gpu
        own = features(model.network, model.profile, f"{gpu.identifier} {self.mode}")
        field = self.field or (self.anchors(QUANTITY) if self.measured else None)
        unseen = inverse(fitted.UNSEEN_FACTORS)
        part = self.device.partition is not None
        return SteadyCorrection("rate", self.place or own, field, unseen, part)

    def near(self, field: Field, place: Features) -> Classifier:
        """The same, corrected by other points, as one that stands elsewhere among them."""
        return replace(self, field=field, place=place)

    @property
    def interval(self) -> tuple[Factors, Basis]:
        return self.corrected.interval

    @property
    def one_process(self) -> bool:
        """Whether one process decodes, however many cores there are."""
        return self.engine == "vllm"

    def steps(self, batch: float) -> dict[str, float]:
        """Times of a step of so many images, and bytes."""
        values = floats(self.scope) | self.corrected.input | {"batch": batch}
        return (STEP + MEMORY)(values)

    def at(self, batch: float, cores: float) -> dict[str, float]:
        """With what a request takes of a replica that decodes on so many cores."""
        return self._request(self.steps(batch) | {"decode_cores": cores})

    def record_steps(self, ledger: Ledger, batch: Quantity) -> Scope:
        """The times of a step, and bytes, as evidence."""
        scope = self.scope | self.corrected.record(ledger) | {"batch": batch}
        return (STEP + MEMORY).record(ledger, scope)

    def record(self, ledger: Ledger, scope: Scope, cores: Quantity) -> Scope:
        """The rest."""
        scope["decode_cores"] = ONE_CORE if self.one_process else cores
        return self._request.record(ledger, scope)

    @cached_property
    def _request(self) -> Sheet:
        if "storage_bytes_per_s" in self.load:
            return _FILES + _REQUEST + _STORED
        return _NO_FILES + _REQUEST


def fixed_seconds(model: Vision) -> Quantity:
    """Of a step with hardly an image in it; 0 of what was not measured: see `known_alone`."""
    layers, network = model.network.layers, model.network.identifier
    if layers:
        return constant(
            float(f"{layers * steps.LAYER_LAUNCH:.4g}"),
            "s",
            f"{layers} layers, {steps.LAUNCH_SOURCE}",
        )
    known = steps.NETWORK_LAUNCH.get(network, 0.0)
    return constant(known, "s", steps.NETWORK_SOURCE if known else "assumption: not measured")


def known_alone(model: Vision) -> bool:
    """Whether steps with few images in them were measured of its like."""
    return fixed_seconds(model).value > 0


def file_bytes(pixels: Quantity) -> Quantity:
    """Of an image as it lies on storage."""
    size = float(round(pixels.value * loading.FILE_BYTES_PER_PIXEL))
    return constant(size, "B", f"its pixels at {loading.FILE_SOURCE}")
