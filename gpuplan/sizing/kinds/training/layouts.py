"""Layouts of a training run that no engine here is run with: tensor, pipeline, expert parallelism.

The same formulas as of the search, so that a person learns what would hold a run that data-parallel
GPUs cannot. Sources: Narayanan (2021) for layouts, Korthikanti (2022) for what they divide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuplan.models.model import Transformer
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.hardware.devices import Device, whole
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training.load import run_inputs
from gpuplan.sizing.kinds.training.search import MOST_NODES, USABLE, method
from gpuplan.sizing.physics.training.division import Division, Recompute
from gpuplan.sizing.physics.training.prepared import link, prepare
from gpuplan.sizing.physics.training.run import Run
from gpuplan.sizing.physics.training.speed import unmeasured

ENGINE = "megatron-lm"
STAGES = (1, 2, 4, 8, 16)  # embeddings and head fill those that layers leave uneven
MICRO_BATCHES = (1, 2, 4)
RECOMPUTES: tuple[Recompute, ...] = ("none", "full")


def fastest(demand: TrainingDemand, site: Site) -> tuple[Device, Division] | None:
    """On the fewest GPUs of any offer that hold the run, its fastest layout."""
    found: list[tuple[int, float, Device, Division]] = []
    for offer in site.gpus:
        device = whole(offer)
        if unsupported(device.gpu, demand.precision) or unmeasured(device.gpu):
            continue
        for gpus in _counts(device, site):
            times = list(_fitting(demand, site, device, gpus))
            if times:
                seconds, division = min(times, key=lambda pair: pair[0])
                found.append((gpus, seconds, device, division))
                break
    if not found:
        return None
    _, _, device, division = min(found, key=lambda x: x[:2])
    return device, division


def words(demand: TrainingDemand, site: Site) -> str:
    """What would hold the run, in words; empty where nothing does."""
    found = fastest(demand, site)
    if found is None:
        return ""
    device, of = found
    parts = [("tensor", of.tensor), ("pipeline", of.pipeline), ("expert", of.expert)]
    sizes = [f"{name} parallel {size}" for name, size in parts if size > 1]
    listed = ", ".join([*sizes, f"data parallel {of.replicas:g}"])
    return f"{of.gpus} × {device.gpu.identifier} hold it with {listed}, which gpuplan does not run"


def _counts(device: Device, site: Site) -> Iterator[int]:
    """Whole nodes, twice as many each time."""
    room = device.offer.gpus_per_node
    nodes, most = 1, device.offer.node_count
    most = MOST_NODES if most is None else most
    while nodes <= (most if site.fabric else 1):
        yield nodes * room
        nodes *= 2


def _fitting(
    demand: TrainingDemand, site: Site, device: Device, gpus: int
) -> Iterator[tuple[float, Division]]:
    """Seconds of a step of each layout that fits."""
    model, links = demand.model, link(device, gpus, site.fabric)
    if links is None:
        return
    numbers = run_inputs(demand) | links | {"usable_fraction": USABLE} | _network(device, site)
    prepared = prepare(model, device, method(demand), ENGINE, many=gpus > 1).given(numbers)
    batch = int(demand.global_batch)
    for division in _divisions(model, device, gpus):
        run = Run(prepared, division)
        for micro in MICRO_BATCHES:
            if batch % (division.replicas * micro) == 0:
                values = run.at(micro)
                if values["used_bytes"] <= values["usable_bytes"]:
                    yield values["step_seconds"], division


def _network(device: Device, site: Site) -> Scope:
    room = constant(device.offer.gpus_per_node, "1", "GPUs of a node")
    rate = site.fabric.bytes_per_s_per_gpu if site.fabric else 1.0
    return {"domain_gpus": room, "network_rate": constant(rate, "B/s", "platform.fabric")}


def _divisions(model: Transformer, device: Device, gpus: int) -> Iterator[Division]:
    """Tensor parallelism inside a node, stages, experts over replicas of a node."""
    room = device.offer.gpus_per_node
    for tensor in (n for n in (1, 2, 4, 8) if n <= room and model.attention_heads % n == 0):
        for pipeline in (n for n in STAGES if n <= model.layers):
            if gpus % (tensor * pipeline):
                continue
            for recompute in RECOMPUTES:
                plain = Division(gpus, "zero1", recompute, tensor=tensor, pipeline=pipeline)
                yield plain
                experts = min(room, int(plain.replicas))
                if model.experts and experts > 1 and model.experts.count % experts == 0:
                    yield replace(plain, expert=experts)
