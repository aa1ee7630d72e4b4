"""How a training run is divided: GPUs, what they hold of states and layers, what is recomputed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from gpuplan.frozen import record
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.sheet import Scope

Sharding = Literal["none", "zero1", "zero2", "zero3"]
Recompute = Literal["none", "selective", "full"]


@record
class Method:
    """What is trained and how."""

    adapter: bool
    quantized: bool
    precision: str
    optimizer: str
    lora_rank: Quantity | None

    @property
    def name(self) -> str:
        if self.quantized:
            return "qlora"
        return "lora" if self.adapter else "full"


@dataclass(frozen=True, slots=True)
class Division:
    """`gpus` hold data-parallel replicas of `tensor` x `pipeline` x `context` GPUs; `sharding` says
    what the replicas divide. `expert` GPUs among them divide the experts, each stage of a pipeline
    is `virtual` interleaved ones."""

    gpus: int
    sharding: Sharding
    recompute: Recompute
    tensor: int = 1
    pipeline: int = 1
    virtual: int = 1
    context: int = 1
    expert: int = 1

    @property
    def replicas(self) -> float:
        """Ranks of data parallelism."""
        return self.gpus / (self.tensor * self.pipeline * self.context)

    def exchange(self, *, adapter: bool) -> str:
        """What ranks of data parallelism send each other: a key of the step's exchanges."""
        if self.replicas <= 1:
            return "none"
        gathered = self.sharding == "zero3"
        if adapter:
            return "frozen" if gathered else "adapters"
        return "weights" if gathered else "gradients"

    @property
    def scope(self) -> Scope:
        """What the sharding divides by the number of ranks, and what other parallelism divides."""
        stage = ("none", "zero1", "zero2", "zero3").index(self.sharding)
        ranks = self.replicas
        cited = f"choice: sharding {self.sharding} over {ranks:g} GPUs, recompute {self.recompute}"
        sizes = {
            "weight_shards": ranks if stage >= 3 else 1,
            "gradient_shards": ranks if stage >= 2 else 1,
            "optimizer_shards": ranks if stage >= 1 else 1,
            "gpus": self.gpus,
            "data_parallel_size": ranks,
            "tensor_parallel_size": self.tensor,
            "pipeline_parallel_size": self.pipeline,
            "virtual_stages": self.virtual,
            "context_parallel_size": self.context,
            "expert_parallel_size": self.expert,
            "recompute": self.recompute != "none",
            "attention_recompute": self.recompute == "full",
        }
        return {name: Quantity(float(size), "1", cited) for name, size in sizes.items()}


@cache
def divisors(number: int, most: int) -> tuple[int, ...]:
    """Those up to `most`, ascending."""
    return tuple(n for n in range(1, min(number, most) + 1) if number % n == 0)
