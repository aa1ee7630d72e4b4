"""Memory of a network that reads images: its checkpoint, and what a full step leaves behind."""

from __future__ import annotations

from gpuplan.models.model import Vision
from gpuplan.sizing.data.images import CONTEXT_BYTES
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.memory.engines import engine_memory
from gpuplan.sizing.memory.margin import interval, margin

INTERVAL = (0.85, 1.25)
_SOURCE = "assumption: no memory of a network that reads images was measured"
MEMORY = (
    sheet("""
    weights_bytes: B = checkpoint_parameters * bf16_bytes  # in 16 bits, all towers
    activations_bytes: B = ceil(bf16_bytes * batch * (activations / blocks + image_numbers))
        # what a block's layers give, and the images themselves; a network without equal blocks
        # counts as one
    own_bytes: B = context_bytes  # context and allocator
""")
    + margin("weights_bytes + activations_bytes")
    + sheet("""
    usable_bytes: B = floor(memory_bytes * gpu_memory_utilization)  # what may be taken
""")
)


def memory_scope(model: Vision, device: Device, engine: str, confidence: float) -> Scope:
    """Its inputs but `batch`, `activations` and `gpu_memory_utilization`."""
    context = constant(CONTEXT_BYTES, "B", "CUDA context and allocator")
    if engine == "vllm":
        context = engine_memory(engine)["context_bytes"]
    return {
        "checkpoint_parameters": Quantity(float(model.parameters), "1", model.source),
        "blocks": Quantity(float(max(1, model.network.layers)), "1", model.source),
        "image_numbers": Quantity(3.0 * model.pixels**2, "1", model.source),
        "context_bytes": context,
        "memory_bytes": device.memory_bytes,
        **interval(INTERVAL[1], confidence, _SOURCE),
    }
