"""A run that fits into memory: its gates after that, and what it is as a candidate."""

from __future__ import annotations

from gpuplan.frozen import frozen
from gpuplan.plan.model import Basis, Engine, Flip, Parallelism, Shortfall
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate, Merit, nodes_gate
from gpuplan.sizing.candidates.gates import stopped
from gpuplan.sizing.candidates.sheets import room_in
from gpuplan.sizing.evidence.intervals import Factors, at_confidence
from gpuplan.sizing.evidence.sheet import sheet
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training import failures
from gpuplan.sizing.physics.training.division import Division, Method
from gpuplan.sizing.physics.training.run import Run

UTILIZED = sheet("""
    model_flop_utilization: 1 = mac_flop * trained_passes
        * (unrouted_parameters + routed_parameters + vocabulary * hidden_size)
        * tokens_per_second / (gpus * bf16_peak)
        # products of the model, without attention and recomputation, over the dense bf16 peak
""")
# Gates in the order in which a candidate meets them.
PRECISION, SPLIT, FABRIC, MEMORY, STORAGE, OBJECTIVE, NODES = range(7)


@frozen
class SizedRun:
    """A run at its micro-batch, evaluated."""

    run: Run
    micro_batch: int
    values: dict[str, float]

    @property
    def factors(self) -> Factors:
        """The ends of the interval of its step, as factors on it."""
        return self.run.step_interval(self.micro_batch)[0]

    @property
    def basis(self) -> Basis:
        return self.run.step_interval(self.micro_batch)[1]


def engine_of(demand: TrainingDemand, layout: SizedRun) -> Engine:
    """The one whose layout it is."""
    framework = layout.run.prepared.subject.framework
    return next((e for e in demand.others if e.name == framework), demand.engine)


def method(demand: TrainingDemand) -> Method:
    return Method(
        adapter=demand.method in ("lora", "qlora"),
        quantized=demand.method == "qlora",
        precision=demand.precision,
        optimizer=demand.optimizer,
        lora_rank=demand.lora_rank,
    )


def judged(
    demand: TrainingDemand, site: Site, device: Device, layout: SizedRun
) -> Candidate[SizedRun]:
    """The candidate, or its first gate after memory."""
    seconds = layout.values["time_to_finish"]
    candidate = Candidate(
        device=device,
        gpus=layout.run.division.gpus,
        replicas=1,
        isolation=demand.isolation,
        hours=seconds / 3600,
        spares=failures.spares(demand, site),
        detail=layout,
        merit=Merit(lambda: room_in(demand.limit, seconds)),
    )
    for passed, (gate, flip) in (
        (STORAGE, _storage_gate(demand, site, candidate)),
        (OBJECTIVE, _objective_gate(demand, layout)),
        (NODES, nodes_gate(candidate)),
    ):
        if gate:
            return stopped(candidate, gate, passed=passed, flip=flip)
    return candidate


def _storage_gate(
    demand: TrainingDemand, site: Site, candidate: Candidate[SizedRun]
) -> tuple[tuple[Shortfall, ...], Flip | None]:
    """The dataset's rate against what the nodes read."""
    read, storage = demand.dataset.rate, site.storage_bytes_per_s
    if read is None or storage is None or read.value <= storage.value * candidate.nodes:
        return (), None
    rate = read.value
    gate = Shortfall(
        resource="storage_bytes_per_s",
        requested=rate,
        used=0.0,
        capacity=storage.value * candidate.nodes,
        unit="B/s",
    )
    needed = rate / candidate.nodes
    return (gate,), Flip(quantity="storage.bandwidth", now=storage.value, needed=needed, unit="B/s")


def _objective_gate(
    demand: TrainingDemand, layout: SizedRun
) -> tuple[tuple[Shortfall, ...], Flip | None]:
    slow = at_confidence(layout.factors, demand.confidence.value)
    seconds = float(f"{layout.values['time_to_finish'] * slow:.4g}")
    limit = demand.limit.first
    if limit is not None and seconds > limit.value:
        gate = Shortfall(
            resource="time_to_finish", requested=seconds, used=0.0, capacity=limit.value, unit="s"
        )
        flip = Flip(quantity=limit.field.path, now=limit.value, needed=seconds, unit="s")
        return (gate,), flip
    tokens, reached = demand.tokens_per_second, layout.values["tokens_per_second"] / slow
    reached = float(f"{reached:.4g}")
    if tokens is not None and reached < tokens.value:
        gate = Shortfall(
            resource="tokens_per_second",
            requested=tokens.value,
            used=0.0,
            capacity=reached,
            unit="1/s",
        )
        flip = Flip(quantity=tokens.field.path, now=tokens.value, needed=reached, unit="1/s")
        return (gate,), flip
    return (), None


def parallelism(division: Division) -> Parallelism:
    """How a run is divided, as the plan says it."""
    return Parallelism(
        tensor_parallel_size=division.tensor,
        pipeline_parallel_size=division.pipeline,
        data_parallel_size=round(division.replicas),
        expert_parallel_size=division.expert,
        context_parallel_size=division.context,
        state_copies=division.copies if division.copies > 1 else None,
    )
