"""One replica of a language model: what it needs and how fast it is at a number of sequences."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from functools import cache, cached_property

from gpuplan.plan.model import Basis
from gpuplan.plan.times import TIMES
from gpuplan.sizing.calibration.anchors import Anchors, Features
from gpuplan.sizing.calibration.corrections import Corrected, widened
from gpuplan.sizing.calibration.gaussian import NOBODYS
from gpuplan.sizing.calibration.served import features
from gpuplan.sizing.evidence.formula import Ledger, Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors, at_confidence, record_slowness
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats
from gpuplan.sizing.memory.cache import cache_inputs, kept
from gpuplan.sizing.memory.engines import expert_padding, server_memory, step_tokens
from gpuplan.sizing.memory.serving import (
    ALL,
    CONSTANTS,
    LARGEST_STEP,
    PROMPT_STEP,
    RUNNING,
    STEP,
    confidence_memory,
    memory,
)
from gpuplan.sizing.memory.towers import tower_inputs
from gpuplan.sizing.physics.serving import declared
from gpuplan.sizing.physics.serving.latency import CLOSED, LENGTHS, LOOPED, MEASURED, OPEN
from gpuplan.sizing.physics.serving.percentiles import FULLER, asks_for_fuller, with_statistics
from gpuplan.sizing.physics.serving.pieces import (
    all_places,
    by_size,
    graphed,
    in_sizes,
    pieces,
    whole_steps,
)
from gpuplan.sizing.physics.serving.products import slower_prompts
from gpuplan.sizing.physics.serving.releases import (
    mixes,
    overlapped,
    scaled,
    unfused,
)
from gpuplan.sizing.physics.serving.scopes import (
    LONG_PROMPT,
    MEAN_PROMPT,
    ONE,
    decode_scope,
    full_step_scope,
    prefill_scope,
    prefilled,
    serving_scope,
    shape,
    traits,
)
from gpuplan.sizing.physics.serving.service import NO_START, Service
from gpuplan.sizing.physics.serving.steps import beside, step

MOST_SEQUENCES = 512  # the largest batch that vLLM captures as a CUDA graph by default
# Busier with prompts than that, a replica does not work off what came at random.
BUSIEST = 0.9
UNMEASURED = 1.5  # how many times as wide the interval of a time that no point measures is
UNCORRECTED = {
    f"{name}_{part}": value
    for name in ("token", "first")
    for part, value in (("correction", 1.0), ("floor", 0.0))
}


@cache
def _shape(*, latent: bool, moe: bool, partition: bool, staged: bool) -> Sheet:
    stalls = declared.STALLS if staged else Sheet(())
    return shape(latent=latent, moe=moe, partition=partition) + LENGTHS + stalls


class Replica:
    """One copy of a served model. Sequences are those of one of its ranks."""

    def __init__(self, service: Service) -> None:
        model, device, division = service.model, service.device, service.division
        self.service, self.device, self.gpus = service, device, division.gpus
        self.moe = model.experts is not None
        self.max_num_seqs = service.max_num_seqs
        self.scope = {
            **cache_inputs(model),
            **tower_inputs(model, service.engine),
            **serving_scope(
                model,
                device,
                service.engine,
                service.formats,
                division,
                site=service.site,
                fabric_rate=service.fabric_rate,
            ),
            **CONSTANTS,
            **service.step_tokens,
            **server_memory(service.engine, service.release, device),
            **expert_padding(model, service.engine, service.formats.experts, division.shards),
            **confidence_memory(service.confidence),
            **service.tokens.scope,
            **service.declared.scope,
            "gpu_memory_utilization": service.gpu_memory_utilization,
            "memory_bytes": device.memory_bytes,
        }
        in_pieces = pieces(service)
        apart = unfused(service, self.scope["all_reduces"])
        slower = slower_prompts(service, self.scope["scaled_inputs"])
        in_graphs = graphed(service)
        self.scope |= service.start.scope | in_graphs | in_pieces | apart | slower
        self.scope["scaling_overhead"] = scaled(service, self.scope["scaling_overhead"])
        self.scope["sequence_overhead"] = overlapped(service, self.scope["sequence_overhead"])
        if service.start == NO_START:
            self.scope["contended_prefill"] = constant(0, "1", service.start.source)
        else:
            if service.start.at_random:
                self.scope["contended_prefill"] = constant(0, "1", service.start.source)
            memory_bytes = device.gpu.memory_bytes.value
            self.scope |= step_tokens(service.engine, device.gpu.identifier, memory_bytes)
        self.staged = service.random and division.pipeline_stages > 1
        self.shape = _shape(
            latent=model.latent is not None,
            moe=self.moe,
            partition=device.partition is not None,
            staged=self.staged,
        )
        kind = traits(model, division) | {"unfused": bool(apart), "slower": bool(slower)}
        self.decode = step("decode", **kind, pieced=bool(in_pieces))
        self.graph_sizes = all_places(service)
        if in_pieces and self.graph_sizes:
            self.decode = by_size(self.decode, self.graph_sizes)
        mixed = mixes(service)
        self.prefill = step("prefill", **kind, graphed=bool(in_graphs), mixed=mixed)
        self.beside = beside(**kind) if mixed else None
        self.memory = memory(
            moe=self.moe,
            kept=kept(model),
            spread=division.data_parallel_size > 1,
            staged=self.staged,
            images=bool(model.towers),
        )
        self.running, self.latency = (RUNNING, OPEN) if service.random else (ALL, CLOSED)
        if service.start != NO_START:
            self.latency = MEASURED
        self.step = self._step()
        self._declare()
        self._prepare()
        self._correct(service.anchors)

    def _step(self) -> Sheet:
        """How many tokens a step computes."""
        if not self.service.step_tokens:
            return Sheet(())
        if not self.service.random:
            return LARGEST_STEP
        limited = {TIMES[name][0] for name, _ in self.service.limits}
        return PROMPT_STEP if "time_to_first_token" in limited else STEP

    def _declare(self) -> None:
        """Change the sheets by what is declared."""
        given = self.service.declared
        self.bursts = given.burst is not None and self.service.random
        if given.accepted_tokens is not None:
            self.decode = declared.verified(self.decode)
            self.memory = declared.with_draft(self.memory)
        if given.prefix_hit_share is not None:
            self.prefill = declared.partly_cached(self.prefill)
        if self.bursts:
            self.latency, self.running = declared.bursting(OPEN), declared.CROWDED
        if self.staged:
            self.running = declared.of_each_stage(self.running)
        if self.service.random and (sizes := whole_steps(self.service)):
            self.running = in_sizes(self.running, sizes)
        asked = (*(name for name, _ in self.service.limits), *self.service.shown)
        if self.service.random and asked:
            self.latency = with_statistics(self.latency, asked, bursts=self.bursts)
        self.fuller = asks_for_fuller(self.latency)

    def _prepare(self) -> None:
        """Evaluate once what does not depend on the number of sequences."""
        base = self.shape(floats(self.scope))
        for name, prompt in (("", MEAN_PROMPT), ("longest_", LONG_PROMPT)):
            done = self.prefill(prefill_scope(base, prompt, 1.0))
            base |= prefilled(done, f"{name}prefill")
        if self.service.start != NO_START:
            base = LOOPED(base)
            base["full_work_seconds"] = self._full_step(base)["work_seconds"]
        self._base = base
        self._formulas: dict[float, dict[str, float]] = {}

    def _correct(self, anchors: Anchors) -> None:
        """What measured points say. The queue of a service is not measured, closed loops are: a
        time to first token is extrapolated everywhere."""
        self.token = Corrected(
            "token", anchors("time_per_output_token"), self.planned, self._modelled_token
        )
        self.first = Corrected(
            "first", anchors("time_to_first_token"), self.planned, self._modelled_first
        )

    def anchored(self, anchors: Anchors) -> Replica:
        """The same replica, corrected by other points."""
        twin = copy(self)
        twin._correct(anchors)  # noqa: SLF001 - a copy of this class
        for name in ("limits", "slowness", "token_factors", "first_factors"):
            twin.__dict__.pop(name, None)
        return twin

    def measured(self, sequences: float) -> Replica:
        """The same replica, with intervals as if its site had measured it at so many sequences, as
        was predicted."""
        twin = self.anchored(self.service.anchors)
        for corrected in (twin.token, twin.first):
            corrected.confirmed = sequences
        return twin

    @property
    def places(self) -> float:
        """Requests that it runs at once at most."""
        return MOST_SEQUENCES if self.max_num_seqs is None else self.max_num_seqs

    @cached_property
    def limits(self) -> list[tuple[str, float, float]]:
        """The objectives: the time, its limit, and the factor on the time at the confidence."""
        return [(name, seconds, self.slow(name)) for name, seconds in self.service.limits]

    @cached_property
    def slowness(self) -> float:
        return at_confidence(self.token_factors, self.service.confidence)

    @cached_property
    def token_factors(self) -> Factors:
        return self._factors(self.token)

    @cached_property
    def first_factors(self) -> Factors:
        return self._factors(self.first)

    def _factors(self, corrected: Corrected) -> Factors:
        """The interval's ends; no point measures a replica over nodes but one's own."""
        unmeasured = self.service.division.nodes > 1 and corrected.confirmed is None
        return widened(corrected.interval[0], UNMEASURED if unmeasured else 1.0)

    @property
    def basis(self) -> Basis:
        unlike = self.service.declared.scope or self.service.division.nodes > 1
        return "extrapolated" if unlike else self.token.interval[1]

    def features(self, sequences: float, concurrency: float = 0.0) -> Features:
        """Where a load stands among the measured points. `concurrency` of all ranks, where it is
        not as many on each."""
        service, base = self.service, self._base
        return features(
            service.model,
            self.device.gpu,
            service.engine,
            service.release,
            service.precision,
            concurrency=concurrency or sequences * service.division.ranks,
            input=base["input_mean"],
            output=base["output_mean"],
            tp=service.division.tensor_parallel_size,
            dp=service.division.data_parallel_size,
            ep=service.division.expert_parallel_size,
            pp=service.division.pipeline_stages,
            client=service.client,
            site=service.site,
        )

    def planned(self, sequences: float) -> Features:
        """The same of a replica that nobody measured: it repeats no point; a partition is a GPU of
        its own."""
        place = dict(self.features(sequences))
        if place["unrecorded"] != NOBODYS:
            place["unrecorded"] = "planned"
        if self.device.partition is not None:
            place |= {n: f"{place[n]}|{self.device.partition}" for n in ("gpu", "cell", "layout")}
        return place

    def _modelled_token(self, sequences: float) -> float:
        return self.modelled(sequences)["modelled_token_seconds"]

    def _modelled_first(self, sequences: float) -> float:
        return self.modelled(sequences)["modelled_first_seconds"]

    def modelled(self, sequences: float) -> dict[str, float]:
        """The latency sheet by the formulas alone."""
        if sequences not in self._formulas:
            self._formulas[sequences] = self._times(sequences, UNCORRECTED)
        return self._formulas[sequences]

    def steps(
        self, sequences: float
    ) -> tuple[dict[str, float], dict[str, float], dict[str, float] | None]:
        """A decode step, the prefill of a mean prompt, and the decode step with prompts in it where
        the engine mixes them, with all their kernels."""
        prefill = self.prefill(prefill_scope(self._base, MEAN_PROMPT, 1.0))
        mixed = None if self.beside is None else self.beside(self._decoded(sequences))
        return self.modelled(sequences), prefill, mixed

    def _decoded(self, sequences: float) -> dict[str, float]:
        return self.decode(decode_scope(self._base | {"sequences": sequences}))

    @property
    def full_step(self) -> dict[str, float]:
        """A step of as many prompts as a measured loop's engine computes together."""
        return self._full_step(self._base)

    def _full_step(self, base: dict[str, float]) -> dict[str, float]:
        return self.prefill(full_step_scope(base))

    def needs(self, sequences: float) -> dict[str, float]:
        """The memory sheet at `sequences`; `running` is what those are at their 95th percentile."""
        scope = self._base | {"sequences": sequences * self.service.division.pipeline_stages}
        if self.bursts:
            scope["closed_rate"] = self.times(sequences)["closed_rate"]
        scope = self.running(scope)
        scope["running"] = scope.get("running_requests", scope["max_num_seqs"])
        if self.max_num_seqs is not None:
            scope["max_num_seqs"] = self.max_num_seqs
        scope = self.step(scope)
        if self.service.max_num_batched_tokens is not None:
            scope["max_num_batched_tokens"] = self.service.max_num_batched_tokens
        return self.memory(scope)

    def times(self, sequences: float) -> dict[str, float]:
        """The latency sheet at `sequences`."""
        return self._times(sequences, self.corrections(sequences))

    def corrections(self, sequences: float) -> dict[str, float]:
        """What measured points say, as the formulas take it."""
        return self.token.inputs(sequences) | self.first.inputs(sequences)

    def at_lengths(self, lengths: Mapping[str, float]) -> Replica:
        """The same replica with other lengths, by their names in the formulas."""
        tokens = self.service.tokens
        changed = {
            "longest" if name == "max_model_len" else name: Quantity(
                tokens_each, "1", "choice: another length"
            )
            for name, tokens_each in lengths.items()
        }
        return Replica(replace(self.service, tokens=replace(tokens, **changed)))

    def _times(self, sequences: float, corrections: dict[str, float]) -> dict[str, float]:
        scope = self._decoded(sequences) | corrections
        mixed = self.beside(dict(scope)) if self.beside else {}
        scope |= {"decode_seconds": scope["seconds"], "sequences": sequences}
        scope["growth_seconds"] = mixed.get("growth_seconds", scope["prefill_work_seconds"])
        if self.fuller:
            more = FULLER({"sequences": sequences})["fuller_sequences"]
            scope["fuller_seconds"] = self._decoded(more)["seconds"]
        return self.latency(scope)

    def slow(self, name: str) -> float:
        """The factor on a time at the wanted confidence."""
        return at_confidence(self.interval(name)[0], self.service.confidence)

    def interval(self, name: str) -> tuple[Factors, Basis]:
        """Of a time; no percentile of a token or of a request is measured."""
        time, statistic = TIMES[name]
        if time == "time_to_first_token":
            return self.first_factors, "extrapolated"
        if statistic != "mean":
            return widened(self.token_factors, UNMEASURED), "extrapolated"
        return self.token_factors, self.basis

    def record(self, ledger: Ledger, chosen: Scope) -> Scope:
        """What does not depend on the number of sequences, as evidence. The service's numbers stand
        in the ledger, and so do those of the `chosen` division."""
        scope = self.shape.record(ledger, self.scope | chosen)
        for prefix, prompt in (("prefill", MEAN_PROMPT), ("longest_prefill", LONG_PROMPT)):
            done = self.prefill.record(ledger, prefill_scope(scope, prompt, ONE), f"{prefix}.")
            scope |= prefilled(done, prefix)
        cited = f"90 % interval of {self.token.anchors.source}, {self.basis}"
        confidence = self.service.confidence
        slowness = record_slowness(ledger, self.token_factors, confidence, cited)
        return scope | {"slowness": slowness}

    def record_times(self, ledger: Ledger, scope: Scope, prefix: str = "") -> Scope:
        """The latency sheet at the scope's `sequences`."""
        sequences = scope["sequences"].value
        for corrected in (self.token, self.first):
            scope = scope | corrected.record(ledger, sequences, prefix)
        done = self.decode.record(ledger, decode_scope(scope), f"{prefix}decode.")
        taken = {"decode_seconds": done["seconds"], "roofline_seconds": done["roofline_seconds"]}
        mixed = self.beside.record(ledger, dict(done), f"{prefix}beside.") if self.beside else {}
        taken["growth_seconds"] = mixed.get("growth_seconds", scope["prefill_work_seconds"])
        if self.fuller:
            more = FULLER.record(ledger, {"sequences": scope["sequences"]}, prefix)
            at_more = decode_scope(scope | {"sequences": more["fuller_sequences"]})
            done = self.decode.record(ledger, at_more, f"{prefix}fuller.")
            taken["fuller_seconds"] = done["seconds"]
        return self.latency.record(ledger, scope | taken, prefix)
