"""One layout of a training run: what it needs and how fast it is at a micro-batch."""

from __future__ import annotations

from copy import copy
from functools import cached_property

from gpuplan.plan.model import Basis
from gpuplan.sizing.calibration.anchors import Anchors, Features, Field
from gpuplan.sizing.calibration.corrections import record_correction
from gpuplan.sizing.calibration.trained import (
    MEMORY,
    RunShape,
    memory_features,
    step_features,
    step_quantity,
)
from gpuplan.sizing.evidence.formula import Ledger
from gpuplan.sizing.evidence.intervals import Factors, doubted
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats
from gpuplan.sizing.memory.margin import interval
from gpuplan.sizing.memory.training import memory
from gpuplan.sizing.physics.training.division import Division
from gpuplan.sizing.physics.training.prepared import Prepared
from gpuplan.sizing.physics.training.time import Terms, time

Interval = tuple[Factors, Basis]
UNCORRECTED = {
    "memory_correction": 1.0,
    "memory_high": 1.0,
    "memory_z": 0.0,
    "step_correction": 1.0,
}


def sheets(prepared: Prepared, division: Division) -> tuple[Sheet, Sheet]:
    """Those of memory and of time that a division needs."""
    method, many = prepared.method, division.replicas < division.gpus
    held = memory(
        adapter=method.adapter,
        quantized=method.quantized,
        recompute=division.recompute,
        gathered=division.gathered,
        parallel=many or division.expert > 1,
        moe=prepared.moe,
    )
    terms = Terms(
        moe=prepared.moe,
        adapter=method.adapter,
        quantized=method.quantized,
        exchange=division.exchange(adapter=method.adapter),
        across="fabric_rate" in prepared.scope,
        mamba=prepared.mamba,
        tensor=division.tensor > 1,
        context=division.context > 1,
        pipeline=division.pipeline > 1,
        expert=prepared.moe and division.expert > 1,
    )
    return held, time(terms)


class Run:
    """A prepared method on a division of devices; only the micro-batch is open. Memory is held
    against the GPU at the `confidence`."""

    def __init__(self, prepared: Prepared, division: Division, confidence: float = 0.5) -> None:
        self.prepared, self.division, self.confidence = prepared, division, confidence
        self.memory, self.time = sheets(prepared, division)

    def anchored(self, anchors: Anchors) -> Run:
        """The same run, corrected by other points."""
        prepared = copy(self.prepared)
        prepared.anchors = anchors
        return Run(prepared, self.division, self.confidence)

    def needs(self, micro_batch: int) -> dict[str, float]:
        """The memory sheet at a micro-batch."""
        return self.memory(self._base | self.memory_inputs | {"micro_batch": micro_batch})

    def at(self, micro_batch: int) -> dict[str, float]:
        """Memory and time at a micro-batch; accumulation reaches the global batch exactly."""
        factor = self._steps.factor(self.step_features(micro_batch))
        return self.time(self.needs(micro_batch) | {"step_correction": factor})

    def modelled(self, micro_batch: int) -> dict[str, float]:
        """The same by the formulas alone."""
        return self.time(self.memory(self._base | UNCORRECTED | {"micro_batch": micro_batch}))

    def step_features(self, micro_batch: int) -> Features:
        """Where a step stands among the measured ones."""
        return step_features(self.prepared.subject, self._layout(micro_batch))

    @property
    def memory_features(self) -> Features:
        """Where its memory stands: at one sequence, so that more of them never need less."""
        return memory_features(self.prepared.subject, self._layout(1))

    def step_interval(self, micro_batch: int) -> Interval:
        """The ends of the interval of a step, as factors on it."""
        factors, basis = _interval(self._steps, self.step_features(micro_batch))
        doubt = self.prepared.doubt
        return doubted(factors, doubt), basis if doubt == (1.0, 1.0) else "extrapolated"

    @cached_property
    def memory_interval(self) -> Interval:
        return _interval(self._memory, self.memory_features)

    @property
    def scope(self) -> Scope:
        """What the memory sheet needs beside the shape, its correction and the micro-batch."""
        (_, high), _ = self.memory_interval
        cited = f"90 % interval of {self._memory.source}"
        margin = interval(high, self.confidence, cited)
        return self.prepared.scope | self.division.scope | margin

    def record(self, ledger: Ledger, scope: Scope) -> Scope:
        """Memory and time as evidence, at the scope's micro-batch."""
        micro_batch = int(scope["micro_batch"].value)
        scope = scope | {
            "memory_correction": record_correction(
                ledger, "memory", self._memory, self.memory_features
            ),
            "step_correction": record_correction(
                ledger, "step", self._steps, self.step_features(micro_batch)
            ),
        }
        return self.time.record(ledger, self.memory.record(ledger, scope))

    @cached_property
    def _base(self) -> dict[str, float]:
        return self.prepared.base | floats(self.division.scope)

    @cached_property
    def memory_inputs(self) -> dict[str, float]:
        """What measured points say of its memory, as the sheet takes it."""
        (_, high), _ = self.memory_interval
        factor = self._memory.factor(self.memory_features)
        return floats(interval(high, self.confidence, "")) | {"memory_correction": factor}

    @property
    def _steps(self) -> Field:
        return self.prepared.anchors(step_quantity(self.prepared.subject.model))

    @property
    def _memory(self) -> Field:
        return self.prepared.anchors(MEMORY)

    def _layout(self, micro_batch: int) -> RunShape:
        division, base = self.division, self.prepared.base
        sequences = micro_batch * division.replicas
        return RunShape(
            gpus=division.gpus,
            micro=micro_batch,
            length=base["sequence_length"],
            accumulation=base["global_batch"] / sequences,
            tensor=division.tensor,
            pipeline=division.pipeline,
            context=division.context,
            expert=division.expert,
            sharding=division.sharding,
            recompute=division.recompute != "none",
        )


def _interval(field: Field, features: Features) -> Interval:
    correction = field.correction(features)
    return (correction.low, correction.high), "calibrated" if correction.known else "extrapolated"
