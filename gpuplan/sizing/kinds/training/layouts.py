"""Kinds of layouts of a run: the best of each that lost, and what would hold a run whose engine
divides no model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gpuplan.plan.model import Layout
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.efficiency import unsupported
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training import parallel
from gpuplan.sizing.kinds.training.judge import SizedRun, parallelism
from gpuplan.sizing.physics.training.division import Division
from gpuplan.sizing.physics.training.speed import unmeasured

SHARDED = {
    "zero2": "gradients sharded",
    "zero3": "fully sharded",
    "hsdp": "fully sharded inside groups",
}


def kind(division: Division) -> str:
    """`tensor, pipeline parallel`, `data parallel`, `fully sharded`."""
    sizes = {
        "tensor": division.tensor,
        "context": division.context,
        "pipeline": division.pipeline,
        "expert": division.expert,
    }
    names = ", ".join(name for name, size in sizes.items() if size > 1)
    sharded = SHARDED.get(division.sharding, "")
    return ", ".join(filter(None, [sharded, f"{names} parallel" if names else ""])) or (
        "data parallel"
    )


def rivals(demand: TrainingDemand, site: Site, chosen: Candidate[SizedRun]) -> tuple[Layout, ...]:
    """The fastest of each other kind on as many GPUs, or the one that lacks least memory; none of
    runs whose engine divides no model."""
    own = chosen.evaluated
    engine = own.run.prepared.subject.framework
    if engine not in parallel.ENGINES:
        return ()
    best: dict[str, tuple[bool, float, parallel.Rows, int]] = {}
    for table in parallel.evaluated(demand, site, chosen.device, engine, chosen.gpus):
        for row in range(table.columns["gpus"].size):
            used, usable = (table.values[n][row] for n in ("used_bytes", "usable_bytes"))
            name = kind(table.run(row, table.prepared, 0.5)[0].division)
            held = bool(used <= usable)
            merit = float(table.values["modelled_step_seconds"][row] if held else used)
            if name not in best or (not held, merit) < best[name][:2]:
                best[name] = (not held, merit, table, row)
    best.pop(kind(own.run.division), None)
    layouts = [
        _layout(name, parallel.sized(demand, site, chosen.device, table, row))
        for name, (_, _, table, row) in best.items()
    ]
    return tuple(sorted(layouts, key=lambda x: (x.gate != "step", x.step_seconds, x.kind)))


def _layout(name: str, made: SizedRun) -> Layout:
    division, values = made.run.division, made.values
    return Layout(
        kind=name,
        parallelism=parallelism(division),
        virtual_pipeline_stages=division.virtual,
        sharding=division.sharding,
        micro_batch=made.micro_batch,
        recompute=division.recompute,
        step_seconds=float(f"{values['step_seconds']:.6g}"),
        memory_bytes=float(round(values["used_bytes"])),
        gate="step" if values["used_bytes"] <= values["usable_bytes"] else "gpu_memory",
    )


def in_eight_bits(
    demand: TrainingDemand, site: Site, chosen: Candidate[SizedRun]
) -> SizedRun | None:
    """The fastest layout on the same GPUs with products of 8 bits, of a run in bf16 whose engine
    divides models; None where it has none, or the GPUs do not compute so."""
    own = chosen.evaluated
    engine = own.run.prepared.subject.framework
    if engine not in parallel.ENGINES or demand.precision != "bf16":
        return None
    if unsupported(chosen.device.gpu, "fp8"):
        return None
    other = replace(demand, precision="fp8")
    tables = list(parallel.evaluated(other, site, chosen.device, engine, chosen.gpus))
    runs = parallel.corrected(other, site, chosen.device, tables, chosen.gpus)
    return min(runs, key=lambda r: r.values["step_seconds"], default=None)


def words(demand: TrainingDemand, site: Site) -> str:
    """What would hold a run whose engine divides no model, on the fewest GPUs of any type; empty
    where nothing does."""
    if demand.engine.name in parallel.ENGINES or demand.method not in ("full", "pretraining"):
        return ""
    fewest = min(_holding(replace(demand, optimizer="adamw"), site), default=None)
    if fewest is None:
        return ""
    gpus, gpu, sizes = fewest
    return f"{gpus} × {gpu} hold it with {sizes}, which `engine: {parallel.ENGINES[0]}` runs"


def _holding(demand: TrainingDemand, site: Site) -> Iterator[tuple[int, str, str]]:
    for device in map(whole, site.gpus):
        if unsupported(device.gpu, demand.precision) or unmeasured(device.gpu):
            continue
        tables = list(parallel.evaluated(demand, site, device, parallel.ENGINES[0]))
        fastest = parallel.fastest(tables)
        if fastest:
            gpus, _ = fastest[0]
            _, table, row = parallel.fitting(tables, gpus)[0]
            of = table.run(row, table.prepared, 0.5)[0].division
            parts = [("tensor", of.tensor), ("pipeline", of.pipeline), ("expert", of.expert)]
            sizes = [f"{name} parallel {size}" for name, size in parts if size > 1]
            listed = ", ".join([*sizes, f"data parallel {of.replicas:g}"])
            yield gpus, device.gpu.identifier, listed
