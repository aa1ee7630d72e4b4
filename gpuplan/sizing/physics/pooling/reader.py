"""One replica that reads texts: its times and its memory, for a search and as evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from gpuplan.models.model import Transformer
from gpuplan.plan.model import Basis
from gpuplan.sizing.calibration.anchors import Features, Field
from gpuplan.sizing.calibration.corrections import SteadyCorrection
from gpuplan.sizing.data import pooling as measured
from gpuplan.sizing.evidence.formula import Ledger, Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.efficiency import KERNEL
from gpuplan.sizing.memory.pooling import (
    STEP,
    confidence_memory,
    least_tokens,
    memory,
    memory_scope,
)
from gpuplan.sizing.physics.pooling.correction import features
from gpuplan.sizing.physics.pooling.steps import REQUEST, SPREAD, step
from gpuplan.sizing.physics.serving.scopes import formats, serving_scope, shape
from gpuplan.sizing.physics.serving.service import Division

ALONE = Division()
SEEN = {
    True: constant(0.5, "1", "of a causal mask: a token sees half of the others"),
    False: constant(1.0, "1", "of an encoder: a token sees all others"),
}
LEAST = constant(1.0, "1", "a step with hardly a token in it: what is fixed of every step")


@dataclass(frozen=True)
class Reader:
    """A model on a device. `lengths` has `input_mean`, `input_p95`, `texts` and `max_model_len`."""

    model: Transformer
    device: Device
    engine: str
    precision: str
    lengths: Scope
    utilization: Quantity
    confidence: float
    anchors: Field | None
    place: Features | None = None

    @cached_property
    def scope(self) -> Scope:
        """Raises `NotMeasured`."""
        layout = formats(self.model, self.precision, "auto")
        scope = serving_scope(self.model, self.device, self.engine, layout, ALONE)
        scope |= {f"attention_{n}": scope[f"prefill_{n}"] for n in KERNEL[:5]}
        scope["tensor_parallel_size"] = constant(1.0, "1", "a replica is one GPU, or a part of it")
        if (fused := measured.FUSING.get(self.engine)) is not None:
            scope["elementwise_factor"] = constant(0.0, "1", fused)
        scope["seen_share"] = SEEN[self.model.causal]
        scope["host_seconds"] = host_seconds(self.engine)
        scope |= memory_scope(self.model, self.device, self.engine)
        scope |= confidence_memory(self.confidence)
        longest = self.lengths["max_model_len"]
        scope["least_step_tokens"] = least_tokens(self.model, self.engine, longest)
        return scope | self.lengths | {"gpu_memory_utilization": self.utilization}

    @cached_property
    def corrected(self) -> SteadyCorrection:
        mean = self.lengths["input_mean"].value
        own = features(self.model, self.device.gpu, self.engine, self.precision, mean)
        place, part = self.place or own, self.device.partition is not None
        return SteadyCorrection("rate", place, self.anchors, measured.UNMEASURED, part)

    def near(self, anchors: Field, place: Features) -> Reader:
        """The same reader, corrected by other points, as one that stands elsewhere among them."""
        return replace(self, anchors=anchors, place=place)

    @property
    def interval(self) -> tuple[Factors, Basis]:
        return self.corrected.interval

    @cached_property
    def _shape(self) -> Sheet:
        return shape(latent=False, moe=False, partition=self.device.partition is not None) + SPREAD

    @cached_property
    def _memory(self) -> Sheet:
        return memory(self.model)

    def steps(self, chosen: float | None = None) -> dict[str, float]:
        """Tokens of a step as derived, or as `chosen`; with the shape of the model."""
        values = self._shape(floats(self.scope) | self.corrected.input)
        values = STEP(values)
        return values | ({} if chosen is None else {"max_num_batched_tokens": chosen})

    def at(self, chosen: float | None = None) -> dict[str, float]:
        """Times of a request and bytes, with the most tokens of a step as derived or `chosen`."""
        values = self.steps(chosen)
        fixed = step()(values | {"tokens": LEAST.value})["step_seconds"]
        values = step()(values | {"tokens": values["max_num_batched_tokens"]})
        return self._memory(REQUEST(values | {"fixed_seconds": fixed}))

    def record_shape(self, ledger: Ledger) -> Scope:
        """The model's shape and the derived tokens of a step as evidence."""
        scope = self._shape.record(ledger, self.scope | self.corrected.record(ledger))
        return STEP.record(ledger, scope)

    def record(self, ledger: Ledger, scope: Scope) -> Scope:
        """The rest, of the tokens of a step that are settled."""
        fixed = step().record(ledger, scope | {"tokens": LEAST}, "fixed.")["step_seconds"]
        most = scope["max_num_batched_tokens"]
        scope = step().record(ledger, scope | {"tokens": most}, "step.")
        return self._memory.record(ledger, REQUEST.record(ledger, scope | {"fixed_seconds": fixed}))


def host_seconds(engine: str) -> Quantity:
    """Of the server's process for each request."""
    known = measured.HOST_SECONDS.get(engine)
    if known is None:
        return constant(0.0, "s", measured.HOST_UNKNOWN)
    return constant(float(f"{known:.4g}"), "s", f"{measured.HOST_SOURCE}, {engine}")
