"""Runs of engines that divide a model: tensor, pipeline, context and expert parallelism with
replicas, on every number of GPUs.

All layouts are evaluated as arrays by the formulas alone; of each number of GPUs the fastest of
them are then corrected by measured points, as `docs/accuracy.md` scores them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpuplan.frozen import frozen
from gpuplan.plan.model import Engine, Fabric
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.gates import memory_gate, refused
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.hardware.devices import Device, fabric_rate, quantity
from gpuplan.sizing.hardware.domains import in_domain
from gpuplan.sizing.hardware.measured import gate_of
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training import grid
from gpuplan.sizing.kinds.training.failures import lost_share, spares
from gpuplan.sizing.kinds.training.judge import MEMORY, SPLIT, SizedRun, judged, method
from gpuplan.sizing.kinds.training.load import run_inputs
from gpuplan.sizing.memory.margin import USABLE
from gpuplan.sizing.physics.training.bulk import evaluate
from gpuplan.sizing.physics.training.division import COLUMNS, Division, Recompute, Sharding
from gpuplan.sizing.physics.training.prepared import Prepared, link, prepare
from gpuplan.sizing.physics.training.run import Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ENGINES = ("megatron-bridge",)  # those of the catalogue that divide a model
MOST_NODES = 2048  # where the site sets no limit: the largest run whose failures are published
CORRECTED = 4  # layouts of a number of GPUs that are told apart by measured points
DEARER = 1.25  # times the cheapest: then more GPUs are hardly cheaper again
FASTER = 1.5  # no correction makes a step faster by more
STATES = 18.0  # bytes of a weight in training: bf16, fp32 gradient, copy and two moments


def engines(demand: TrainingDemand, site: Site, device: Device) -> Iterator[Engine]:
    """Those that take the run: the one that is asked for; else, of a run whose states the largest
    node with its GPUs cannot hold, the others of its task."""
    trained = demand.method in ("full", "pretraining") and demand.optimizer == "adamw"
    if demand.engine.name in ENGINES:
        if trained:
            yield demand.engine
        return
    alike = [o for o in site.gpus if o.gpu.identifier == device.gpu.identifier]
    largest = max((o.gpus_per_node for o in alike), default=device.offer.gpus_per_node)
    room = largest * device.memory_bytes.value * USABLE.value
    if trained and not demand.command and STATES * demand.model.parameters > room:
        yield from (engine for engine in demand.others if engine.name in ENGINES)


@frozen
class Rows:
    """Layouts of one kind of sharding and recomputation, evaluated. `prepared` is of runs inside a
    node, or of those over nodes."""

    prepared: Prepared
    sharding: Sharding
    recompute: Recompute
    columns: dict[str, Array]
    values: dict[str, Array]

    def run(self, row: int, prepared: Prepared, confidence: float) -> tuple[Run, int]:
        sizes = {name: int(self.columns[name][row]) for name in COLUMNS}
        division = Division(sharding=self.sharding, recompute=self.recompute, **sizes)
        return Run(prepared, division, confidence), int(self.columns["micro_batch"][row])


def candidates(
    demand: TrainingDemand, site: Site, device: Device, engine: Engine, patience: float
) -> Iterator[Candidate[SizedRun]]:
    """The fastest layout of each number of GPUs on which more of them are faster: until `patience`
    more in a row are much dearer than the cheapest."""
    tables = list(evaluated(demand, site, device, engine.name))
    if not any(t.columns["gpus"].size for t in tables):
        gate = gate_of("heads, layers, experts and batch", "undivided")
        yield refused(demand, device, device.offer.gpus_per_node, gate, passed=SPLIT)
        return
    counts = fastest(tables)
    if not counts:
        yield _too_large(demand, device, tables)
        return
    least, worse, limit = math.inf, 0, demand.limit.first
    steps = run_inputs(demand)["steps"].value
    for number, (gpus, seconds) in enumerate(counts):
        last = number == len(counts) - 1
        if limit is not None and not last and seconds * steps > FASTER * limit.value:
            continue
        candidate = _candidate(demand, site, device, tables, gpus)
        yield candidate
        if not candidate.feasible:
            continue
        cost = float(candidate.whole_gpus) * candidate.weight
        worse = worse + 1 if cost > DEARER * least else 0
        least = min(least, cost)
        if worse >= patience:
            return


def evaluated(
    demand: TrainingDemand, site: Site, device: Device, engine: str, gpus: int | None = None
) -> Iterator[Rows]:
    """Every layout, inside a node and over nodes; on `gpus` alone where they are given."""
    import numpy as np

    chosen = demand.overrides.gpu_count if gpus is None else gpus
    room, batch = device.offer.gpus_per_node, int(demand.global_batch)
    nodes = device.offer.node_count or MOST_NODES
    micro = demand.overrides.micro_batch
    shapes = list(grid.shapes(demand.model, device, int(demand.sequence_length)))
    every = grid.columns(
        shapes,
        batch,
        room,
        room * (nodes if site.fabric else min(nodes, device.offer.nvlink_nodes)),
        micro=None if micro is None else int(micro),
        gpus=None if chosen is None else int(chosen),
    )
    standby = spares(demand, site)
    for first, counts in _alike(every["gpus"], device, site.fabric, standby):
        near = every["tensor"] * every["context"] <= grid.tight(device, first, standby)
        here = _picked(every, np.isin(every["gpus"], counts) & near)
        links = link(device, first, site.fabric, standby)
        if links is None:
            return  # nothing joins nodes
        prepared = _prepared(demand, site, device, engine, links)
        for sharding, recompute in _kinds(demand):
            if sharding == "hsdp" and "fabric_rate" not in links:
                continue  # groups that a slow network joins
            rows = here
            if sharding != "zero1":  # Megatron-FSDP: no pipeline, experts as others
                several = here["gpus"] > here["tensor"] * here["context"]
                rows = _picked(here, several & (here["pipeline"] * here["expert"] == 1))
            if sharding == "hsdp":
                rows = grid.copied(rows, room)
            if rows["gpus"].size:
                values = evaluate(prepared, rows, sharding, recompute, demand.confidence.value)
                yield Rows(prepared, sharding, recompute, rows, values)


def _alike(
    gpus: Array, device: Device, fabric: Fabric | None, standby: int
) -> Iterator[tuple[int, list[int]]]:
    """Numbers of GPUs of runs whose links are the same, after the fewest of them: inside a node,
    over the nodes of an NVLink domain, and over those of a switch, of several."""
    room = device.offer.gpus_per_node
    switch = (fabric.nodes_per_switch or 1) if fabric and fabric.oversubscription else 1
    by_kind = dict[int, list[int]]()
    for count in sorted({int(n) for n in gpus}):
        nodes = -(-count // room)
        near = in_domain(device, nodes, standby)
        kind = 0 if nodes == 1 else 1 if near else 2 if nodes <= switch else 3
        by_kind.setdefault(kind, []).append(count)
    for _, counts in sorted(by_kind.items()):
        yield counts[0], counts


def _picked(columns: dict[str, Array], members: Any) -> dict[str, Array]:
    return {name: values[members] for name, values in columns.items()}


def _kinds(demand: TrainingDemand) -> Iterator[tuple[Sharding, Recompute]]:
    """The distributed optimizer (ZeRO-1), or Megatron-FSDP's ways: with gradients, whole, or whole
    inside groups of nodes."""
    shardings: tuple[Sharding, ...] = ("zero1", "zero2", "zero3", "hsdp")
    recomputes: tuple[Recompute, ...] = ("none", "full")
    for sharding in shardings:
        for recompute in recomputes:
            if demand.sharding in (None, sharding) and demand.recompute in (None, recompute):
                yield sharding, recompute


def _prepared(
    demand: TrainingDemand, site: Site, device: Device, engine: str, links: Scope
) -> Prepared:
    prepared = prepare(
        demand.model, device, method(demand), engine, many=True, anchors=demand.anchors
    )
    network = links.get("fabric_rate", quantity(device.gpu.link_bytes_per_s))
    if "fabric_rate" not in links and site.fabric is not None:
        network = fabric_rate(device.offer, site.fabric, 1)
    return prepared.given(
        run_inputs(demand)
        | links
        | {
            "usable_fraction": USABLE,
            "domain_gpus": constant(_joined(device, links), "1", "GPUs that NVLink joins"),
            "network_rate": network,
            "lost_share": constant(0, "1", "before the number of nodes is known"),
        }
    )


def _joined(device: Device, links: Scope) -> int:
    """Those of a node, where a run goes beyond its domain: nothing keeps its experts inside one."""
    whole = grid.domain(device)
    return min(whole, device.offer.gpus_per_node) if "fabric_rate" in links else whole


def fastest(tables: list[Rows]) -> list[tuple[int, float]]:
    """Numbers of GPUs with the seconds of their fastest step that fits, each faster than all
    smaller ones."""
    import numpy as np

    if not tables:
        return []
    gpus = np.concatenate([t.columns["gpus"] for t in tables])
    steps = np.concatenate([t.values["modelled_step_seconds"] for t in tables])
    holds = np.concatenate([t.values["used_bytes"] <= t.values["usable_bytes"] for t in tables])
    gpus, steps = gpus[holds], steps[holds]
    order = np.lexsort((steps, gpus))
    faster, best = list[tuple[int, float]](), math.inf
    for row in order:
        if steps[row] < best:
            best = float(steps[row])
            faster.append((int(gpus[row]), best))
    return faster


def fitting(tables: list[Rows], gpus: int) -> list[tuple[float, Rows, int]]:
    """Layouts on so many GPUs that memory holds, the fastest first."""
    import numpy as np

    layouts = list[tuple[float, int, int]]()
    for place, table in enumerate(tables):
        holds = table.values["used_bytes"] <= table.values["usable_bytes"]
        rows = np.flatnonzero(holds & (table.columns["gpus"] == gpus))
        steps = table.values["modelled_step_seconds"][rows]
        first = np.argsort(steps, kind="stable")[:CORRECTED]
        layouts += [(float(steps[row]), place, int(rows[row])) for row in first]
    return [(seconds, tables[place], row) for seconds, place, row in sorted(layouts)]


def sized(demand: TrainingDemand, site: Site, device: Device, table: Rows, row: int) -> SizedRun:
    """A layout as a plan has it: corrected by measured points, with what failures take."""
    nodes = math.ceil(table.columns["gpus"][row] / device.offer.gpus_per_node)
    lost = lost_share(demand, site, table.prepared.scope, nodes)
    prepared = table.prepared.given({"lost_share": lost})
    run, micro = table.run(row, prepared, demand.confidence.value)
    return SizedRun(run, micro, run.at(micro))


def corrected(
    demand: TrainingDemand, site: Site, device: Device, tables: list[Rows], gpus: int
) -> list[SizedRun]:
    """As plans have them, the layouts on so many GPUs that formulas alone say are the fastest."""
    nearest = fitting(tables, gpus)[:CORRECTED]
    return [sized(demand, site, device, table, row) for _, table, row in nearest]


def _candidate(
    demand: TrainingDemand, site: Site, device: Device, tables: list[Rows], gpus: int
) -> Candidate[SizedRun]:
    runs = corrected(demand, site, device, tables, gpus)
    return judged(demand, site, device, min(runs, key=lambda x: x.values["step_seconds"]))


def _too_large(demand: TrainingDemand, device: Device, tables: list[Rows]) -> Candidate[SizedRun]:
    """The layout that lacks least memory."""
    import numpy as np

    def least(table: Rows) -> int:
        return int(np.argmin(table.values["used_bytes"]))

    table = min(tables, key=lambda t: float(t.values["used_bytes"][least(t)]))
    row = least(table)
    used, usable = (float(table.values[n][row]) for n in ("used_bytes", "usable_bytes"))
    gate, flip = memory_gate(device, used, usable, float(round(used / USABLE.value)))
    gpus = int(table.columns["gpus"][row])
    return refused(demand, device, gpus, gate, passed=MEMORY, flip=flip)
