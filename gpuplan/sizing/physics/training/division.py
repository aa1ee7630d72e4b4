"""How a training run is divided: GPUs, what they hold of states and layers, what is recomputed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from gpuplan.frozen import frozen, record
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.sheet import Scope

Sharding = Literal["none", "zero1", "zero2", "zero3", "hsdp"]
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


@frozen
class Division:
    """`gpus` hold data-parallel replicas of `tensor` x `pipeline` x `context` GPUs; `sharding` says
    what the replicas divide. `expert` GPUs among them divide the experts, each stage of a pipeline
    is `virtual` interleaved ones. `copies` groups of replicas each divide all of it anew (`hsdp`).
    """

    gpus: int
    sharding: Sharding
    recompute: Recompute
    tensor: int = 1
    pipeline: int = 1
    virtual: int = 1
    context: int = 1
    expert: int = 1
    copies: int = 1

    @property
    def replicas(self) -> float:
        """Ranks of data parallelism."""
        return self.gpus / (self.tensor * self.pipeline * self.context)

    def exchange(self, *, adapter: bool) -> str:
        """What ranks of data parallelism send each other: a key of the step's exchanges."""
        if self.replicas <= 1:
            return "none"
        if adapter:
            return "frozen" if self.gathered else "adapters"
        kinds = {"zero2": "divided", "zero3": "weights", "hsdp": "copies"}
        return kinds.get(self.sharding, "gradients")

    @property
    def gathered(self) -> bool:
        """Whether the weights are divided too."""
        return gathers(self.sharding)

    @property
    def scope(self) -> Scope:
        """What the sharding divides by the number of ranks, and what other parallelism divides."""
        ranks = self.replicas
        cited = f"choice: sharding {self.sharding} over {ranks:g} GPUs, recompute {self.recompute}"
        columns = {name: getattr(self, name) for name in COLUMNS}
        divided = sizes(columns, self.sharding, self.recompute)
        return {name: Quantity(float(size), "1", cited) for name, size in divided.items()}


COLUMNS = ("gpus", "tensor", "pipeline", "virtual", "context", "expert", "copies")


def gathers(sharding: str) -> bool:
    """Whether a sharding divides weights, which are gathered where they are used."""
    return sharding in ("zero3", "hsdp")


def sizes(columns: Mapping[str, Any], sharding: Sharding, recompute: Recompute) -> dict[str, Any]:
    """The numbers of divisions as sheets name them; `columns` are numbers, or arrays of many."""
    ranks = columns["gpus"] / (columns["tensor"] * columns["pipeline"] * columns["context"])
    group = ranks / columns["copies"]
    return {
        "weight_shards": group if gathers(sharding) else 1,
        "gradient_shards": group if gathers(sharding) or sharding == "zero2" else 1,
        "optimizer_shards": group if sharding != "none" else 1,
        "state_copies": columns["copies"],
        "gpus": columns["gpus"],
        "data_parallel_size": ranks,
        "tensor_parallel_size": columns["tensor"],
        "pipeline_parallel_size": columns["pipeline"],
        "virtual_stages": columns["virtual"],
        "context_parallel_size": columns["context"],
        "expert_parallel_size": columns["expert"],
        "recompute": recompute != "none",
        "attention_recompute": recompute == "full",
    }


@cache
def divisors(number: int, most: int) -> tuple[int, ...]:
    """Those up to `most`, ascending."""
    return tuple(n for n in range(1, min(number, most) + 1) if number % n == 0)
