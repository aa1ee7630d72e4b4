"""Served points as arrays of their kernels, and their times by constants. Needs numpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from bench.fitting.fit import by_cell
from gpuplan.accuracy.metrics.serving import Served
from gpuplan.accuracy.points.points import Point
from gpuplan.sizing.calibration.served import TUNED
from gpuplan.sizing.physics.serving.releases import asynchronous, scaled_within
from gpuplan.sizing.physics.serving.replica import Replica

ENGINES = ("vllm", "sglang", "tensorrt-llm")
Constants = Mapping[str | tuple[str, str], float]  # shared, or of an engine, a vendor, a source
# The kernels of a factor, as `gpuplan.sizing.physics.serving.steps` adds them up.
KERNELS = {
    "matmul_factor": ("projection", "dense"),
    "attention_factor": ("attention", "state", "index", "gathered"),
    "expert_factor": ("expert",),
    "link_factor": ("all_reduce", "exchange", "transfer"),
    "elementwise_factor": ("elementwise",),
}
# Of each engine, in their order; `interference` is a part of a prompt's work, `captured` of the
# host's launches (CUDA graphs of prompts).
BY_ENGINE = {
    "layer_overhead": ([18e-6, 11e-6, 5e-6], 0.5),
    "routing_overhead": ([4e-6, 15e-6, 5e-6], 0.7),
    "step_overhead": ([2e-4, 6e-4, 4e-4], 0.5),
    "sequence_overhead": ([28e-6, 38e-6, 19e-6], 0.5),
    "scaling_overhead": ([12e-6, 1e-6, 3.5e-6], 0.7),
    "interference": ([1.2, 0.8, 1.1], 0.3),
    "eager_seconds": ([3e-4, 8e-4, 5e-4], 0.4),
    "captured": ([0.5, 0.5, 0.5], 0.7),
}


def old(point: Served) -> bool:
    """Block-scaled products of vLLM before 0.13 took kernels that it has since replaced."""
    version = str(point.features["version"])
    return (
        point.case.engine == "vllm"
        and version == "0.12.0"
        and point.replica.modelled(point.sequences)["scaled_inputs"] > 0
    )


def _in_step(replica: Replica) -> tuple[float, float, float]:
    """Whether answers have one length, prompts of a full step, the part of it that tokens fill."""
    at_once = replica.modelled(1.0)
    part = min(1.0, at_once["default_step_tokens"] / at_once["input_mean"])
    return at_once["in_step"], at_once["step_prompts"], part


def _parts(step: dict[str, float]) -> list[float]:
    parts = (*KERNELS.values(), ("head",), ("roofline",))
    return [sum(step.get(f"{k}_seconds", 0.0) for k in p) for p in parts]


def _growth(mixed: dict[str, float] | None, decode: np.ndarray, prefill: np.ndarray) -> np.ndarray:
    """The kernels for which a prompt makes a decode step longer, as `steps.beside` of the sizing
    adds them up: those of its own, and what products of all prompts add, for each of them."""
    if mixed is None:
        return prefill
    own = np.isin([*KERNELS, "", ""], ("attention_factor", "elementwise_factor"))
    products = (np.array(_parts(mixed)) - decode) / mixed["prompts_beside"]
    return np.where(own, prefill, products) * ([1.0] * (len(own) - 1) + [0.0])


class Points:
    """Features of served points, as arrays."""

    def __init__(self, pairs: list[tuple[Point, Served]]) -> None:
        points = [served for _, served in pairs]
        steps = [p.replica.steps(p.sequences) for p in points]
        decode, prefill, mixed = zip(*steps, strict=True)
        self.engine = np.array([ENGINES.index(p.case.engine) for p in points])
        self.model = np.array([str(p.features["model"]) for p in points])
        self.gpu = np.array([p.case.gpu.identifier for p in points])
        self.source = np.array([str(p.features["source"]) for p in points])
        self.amd = np.array([p.case.gpu.vendor == "amd" for p in points])
        self.tuned = np.array([p.features["source"] in TUNED for p in points])
        self.beyond = np.array([d.get("beyond_graphs", 1.0) for d in prefill])
        self.unfused = np.array([d.get("unfused_exchanges", 0.0) for d in decode])
        engines, makers = zip(*((p.case.engine, p.case.gpu.vendor) for p in points), strict=True)
        releases = [str(p.features["version"]) for p in points]
        self.pieced = np.array([d.get("beyond_whole", 0.0) for d in decode])
        self.within = np.array([*map(scaled_within, engines, releases, makers)])
        self.untuned = np.array(["prompt_factor" in p.replica.scope for p in points])
        self.overlapped = np.array([*map(asynchronous, engines, releases)])
        self.dense = np.array([not d.get("expert_layers") for d in decode])
        self.latent = np.array([float("kv_rank" in d) for d in decode])
        self.seconds = np.array([point.value / 1e3 for point, _ in pairs])
        self.batch = np.array([p.sequences for p in points])
        self.stalled = self.batch * np.array([d["stalling_ranks"] for d in decode])
        self.share, self.uncached = (
            np.array([p.replica.scope[name].value for p in points])
            for name in ("burst_share", "uncached_burst")
        )
        self.at_random = np.array([p.replica.service.start.at_random for p in points])
        self.in_step, self.step_prompts, self.step_part = (
            np.array(values)
            for values in zip(*((_in_step(p.replica)) for p in points), strict=True)
        )
        self.output = np.array([p.replica.service.tokens.output_mean.value for p in points])
        self.decode = self._kernels(decode)
        self.prefill = self._kernels(prefill)
        self.full = self._kernels([p.replica.full_step for p in points])
        self.growth = np.array([*map(_growth, mixed, self.decode, self.prefill)])
        counts = ("layer_pairs", "expert_layers", "", "sequences", "scaled_inputs")
        shared = ("block_inputs", "linear_layers")
        self.shared = np.array([[d.get(c, 0.0) for c in shared] for d in decode])
        launched = ("cached_layers", "expert_layers", "linear_layers", "index_layers")
        self.launched = np.array([[d.get(c, 0.0) for c in launched] for d in decode])
        self.counts = np.array([[d.get(c, 0.0) if c else 1.0 for c in counts] for d in decode])
        cells = by_cell([str(p.features["cell"]) for p in points], 0.25)
        self.weight = np.where([old(p) for p in points], 0.0, cells)

    @staticmethod
    def _kernels(steps: Iterable[dict[str, float]]) -> np.ndarray:
        return np.array([*map(_parts, steps)])

    def times(
        self, constants: Constants, at: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Time per output token; a prefill's work, the same with overhead, and as the host lets it
        be; the work of a full step."""
        amd = self.amd[at]
        of_amd = {name: constants.get(("amd", name), 1.0) for name in KERNELS}
        factors = np.array([constants[n] * np.where(amd, own, 1.0) for n, own in of_amd.items()]).T
        shared = [constants["block_overhead"], constants["state_overhead"]]
        engine = {
            name: np.array([constants[name, e] for e in ENGINES])[self.engine[at]]
            for name in BY_ENGINE
        }
        slow = np.where(self.untuned[at], constants["amd", "untuned_prompts"], 1.0)
        works = [
            np.maximum(((k[at, :5] * factors).sum(1) + k[at, 5]) * times, k[at, 6])
            for k, times in (
                (self.decode, 1.0),
                (self.prefill, slow),
                (self.full, slow),
                (self.growth, slow),
            )
        ]
        eager = engine["eager_seconds"] * np.where(self.tuned[at], engine["captured"], 1.0)
        kinds = [1.0, *(constants[f"eager_{kind}"] for kind in ("experts", "state", "index"))]
        latent = constants["eager_latent"] * self.latent[at] * self.launched[at, 0]
        launch = eager * (self.launched[at] @ kinds + latent)
        started = constants["piece_seconds"] * self.launched[at] @ [1, 0, 1, 0]
        launch = np.minimum(launch, started + self.beyond[at] * launch)
        ending = np.maximum(self.stalled[at] / np.maximum(self.output[at], 1), 1e-4)
        together = -np.expm1(-ending) / ending
        counts = self.counts[at].T
        names = [name for name in BY_ENGINE if name.endswith("overhead")]
        slower = np.where(amd, constants["amd", "overhead"], 1.0)
        each = {name: slower * engine[name] for name in names}
        each["sequence_overhead"] = each["sequence_overhead"] * np.where(
            self.overlapped[at], constants["overlapped"], 1.0
        )
        scaling = constants["amd", "scaling_overhead"]
        scaling = np.where(amd, scaling, engine["scaling_overhead"])
        scaling = scaling * np.where(self.within[at], constants["scaled_within"], 1.0)
        each["scaling_overhead"] = scaling
        own = sum(each[name] * count for name, count in zip(names, counts, strict=True))
        own = own + self.shared[at] @ shared
        own = own + constants["latent_overhead"] * self.latent[at] * counts[0]
        own = own + slower * constants["unfused_seconds"] * self.unfused[at]
        host = each["sequence_overhead"] * counts[3]
        busy = works[1] + own - host
        decode, prefill = works[0] + own, np.maximum(busy, launch)
        decode = np.maximum(decode, self.pieced[at] * started + host)
        longer = together * np.maximum(launch - decode, 0)
        beside = engine["interference"] * np.where(amd, constants["amd", "interference"], 1.0)
        prompt = np.maximum(beside * works[3], longer)
        stall = (1 - self.share[at] / 2) * self.stalled[at] * prompt
        output = self.output[at]
        excess = stall + output * decode - prefill  # as `latency.TOKEN` of the sizing solves it
        token = (excess + np.sqrt(excess**2 + 4 * output * decode * prefill)) / (2 * output)
        return token, works[1], busy, prefill, works[2]
