"""A method on a device: the numbers that all divisions of a run share."""

from __future__ import annotations

from copy import copy
from functools import cache

from gpuplan.models.model import Transformer
from gpuplan.plan.model import Fabric
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.sizing.calibration.trained import Subject
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats
from gpuplan.sizing.hardware.devices import Device, fabric_rate, quantity
from gpuplan.sizing.hardware.domains import in_domain
from gpuplan.sizing.hardware.efficiency import peak
from gpuplan.sizing.memory.training import framework_memory
from gpuplan.sizing.model import shapes, widths
from gpuplan.sizing.physics.training import speed
from gpuplan.sizing.physics.training.division import Method

FRAMEWORK_OF = {"axolotl": "trainer"}  # what an engine of the catalogue runs
WEIGHTS = "weights read forward and backward, gradients added to where they train"
PLAIN = "bare"  # the memory of a framework that nobody measured: of libraries that allocate little


@cache
def _shape(*, latent: bool, moe: bool) -> Sheet:
    attention = shapes.LATENT if latent else shapes.GROUPED
    return attention + shapes.MLP + (shapes.EXPERTS if moe else Sheet(()))


class Prepared:
    """The scope, and its shape evaluated once for all divisions."""

    def __init__(
        self, subject: Subject, method: Method, scope: Scope, anchors: Anchors, doubt: Factors
    ) -> None:
        model = subject.model
        self.subject, self.method, self.scope, self.anchors = subject, method, scope, anchors
        self.doubt = doubt
        self.moe, self.mamba = model.experts is not None, model.linear is not None
        self.shape = _shape(latent=model.latent is not None, moe=self.moe)
        self.base = self.shape(floats(scope))

    def given(self, more: Scope) -> Prepared:
        """The same with further numbers, on which the shape does not depend."""
        twin = copy(self)
        twin.scope, twin.base = self.scope | more, self.base | floats(more)
        return twin


def prepare(
    model: Transformer,
    device: Device,
    method: Method,
    engine: str,
    *,
    many: bool,
    release: float = speed.MIDDLE,
    recipe: str = "",
    power: float = 1.0,
    eager: bool = False,
    anchors: Anchors | None = None,
) -> Prepared:
    """Model, device and framework. `recipe` is a framework's own word for the method; `power` and
    `eager` are those of `speed.Traits`."""
    gpu, framework = device.gpu, FRAMEWORK_OF.get(engine, engine)
    of = speed.traits(
        model,
        gpu,
        method.precision,
        framework,
        adapter=method.adapter,
        quantized=method.quantized,
        many=many,
        release=release,
        power=power,
        eager=eager,
    )
    fact = peak(gpu, "fp8" if of.precision == "mxfp8" else of.precision)
    assert fact is not None, "unsupported precisions are gated before"
    memory = framework_memory(
        "trainer" if framework == "trainer" else PLAIN,
        method.optimizer,
        method.lora_rank,
        adapter=method.adapter,
        quantized=method.quantized,
    )
    trained = 2.0 if method.adapter else 3.0
    scope = {**shapes.inputs(model), **widths.inputs(model), **speed.scope(of), **memory}
    scope |= {
        "trained_passes": constant(trained, "1", "forward and backward; adapters leave one out"),
        "weight_traffic": constant(speed.weight_traffic(of), "B", WEIGHTS),
        "tensor_parallel_size": constant(1, "1", "data-parallel ranks hold whole layers"),
        "bandwidth": quantity(gpu.memory_bytes_per_s),
        "bf16_peak": quantity(gpu.peak_bf16),
        "peak": quantity(fact),
        "memory_bytes": device.memory_bytes,
        "inside_rate": quantity(gpu.link_bytes_per_s),
        "prediction_layers": constant(0, "1", "no multi-token prediction"),
        "prediction_heads": constant(0, "1", "no multi-token prediction"),
    }
    subject = Subject(
        model=model,
        gpu=gpu,
        framework=framework,
        method=recipe or method.name,
        precision=method.precision,
        computed=of.precision,
        release=release,
    )
    return Prepared(subject, method, scope, anchors or Anchors(), speed.doubt(of))


def link(device: Device, gpus: int, fabric: Fabric | None, spares: int = 0) -> Scope | None:
    """What bounds the exchange between ranks: the rate inside a node or an NVLink domain, and that
    of the fabric where they span more, or of the nodes' cards where they carry less; None where it
    is not known. `spares` are nodes that stand by."""
    inside = quantity(device.gpu.link_bytes_per_s)
    room = device.offer.gpus_per_node
    nodes = -(-gpus // room)
    if nodes == 1 or in_domain(device, nodes, spares):
        return {"link_rate": inside}
    if fabric is None:
        return None
    return {
        "inside_rate": inside,
        "fabric_rate": fabric_rate(device.offer, fabric, nodes),
        "gpus_per_node": Quantity(float(room), "1", "offer: GPUs of a node"),
    }
