"""One replica of a language model: what it needs and how fast it is at a number of sequences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from gpuplan.models.model import Transformer
from gpuplan.plan.model import Basis, Flip, Shortfall
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.calibration.corrections import Corrected, widened
from gpuplan.sizing.calibration.served import NOTHING, features
from gpuplan.sizing.evidence.formula import Formula, Ledger, Quantity, canonical, constant
from gpuplan.sizing.evidence.intervals import Factors, at_confidence, quantile
from gpuplan.sizing.evidence.sheet import floats
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.memory.cache import cache_inputs, kept
from gpuplan.sizing.memory.serving import (
    ALL,
    CONSTANTS,
    RUNNING,
    STAGES,
    confidence_memory,
    engine_memory,
    memory,
)
from gpuplan.sizing.physics.serving.declared import declared
from gpuplan.sizing.physics.serving.latency import TIMES
from gpuplan.sizing.physics.serving.scopes import (
    ONE,
    Division,
    Scope,
    decode_scope,
    formats,
    prefill_scope,
    serving_scope,
    shape,
    traits,
)
from gpuplan.sizing.physics.serving.steps import step

SYMBOLS = {
    "load.input_tokens.mean": "input_mean",
    "load.input_tokens.p95": "input_p95",
    "load.output_tokens.mean": "output_mean",
    "load.output_tokens.p95": "output_p95",
    "overrides.max_model_len": "max_model_len",
    "overrides.gpu_memory_utilization": "gpu_memory_utilization",
}
# Field of an objective → the time it limits.
OBJECTIVES = {
    "slo.time_per_output_token": "time_per_output_token",
    "slo.time_to_first_token": "time_to_first_token",
    "slo.request_latency": "request_latency",
}
MOST_SEQUENCES = 512  # the largest batch that vLLM captures as a CUDA graph by default
UNMEASURED = 1.5  # how many times as wide the interval of a time that no point measures is
UNCORRECTED = {
    f"{n}_{what}": v
    for n in ("token", "first")
    for what, v in (("correction", 1.0), ("floor", 0.0))
}
PART = 1 / 16  # of a sequence; as finely the mean number of a service is found
SLOWNESS = Formula(
    "interval_high ** (confidence_z / 1.645)",
    "1",
    "factor on the predicted time that is not exceeded with the wanted confidence",
)


class Replica:
    """`gpus` devices that serve one copy."""

    def __init__(self, demand: Demand, device: Device, gpus: int) -> None:
        model = demand.model
        assert isinstance(model, Transformer)
        self.demand, self.device, self.gpus = demand, device, gpus
        self.moe = model.experts is not None
        self.declared = declared(demand)
        self.running = RUNNING if demand.kind == "serving" else ALL
        self.max_num_seqs = demand.value("overrides.max_num_seqs")
        layout = formats(model, demand.precision, demand.overrides.kv_cache_dtype or "auto")
        self.scope = serving_scope(model, device, demand.engine.name, layout, gpus)
        self.scope |= CONSTANTS | {s: demand.given[f] for f, s in SYMBOLS.items()}
        self.scope["memory_bytes"] = device.memory_bytes
        self.shape = shape(
            latent=model.latent is not None,
            moe=self.moe,
            partition=device.partition is not None,
        )
        kind = traits(model, Division(tensor_parallel_size=gpus))
        self.decode, self.prefill = step("decode", **kind), step("prefill", **kind)
        self.memory = memory(moe=self.moe, found=kept(model))
        confidence = demand.given["slo.confidence"].value
        self.scope = (
            {**cache_inputs(model)} | STAGES | self.scope | engine_memory(demand.engine.name)
        )
        self.scope |= confidence_memory("serving", confidence)
        self._declare()
        self._prepare()
        self._correct()

    @cached_property
    def limits(self) -> list[tuple[str, float, float]]:
        """The objectives: the time, its limit, and the factor on the time at the confidence."""
        given = self.demand.given
        fields = ((f, n) for f, n in OBJECTIVES.items() if f in given)
        return [(name, given[field].value, self.slow(name)) for field, name in fields]

    @cached_property
    def slowness(self) -> float:
        return at_confidence(self.token_factors, self.demand.given["slo.confidence"].value)

    @cached_property
    def token_factors(self) -> Factors:
        return self.token.interval[0]

    @cached_property
    def first_factors(self) -> Factors:
        return widened(self.first.interval[0], UNMEASURED)

    @property
    def basis(self) -> Basis:
        return "extrapolated" if self.declared else self.token.interval[1]

    def _declare(self) -> None:
        """Change the sheets by what the manifest declares."""
        told = self.declared
        self.scope |= told.scope
        self.decode, self.prefill = told.decode(self.decode), told.prefill(self.prefill)
        self.memory, self.running = told.memory(self.memory), told.running(self.running)
        self.latency = told.times(TIMES)

    def _prepare(self) -> None:
        """Evaluate once what does not depend on the number of sequences."""
        base = self.shape(floats(self.scope))
        base["context"] = base["input_mean"] + base["output_mean"] / 2
        for name, prompt in (("", "input_mean"), ("longest_", "input_p95")):
            done = self.prefill(prefill_scope(base, prompt, 1.0))
            base[f"{name}prefill_seconds"] = done["seconds"]
            base[f"{name}prefill_work_seconds"] = done["work_seconds"]
        self._base = base

    def _correct(self) -> None:
        """What measured points say. The queue of a service is not measured, closed loops are: a
        time to first token is extrapolated everywhere."""
        anchors = self.demand.anchors
        self._formulas: dict[float, dict[str, float]] = {}
        self.token = Corrected(
            "token", anchors("time_per_output_token"), self.features, self._modelled_token
        )
        self.first = Corrected(
            "first", anchors("time_to_first_token"), self.features, self._modelled_first
        )

    def features(self, sequences: float) -> dict[str, str | float]:
        """Where a load stands among the measured points. It repeats none of them; a partition is a
        GPU of its own."""
        demand, base = self.demand, self._base
        model = demand.model
        assert isinstance(model, Transformer)
        found = features(
            model,
            self.device.gpu,
            demand.engine.name,
            demand.engine.version,
            demand.precision,
            concurrency=sequences,
            input=base["input_mean"],
            output=base["output_mean"],
            tp=self.gpus,
        )
        if found["unrecorded"] != NOTHING:
            found["unrecorded"] = "planned"
        if self.device.partition is not None:
            found |= {n: f"{found[n]}|{self.device.partition}" for n in ("gpu", "cell", "layout")}
        return found

    def _modelled_token(self, sequences: float) -> float:
        return self._uncorrected(sequences)["modelled_token_seconds"]

    def _modelled_first(self, sequences: float) -> float:
        return self._uncorrected(sequences)["first_token_seconds"]

    def _uncorrected(self, sequences: float) -> dict[str, float]:
        if sequences not in self._formulas:
            self._formulas[sequences] = self._times(sequences, UNCORRECTED)
        return self._formulas[sequences]

    def needs(self, sequences: float) -> dict[str, float]:
        """The memory sheet at `sequences`; `running` is what those are at their 95th percentile."""
        scope = self._base | {"sequences": sequences, "slowness": 1.0}
        if self.declared.bursts:
            scope["replica_rate"] = self.times(sequences)["replica_rate"]
        scope = self.running(scope)
        scope["running"] = scope["max_num_seqs"]
        if self.max_num_seqs is not None:
            scope["max_num_seqs"] = self.max_num_seqs
        return self.memory(scope)

    def times(self, sequences: float) -> dict[str, float]:
        """The latency sheet at `sequences`."""
        return self._times(sequences, self.corrections(sequences))

    def corrections(self, sequences: float) -> dict[str, float]:
        """What measured points say, as the formulas take it."""
        return self.token.inputs(sequences) | self.first.inputs(sequences)

    def at_lengths(self, lengths: Mapping[str, float]) -> Replica:
        """The same replica with other lengths, by their names in the formulas."""
        fields = {symbol: field for field, symbol in SYMBOLS.items()}
        given = {fields[n]: Quantity(v, "1", "choice: another length") for n, v in lengths.items()}
        demand = replace(self.demand, given=self.demand.given | given)
        return Replica(demand, self.device, self.gpus)

    def _times(self, sequences: float, corrections: dict[str, float]) -> dict[str, float]:
        scope = decode_scope(self._base | corrections | {"sequences": sequences})
        self.decode(scope)
        scope["decode_seconds"] = scope["seconds"]
        return self.latency(scope)

    def fits(self, sequences: float) -> bool:
        """Whether memory, objectives and the engine's limit of sequences allow as many."""
        needs = self.needs(sequences)
        if needs["used_bytes"] > needs["usable_bytes"]:
            return False
        if sequences > 1 and needs["running"] > (self.max_num_seqs or MOST_SEQUENCES):
            return False
        if not self.limits:
            return True
        times = self.times(sequences)
        return all(canonical(times[name] * slow) <= limit for name, limit, slow in self.limits)

    def slow(self, name: str) -> float:
        """The factor on a time at the wanted confidence."""
        if name != "time_to_first_token":
            return self.slowness
        return at_confidence(self.first_factors, self.demand.given["slo.confidence"].value)

    def largest(self) -> float:
        """The most sequences that fit, 0 when not even one does. A service has them on average, and
        any part of one; a batch keeps whole places taken."""
        service = self.demand.kind == "serving"
        if not self.fits(PART if service else 1):
            return 0
        low, high = 0 if service else 1, MOST_SEQUENCES
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.fits(middle) else (low, middle - 1)
        return self._finer(low) if service else low

    def _finer(self, whole: int) -> float:
        """Between `whole` sequences, which fit, and one more. Where few fit, a whole one is a step
        so large that more work could seem to need fewer GPUs."""
        step, found = 0.5, float(whole)
        while step >= PART:
            if self.fits(found + step):
                found += step
            step /= 2
        return found or PART

    def first_gate(self) -> tuple[tuple[Shortfall, ...], Flip | None]:
        """What keeps a single sequence from fitting."""
        return self.shortfalls(self.slowness)

    def shortfalls(self, sequences: float) -> tuple[tuple[Shortfall, ...], Flip | None]:
        """The gates that `sequences` fail, memory first, and what would open the first."""
        needs = self.needs(sequences)
        if needs["used_bytes"] > needs["usable_bytes"]:
            return self._memory_gate(needs)
        times = self.times(sequences)
        for name, limit, slow in self.limits:
            value = canonical(times[name] * slow)
            if value > limit:
                gate = Shortfall(resource=name, requested=value, used=0.0, capacity=limit, unit="s")
                return (gate,), Flip(quantity=f"slo.{name}", now=limit, needed=value, unit="s")
        return (), None

    def _memory_gate(self, needs: dict[str, float]) -> tuple[tuple[Shortfall, ...], Flip]:
        """Weights and work space first; where those fit, the cache is what does not."""
        fixed = needs["weights_bytes"] + needs["activations_bytes"] + needs["own_bytes"]
        cache_only = fixed <= needs["usable_bytes"]
        gate = Shortfall(
            resource="kv_cache" if cache_only else "gpu_memory",
            requested=needs["kv_cache_bytes"] if cache_only else needs["used_bytes"],
            used=needs["used_bytes"] - needs["kv_cache_bytes"] if cache_only else 0.0,
            capacity=needs["usable_bytes"],
            unit="B",
        )
        capacity = self.device.memory_bytes.value
        needed = needs["used_bytes"] / needs["gpu_memory_utilization"]
        flip = Flip(
            quantity="gpu_memory_bytes", now=capacity, needed=float(round(needed)), unit="B"
        )
        return (gate,), flip

    def record(self, ledger: Ledger, given: Scope) -> Scope:
        """What does not depend on the number of sequences, as evidence. `given` are the quantities
        of `SYMBOLS` and the tensor-parallel size as they stand in the ledger."""
        scope = self.shape.record(ledger, self.scope | given)
        half = Formula("input_mean + output_mean / 2", "1", "cached tokens half way through")
        scope["context"] = ledger.derive(
            "context", half, input_mean=scope["input_mean"], output_mean=scope["output_mean"]
        )
        for prefix, prompt in (("prefill", "input_mean"), ("longest_prefill", "input_p95")):
            done = self.prefill.record(ledger, prefill_scope(scope, prompt, ONE), f"{prefix}.")
            scope[f"{prefix}_seconds"] = done["seconds"]
            scope[f"{prefix}_work_seconds"] = done["work_seconds"]
        return scope | {"slowness": self._record_slowness(ledger)}

    def record_times(self, ledger: Ledger, scope: Scope, prefix: str = "") -> Scope:
        """The latency sheet at the scope's `sequences`."""
        sequences = scope["sequences"].value
        for corrected in (self.token, self.first):
            scope = scope | corrected.record(ledger, sequences, prefix)
        done = self.decode.record(ledger, decode_scope(scope), f"{prefix}decode.")
        taken = {"decode_seconds": done["seconds"], "roofline_seconds": done["roofline_seconds"]}
        return self.latency.record(ledger, scope | taken, prefix)

    def _record_slowness(self, ledger: Ledger) -> Quantity:
        confidence = self.demand.given["slo.confidence"].value
        cited = f"90 % interval of {self.token.anchors.source}, {self.basis}"
        return ledger.derive(
            "slowness",
            SLOWNESS,
            interval_high=constant(self.token_factors[1], "1", cited),
            confidence_z=constant(quantile(confidence), "1", f"normal quantile of {confidence:g}"),
        )
