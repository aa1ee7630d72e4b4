"""What one GPU holds at its worst moment, and what is not exceeded with the wanted confidence."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.plan.model import Basis, Metric
from gpuplan.sizing.evidence.formula import Quantity, canonical, constant
from gpuplan.sizing.evidence.intervals import Factors, metric, quantile
from gpuplan.sizing.evidence.sheet import Sheet, sheet

USABLE = constant(0.85, "1", "the allocator keeps the rest in fragments (rule GP102)")  # of a run


def interval(high: float, confidence: float, cited: str) -> dict[str, Quantity]:
    """The end of the interval of memory, and which part of the way there is asked for."""
    return {
        "memory_high": constant(canonical(high), "1", cited),
        "memory_z": constant(quantile(confidence), "1", f"normal quantile of {confidence:g}"),
    }


def margin(parts: str) -> Sheet:
    """`parts` are all but `own_bytes`, which an engine or a framework takes for itself."""
    return sheet(f"gpu_memory: B = {parts} + own_bytes  # one GPU at its worst moment") + _on(parts)


def corrected(parts: str) -> Sheet:
    """The same where measured points correct it by `memory_correction`."""
    return sheet(f"""
        gpu_memory: B = memory_correction * ({parts} + own_bytes)
            # one GPU at its worst moment, as measured points near it correct it
    """) + _on(parts)


def _on(parts: str) -> Sheet:
    return sheet(f"""
        overhead_bytes: B = max(0, ceil(gpu_memory * memory_high ** (memory_z / 1.645)
            - ({parts})))
            # what is allocated beside tensors, and what may come on top
        used_bytes: B = {parts} + overhead_bytes
            # what is not exceeded with that confidence
    """)


SERVED = margin("weights_bytes + kv_cache_bytes + activations_bytes") + sheet("""
    usable_bytes: B = floor(memory_bytes * gpu_memory_utilization)  # what the engine may take
""")


def gpu_memory_metric(scope: Mapping[str, Quantity], factors: Factors, basis: Basis) -> Metric:
    """What one GPU holds, against what may be taken of it."""
    return metric(
        "gpu_memory",
        "B",
        scope["gpu_memory"].value,
        factors=factors,
        basis=basis,
        limit=scope["usable_bytes"].value,
    )
