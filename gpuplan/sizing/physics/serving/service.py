"""One copy of a language model on devices: what it is, what it is asked, what it is told."""

from __future__ import annotations

from dataclasses import field

from gpuplan.models.model import Transformer
from gpuplan.plan.model import Parallelism, record
from gpuplan.sizing.calibration.anchors import Anchors
from gpuplan.sizing.calibration.served import OWN
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.hardware.devices import Device

NO_DRAFT = constant(0, "B", "the draft is part of the model: speculative.draft_memory is not set")


@record
class Formats:
    """Number formats of a checkpoint: of its attention, its dense and shared MLPs (None: as its
    attention), its experts, its KV cache."""

    matmul: str
    experts: str
    kv: str
    dense: str | None = None

    @property
    def mlp(self) -> str:
        return self.dense or self.matmul


@record
class Division:
    """Ranks of a replica: attention heads over `tensor_parallel_size` GPUs, sequences over
    `data_parallel_size` such groups, layers over `pipeline_stages`. Experts lie over all GPUs of a
    stage, whole on `expert_parallel_size` groups of them. Over several `nodes`, each has whole
    stages, or whole such groups, or a part of one over the NVLink that joins them."""

    tensor_parallel_size: int = 1
    data_parallel_size: int = 1
    pipeline_stages: int = 1
    expert_parallel_size: int = 1
    nodes: int = 1

    @property
    def ranks(self) -> int:
        """Parts of a replica that run sequences of their own."""
        return self.data_parallel_size * self.pipeline_stages

    @property
    def gpus(self) -> int:
        return self.tensor_parallel_size * self.ranks

    @property
    def shards(self) -> float:
        """Parts that an expert is cut into."""
        ranks = self.tensor_parallel_size * self.data_parallel_size
        return max(1.0, ranks / self.expert_parallel_size)

    @property
    def parallelism(self) -> Parallelism:
        """As a plan has it."""
        return Parallelism(
            tensor_parallel_size=self.tensor_parallel_size,
            pipeline_parallel_size=self.pipeline_stages,
            data_parallel_size=self.data_parallel_size,
            expert_parallel_size=self.expert_parallel_size,
        )


@record
class Tokens:
    """Tokens of a request: means and 95th percentiles, and the longest one that is accepted."""

    input_mean: Quantity
    input_p95: Quantity
    output_mean: Quantity
    output_p95: Quantity
    longest: Quantity

    @property
    def scope(self) -> Scope:
        return {
            "input_mean": self.input_mean,
            "input_p95": self.input_p95,
            "output_mean": self.output_mean,
            "output_p95": self.output_p95,
            "max_model_len": self.longest,
        }


@record
class Declared:
    """What is declared of a service and no measurement of the engine knows. Nothing is assumed
    where nothing is written."""

    accepted_tokens: Quantity | None = None
    draft_tokens: Quantity | None = None
    draft_cost: Quantity | None = None
    draft_bytes: Quantity = NO_DRAFT
    drafted_by: str | None = None  # the method, where it is named
    prefix_hit_share: Quantity | None = None
    burst: Quantity | None = None

    @property
    def scope(self) -> Scope:
        drafts = {
            "accepted_tokens": self.accepted_tokens,
            "draft_tokens": self.draft_tokens,
            "draft_cost": self.draft_cost,
            "draft_bytes": self.draft_bytes if self.accepted_tokens else None,
            "prefix_hit_share": self.prefix_hit_share,
            "burst": self.burst,
        }
        return {name: number for name, number in drafts.items() if number is not None}


_AT_RANDOM = "requests of a service come at random: what they wait for each other is its queue"


@record
class Start:
    """Requests of a measurement that all come at its start, as a part of all of it, and those of
    them whose prompts no cache holds. `in_step`: all answers have one length, so that those that
    began together end together, and others begin; `at_random`: requests come when they come, which
    is no loop."""

    share: float = 0.0
    uncached: float = 0.0
    in_step: bool = False
    at_random: bool = False
    source: str = _AT_RANDOM

    @property
    def scope(self) -> Scope:
        return {
            "burst_share": constant(self.share, "1", self.source),
            "uncached_burst": constant(self.uncached, "1", self.source),
            "in_step": constant(float(self.in_step), "1", self.source),
            "at_random": constant(float(self.at_random), "1", self.source),
        }


NO_START = Start()


@record
class Service:
    """A replica's setting. `client`: see `served.features`; `site` is who runs it, whose
    measurements share an effect; `limits`: times and the seconds that they are not to exceed with
    the `confidence`; `shown`: times that are told and limit nothing;
    `random`: requests come at random, so that more run at times than on average, else every place
    is kept taken; `admitted`: how many sequences a measured server was told to take at once;
    `start`: how those of a closed loop come. `step_tokens`: those of `memory.serving`; {} where
    nobody recorded the engine's setting. `fabric_rate` is what a GPU has of the fabric between
    nodes; None: its replica lies in one."""

    model: Transformer
    device: Device
    division: Division
    engine: str
    release: str
    precision: str
    formats: Formats
    tokens: Tokens
    gpu_memory_utilization: Quantity
    confidence: float
    max_num_seqs: float | None = None
    admitted: float | None = None
    max_num_batched_tokens: float | None = None
    step_tokens: Scope = field(default_factory=dict)
    limits: tuple[tuple[str, float], ...] = ()
    shown: tuple[str, ...] = ()
    declared: Declared = field(default_factory=Declared)
    random: bool = True
    client: str = "spread"
    site: str = OWN
    start: Start = NO_START
    fabric_rate: Quantity | None = None
    anchors: Anchors = field(default_factory=Anchors)
